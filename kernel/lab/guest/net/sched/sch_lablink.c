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
 * What radio links do besides can be added:
 *
 *  reorder    a random packet is held back until up to LABLINK_OVERTAKERS later
 *	       ones have crossed, as after a repeated transmission
 *  ack_thin   of a run of pure ACKs of a connection only every n-th one passes,
 *	       and the last one after a moment
 *  promotion  the packet that ends a silence of both directions waits until the
 *	       radio has left its idle state
 *  drx	       a radio without traffic sleeps (connected-mode DRX, 3GPP TS 36.321
 *	       and 38.321, 5.7, long cycle alone): what comes down waits for the
 *	       next on-duration, or until something goes up, whose request for a
 *	       grant finds the base station at any time; a grant either way keeps
 *	       the radio awake until the inactivity timer has run out
 *  outage     nothing crosses until it ends
 *  syn_scale  SYNs leave with this window scale in place of their own, as some
 *	       middleboxes have it
 *  strip_stamps  SYNs leave without timestamps, whose place NOPs take
 *  hand_over  what crossed in an interval leaves together at its end, as a modem
 *	       hands a batch to the phone
 *  modem      the phone's modem (lab_modem.h) has a queue of its own, and the child
 *	       becomes the host's qdisc, which fills it
 *
 * On the way a link can also make another clock of the server's: TSval is
 * rewritten downwards, and what comes back in TSecr upwards, so that the server
 * sees its own. The clock is one and the same for all connections.
 *
 *  clock_ppm  the clock is fast, or slow when negative
 *  clock_tick it counts these many us as one
 *  clock_step it jumps ahead, or stands still for a while when negative
 *  no_stamps  timestamps are removed, also of connections that have begun
 *  lie	       segments from this port claim to be so many ms older, or newer when
 *	       negative, but for a moment in LABLINK_LIE_NS: a queue of the download
 *	       that carries data, a shorter or longer way up of an upload
 *
 * Segments of a large send (TSO) cross one by one. Lengths are those of the IP
 * packet, since a radio bearer carries no Ethernet header. The waiting line is a
 * child qdisc (bfifo unless an AQM is grafted). Before the start instant the
 * link is transparent, so that the base RTT can be measured on the same path.
 */
#include <linux/ethtool.h>
#include <linux/fs.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "lab_modem.h"

/* Declares skb_gso_segment() since 6.5. */
#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

/* Shared with the agent, kernel/lab/guest/agent.c. */
enum {
	TCA_LABLINK_UNSPEC,
	TCA_LABLINK_RATE_BPS,	/* u64, bits per second */
	TCA_LABLINK_TRACE,	/* string, path of a file of native u32, ms */
	TCA_LABLINK_LIMIT,	/* u32, bytes in the default child */
	TCA_LABLINK_START,	/* u64, CLOCK_MONOTONIC ns */
	TCA_LABLINK_PAD,
	TCA_LABLINK_REORDER,	/* u32, packets per million */
	TCA_LABLINK_ACK_THIN,	/* u32, ACKs of which one passes */
	TCA_LABLINK_PROMOTION,	/* u64, ns that a wake-up takes, 0: none */
	TCA_LABLINK_IDLE,	/* u64, ns of silence that let the radio sleep */
	TCA_LABLINK_OUTAGE,	/* u64, ns from now on */
	TCA_LABLINK_HAND_OVER,	/* u64, ns between what leaves together */
	TCA_LABLINK_CLOCK,	/* u32, 1: from the server, 2: to it */
	TCA_LABLINK_CLOCK_PPM,	/* s32 */
	TCA_LABLINK_CLOCK_TICK,	/* u32, us */
	TCA_LABLINK_CLOCK_STEP,	/* s32, ms, from now on */
	TCA_LABLINK_NO_STAMPS,	/* u32, 1: from now on, 0: no more */
	TCA_LABLINK_LIE,	/* s32, ms */
	TCA_LABLINK_LIE_PORT,	/* u32 */
	TCA_LABLINK_FIRMWARE,	/* u32, bytes that stop the host's queue, 0: no modem */
	TCA_LABLINK_GRANT,	/* u64, ns from asking to crossing */
	TCA_LABLINK_REPORT,	/* u64, ns between reports of the backlog, 0: none */
	TCA_LABLINK_DRX_CYCLE,	/* u64, ns, of the way down */
	TCA_LABLINK_DRX_ON,	/* u64, ns of the cycle's beginning, of the way down */
	TCA_LABLINK_DRX_AWAKE,	/* u64, ns from a grant to sleep, 0: none */
	TCA_LABLINK_SYN_SCALE,	/* u32, of the window */
	TCA_LABLINK_STRIP_STAMPS, /* flag, from SYNs */
	TCA_LABLINK_TOLD,	/* u64, ns that the modem takes to tell what it takes, 0: never */
	TCA_LABLINK_HIDDEN,	/* u32, bytes that it does not tell of */
	__TCA_LABLINK_MAX,
};

