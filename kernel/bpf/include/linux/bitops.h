/* SPDX-License-Identifier: GPL-2.0-only */
/* For tcp_drwa_core.c in BPF, whose compilers have no __builtin_clz(). */
#ifndef _DRWA_BPF_BITOPS_H
#define _DRWA_BPF_BITOPS_H

/* No branches, each of which the verifier would follow both ways, and no loop, which
 * it refuses before 5.3.
 */
static __always_inline int fls(unsigned int x)
{
	__u64 above, bits = x;
	int shift, n = 0;

#pragma unroll
	for (shift = 16; shift; shift /= 2) {
		above = bits >> shift;
		asm volatile("" : "+r"(above));
		above = (-above >> 63) * shift;
		bits >>= above;
		n += above;
	}
	return n + bits;
}

#endif
