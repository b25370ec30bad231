// SPDX-License-Identifier: GPL-2.0-only
/* Peers of the uplink's gate: what else could hold back what the modem gets
 *
 * Packets of LABGATE_SHORT bytes or less pass at once, the others wait in the
 * child (fq_codel, grafted with tc) for one of these:
 *
 *  bytes   QCUT-B: fewer than so many bytes are in the modem
 *  target  QCUT-D: the modem drains in less than this at its rate of late
 *  rate    a shaper's clock; the agent turns it as cake-autorate does
 *
 * QCUT (Guo et al., IMC 2016) reads the modem's occupancy from a diagnostic port
 * that is closed today. Here the modem itself tells, so that both are bounds of
 * what a gate can reach that has to guess.
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "lab_modem.h"

/* Shared with the agent's spec, drwalab/network.py. */
enum {
	TCA_LABGATE_UNSPEC,
	TCA_LABGATE_BYTES,	/* u32 */
	TCA_LABGATE_TARGET,	/* u32, us */
	TCA_LABGATE_RATE,	/* u32, bytes per second */
	__TCA_LABGATE_MAX,
};

#define TCA_LABGATE_MAX		(__TCA_LABGATE_MAX - 1)
#define LABGATE_SHORT		256	/* bytes */
#define LABGATE_SHORT_LIMIT	1000	/* packets */
#define LABGATE_SAMPLES		64
#define LABGATE_SAMPLE_NS	(2 * NSEC_PER_MSEC)	/* least, between samples */
#define LABGATE_SPAN_NS		(100 * NSEC_PER_MSEC)	/* of a rate */
#define LABGATE_LEAST		3000	/* bytes that always may be in the modem */

struct labgate_sched_data {
	struct lablink_child child;	/* for long packets; first */
	struct sk_buff_head short_queue;
	struct qdisc_watchdog watchdog;
	const struct lab_modem *modem;
	u32		bytes;
	u32		target_us;
	u32		rate;

	u64		next_ns;	/* rate: when the next packet may leave */

	/* target: what had crossed the modem's radio, at instants of late */
	u64		crossing;	/* bytes per second */
	u64		closed_ns;	/* when a packet was last held back */
	u32		samples;
	struct {
		u64	ns, crossed;
	} sample[LABGATE_SAMPLES];
};

static const struct nla_policy labgate_policy[TCA_LABGATE_MAX + 1] = {
	[TCA_LABGATE_BYTES]	= { .type = NLA_U32 },
	[TCA_LABGATE_TARGET]	= { .type = NLA_U32 },
	[TCA_LABGATE_RATE]	= { .type = NLA_U32 },
};

/* The modem's rate over LABGATE_SPAN_NS. */
static void labgate_measure(struct labgate_sched_data *q, u64 now)
{
	u32 oldest = q->samples > LABGATE_SAMPLES ? q->samples - LABGATE_SAMPLES : 0;
	u64 since_ns, crossing;
	u32 i = q->samples;

	if (i && now < q->sample[(i - 1) % LABGATE_SAMPLES].ns + LABGATE_SAMPLE_NS)
		return;
	while (i > oldest && q->sample[(i - 1) % LABGATE_SAMPLES].ns + LABGATE_SPAN_NS > now)
		i--;
	q->sample[q->samples % LABGATE_SAMPLES].ns = now;
	q->sample[q->samples % LABGATE_SAMPLES].crossed = q->modem->crossed;
	q->samples++;
	if (i == oldest)
		return;
	i = (i - 1) % LABGATE_SAMPLES;
	since_ns = q->sample[i].ns;
	crossing = div64_u64((q->modem->crossed - q->sample[i].crossed) * NSEC_PER_SEC,
			     now - since_ns);
	/* A load that pauses says nothing against the link. */
	if (crossing > q->crossing || q->closed_ns > since_ns + (now - since_ns) / 2)
		q->crossing = crossing;
}

static u64 labgate_window(const struct labgate_sched_data *q)
{
	if (q->bytes)
		return q->bytes;
	return max_t(u64, div_u64(q->crossing * q->target_us, USEC_PER_SEC), LABGATE_LEAST);
}