#define TCA_LABLINK_MAX		(__TCA_LABLINK_MAX - 1)
#define LABLINK_OPPORTUNITY	1500	/* bytes, mahimahi's packet size */
#define LABLINK_TRACE_MAX	(64 << 20)	/* bytes; 16 M opportunities */
#define LABLINK_OVERTAKERS	5	/* packets, at most */
#define LABLINK_HOLD_NS		(50 * NSEC_PER_MSEC)	/* RLC's t-Reordering */
#define LABLINK_RUNS		64
#define LABLINK_RUN_NS		(10 * NSEC_PER_MSEC)	/* an uplink grant's period */
#define LABLINK_CLOCKS		512
#define LABLINK_STEPS		16
#define LABLINK_LIE_NS		(4 * NSEC_PER_SEC)	/* from one true word to the next */
#define LABLINK_TRUE_NS		(100 * NSEC_PER_MSEC)	/* how long that lasts */
#define LABLINK_SUBFRAME_NS	NSEC_PER_MSEC
#define LABLINK_PROBE_PORT	5004	/* the agent's */

/* A run of pure ACKs, of which the newest is held back. */
struct lablink_run {
	struct sk_buff	*ack;
	u32		count;
};

/* The radio of the guest's only phone serves two qdiscs, one a direction. */
static struct {
	spinlock_t	lock;		/* of the instants below */
	u64		last_ns;	/* last packet in either direction */
	u64		ready_ns;	/* end of the latest promotion */
	u64		granted_ns;	/* last grant in either direction */
} lablink_radio = { .lock = __SPIN_LOCK_UNLOCKED(lablink_radio.lock) };

/* Which way a link carries what the server's clock says. */
enum lablink_clock_way {
	LABLINK_CLOCK_NONE,
	LABLINK_FROM_SERVER,
	LABLINK_TO_SERVER,
};

/* A connection, by its ports, and when its clock was first read. */
struct lablink_clock {
	__be16	server_port, phone_port;
	u64	base_ns;
	u32	base_ts, last_ts;
	s64	least_late_us;	/* on the way, since then */
};

/* The guest's only server has one clock, which two qdiscs translate. */
static struct {
	spinlock_t	lock;		/* of all below */
	s32		ppm;
	u32		tick_us;
	s32		lie_ms;
	__be16		lie_port;
	bool		no_stamps;
	u32		steps;
	struct {
		u64	at_ns;
		s32	by_ms;
	} step[LABLINK_STEPS];
	struct lablink_clock flow[LABLINK_CLOCKS];
} lablink_server = {
	.lock = __SPIN_LOCK_UNLOCKED(lablink_server.lock),
	.tick_us = USEC_PER_MSEC,
};

struct lablink_sched_data {
	struct lablink_child child;	/* the waiting line; first */
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

	u64		outage_end_ns;
	u64		promotion_ns;
	u64		idle_ns;
	u64		drx_cycle_ns;	/* 0: of the way up, or none */
	u64		drx_on_ns;
	u64		drx_awake_ns;	/* 0: no DRX */

	u32		reorder_ppm;
	u32		overtakers;	/* packets that still pass the held one */
	u64		held_until_ns;
	struct sk_buff	*held;
	struct rnd_state rnd;

	u64		hand_over_ns;	/* interval of the modem, 0: none */
	u64		batch_ns;	/* when the present batch leaves */
	struct sk_buff_head batch;

	enum lablink_clock_way clock;
	int		syn_scale;	/* -1: theirs */
	bool		strip_stamps;

	struct lab_modem modem;

	u32		ack_thin;
	u64		runs_until_ns;	/* when the runs' ACKs pass, 0: none is held */
	struct lablink_run run[LABLINK_RUNS];
};

