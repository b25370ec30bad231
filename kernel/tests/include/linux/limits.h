/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_LIMITS_H
#define _DRWA_TEST_LIMITS_H

#define U8_MAX	0xffU
#define U16_MAX	0xffffU
#define U32_MAX	0xffffffffU
#define S64_MAX	0x7fffffffffffffffLL

#endif
