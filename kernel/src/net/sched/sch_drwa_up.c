// SPDX-License-Identifier: GPL-2.0-only
/* DRWA on the uplink: a gate between what the kernel keeps in order and the modem
 *
 *	tc qdisc replace dev rmnet_data0 root handle 1: drwa_up
 *	tc qdisc replace dev rmnet_data0 parent 1:1 fq_codel
 *
 * Two bands. Short packets (ACKs, SYNs, requests, voice) pass at once, but none
 * overtakes another of its flow: senders take that for a loss (RFC 9002, 6.1.1). All
 * else waits in the child, until the law (drwa_up_core.c) says that the modem's own
 * queue has room. Large sends are split, since a modem takes them packet by packet.
 *
 * What is released leaves a mark if its answer can be told: TCP's data and SYN, by
 * sequence number; DNS, ICMP echo and STUN, by their names. Answers are seen as a
 * packet socket sees them, before tc and netfilter, so that 464xlat's are those of
 * the packets that left.
 *
 * Where the modem's driver tells what waits there (drwa_up_dfc.c), answers are not needed.
 *
 * Under mq, each of its queues has a gate of its own, as each has a bearer, whose grants alone
 * the gate is told of, once one of its packets has shown which.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rculist.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/tcp.h>

/* Declares skb_gso_segment() since 6.5. */
#if __has_include("net/gso.h")
#include <net/gso.h>
#endif

#include "drwa_up_core.c"
#include "drwa_up_dfc.h"

/* ACKs with SACK, SYNs, requests, DNS, voice, games */
#define UP_SHORT_BYTES		256
#define UP_SHORT_PACKETS	1000

#define UP_DNS_PORT		53

/* Two flows of the child's in one place send what is short in it, too, until it is empty: of
 * ten, one in 25.
 */
#define UP_PLACES		256

/* In place of a place's last packet: more than one flow has some in the child. */
#define UP_MIXED		((const struct sk_buff *)1)

/* A link that was silent for a minute is another one. */
#define UP_IDLE_NS		(60ULL * NSEC_PER_SEC)

/* DFC_MAX_BEARERS_V01 */
#define UP_BEARERS		16
#define UP_GRANT_MAX		(U32_MAX / 8 / UP_BEARERS)

/* A word of all bearers (dfc_all_bearer_flow_ctl()) */
#define UP_ALL_BEARERS		0xff

/* What one of the modem's queues takes, bytes; @answers: to queries, in adjusted form;
 * @ours: packets of this gate's take it, and did at @used_us for the last time
 */
struct drwa_up_bearer {
	u32	grant;
	u32	used_us;
	u8	id;
	bool	answers;
	bool	ours;
};

struct drwa_up_sched_data {
	struct Qdisc		*qdisc;	/* child, with all that is not short */
	struct sk_buff_head	shorts;
	struct qdisc_watchdog	watchdog;
	struct packet_type	answers;	/* one gate's of a device */
	struct Qdisc		*self;

	/* By flow, the last packet that the child took, and the flow's hash: never followed,
	 * and one that was dropped there stays until the next one, or until the child is empty.
	 */
	const struct sk_buff	*last[UP_PLACES];
	u32			hash[UP_PLACES];
	bool			mixed;

	/* Of what follows; answers come on any CPU, in softirq context. */
	spinlock_t		lock;
	struct drwa_up		*law;
	u32			target_us;
	u64			last_ns;
	u32			short_count;
	bool			shut;		/* without room, and no news since */

	/* What the modem's driver tells of its bearers, by order of appearance */
	struct list_head	listener;
	struct work_struct	query;
	u8			mux;
	u8			bearers;
	bool			timed;	/* the query whose answer is awaited */
	u32			asked_us;
	u32			timed_us;
	u32			late_us; /* an answer, 0: not known */
	struct drwa_up_bearer	bearer[UP_BEARERS];
	bool			queue;	/* of several, below mq: all bearers are ours otherwise */
};

/* Gates that are told; rtnl changes it. */
static LIST_HEAD(drwa_up_listeners);

static DEFINE_MUTEX(drwa_up_query_lock);
static void (*drwa_up_query)(u8 mux_id, u8 bearer_id);