static const struct nla_policy lablink_policy[TCA_LABLINK_MAX + 1] = {
	[TCA_LABLINK_RATE_BPS]	= { .type = NLA_U64 },
	[TCA_LABLINK_TRACE]	= { .type = NLA_NUL_STRING },
	[TCA_LABLINK_LIMIT]	= { .type = NLA_U32 },
	[TCA_LABLINK_START]	= { .type = NLA_U64 },
	[TCA_LABLINK_REORDER]	= { .type = NLA_U32 },
	[TCA_LABLINK_ACK_THIN]	= { .type = NLA_U32 },
	[TCA_LABLINK_PROMOTION]	= { .type = NLA_U64 },
	[TCA_LABLINK_IDLE]	= { .type = NLA_U64 },
	[TCA_LABLINK_OUTAGE]	= { .type = NLA_U64 },
	[TCA_LABLINK_HAND_OVER]	= { .type = NLA_U64 },
	[TCA_LABLINK_CLOCK]	= { .type = NLA_U32 },
	[TCA_LABLINK_CLOCK_PPM]	= { .type = NLA_S32 },
	[TCA_LABLINK_CLOCK_TICK] = { .type = NLA_U32 },
	[TCA_LABLINK_CLOCK_STEP] = { .type = NLA_S32 },
	[TCA_LABLINK_NO_STAMPS]	= { .type = NLA_U32 },
	[TCA_LABLINK_LIE]	= { .type = NLA_S32 },
	[TCA_LABLINK_LIE_PORT]	= { .type = NLA_U32 },
	[TCA_LABLINK_FIRMWARE]	= { .type = NLA_U32 },
	[TCA_LABLINK_GRANT]	= { .type = NLA_U64 },
	[TCA_LABLINK_REPORT]	= { .type = NLA_U64 },
	[TCA_LABLINK_DRX_CYCLE]	= { .type = NLA_U64 },
	[TCA_LABLINK_DRX_ON]	= { .type = NLA_U64 },
	[TCA_LABLINK_DRX_AWAKE]	= { .type = NLA_U64 },
	[TCA_LABLINK_SYN_SCALE]	= { .type = NLA_U32 },
	[TCA_LABLINK_STRIP_STAMPS] = { .type = NLA_FLAG },
	[TCA_LABLINK_TOLD]	= { .type = NLA_U64 },
	[TCA_LABLINK_HIDDEN]	= { .type = NLA_U32 },
};

static void lablink_radio_used(const struct lablink_sched_data *q, u64 now)
{
	unsigned long flags;

	if (!q->promotion_ns || now < q->start_ns)
		return;
	spin_lock_irqsave(&lablink_radio.lock, flags);
	if (now > lablink_radio.last_ns + q->idle_ns)
		lablink_radio.ready_ns = now + q->promotion_ns;
	lablink_radio.last_ns = max(now, lablink_radio.ready_ns);
	spin_unlock_irqrestore(&lablink_radio.lock, flags);
}

static bool lablink_is(const struct sk_buff *skb, u8 protocol)
{
	if (skb->protocol == htons(ETH_P_IP))
		return ip_hdr(skb)->protocol == protocol;
	return skb->protocol == htons(ETH_P_IPV6) &&
	       ipv6_hdr(skb)->nexthdr == protocol;
}

/* Those who look at a radio may not keep it awake. */
static bool lablink_is_probe(const struct sk_buff *skb)
{
	__be16 port = htons(LABLINK_PROBE_PORT);

	return lablink_is(skb, IPPROTO_UDP) &&
	       (udp_hdr(skb)->source == port || udp_hdr(skb)->dest == port);
}

static void lablink_granted(const struct lablink_sched_data *q,
			    const struct sk_buff *skb, u64 now)
{
	unsigned long flags;

	if (!q->drx_awake_ns || now < q->start_ns || lablink_is_probe(skb))
		return;
	spin_lock_irqsave(&lablink_radio.lock, flags);
	lablink_radio.granted_ns = now;
	spin_unlock_irqrestore(&lablink_radio.lock, flags);
}

/* The end of this subframe at the latest, since the phone may wake by itself. What
 * crosses at present has a grant in each.
 */
static u64 lablink_asleep_until(struct Qdisc *sch, u64 now)
{
	const struct lablink_sched_data *q = qdisc_priv(sch);
	u64 phase_ns;

	if (!q->drx_cycle_ns || !sch->q.qlen || now < q->start_ns ||
	    q->tx_end_ns || q->head_sent ||
	    now < lablink_radio.granted_ns + q->drx_awake_ns)
		return 0;
	div64_u64_rem(now - q->start_ns, q->drx_cycle_ns, &phase_ns);
	if (phase_ns < q->drx_on_ns)
		return 0;
	return now + min(q->drx_cycle_ns - phase_ns, (u64)LABLINK_SUBFRAME_NS);
}

static u64 lablink_blocked_until(struct Qdisc *sch, u64 now)
{
	const struct lablink_sched_data *q = qdisc_priv(sch);
	u64 until_ns = max(q->outage_end_ns, lablink_asleep_until(sch, now));

	return q->promotion_ns ? max(until_ns, lablink_radio.ready_ns) : until_ns;
}

int lablink_queue_child(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct lablink_child *child = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, child->qdisc, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* Into the line that the link drains: the child, or the modem behind it. */
static int lablink_queue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	if (!q->modem.limit)
		return lablink_queue_child(skb, sch, to_free);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	lab_modem_put(&q->modem, skb, ktime_get_ns());
	return NET_XMIT_SUCCESS;
}

