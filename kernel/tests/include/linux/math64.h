/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_MATH64_H
#define _DRWA_TEST_MATH64_H

#include <linux/types.h>

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#endif