/* What a packet says of marks and answers */
struct drwa_up_word {
	u32	key;
	u32	end;
	u32	clock_us;
	u8	kind;
	bool	clock;
};

/* Addresses and transport of a packet */
struct drwa_up_packet {
	u32	local;		/* hashes of the two addresses */
	u32	remote;
	int	offset;		/* of the transport's header in the skb */
	u8	protocol;
};

static u32 drwa_up_now(void)
{
	return (u32)ktime_to_us(ktime_get());
}

static bool drwa_up_parse(const struct sk_buff *skb, bool from_us,
			  struct drwa_up_packet *p)
{
	int offset = skb_network_offset(skb);
	u32 source, target;

	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP): {
		struct iphdr buffer;
		const struct iphdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
		if (!ip || ip->version != 4 || ip->ihl < 5 ||
		    ip->frag_off & htons(IP_OFFSET))
			return false;
		source = (__force u32)ip->saddr;
		target = (__force u32)ip->daddr;
		p->protocol = ip->protocol;
		p->offset = offset + ip->ihl * 4;
		break;
	}
	case htons(ETH_P_IPV6): {
		struct ipv6hdr buffer;
		const struct ipv6hdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
		if (!ip || ip->version != 6)
			return false;
		source = jhash2(ip->saddr.s6_addr32, 4, 0);
		target = jhash2(ip->daddr.s6_addr32, 4, 0);
		p->protocol = ip->nexthdr;
		p->offset = offset + sizeof(*ip);
		break;
	}
	default:
		return false;
	}
	p->local = from_us ? source : target;
	p->remote = from_us ? target : source;
	return true;
}

static u32 drwa_up_key(const struct drwa_up_packet *p, u32 ports)
{
	return jhash_3words(p->local, p->remote, ports, p->protocol);
}

/* The options of a segment: how far it acknowledges, and TSval */
static void drwa_up_options(const u8 *option, const u8 *end, struct drwa_up_word *w)
{
	const u8 *block;
	u32 edge;

	while (option < end && *option != TCPOPT_EOL) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (option + 1 >= end || option[1] < 2 || option + option[1] > end)
			return;
		if (option[0] == TCPOPT_TIMESTAMP && option[1] == TCPOLEN_TIMESTAMP) {
			/* Most clocks tick in ms; the law finds out who does not. */
			w->clock_us = get_unaligned_be32(option + 2) * USEC_PER_MSEC;
			w->clock = true;
		} else if (option[0] == TCPOPT_SACK) {
			for (block = option + 2; block + 8 <= option + option[1]; block += 8) {
				edge = get_unaligned_be32(block + 4);
				if (after(edge, w->end))
					w->end = edge;
			}
		}
		option += option[1];
	}
}

static bool drwa_up_tcp(const struct sk_buff *skb, bool from_us,
			const struct drwa_up_packet *p, struct drwa_up_word *w)
{
	u8 buffer[MAX_TCP_HEADER];
	const struct tcphdr *th;
	u32 len;

	th = skb_header_pointer(skb, p->offset, sizeof(*th), buffer);
	if (!th || th->doff < sizeof(*th) / 4 || th->rst)
		return false;
	w->kind = th->syn ? DRWA_UP_FIRST : DRWA_UP_UPTO;
	if (from_us) {
		w->key = drwa_up_key(p, (u32)ntohs(th->source) << 16 | ntohs(th->dest));
		len = skb->len - p->offset;
		if (len < th->doff * 4)
			return false;
		len -= th->doff * 4;
		len += th->syn + th->fin;
		w->end = ntohl(th->seq) + len;
		return len;
	}
	w->key = drwa_up_key(p, (u32)ntohs(th->dest) << 16 | ntohs(th->source));
	w->end = ntohl(th->ack_seq);
	if (!th->ack)
		return false;
	if (th->doff > sizeof(*th) / 4) {
		th = skb_header_pointer(skb, p->offset, th->doff * 4, buffer);
		if (!th)
			return false;
		drwa_up_options((const u8 *)(th + 1), (const u8 *)th + th->doff * 4, w);
	}
	return true;
}

/* A query's name is in its answer: DNS's id, and what stands where STUN has its
 * transaction's (RFC 8489, 5).
 */
