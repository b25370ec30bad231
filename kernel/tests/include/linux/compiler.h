/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_COMPILER_H
#define _DRWA_TEST_COMPILER_H

/* Not volatile itself, as in the kernel: min() would keep it in memory. */
#define READ_ONCE(x)		((__typeof__((x) + 0))*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))

#endif