/* An ACK with SACK, ECN's echo or MPTCP's options says something of its own. */
static bool lablink_is_pure_ack(const struct sk_buff *skb)
{
	const struct tcphdr *th = tcp_hdr(skb);

	return tcp_flag_byte(th) == TCPHDR_ACK &&
	       __tcp_hdrlen(th) <= sizeof(*th) + TCPOLEN_TSTAMP_ALIGNED &&
	       skb->len == skb_transport_offset(skb) + __tcp_hdrlen(th);
}

static void lablink_end_run(struct Qdisc *sch, struct lablink_run *run,
			    struct sk_buff **to_free)
{
	if (run->ack)
		lablink_queue(run->ack, sch, to_free);
	run->ack = NULL;
	run->count = 0;
}

static int lablink_thin(struct sk_buff *skb, struct Qdisc *sch, u64 now,
			struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	const struct tcphdr *th = tcp_hdr(skb);
	struct lablink_run *run;
	bool pure;

	run = &q->run[(ntohs(th->source) ^ ntohs(th->dest)) % LABLINK_RUNS];
	pure = lablink_is_pure_ack(skb);
	/* Another connection in the same place ends the run too. */
	if (!pure || (run->ack && (tcp_hdr(run->ack)->source != th->source ||
				   tcp_hdr(run->ack)->dest != th->dest)))
		lablink_end_run(sch, run, to_free);
	if (!pure)
		return lablink_queue(skb, sch, to_free);

	if (run->ack)
		__qdisc_drop(run->ack, to_free);
	run->ack = skb;
	if (++run->count >= q->ack_thin)
		lablink_end_run(sch, run, to_free);
	else if (!q->runs_until_ns)
		q->runs_until_ns = now + LABLINK_RUN_NS;
	return NET_XMIT_SUCCESS;
}

static void lablink_end_runs(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *to_free = NULL;
	int i;

	for (i = 0; i < LABLINK_RUNS; i++)
		lablink_end_run(sch, &q->run[i], &to_free);
	q->runs_until_ns = 0;
	kfree_skb_list(to_free);
}

/* What a clock that was @ms old, after base_ns, says: ms since then. It never
 * goes back, which receivers would take for an old segment (RFC 7323, 5.3).
 */
static u64 lablink_clock_ms(const struct lablink_clock *c, u64 ms)
{
	s64 says = ms + div_s64((s64)ms * lablink_server.ppm, 1000000);
	u32 i;

	for (i = 0; i < lablink_server.steps; i++) {
		s64 at_ms = div_s64(lablink_server.step[i].at_ns - c->base_ns,
				    NSEC_PER_MSEC);
		s32 by_ms = lablink_server.step[i].by_ms;

		/* What came before the connection did is in its offset. */
		if (at_ms < 0 || (s64)ms <= at_ms)
			continue;
		says += by_ms > 0 ? by_ms : -min_t(s64, ms - at_ms, -by_ms);
	}
	return says;
}

/* The us of a segment's ms after which it was sent, which its stamp leaves out: how
 * much later it comes here than the one that came soonest.
 */
static u32 lablink_within_ms(struct lablink_clock *c, u64 ms, u64 now)
{
	s64 late_us = (s64)div_u64(now - c->base_ns, NSEC_PER_USEC) - ms * USEC_PER_MSEC;

	c->least_late_us = min(c->least_late_us, late_us);
	return min_t(s64, late_us - c->least_late_us, USEC_PER_MSEC - 1);
}

/* Its counts after @ms of the server's own. */
static u64 lablink_clock_says(struct lablink_clock *c, u64 ms, u64 now)
{
	u64 us = lablink_clock_ms(c, ms) * USEC_PER_MSEC;

	if (lablink_server.tick_us < USEC_PER_MSEC)
		us += lablink_within_ms(c, ms, now);
	return div_u64(us, lablink_server.tick_us);
}