static bool drwa_up_udp(const struct sk_buff *skb, bool from_us,
			const struct drwa_up_packet *p, struct drwa_up_word *w)
{
	int offset = p->offset + sizeof(struct udphdr);
	struct udphdr buffer;
	const struct udphdr *uh;
	__be32 name[2];
	u16 local, remote;

	uh = skb_header_pointer(skb, p->offset, sizeof(buffer), &buffer);
	if (!uh)
		return false;
	local = ntohs(from_us ? uh->source : uh->dest);
	remote = ntohs(from_us ? uh->dest : uh->source);
	w->kind = DRWA_UP_EXACT;
	if (remote == UP_DNS_PORT) {
		if (skb_copy_bits(skb, offset, name, 2))
			return false;
		/* Each query has a port of its own. */
		w->key = drwa_up_key(p, remote);
		w->end = (u32)local << 16 | ntohs(*(__be16 *)name);
		return true;
	}
	if (skb->len - skb_network_offset(skb) > UP_SHORT_BYTES ||
	    skb_copy_bits(skb, offset + 8, name, sizeof(name)))
		return false;
	w->key = drwa_up_key(p, (u32)local << 16 | remote);
	w->end = jhash_2words((__force u32)name[0], (__force u32)name[1], 0);
	return true;
}

static bool drwa_up_echo(const struct sk_buff *skb, u8 type,
			 const struct drwa_up_packet *p, struct drwa_up_word *w)
{
	struct icmphdr buffer;
	const struct icmphdr *ih;

	/* ICMPv6's echo has the same form (RFC 4443, 4.1). */
	ih = skb_header_pointer(skb, p->offset, sizeof(buffer), &buffer);
	if (!ih || ih->type != type)
		return false;
	w->kind = DRWA_UP_EXACT;
	w->key = drwa_up_key(p, 0);
	w->end = (u32)ntohs(ih->un.echo.id) << 16 | ntohs(ih->un.echo.sequence);
	return true;
}

/* Will this be answered, or does it answer? */
static bool drwa_up_read(const struct sk_buff *skb, bool from_us,
			 struct drwa_up_word *w)
{
	struct drwa_up_packet p;

	*w = (struct drwa_up_word){};
	if (!drwa_up_parse(skb, from_us, &p))
		return false;
	switch (p.protocol) {
	case IPPROTO_TCP:
		return drwa_up_tcp(skb, from_us, &p, w);
	case IPPROTO_UDP:
		return drwa_up_udp(skb, from_us, &p, w);
	case IPPROTO_ICMP:
		return drwa_up_echo(skb, from_us ? ICMP_ECHO : ICMP_ECHOREPLY, &p, w);
	case IPPROTO_ICMPV6:
		return drwa_up_echo(skb, from_us ? ICMPV6_ECHO_REQUEST :
						   ICMPV6_ECHO_REPLY, &p, w);
	}
	return false;
}

/* @w: or NULL, for what answers nothing */
static void drwa_up_hear(struct drwa_up_sched_data *q, u32 len, const struct drwa_up_word *w,
			 u32 now_us)
{
	bool news = false;

	spin_lock(&q->lock);
	drwa_up_heard(q->law, len);
	if (w && drwa_up_answer(q->law, w->key, w->end, w->clock ? &w->clock_us : NULL, now_us)) {
		news = q->shut;
		q->shut = false;
	}
	spin_unlock(&q->lock);
	if (news)
		__netif_schedule(qdisc_root(q->self));
}

/* One tap reads for all gates of a device: below mq there may be dozens. */
static int drwa_up_rcv(struct sk_buff *skb, struct net_device *dev,
		       struct packet_type *pt, struct net_device *orig_dev)
{
	struct drwa_up_sched_data *q;
	struct drwa_up_word w;
	u32 now_us = drwa_up_now();
	bool read = drwa_up_read(skb, false, &w);

	/* Packets are received within RCU's read section. A queue that has sent nothing waits
	 * for no answer.
	 */
	list_for_each_entry_rcu(q, &drwa_up_listeners, listener)
		if (q->answers.dev == pt->dev && READ_ONCE(q->law->released))
			drwa_up_hear(q, skb->len, read ? &w : NULL, now_us);
	consume_skb(skb);
	return 0;
}