static bool labgate_open(struct labgate_sched_data *q, u64 now)
{
	if (q->rate) {
		if (now >= q->next_ns)
			return true;
		qdisc_watchdog_schedule_ns(&q->watchdog, q->next_ns);
		return false;
	}
	if (q->target_us)
		labgate_measure(q, now);
	/* The modem asks again whenever a packet has left it. */
	if (q->modem->bytes < labgate_window(q))
		return true;
	q->closed_ns = now;
	return false;
}

static int labgate_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct labgate_sched_data *q = qdisc_priv(sch);

	if (qdisc_pkt_len(skb) > LABGATE_SHORT)
		return lablink_queue_child(skb, sch, to_free);
	if (skb_queue_len(&q->short_queue) >= LABGATE_SHORT_LIMIT)
		return qdisc_drop(skb, sch, to_free);
	__skb_queue_tail(&q->short_queue, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *labgate_dequeue(struct Qdisc *sch)
{
	struct labgate_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = __skb_dequeue(&q->short_queue);
	u64 now = ktime_get_ns();

	if (!skb && q->child.qdisc->q.qlen && labgate_open(q, now))
		skb = qdisc_dequeue_peeked(q->child.qdisc);
	if (!skb)
		return NULL;
	if (q->rate)
		q->next_ns = max(q->next_ns, now) +
			     div_u64((u64)qdisc_pkt_len(skb) * NSEC_PER_SEC, q->rate);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void labgate_reset(struct Qdisc *sch)
{
	struct labgate_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->child.qdisc);
	__skb_queue_purge(&q->short_queue);
	qdisc_watchdog_cancel(&q->watchdog);
	q->samples = 0;
	q->next_ns = 0;
}

static int labgate_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct labgate_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_LABGATE_MAX + 1];
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested_deprecated(tb, TCA_LABGATE_MAX, opt, labgate_policy, extack);
	if (err < 0)
		return err;
	if (!!tb[TCA_LABGATE_BYTES] + !!tb[TCA_LABGATE_TARGET] + !!tb[TCA_LABGATE_RATE] != 1)
		return -EINVAL;
	if (!tb[TCA_LABGATE_RATE] && !q->modem) {
		NL_SET_ERR_MSG(extack, "labgate: needs a lablink with a modem above it");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	q->bytes = tb[TCA_LABGATE_BYTES] ? nla_get_u32(tb[TCA_LABGATE_BYTES]) : 0;
	q->target_us = tb[TCA_LABGATE_TARGET] ? nla_get_u32(tb[TCA_LABGATE_TARGET]) : 0;
	q->rate = tb[TCA_LABGATE_RATE] ? nla_get_u32(tb[TCA_LABGATE_RATE]) : 0;
	sch_tree_unlock(sch);
	return q->bytes || q->target_us || q->rate ? 0 : -EINVAL;
}

static int labgate_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct labgate_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	__skb_queue_head_init(&q->short_queue);
	q->modem = lablink_modem(sch);
	q->child.qdisc = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
					   TC_H_MAKE(sch->handle, 1), extack);
	if (!q->child.qdisc) {
		q->child.qdisc = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->child.qdisc, true);
	return labgate_change(sch, opt, extack);
}

static void labgate_destroy(struct Qdisc *sch)
{
	struct labgate_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child.qdisc);
}

static int labgate_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return skb->len;
}

static struct Qdisc_ops labgate_qdisc_ops __read_mostly = {
	.cl_ops		= &lablink_class_ops,
	.id		= "labgate",
	.priv_size	= sizeof(struct labgate_sched_data),
	.enqueue	= labgate_enqueue,
	.dequeue	= labgate_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= labgate_init,
	.reset		= labgate_reset,
	.destroy	= labgate_destroy,
	.change		= labgate_change,
	.dump		= labgate_dump,
	.owner		= THIS_MODULE,
};

static int __init labgate_module_init(void)
{
	return register_qdisc(&labgate_qdisc_ops);
}

module_init(labgate_module_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Peers of the uplink's gate, for the DRWA network lab");