/* The least age, in the server's own ms, at which the clock says this. */
static u64 lablink_clock_age(const struct lablink_clock *c, u64 says, u64 now)
{
	u64 ms = div_u64(says * lablink_server.tick_us, USEC_PER_MSEC);
	u64 low = 0, high = div_u64(now - c->base_ns, NSEC_PER_MSEC) + MSEC_PER_SEC;

	while (low < high) {
		u64 middle = (low + high) / 2;

		if (lablink_clock_ms(c, middle) < ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static s32 lablink_lie(const struct lablink_clock *c, u64 now)
{
	u64 turn = 0;

	if (c->server_port != lablink_server.lie_port)
		return 0;
	div64_u64_rem(now - c->base_ns, LABLINK_LIE_NS, &turn);
	return turn < LABLINK_TRUE_NS ? 0 : lablink_server.lie_ms;
}

/* The place of a connection; the first word of its server starts it. */
static struct lablink_clock *lablink_clock_of(const struct sk_buff *skb,
					      enum lablink_clock_way way)
{
	const struct tcphdr *th = tcp_hdr(skb);
	__be16 server = way == LABLINK_FROM_SERVER ? th->source : th->dest;
	__be16 phone = way == LABLINK_FROM_SERVER ? th->dest : th->source;
	struct lablink_clock *c;

	c = &lablink_server.flow[(ntohs(server) * 31 + ntohs(phone)) %
				 LABLINK_CLOCKS];
	if (c->base_ns && c->server_port == server && c->phone_port == phone &&
	    !(th->syn && way == LABLINK_FROM_SERVER))
		return c;
	if (way == LABLINK_TO_SERVER)
		return NULL;
	c->server_port = server;
	c->phone_port = phone;
	c->base_ns = 0;
	return c;
}

/* @option: TSval at byte 2, TSecr at byte 6, aligned or not */
static void lablink_translate(struct sk_buff *skb, u8 *option,
			      enum lablink_clock_way way, u64 now)
{
	u8 *stamp = option + (way == LABLINK_FROM_SERVER ? 2 : 6);
	struct lablink_clock *c = lablink_clock_of(skb, way);
	__be32 wire;
	u32 ts;

	memcpy(&wire, stamp, sizeof(wire));
	ts = be32_to_cpu(wire);
	if (!c || !ts)
		return;
	if (!c->base_ns) {
		c->base_ns = now;
		c->base_ts = ts;
		c->last_ts = ts;
		c->least_late_us = 0;
	}
	if (way == LABLINK_TO_SERVER) {
		ts = c->base_ts + lablink_clock_age(c, ts - c->base_ts, now);
	} else {
		ts = c->base_ts + lablink_clock_says(c, ts - c->base_ts, now) -
		     lablink_lie(c, now);
		if ((s32)(ts - c->last_ts) < 0)
			ts = c->last_ts;
		c->last_ts = ts;
	}
	wire = cpu_to_be32(ts);
	memcpy(stamp, &wire, sizeof(wire));
}

/* An option of a segment, whose checksum is left to the last device. */
static u8 *lablink_option(struct sk_buff *skb, u8 kind, u8 size)
{
	unsigned int len = skb_transport_offset(skb) + sizeof(struct tcphdr);
	u8 *option, *end;

	if (!lablink_is(skb, IPPROTO_TCP) || skb->ip_summed != CHECKSUM_PARTIAL ||
	    skb_ensure_writable(skb, len))
		return NULL;
	len = skb_transport_offset(skb) + __tcp_hdrlen(tcp_hdr(skb));
	if (skb_ensure_writable(skb, len))
		return NULL;
	option = (u8 *)(tcp_hdr(skb) + 1);
	end = (u8 *)tcp_hdr(skb) + __tcp_hdrlen(tcp_hdr(skb));
	while (option < end && *option != TCPOPT_EOL) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (option + 1 >= end || option[1] < 2 || option + option[1] > end)
			return NULL;
		if (option[0] == kind && option[1] == size)
			return option;
		option += option[1];
	}
	return NULL;
}

static void lablink_set_clock(struct sk_buff *skb, enum lablink_clock_way way,
			      u64 now)
{
	u8 *option = lablink_option(skb, TCPOPT_TIMESTAMP, TCPOLEN_TIMESTAMP);
	unsigned long flags;

	if (!option)
		return;
	spin_lock_irqsave(&lablink_server.lock, flags);
	lablink_translate(skb, option, way, now);
	if (lablink_server.no_stamps && !tcp_hdr(skb)->syn)
		memset(option, TCPOPT_NOP, TCPOLEN_TIMESTAMP);
	spin_unlock_irqrestore(&lablink_server.lock, flags);
}

static void lablink_rewrite_syn(const struct lablink_sched_data *q, struct sk_buff *skb)
{
	u8 *option;

	if (!lablink_is(skb, IPPROTO_TCP) || !tcp_hdr(skb)->syn)
		return;
	option = q->syn_scale < 0 ? NULL :
				    lablink_option(skb, TCPOPT_WINDOW, TCPOLEN_WINDOW);
	if (option)
		option[2] = q->syn_scale;
	option = !q->strip_stamps ? NULL :
				    lablink_option(skb, TCPOPT_TIMESTAMP,
						   TCPOLEN_TIMESTAMP);
	if (option)
		memset(option, TCPOPT_NOP, TCPOLEN_TIMESTAMP);
}

static int lablink_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u64 now,
			       struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	qdisc_skb_cb(skb)->pkt_len = skb->len - skb_network_offset(skb);
	if (q->ack_thin > 1 && now >= q->start_ns && lablink_is(skb, IPPROTO_TCP))
		return lablink_thin(skb, sch, now, to_free);
	return lablink_queue(skb, sch, to_free);
}

/* What comes to the link, or to its modem, is split into packets. */
static int lablink_admit(struct sk_buff *skb, struct Qdisc *sch, u64 now,
			 struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *segs, *next;

	lablink_radio_used(q, now);
	if (!q->drx_cycle_ns)
		lablink_granted(q, skb, now);
	lablink_rewrite_syn(q, skb);
	if (q->clock)
		lablink_set_clock(skb, q->clock, now);
	if (!skb_is_gso(skb))
		return lablink_enqueue_one(skb, sch, now, to_free);

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		lablink_enqueue_one(segs, sch, now, to_free);
	}
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int lablink_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	if (q->modem.limit) {
		/* IP packets of all segments; they are split behind the host. */
		u32 packets = max_t(u32, skb_shinfo(skb)->gso_segs, 1);

		qdisc_skb_cb(skb)->pkt_len -= packets * skb_network_offset(skb);
		return lablink_queue_child(skb, sch, to_free);
	}
	/* The queue is the modem's or the base station's: TCP small queues,
	 * which account for the sender's own device, do not see it.
	 */
	skb_orphan_partial(skb);
	return lablink_admit(skb, sch, ktime_get_ns(), to_free);
}