/* rtnl is held. */
static struct drwa_up_sched_data *drwa_up_gate_of(const struct net_device *dev)
{
	struct drwa_up_sched_data *q;

	list_for_each_entry(q, &drwa_up_listeners, listener)
		if (q->answers.dev == dev)
			return q;
	return NULL;
}

static void drwa_up_tap(struct drwa_up_sched_data *q)
{
	q->answers.type = htons(ETH_P_ALL);
	q->answers.ignore_outgoing = true;
	q->answers.func = drwa_up_rcv;
	dev_add_pack(&q->answers);
}

/* Without a lock as well: they stay where they are, as many as there are. */
static struct drwa_up_bearer *drwa_up_bearer(struct drwa_up_sched_data *q, u8 id)
{
	int i;

	for (i = 0; i < READ_ONCE(q->bearers); i++)
		if (READ_ONCE(q->bearer[i].id) == id)
			return &q->bearer[i];
	return NULL;
}

/* The lock is held. */
static struct drwa_up_bearer *drwa_up_need_bearer(struct drwa_up_sched_data *q, u8 id)
{
	struct drwa_up_bearer *b = drwa_up_bearer(q, id);

	if (b || q->bearers == UP_BEARERS || id == UP_ALL_BEARERS)
		return b;
	b = &q->bearer[q->bearers];
	*b = (struct drwa_up_bearer){ .id = id, .ours = !q->queue };
	WRITE_ONCE(q->bearers, q->bearers + 1);
	return b;
}

/* Does it tell more than the next answer will? What is on its way to the modem is not taken
 * off a word that nobody asked for. The driver that had no grant has nothing there.
 */
static bool drwa_up_counts(const struct drwa_up_bearer *b, u32 grant, enum drwa_up_word_kind kind)
{
	if (kind == DRWA_UP_ADJUSTED || !b->answers)
		return true;
	return kind == DRWA_UP_UNASKED && (!grant || !b->grant);
}

/* Of a query after which nobody asked: the answer cannot be another one's. */
static void drwa_up_time_answer(struct drwa_up_sched_data *q, u32 now_us)
{
	if (!q->timed)
		return;
	q->timed = false;
	q->timed_us = now_us;
	q->late_us = clamp_t(u32, now_us - q->asked_us, 1, UP_SPAN_US);
}

static bool drwa_up_answers(const struct drwa_up_sched_data *q)
{
	int i;

	for (i = 0; i < q->bearers; i++)
		if (q->bearer[i].answers && q->bearer[i].ours)
			return true;
	return false;
}

/* Grants tell enough if there are more whenever the gate wants: one that holds never uses the
 * 4/5 of one that make the driver ask.
 */
static bool drwa_up_can_ask(const struct drwa_up_sched_data *q)
{
	return READ_ONCE(drwa_up_query) && drwa_up_answers(q);
}

/* The lock is held. Bearers that are ours count as one. */
static bool drwa_up_count_grant(struct drwa_up_sched_data *q, u8 id, u32 grant,
				enum drwa_up_word_kind kind, u32 now_us)
{
	struct drwa_up_bearer *b = drwa_up_need_bearer(q, id);
	bool counts = false;
	u32 total = 0;
	int i;

	if (b && kind == DRWA_UP_ADJUSTED)
		b->answers = true;
	if (b && kind != DRWA_UP_UNASKED && b->ours)
		drwa_up_time_answer(q, now_us);
	for (i = 0; i < q->bearers; i++) {
		struct drwa_up_bearer *each = &q->bearer[i];

		if ((each == b || id == UP_ALL_BEARERS) && drwa_up_counts(each, grant, kind)) {
			each->grant = min_t(u32, grant, UP_GRANT_MAX);
			counts |= each->ours;
		}
		if (each->ours)
			total += each->grant;
	}
	if (counts && drwa_up_can_ask(q))
		drwa_up_told(q->law, total, q->late_us, now_us);
	return counts;
}

/**
 * drwa_up_grant() - a modem's bearer may take so much more
 * @mux_id:	the interface's
 * @bearer_id:	its bearer, or 0xff: each
 * @grant:	bytes
 * @kind:	what kind of word that is; once one was adjusted, answers count in that form alone
 */
