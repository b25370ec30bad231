/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_TCP_H
#define _DRWA_TEST_TCP_H

/* RFC 7323, section 2.3 */
#define TCP_MAX_WSCALE	14U

#endif
