// SPDX-License-Identifier: GPL-2.0-only
/* Cellular link of the network lab: a serial line with a deep queue
 *
 * One packet at a time crosses the link. Two clocks can drive it:
 *
 *  rate   a packet of n bytes takes n * 8 / rate; a rate of 0 is an outage
 *  trace  mahimahi's semantics (Netravali et al., USENIX ATC 2015): every line
 *	   of the trace is an instant in ms at which 1500 bytes can cross. A
 *	   packet may use several opportunities and several small packets may
 *	   share one, but what an empty queue leaves unused is lost. The trace
 *	   starts again at its last instant.
 *
 * Lengths are those of the IP packet, since a radio bearer carries no Ethernet
 * header. The waiting line is a child qdisc (bfifo unless an AQM is grafted).
 * Before the start instant the link is transparent, so that the base RTT can
 * be measured on the same path.
 */
#include <linux/ethtool.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/vmalloc.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sock.h>

/* Shared with the agent, kernel/lab/guest/agent.c. */
enum {
	TCA_LABLINK_UNSPEC,
	TCA_LABLINK_RATE_BPS,	/* u64, bits per second */
	TCA_LABLINK_TRACE,	/* string, path of a file of native u32, ms */
	TCA_LABLINK_LIMIT,	/* u32, bytes in the default child */
	TCA_LABLINK_START,	/* u64, CLOCK_MONOTONIC ns */
	TCA_LABLINK_PAD,
	__TCA_LABLINK_MAX,
};

#define TCA_LABLINK_MAX		(__TCA_LABLINK_MAX - 1)
#define LABLINK_OPPORTUNITY	1500	/* bytes, mahimahi's packet size */
#define LABLINK_TRACE_MAX	(64 << 20)	/* bytes; 16 M opportunities */

struct lablink_sched_data {
	struct Qdisc	*qdisc;		/* the waiting line */
	struct qdisc_watchdog watchdog;
	u64		rate_bps;
	u64		start_ns;
	u64		tx_end_ns;	/* end of the head's transmission, 0: idle */
	u64		free_ns;	/* rate: instant the line became free */

	u32		*trace_ms;
	size_t		trace_len;
	size_t		trace_idx;	/* next opportunity */
	u64		trace_base_ns;	/* start of the current turn */
	bool		armed;		/* that opportunity is waited for */
	u32		budget;		/* bytes left of the current opportunity */
	u32		head_sent;	/* bytes of the head that crossed already */
};

static const struct nla_policy lablink_policy[TCA_LABLINK_MAX + 1] = {
	[TCA_LABLINK_RATE_BPS]	= { .type = NLA_U64 },
	[TCA_LABLINK_TRACE]	= { .type = NLA_NUL_STRING },
	[TCA_LABLINK_LIMIT]	= { .type = NLA_U32 },
	[TCA_LABLINK_START]	= { .type = NLA_U64 },
};

static int lablink_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	unsigned int len = skb->len - skb_network_offset(skb);
	int ret;

	/* The queue is the modem's or the base station's: TCP small queues,
	 * which account for the sender's own device, do not see it.
	 */
	skb_orphan_partial(skb);
	qdisc_skb_cb(skb)->pkt_len = len;
	ret = qdisc_enqueue(skb, q->qdisc, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* True when the head may leave at @now; else the watchdog is set. */
static bool lablink_rate_ready(struct lablink_sched_data *q, u32 len, u64 now)
{
	if (!q->rate_bps)
		return false;
	if (!q->tx_end_ns)
		q->tx_end_ns = max(q->free_ns, now) +
			       div64_u64((u64)len * 8 * NSEC_PER_SEC, q->rate_bps);
	if (now < q->tx_end_ns) {
		qdisc_watchdog_schedule_ns(&q->watchdog, q->tx_end_ns);
		return false;
	}
	q->free_ns = q->tx_end_ns;
	q->tx_end_ns = 0;
	return true;
}

static u64 lablink_opportunity_ns(const struct lablink_sched_data *q)
{
	return q->trace_base_ns + (u64)q->trace_ms[q->trace_idx] * NSEC_PER_MSEC;
}

static void lablink_next_opportunity(struct lablink_sched_data *q)
{
	if (++q->trace_idx == q->trace_len) {
		q->trace_base_ns += (u64)q->trace_ms[q->trace_len - 1] *
				    NSEC_PER_MSEC;
		q->trace_idx = 0;
	}
}

static bool lablink_trace_ready(struct lablink_sched_data *q, u32 len, u64 now)
{
	for (;;) {
		u32 use = min(q->budget, len - q->head_sent);

		q->head_sent += use;
		q->budget -= use;
		if (q->head_sent == len) {
			q->head_sent = 0;
			return true;
		}
		/* What passed while nothing waited is gone for good. */
		if (!q->armed)
			while (lablink_opportunity_ns(q) < now)
				lablink_next_opportunity(q);
		q->armed = true;
		if (now < lablink_opportunity_ns(q)) {
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   lablink_opportunity_ns(q));
			return false;
		}
		lablink_next_opportunity(q);
		q->budget = LABLINK_OPPORTUNITY;
	}
}