void drwa_up_grant(u8 mux_id, u8 bearer_id, u32 grant, enum drwa_up_word_kind kind)
{
	struct drwa_up_sched_data *q;
	u32 now_us = drwa_up_now();
	bool told;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &drwa_up_listeners, listener) {
		if (!q->mux || q->mux != mux_id)
			continue;
		spin_lock_bh(&q->lock);
		told = drwa_up_count_grant(q, bearer_id, grant, kind, now_us) && q->shut;
		if (told)
			q->shut = false;
		spin_unlock_bh(&q->lock);
		if (told)
			__netif_schedule(qdisc_root(q->self));
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(drwa_up_grant);

/* Words are of other bearers from now on; the lock is held. */
static void drwa_up_untell(struct drwa_up_sched_data *q, u32 now_us)
{
	q->timed = false;
	if (q->law->told)
		drwa_up_reset(q->law, q->target_us, now_us);
}

/* A packet takes a bearer, @ours or another queue's; the lock is held. Several bearers may share a
 * queue, and ACKs take one of their own: a bearer that we took is ours until another queue alone
 * has for a second. Words of several come one by one: what each took since its own is counted here.
 */
static void drwa_up_count_sent(struct drwa_up_sched_data *q, u8 bearer_id, u32 len, bool ours)
{
	struct drwa_up_bearer *b = drwa_up_need_bearer(q, bearer_id);
	u32 now_us = drwa_up_now();

	if (!b)
		return;
	b->grant -= min(b->grant, len);
	if (ours)
		b->used_us = now_us;
	if (!q->queue || !(ours || b->ours))
		return;
	if (!ours && now_us - b->used_us <= UP_OPEN_US) {
		drwa_up_release_other(q->law, len);
	} else if (b->ours != ours) {
		WRITE_ONCE(b->ours, ours);
		drwa_up_untell(q, now_us);
	}
}

static bool drwa_up_is_ours(struct drwa_up_sched_data *q, u8 bearer_id)
{
	const struct drwa_up_bearer *b = drwa_up_bearer(q, bearer_id);

	return b && READ_ONCE(b->ours);
}

/**
 * drwa_up_sent() - the packet that this CPU sends takes a bearer
 * @name:	the interface's
 * @bearer_id:	its bearer
 * @len:	bytes
 *
 * For ndo_start_xmit(), whose lock of the transmit queue tells whose packet that is.
 */
void drwa_up_sent(const char *name, u8 bearer_id, u32 len)
{
	struct drwa_up_sched_data *q;
	int cpu = raw_smp_processor_id();
	bool ours;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &drwa_up_listeners, listener) {
		if (!q->mux)
			continue;
		ours = READ_ONCE(q->self->dev_queue->xmit_lock_owner) == cpu;
		if (!(ours || drwa_up_is_ours(q, bearer_id)) || strcmp(name, q->answers.dev->name))
			continue;
		spin_lock_bh(&q->lock);
		drwa_up_count_sent(q, bearer_id, len, ours);
		spin_unlock_bh(&q->lock);
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(drwa_up_sent);

/* Out of the qdisc's locks; all bearers, for which of them is full is not known. */
static void drwa_up_query_all(struct work_struct *work)
{
	struct drwa_up_sched_data *q = container_of(work, struct drwa_up_sched_data, query);
	int i;

	mutex_lock(&drwa_up_query_lock);
	for (i = 0; i < READ_ONCE(q->bearers) && drwa_up_query; i++)
		if (READ_ONCE(q->bearer[i].answers) && READ_ONCE(q->bearer[i].ours))
			drwa_up_query(q->mux, q->bearer[i].id);
	mutex_unlock(&drwa_up_query_lock);
}

/**
 * drwa_up_set_query() - how a modem is asked for a grant
 * @query:	does it, and may sleep; NULL: nothing does, from then on
 */
void drwa_up_set_query(void (*query)(u8 mux_id, u8 bearer_id))
{
	mutex_lock(&drwa_up_query_lock);
	WRITE_ONCE(drwa_up_query, query);
	mutex_unlock(&drwa_up_query_lock);
}
EXPORT_SYMBOL_GPL(drwa_up_set_query);

static bool drwa_up_is_short(const struct sk_buff *skb)
{
	return qdisc_pkt_len(skb) <= UP_SHORT_BYTES;
}

static u32 drwa_up_place(u32 hash)
{
	return hash % UP_PLACES;
}

/* Is a packet of the same flow in the child? */
static bool drwa_up_is_behind(struct drwa_up_sched_data *q, struct sk_buff *skb)
{
	return q->qdisc->q.qlen && q->last[drwa_up_place(skb_get_hash(skb))];
}

static void drwa_up_part(struct drwa_up_sched_data *q)
{
	memset(q->last, 0, sizeof(q->last));
	q->mixed = false;
}

/* The child took it. Which of two flows leaves it first is the child's matter. */
static void drwa_up_follow(struct drwa_up_sched_data *q, const struct sk_buff *skb, u32 hash)
{
	u32 place = drwa_up_place(hash);

	if (q->last[place] && (q->last[place] == UP_MIXED || q->hash[place] != hash)) {
		q->last[place] = UP_MIXED;
		q->mixed = true;
		return;
	}
	q->last[place] = skb;
	q->hash[place] = hash;
}

/* The child has given it. */
static void drwa_up_unfollow(struct drwa_up_sched_data *q, struct sk_buff *skb)
{
	u32 place = drwa_up_place(skb_get_hash(skb));

	if (q->last[place] == skb)
		q->last[place] = NULL;
	if (q->mixed && !q->qdisc->q.qlen)
		drwa_up_part(q);
}

static int drwa_up_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
				 struct sk_buff **to_free)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	u32 hash = skb_get_hash(skb);
	int ret = qdisc_enqueue(skb, q->qdisc, to_free);

	/* After NET_XMIT_CN it is there, and another one was dropped. A child such as netem
	 * may have put a copy in its place.
	 */
	if (ret == NET_XMIT_SUCCESS || ret == NET_XMIT_CN)
		drwa_up_follow(q, skb, hash);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return ret;
}

