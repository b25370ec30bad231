/* SPDX-License-Identifier: GPL-2.0-only */
/* The modem of the lab's phone: what its firmware has taken from the host
 *
 * The host's qdisc is in front of it and does not see into it. It is a FIFO of
 * bytes that stops the host's queue when it is full, and takes packets again
 * when an eighth of it has drained. What it took is complete for the host: TCP
 * small queues count the host's qdisc alone.
 *
 * A radio does not send what the base station has not granted. A packet that
 * finds the modem empty makes it ask, and crosses no sooner than @grant_ns
 * later; the opportunities before are another phone's. While the modem has
 * something it goes on being served, unless grants depend on the backlog: then
 * it reports its backlog every @report_ns (3GPP TS 36.321, 5.4.5, BSR), and what
 * a report named may cross from @grant_ns after it on.
 *
 * It may tell its driver how much it still takes, as Qualcomm's do (lab_dfc.c), and then
 * have several bearers, which have equal parts of the radio: by skb->mark, if lab_rmnet.c is above.
 */
#ifndef LAB_MODEM_H
#define LAB_MODEM_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/sch_generic.h>

#define LAB_BEARERS	2
#define LAB_QUANTUM	1500	/* bytes of a bearer's turn (Shreedhar and Varghese, 1995) */

struct lab_modem {
	u32	limit;		/* bytes that stop the host's queue, 0: no modem; by bearer */
	u32	bytes;		/* now in the firmware */
	u32	max_bytes;	/* most so far */
	bool	stopped;
	u64	grant_ns;
	u64	report_ns;	/* between reports, 0: grants do not depend on them */
	u64	reported_ns;	/* the latest report, or the next one */
	u64	crossed;	/* bytes that have left */
	u64	changed_ns;
	u64	byte_ns;	/* bytes in the firmware, summed over time */
	u8	turn;		/* the bearer that is served */
	int	credit[LAB_BEARERS];	/* bytes of its turn that are left */
	u32	held[LAB_BEARERS];	/* bytes by bearer */
	struct sk_buff_head fifo[LAB_BEARERS];
	struct lab_dfc *dfc;	/* NULL: it tells nothing */
};

/* What an agent reads as the link's xstats. */
struct lab_modem_xstats {
	__u64	byte_ns;
	__u32	bytes;
	__u32	max_bytes;
};

void lab_modem_init(struct lab_modem *modem, u32 limit, u64 grant_ns, u64 report_ns);
void lab_modem_reset(struct lab_modem *modem);
bool lab_modem_takes(struct lab_modem *modem);
void lab_modem_put(struct lab_modem *modem, struct sk_buff *skb, u64 now);
struct sk_buff *lab_modem_peek(struct lab_modem *modem);
u64 lab_modem_granted_ns(const struct sk_buff *skb);
struct sk_buff *lab_modem_get(struct lab_modem *modem, u64 now);
struct lab_modem_xstats lab_modem_stats(struct lab_modem *modem, u64 now);

int lab_dfc_init(struct lab_modem *modem, struct Qdisc *sch, u64 late_ns, u32 hidden);
void lab_dfc_destroy(struct lab_modem *modem);
void lab_dfc_run(struct lab_modem *modem, u64 now);
bool lab_dfc_takes(const struct lab_modem *modem);
bool lab_dfc_drives(const struct lab_modem *modem);
u32 lab_dfc_bearer(const struct lab_modem *modem, const struct sk_buff *skb);
void lab_dfc_put(struct lab_modem *modem, u32 bearer, u32 len);
void lab_dfc_left(struct lab_modem *modem, u32 bearer);

/* Of lab_rmnet.c: two transmit queues a bearer, of which the second is for TCP's ACKs */
#define LAB_RMNET_QUEUES	(2 * LAB_BEARERS)
#define LAB_RMNET_ACKS		LAB_BEARERS

u32 lab_rmnet_bearer(const struct sk_buff *skb);
u32 lab_rmnet_queue(struct net_device *dev, u32 bearer);
void lab_dfc_check(struct net_device *dev, u32 bearer, u32 len);
void lab_dfc_drive(struct net_device *dev);

/* First in the private data of the lab's qdiscs: their only child. */
struct lablink_child {
	struct Qdisc *qdisc;
};

extern const struct Qdisc_class_ops lablink_class_ops;
int lablink_queue_child(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);

/* The modem of the link that @sch is a part of, as /dev/diag shows one; or NULL. */
const struct lab_modem *lablink_modem(const struct Qdisc *sch);

#endif
