// SPDX-License-Identifier: GPL-2.0-only
/* The KUnit suite of the gate's law as a module, for a kernel with CONFIG_KUNIT */
#include "../src/net/sched/drwa_up_test.c"
