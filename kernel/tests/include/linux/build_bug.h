/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_BUILD_BUG_H
#define _DRWA_TEST_BUILD_BUG_H

#define static_assert(expr)	_Static_assert(expr, #expr)

#endif