/* The modem takes what the host's qdisc releases. */
static void lablink_fill_modem(struct Qdisc *sch, u64 now)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb, *to_free = NULL;

	while (lab_modem_takes(&q->modem)) {
		skb = qdisc_dequeue_peeked(q->child.qdisc);
		if (!skb)
			break;
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		lablink_admit(skb, sch, now, &to_free);
	}
	kfree_skb_list(to_free);
}

/* Have the queue looked at again at @ns, or before when a held packet is due. */
static void lablink_wait(struct lablink_sched_data *q, u64 ns)
{
	if (q->held)
		ns = min(ns, q->held_until_ns);
	if (q->runs_until_ns)
		ns = min(ns, q->runs_until_ns);
	if (!skb_queue_empty(&q->batch))
		ns = min(ns, q->batch_ns);
	if (ns != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, ns);
}

/* True when the head may leave at @now; else the watchdog is set. */
static bool lablink_rate_ready(struct lablink_sched_data *q, u32 len, u64 now)
{
	if (!q->rate_bps) {
		lablink_wait(q, U64_MAX);
		return false;
	}
	if (!q->tx_end_ns)
		q->tx_end_ns = max(q->free_ns, now) +
			       div64_u64((u64)len * 8 * NSEC_PER_SEC, q->rate_bps);
	if (now < q->tx_end_ns) {
		lablink_wait(q, q->tx_end_ns);
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
			lablink_wait(q, lablink_opportunity_ns(q));
			return false;
		}
		lablink_next_opportunity(q);
		q->budget = LABLINK_OPPORTUNITY;
	}
}

/* The next packet that has crossed the line. */
static struct sk_buff *lablink_cross(struct Qdisc *sch, u64 now)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = q->modem.limit ? lab_modem_peek(&q->modem) :
					       q->child.qdisc->ops->peek(q->child.qdisc);
	u64 granted_ns;

	if (!skb) {
		q->budget = 0;
		q->armed = false;
		lablink_wait(q, U64_MAX);
		return NULL;
	}
	granted_ns = q->modem.limit ? lab_modem_granted_ns(skb) : 0;
	/* Opportunities before the grant are another phone's. */
	if (now >= q->start_ns && now < granted_ns) {
		q->budget = 0;
		q->armed = false;
		lablink_wait(q, granted_ns);
		return NULL;
	}
	if (now >= q->start_ns &&
	    !(q->trace_ms ? lablink_trace_ready(q, qdisc_pkt_len(skb), now) :
			    lablink_rate_ready(q, qdisc_pkt_len(skb), now)))
		return NULL;
	if (!q->modem.limit)
		return qdisc_dequeue_peeked(q->child.qdisc);
	skb = lab_modem_get(&q->modem, now);
	/* There is room now. */
	lablink_fill_modem(sch, now);
	return skb;
}

static bool lablink_hold_back(struct lablink_sched_data *q, struct sk_buff *skb,
			      u64 now)
{
	if (now < q->start_ns || !q->reorder_ppm ||
	    reciprocal_scale(prandom_u32_state(&q->rnd), 1000000) >= q->reorder_ppm)
		return false;
	q->overtakers = 1 + reciprocal_scale(prandom_u32_state(&q->rnd),
					     LABLINK_OVERTAKERS);
	q->held_until_ns = now + LABLINK_HOLD_NS;
	q->held = skb;
	return true;
}

static struct sk_buff *lablink_next(struct Qdisc *sch, u64 now)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (q->held && (!q->overtakers || now >= q->held_until_ns)) {
		skb = q->held;
		q->held = NULL;
		return skb;
	}
	skb = lablink_cross(sch, now);
	if (skb && !q->held && lablink_hold_back(q, skb, now))
		skb = lablink_cross(sch, now);
	if (skb && q->held)
		q->overtakers--;
	return skb;
}