static int drwa_up_split(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int bytes, len = 0, before = qdisc_pkt_len(skb);
	struct sk_buff *segs, *next;
	int taken = 0;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	for (; segs; segs = next) {
		next = segs->next;
		skb_mark_not_on_list(segs);
		bytes = segs->len;
		qdisc_skb_cb(segs)->pkt_len = bytes;
#ifdef DRWA_UP_PKT_SEGS
		qdisc_skb_cb(segs)->pkt_segs = 1;
#endif
		if (drwa_up_enqueue_child(segs, sch, to_free) == NET_XMIT_SUCCESS) {
			len += bytes;
			taken++;
		}
	}
	if (!taken) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	/* Whoever is above counts one packet, and its length. */
	qdisc_tree_reduce_backlog(sch, 1 - taken, before - len);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int drwa_up_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);

	if (skb_is_gso(skb))
		return drwa_up_split(skb, sch, to_free);
	if (!drwa_up_is_short(skb) || drwa_up_is_behind(q, skb))
		return drwa_up_enqueue_child(skb, sch, to_free);
	if (q->shorts.qlen >= UP_SHORT_PACKETS)
		return qdisc_drop(skb, sch, to_free);
	__skb_queue_tail(&q->shorts, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static void drwa_up_forget(struct drwa_up_sched_data *q, u32 now_us)
{
	drwa_up_reset(q->law, q->target_us, now_us);
}

/* Whoever uploads is asked for, not only while the gate is shut: a window that nobody fills
 * would stay as wide as it began.
 *
 * How late answers come is learnt now and then from one that no other can be taken for: the
 * others are back by then, and none is asked for until it is there.
 */
static void drwa_up_ask(struct drwa_up_sched_data *q, u32 now_us)
{
	bool learn = !q->late_us || now_us - q->timed_us > UP_OLD_US;
	u32 period_us = UP_ASK_US;

	if (q->timed)
		period_us = UP_SPAN_US;
	else if (learn)
		period_us += 2 * q->late_us;
	if (now_us - q->asked_us < period_us || !drwa_up_can_ask(q))
		return;
	q->timed = learn;
	q->asked_us = now_us;
	queue_work(system_highpri_wq, &q->query);
}

/* The law was asked, and would say the same: most of those who ask only tell that something
 * was put in the queue.
 */
static bool drwa_up_is_shut(struct drwa_up_sched_data *q)
{
	return q->shut && skb_queue_empty(&q->shorts) && hrtimer_is_queued(&q->watchdog.timer);
}

/* What leaves now, if anything; the lock is held. */
static struct sk_buff *drwa_up_next(struct Qdisc *sch, u64 now_ns, u32 now_us)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	skb = __skb_dequeue(&q->shorts);
	if (skb) {
		q->short_count++;
		return skb;
	}
	if (!q->qdisc->q.qlen)
		return NULL;
	drwa_up_ask(q, now_us);
	q->shut = !drwa_up_room(q->law, now_us);
	if (!q->shut) {
		skb = q->qdisc->dequeue(q->qdisc);
		if (skb)
			drwa_up_unfollow(q, skb);
		return skb;
	}
	/* Answers open it sooner, as a rule: a timer that rings too early costs less than to set
	 * it anew for each of them.
	 */
	if (!hrtimer_is_queued(&q->watchdog.timer))
		qdisc_watchdog_schedule_ns(&q->watchdog, now_ns + UP_ASK_US * NSEC_PER_USEC);
	return NULL;
}

