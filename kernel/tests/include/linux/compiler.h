/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_COMPILER_H
#define _DRWA_TEST_COMPILER_H

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))

#endif
