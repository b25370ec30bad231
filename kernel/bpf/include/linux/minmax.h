/* SPDX-License-Identifier: GPL-2.0-only */
/* min() and max() without branches, each of which the verifier would follow both ways */
#ifndef _DRWA_BPF_MINMAX_H
#define _DRWA_BPF_MINMAX_H

/* All ones if a < b, else 0; they are below 2^63. LLVM would make a branch of it. */
#define drwa_less(a, b)	({						\
	s64 _less = (s64)((u64)(a) - (u64)(b)) >> 63;			\
	asm volatile("" : "+r"(_less));					\
	_less;								\
})
#define min(a, b)	({						\
	__typeof__(a) _a = (a), _b = (b);				\
	(__typeof__(a))(_b ^ ((_a ^ _b) & drwa_less(_a, _b)));		\
})
#define max(a, b)	({						\
	__typeof__(a) _a = (a), _b = (b);				\
	(__typeof__(a))(_a ^ ((_a ^ _b) & drwa_less(_a, _b)));		\
})
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, v, a, b)	min_t(type, max_t(type, v, a), b)

#endif
