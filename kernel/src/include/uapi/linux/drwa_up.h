/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * DRWA on the uplink: the qdisc drwa_up, as tc and netd see it
 */
#ifndef _UAPI_LINUX_DRWA_UP_H
#define _UAPI_LINUX_DRWA_UP_H

#include <linux/types.h>

/* In TCA_OPTIONS; what is absent keeps its value, or has its default. */
enum {
	TCA_DRWA_UP_UNSPEC,
	TCA_DRWA_UP_TARGET,	/* u32, us that the modem's queue may take */
	TCA_DRWA_UP_MUX,	/* u32, of the modem's interface, whose grants it hears; 0: none */
	__TCA_DRWA_UP_MAX,
};

#define TCA_DRWA_UP_MAX		(__TCA_DRWA_UP_MAX - 1)

#define DRWA_UP_TARGET_MIN_US	1000
#define DRWA_UP_TARGET_MAX_US	1000000

/* What the gate does now */
enum {
	DRWA_UP_START,		/* no queue has shown yet */
	DRWA_UP_HOLD,		/* the queue is held to the target */
	DRWA_UP_DRAIN,		/* none is wanted, to see the path's own delay */
	DRWA_UP_OPEN,		/* nobody answers: all may pass */
};

/* In TCA_STATS_APP and TCA_XSTATS; longer ones may come, with more behind. */
struct tc_drwa_up_xstats {
	__u64	rate;		/* what leaves the modem, bytes per second */
	__u32	window_bytes;	/* what may be released and not known to have left */
	__u32	in_flight_bytes; /* what is */
	__u32	delay_us;	/* queue in the modem that the last answer met */
	__u32	age_us;		/* RTT without that queue */
	__u32	phase;		/* DRWA_UP_... */
	__u32	marks;		/* packets marked */
	__u32	answers;	/* answers that told of something new */
	__u32	drains;		/* how often DRWA_UP_DRAIN began */
	__u32	jumps;		/* how often the path became longer */
	__u32	opened;		/* how often DRWA_UP_OPEN began */
	__u32	shorts;		/* short packets that passed at once */
	__u32	told;		/* the modem's driver tells, and answers are not needed */
};

#endif /* _UAPI_LINUX_DRWA_UP_H */
