/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_MINMAX_H
#define _DRWA_TEST_MINMAX_H

#define min(a, b)	({ __typeof__(a) _a = (a), _b = (b); _a < _b ? _a : _b; })
#define max(a, b)	({ __typeof__(a) _a = (a), _b = (b); _a > _b ? _a : _b; })
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, v, a, b)	min_t(type, max_t(type, v, a), b)

#endif