static struct sk_buff *drwa_up_dequeue(struct Qdisc *sch)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	struct drwa_up_word w;
	struct sk_buff *skb;
	u64 now_ns;
	u32 now_us;

	spin_lock(&q->lock);
	if (drwa_up_is_shut(q)) {
		spin_unlock(&q->lock);
		return NULL;
	}
	now_ns = ktime_get_ns();
	now_us = (u32)ktime_to_us(now_ns);
	if (now_ns - q->last_ns > UP_IDLE_NS)
		drwa_up_forget(q, now_us);
	skb = drwa_up_next(sch, now_ns, now_us);
	if (skb) {
		q->last_ns = now_ns;
		drwa_up_release(q->law, qdisc_pkt_len(skb));
		if (drwa_up_read(skb, true, &w))
			drwa_up_mark(q->law, w.key, w.kind, w.end, now_us);
	}
	spin_unlock(&q->lock);
	if (!skb)
		return NULL;
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void drwa_up_reset_qdisc(struct Qdisc *sch)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
	drwa_up_part(q);
	__skb_queue_purge(&q->shorts);
	qdisc_watchdog_cancel(&q->watchdog);
	if (!q->law)
		return;
	spin_lock_bh(&q->lock);
	drwa_up_forget(q, drwa_up_now());
	spin_unlock_bh(&q->lock);
}

static const struct netlink_range_validation drwa_up_target_range = {
	.min = DRWA_UP_TARGET_MIN_US,
	.max = DRWA_UP_TARGET_MAX_US,
};

static const struct nla_policy drwa_up_policy[TCA_DRWA_UP_MAX + 1] = {
	[TCA_DRWA_UP_TARGET] = NLA_POLICY_FULL_RANGE(NLA_U32, &drwa_up_target_range),
	[TCA_DRWA_UP_MUX] = NLA_POLICY_MAX(NLA_U32, U8_MAX),
};

static int drwa_up_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_DRWA_UP_MAX + 1];
	int err;

	/* tc does not mark nests. */
	err = nla_parse_nested_deprecated(tb, TCA_DRWA_UP_MAX, opt, drwa_up_policy,
					  extack);
	if (err < 0)
		return err;
	/* A modem is the device's, whatever name space its interface is in. */
	if (tb[TCA_DRWA_UP_MUX] && nla_get_u32(tb[TCA_DRWA_UP_MUX]) && !capable(CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(extack, "mux needs CAP_NET_ADMIN in the first user name space");
		return -EPERM;
	}
	spin_lock_bh(&q->lock);
	if (tb[TCA_DRWA_UP_TARGET]) {
		q->target_us = nla_get_u32(tb[TCA_DRWA_UP_TARGET]);
		q->law->target_us = q->target_us;
	}
	if (tb[TCA_DRWA_UP_MUX]) {
		q->mux = nla_get_u32(tb[TCA_DRWA_UP_MUX]);
		WRITE_ONCE(q->bearers, 0);
		q->late_us = 0;
		drwa_up_untell(q, drwa_up_now());
	}
	spin_unlock_bh(&q->lock);
	return 0;
}

