// SPDX-License-Identifier: GPL-2.0-only
/* Where the kernel does not have it */
#include "../src/net/sched/drwa_up_dfc.c"