/* What crossed waits for the end of the interval that it crossed in. */
static struct sk_buff *lablink_next_of_batch(struct Qdisc *sch, u64 now)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	while ((skb = lablink_next(sch, now))) {
		if (skb_queue_empty(&q->batch))
			q->batch_ns = q->start_ns + q->hand_over_ns *
				      DIV64_U64_ROUND_UP(now - q->start_ns,
							 q->hand_over_ns);
		__skb_queue_tail(&q->batch, skb);
	}
	return now >= q->batch_ns ? __skb_dequeue(&q->batch) : NULL;
}

static struct sk_buff *lablink_dequeue(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	u64 blocked_until = lablink_blocked_until(sch, now);
	struct sk_buff *skb;

	/* Whether or not the radio works. */
	if (q->modem.limit) {
		lab_dfc_run(&q->modem, now);
		lablink_fill_modem(sch, now);
	}
	if (now < blocked_until) {
		/* The head starts over, and opportunities pass unused. */
		q->tx_end_ns = 0;
		q->head_sent = 0;
		q->budget = 0;
		q->armed = false;
		qdisc_watchdog_schedule_ns(&q->watchdog, blocked_until);
		return NULL;
	}
	if (q->runs_until_ns && now >= q->runs_until_ns)
		lablink_end_runs(sch);
	if (q->hand_over_ns && now >= q->start_ns)
		skb = lablink_next_of_batch(sch, now);
	else
		skb = lablink_next(sch, now);
	if (unlikely(!skb))
		return NULL;
	lablink_radio_used(q, now);
	lablink_granted(q, skb, now);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void lablink_reset(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	int i;

	qdisc_reset(q->child.qdisc);
	qdisc_watchdog_cancel(&q->watchdog);
	kfree_skb(q->held);
	q->held = NULL;
	__skb_queue_purge(&q->batch);
	lab_modem_reset(&q->modem);
	for (i = 0; i < LABLINK_RUNS; i++) {
		kfree_skb(q->run[i].ack);
		q->run[i].ack = NULL;
		q->run[i].count = 0;
	}
	q->runs_until_ns = 0;
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

static int lablink_change_clock(struct nlattr **tb)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&lablink_server.lock, flags);
	if (tb[TCA_LABLINK_CLOCK_PPM])
		lablink_server.ppm = nla_get_s32(tb[TCA_LABLINK_CLOCK_PPM]);
	if (tb[TCA_LABLINK_CLOCK_TICK])
		lablink_server.tick_us = max(nla_get_u32(tb[TCA_LABLINK_CLOCK_TICK]), 1U);
	if (tb[TCA_LABLINK_NO_STAMPS])
		lablink_server.no_stamps = nla_get_u32(tb[TCA_LABLINK_NO_STAMPS]);
	if (tb[TCA_LABLINK_LIE])
		lablink_server.lie_ms = nla_get_s32(tb[TCA_LABLINK_LIE]);
	if (tb[TCA_LABLINK_LIE_PORT])
		lablink_server.lie_port = htons(nla_get_u32(tb[TCA_LABLINK_LIE_PORT]));
	if (tb[TCA_LABLINK_CLOCK_STEP]) {
		u32 i = lablink_server.steps;

		if (i < LABLINK_STEPS) {
			lablink_server.step[i].at_ns = ktime_get_ns();
			lablink_server.step[i].by_ms =
				nla_get_s32(tb[TCA_LABLINK_CLOCK_STEP]);
			lablink_server.steps++;
		} else {
			err = -ENOSPC;
		}
	}
	spin_unlock_irqrestore(&lablink_server.lock, flags);
	return err;
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

	err = lablink_change_clock(tb);
	if (err)
		return err;

	sch_tree_lock(sch);
	if (tb[TCA_LABLINK_CLOCK])
		q->clock = nla_get_u32(tb[TCA_LABLINK_CLOCK]);
	if (tb[TCA_LABLINK_RATE_BPS])
		q->rate_bps = nla_get_u64(tb[TCA_LABLINK_RATE_BPS]);
	if (tb[TCA_LABLINK_OUTAGE])
		q->outage_end_ns = ktime_get_ns() +
				   nla_get_u64(tb[TCA_LABLINK_OUTAGE]);
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
	__skb_queue_head_init(&q->batch);
	lab_modem_init(&q->modem, 0, 0, 0);
	q->child.qdisc = &noop_qdisc;
	if (!opt)
		return -EINVAL;
	err = nla_parse_nested_deprecated(tb, TCA_LABLINK_MAX, opt,
					  lablink_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_LABLINK_LIMIT])
		limit = nla_get_u32(tb[TCA_LABLINK_LIMIT]);
	if (tb[TCA_LABLINK_REORDER]) {
		q->reorder_ppm = nla_get_u32(tb[TCA_LABLINK_REORDER]);
		prandom_seed_state(&q->rnd, get_random_u64());
	}
	if (tb[TCA_LABLINK_ACK_THIN])
		q->ack_thin = nla_get_u32(tb[TCA_LABLINK_ACK_THIN]);
	if (tb[TCA_LABLINK_HAND_OVER])
		q->hand_over_ns = nla_get_u64(tb[TCA_LABLINK_HAND_OVER]);
	if (tb[TCA_LABLINK_PROMOTION] && tb[TCA_LABLINK_IDLE]) {
		q->promotion_ns = nla_get_u64(tb[TCA_LABLINK_PROMOTION]);
		q->idle_ns = nla_get_u64(tb[TCA_LABLINK_IDLE]);
	}
	if (tb[TCA_LABLINK_DRX_CYCLE] && tb[TCA_LABLINK_DRX_ON]) {
		q->drx_cycle_ns = nla_get_u64(tb[TCA_LABLINK_DRX_CYCLE]);
		q->drx_on_ns = nla_get_u64(tb[TCA_LABLINK_DRX_ON]);
	}
	q->syn_scale = tb[TCA_LABLINK_SYN_SCALE] ?
		       nla_get_u32(tb[TCA_LABLINK_SYN_SCALE]) : -1;
	q->strip_stamps = nla_get_flag(tb[TCA_LABLINK_STRIP_STAMPS]);
	if (tb[TCA_LABLINK_DRX_AWAKE])
		q->drx_awake_ns = nla_get_u64(tb[TCA_LABLINK_DRX_AWAKE]);
	if (tb[TCA_LABLINK_FIRMWARE])
		lab_modem_init(&q->modem, nla_get_u32(tb[TCA_LABLINK_FIRMWARE]),
			       tb[TCA_LABLINK_GRANT] ?
			       nla_get_u64(tb[TCA_LABLINK_GRANT]) : 0,
			       tb[TCA_LABLINK_REPORT] ?
			       nla_get_u64(tb[TCA_LABLINK_REPORT]) : 0);
	if (tb[TCA_LABLINK_FIRMWARE] && tb[TCA_LABLINK_TOLD]) {
		err = lab_dfc_init(&q->modem, sch, nla_get_u64(tb[TCA_LABLINK_TOLD]),
				   tb[TCA_LABLINK_HIDDEN] ?
				   nla_get_u32(tb[TCA_LABLINK_HIDDEN]) : 0);
		if (err)
			return err;
	}

	q->child.qdisc = fifo_create_dflt(sch, &bfifo_qdisc_ops, limit, extack);
	if (IS_ERR(q->child.qdisc)) {
		err = PTR_ERR(q->child.qdisc);
		q->child.qdisc = &noop_qdisc;
		return err;
	}
	qdisc_hash_add(q->child.qdisc, true);
	err = lablink_change(sch, opt, extack);
	/* The radio is awake at the start. */
	lablink_radio.last_ns = q->start_ns;
	lablink_radio.granted_ns = q->start_ns;
	return err;
}