static int drwa_up_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	int err;

	/* What destroy needs, which is called after a failure, too */
	qdisc_watchdog_init(&q->watchdog, sch);
	__skb_queue_head_init(&q->shorts);
	spin_lock_init(&q->lock);
	q->self = sch;
	q->answers.dev = qdisc_dev(sch);
	q->queue = sch->parent != TC_H_ROOT && netif_is_multiqueue(q->answers.dev);
	q->qdisc = &noop_qdisc;
	q->target_us = DRWA_UP_TARGET_US;
	q->last_ns = ktime_get_ns();

	q->law = kvzalloc(sizeof(*q->law), GFP_KERNEL);
	if (!q->law)
		return -ENOMEM;
	drwa_up_forget(q, drwa_up_now());
	INIT_WORK(&q->query, drwa_up_query_all);
	if (opt) {
		err = drwa_up_change(sch, opt, extack);
		if (err)
			return err;
	}
	q->qdisc = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
				     TC_H_MAKE(sch->handle, 1), extack);
	if (!q->qdisc) {
		q->qdisc = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->qdisc, true);

	if (!drwa_up_gate_of(qdisc_dev(sch)))
		drwa_up_tap(q);
	list_add_rcu(&q->listener, &drwa_up_listeners);
	return 0;
}

static void drwa_up_destroy(struct Qdisc *sch)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch), *other;

	if (q->listener.next) {
		list_del_rcu(&q->listener);
		other = q->answers.func ? drwa_up_gate_of(qdisc_dev(sch)) : NULL;
		if (other)
			drwa_up_tap(other);
		if (q->answers.func)
			dev_remove_pack(&q->answers);
		/* No answer or word is under way when it returns. */
		synchronize_net();
		cancel_work_sync(&q->query);
	}
	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->qdisc);
	kvfree(q->law);
}

static int drwa_up_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_DRWA_UP_TARGET, READ_ONCE(q->target_us)) ||
	    nla_put_u32(skb, TCA_DRWA_UP_MUX, READ_ONCE(q->mux))) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int drwa_up_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);
	struct tc_drwa_up_xstats st = {};

	spin_lock_bh(&q->lock);
	drwa_up_report(q->law, drwa_up_now(), &st);
	st.shorts = q->short_count;
	spin_unlock_bh(&q->lock);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static int drwa_up_dump_class(struct Qdisc *sch, unsigned long cl,
			      struct sk_buff *skb, struct tcmsg *tcm)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static int drwa_up_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			 struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);

	if (!new)
		new = &noop_qdisc;
	*old = qdisc_replace(sch, new, &q->qdisc);
	return 0;
}

static struct Qdisc *drwa_up_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct drwa_up_sched_data *q = qdisc_priv(sch);

	return q->qdisc;
}

static unsigned long drwa_up_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void drwa_up_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static const struct Qdisc_class_ops drwa_up_class_ops = {
	.graft	= drwa_up_graft,
	.leaf	= drwa_up_leaf,
	.find	= drwa_up_find,
	.walk	= drwa_up_walk,
	.dump	= drwa_up_dump_class,
};

static struct Qdisc_ops drwa_up_qdisc_ops __read_mostly = {
	.cl_ops		= &drwa_up_class_ops,
	.id		= "drwa_up",
	.priv_size	= sizeof(struct drwa_up_sched_data),
	.enqueue	= drwa_up_enqueue,
	.dequeue	= drwa_up_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= drwa_up_init,
	.reset		= drwa_up_reset_qdisc,
	.destroy	= drwa_up_destroy,
	.change		= drwa_up_change,
	.dump		= drwa_up_dump,
	.dump_stats	= drwa_up_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init drwa_up_module_init(void)
{
	return register_qdisc(&drwa_up_qdisc_ops);
}

static void __exit drwa_up_module_exit(void)
{
	unregister_qdisc(&drwa_up_qdisc_ops);
}

module_init(drwa_up_module_init);
module_exit(drwa_up_module_exit);
MODULE_ALIAS("sch_drwa_up");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("DRWA on the uplink: holds a modem's own queue to a target delay");
