// SPDX-License-Identifier: GPL-2.0-only
/* The gate of the uplink as a module of its own; the same file is built into kernels. */
#include "../src/net/sched/sch_drwa_up.c"