static void lablink_destroy(struct Qdisc *sch)
{
	struct lablink_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	lab_dfc_destroy(&q->modem);
	qdisc_put(q->child.qdisc);
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

static int lablink_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct lablink_sched_data *q = qdisc_priv(sch);
	struct lab_modem_xstats st;

	if (!q->modem.limit)
		return 0;
	sch_tree_lock(sch);
	st = lab_modem_stats(&q->modem, ktime_get_ns());
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static int lablink_dump_class(struct Qdisc *sch, unsigned long cl,
			      struct sk_buff *skb, struct tcmsg *tcm)
{
	struct lablink_child *child = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = child->qdisc->handle;
	return 0;
}

static int lablink_graft(struct Qdisc *sch, unsigned long arg,
			 struct Qdisc *new, struct Qdisc **old,
			 struct netlink_ext_ack *extack)
{
	struct lablink_child *child = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &child->qdisc);
	return 0;
}

static struct Qdisc *lablink_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct lablink_child *child = qdisc_priv(sch);

	return child->qdisc;
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

const struct Qdisc_class_ops lablink_class_ops = {
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
	.dump_stats	= lablink_dump_stats,
	.owner		= THIS_MODULE,
};

/* The caller holds RTNL, and lives in the link's tree. */
const struct lab_modem *lablink_modem(const struct Qdisc *sch)
{
	struct Qdisc *root = qdisc_root_sleeping(sch);
	struct lablink_sched_data *q;

	if (root->ops != &lablink_qdisc_ops)
		return NULL;
	q = qdisc_priv(root);
	return q->modem.limit ? &q->modem : NULL;
}

static int __init lablink_module_init(void)
{
	return register_qdisc(&lablink_qdisc_ops);
}

module_init(lablink_module_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cellular link of the DRWA network lab");