static struct sk_buff *lablink_dequeue(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = q->qdisc->ops->peek(q->qdisc);
	u64 now;

	if (!skb) {
		q->budget = 0;
		q->armed = false;
		return NULL;
	}
	now = ktime_get_ns();
	if (now >= q->start_ns &&
	    !(q->trace_ms ? lablink_trace_ready(q, qdisc_pkt_len(skb), now) :
			    lablink_rate_ready(q, qdisc_pkt_len(skb), now)))
		return NULL;

	skb = qdisc_dequeue_peeked(q->qdisc);
	if (unlikely(!skb))
		return NULL;
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void lablink_reset(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
	qdisc_watchdog_cancel(&q->watchdog);
	q->tx_end_ns = 0;
	q->head_sent = 0;
	q->budget = 0;
	q->armed = false;
}

static int lablink_read_trace(struct lablink_sched_data *q, const char *path,
			      struct netlink_ext_ack *extack)
{
	void *buf = NULL;
	ssize_t len;

	len = kernel_read_file_from_path(path, 0, &buf, LABLINK_TRACE_MAX, NULL,
					 READING_UNKNOWN);
	if (len < 0) {
		NL_SET_ERR_MSG(extack, "lablink: cannot read the trace");
		return len;
	}
	if (!len || len % sizeof(u32) || !((u32 *)buf)[len / sizeof(u32) - 1]) {
		vfree(buf);
		NL_SET_ERR_MSG(extack, "lablink: trace is empty or has no length");
		return -EINVAL;
	}
	vfree(q->trace_ms);
	q->trace_ms = buf;
	q->trace_len = len / sizeof(u32);
	q->trace_idx = 0;
	q->trace_base_ns = q->start_ns;
	return 0;
}

static int lablink_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_LABLINK_MAX + 1];
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested_deprecated(tb, TCA_LABLINK_MAX, opt,
					  lablink_policy, extack);
	if (err < 0)
		return err;

	if (tb[TCA_LABLINK_START])
		q->start_ns = nla_get_u64(tb[TCA_LABLINK_START]);
	if (tb[TCA_LABLINK_TRACE]) {
		err = lablink_read_trace(q, nla_data(tb[TCA_LABLINK_TRACE]),
					 extack);
		if (err)
			return err;
	}

	sch_tree_lock(sch);
	if (tb[TCA_LABLINK_RATE_BPS])
		q->rate_bps = nla_get_u64(tb[TCA_LABLINK_RATE_BPS]);
	/* The head starts over at the new rate. */
	q->tx_end_ns = 0;
	q->free_ns = 0;
	sch_tree_unlock(sch);
	if (q->rate_bps)
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
	return 0;
}

static int lablink_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_LABLINK_MAX + 1];
	u32 limit = 0;
	int err;

	qdisc_watchdog_init(&q->watchdog, sch);
	q->qdisc = &noop_qdisc;
	if (!opt)
		return -EINVAL;
	err = nla_parse_nested_deprecated(tb, TCA_LABLINK_MAX, opt,
					  lablink_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_LABLINK_LIMIT])
		limit = nla_get_u32(tb[TCA_LABLINK_LIMIT]);

	q->qdisc = fifo_create_dflt(sch, &bfifo_qdisc_ops, limit, extack);
	if (IS_ERR(q->qdisc)) {
		err = PTR_ERR(q->qdisc);
		q->qdisc = &noop_qdisc;
		return err;
	}
	qdisc_hash_add(q->qdisc, true);
	return lablink_change(sch, opt, extack);
}

static void lablink_destroy(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->qdisc);
	vfree(q->trace_ms);
}

static int lablink_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_LABLINK_RATE_BPS, q->rate_bps,
			      TCA_LABLINK_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int lablink_dump_class(struct Qdisc *sch, unsigned long cl,
			      struct sk_buff *skb, struct tcmsg *tcm)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static int lablink_graft(struct Qdisc *sch, unsigned long arg,
			 struct Qdisc *new, struct Qdisc **old,
			 struct netlink_ext_ack *extack)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->qdisc);
	return 0;
}

static struct Qdisc *lablink_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	return q->qdisc;
}

static unsigned long lablink_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void lablink_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip &&
	    walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static const struct Qdisc_class_ops lablink_class_ops = {
	.graft	= lablink_graft,
	.leaf	= lablink_leaf,
	.find	= lablink_find,
	.walk	= lablink_walk,
	.dump	= lablink_dump_class,
};

static struct Qdisc_ops lablink_qdisc_ops __read_mostly = {
	.cl_ops		= &lablink_class_ops,
	.id		= "lablink",
	.priv_size	= sizeof(struct lablink_sched_data),
	.enqueue	= lablink_enqueue,
	.dequeue	= lablink_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= lablink_init,
	.reset		= lablink_reset,
	.destroy	= lablink_destroy,
	.change		= lablink_change,
	.dump		= lablink_dump,
	.owner		= THIS_MODULE,
};

static int __init lablink_module_init(void)
{
	return register_qdisc(&lablink_qdisc_ops);
}

module_init(lablink_module_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cellular link of the DRWA network lab");
