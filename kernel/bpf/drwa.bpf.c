// SPDX-License-Identifier: GPL-2.0-only
/* DRWA on a kernel without the series: binding of the law to BPF's hooks
 *
 *	cgroup_skb/ingress	samples: a segment's timestamps and its interface
 *	sockops			rounds, at the segments that are sent, and their
 *				effect, TCP_WINDOW_CLAMP
 *	cgroup/setsockopt	an application that sets SO_RCVBUF or its own clamp
 *				is left alone
 *	cgroup/sock_release	forgets a socket that its application closed
 *
 * A segment that is sent asks for the length of its options before it chooses the
 * window it offers, with the socket locked (tcp_established_options(), 5.10 on), so
 * that a new clamp holds for that very ACK.
 *
 * The programs need no kernel structure: UAPI alone, no BTF, and no function of
 * their own that is called, so that the oldest loaders take them. Sockets are known
 * by their address, since cgroup/setsockopt can tell no cookie; an entry goes when
 * the socket is closed or its connection ends, so the next one there begins anew.
 *
 * One segment's samples and rounds of a connection may run on two CPUs. What
 * ingress leaves is a pair of words; a torn pair is a sample of two segments of
 * one burst.
 */
#include <stddef.h>
#include <linux/types.h>
#include <linux/bpf.h>
#ifndef DRWA_PROG	/* android/drwa.c has the form of another loader. */
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#endif

/* All of the law is inlined, as drwa_start() has more arguments than BPF passes. */
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "tcp_drwa_core.c"
#pragma clang attribute pop
#pragma clang attribute pop

#include "drwa.h"

/* UAPI that Debian's headers for user space define beside libc's. */
#define AF_INET			2
#define ETH_P_IP		0x0800
#define IPPROTO_TCP		6
#define SOL_SOCKET		1
#define TCPOPT_EOL		0
#define TCPOPT_NOP		1
#define TCPOPT_TIMESTAMP	8
#define TCPOPT_MPTCP		30
#define ENOSPC			28
#define SO_RCVBUF		8
#define SO_RCVBUFFORCE		33
#define TCP_WINDOW_CLAMP	10

/* Less than 64 KiB, as Linux offers by default. Android's buffers would have it offer
 * megabytes before anything is known, and that cannot be taken back.
 */
#define DRWA_INIT_BYTES		0xffff

/* So many common segments: what the route makes of them is not told before the SYN. */
#define DRWA_INIT_SEGMENTS	44

/* That of buffers of 16 to 32 MB, as Android's are; smaller ones have a lower one. */
#define DRWA_WSCALE		9

/* RFC 9293, 3.7.1: what a full segment has where nobody says anything. */
#define DRWA_MSS_DEFAULT	536

/* How long an ACK may wait: two jiffies, which is the least that a kernel takes, where
 * there are a hundred a second; and what it has by default, TCP_DELACK_MAX.
 */
#define DRWA_DELACK_SOON_US	20000
#define DRWA_DELACK_US		200000

/* FIN, SYN, PSH, URG: the segment may be what was left over. */
#define DRWA_REMNANT		0x2b

#define USEC_PER_MSEC		1000
#define NSEC_PER_USEC		1000
#define NSEC_PER_MSEC		1000000

#ifndef DRWA_PROG
#define DRWA_PROG(name, hook)	SEC(hook) int name
#define DRWA_MAP(name, kind, id, what, entries)			\
	struct {						\
		__uint(type, BPF_MAP_TYPE_ ## kind);		\
		__uint(max_entries, entries);			\
		__type(key, id);				\
		__type(value, what);				\
	} name SEC(".maps")
#endif

DRWA_MAP(drwa_devs, HASH, u32, struct drwa_dev, DRWA_DEVS);
DRWA_MAP(drwa_queues, LRU_HASH, u64, struct drwa_queue, DRWA_DEVS);
DRWA_MAP(drwa_stats, LRU_HASH, u32, struct drwa_stats, DRWA_DEVS);
DRWA_MAP(drwa_socks, LRU_HASH, u64, struct drwa_sock, DRWA_SOCKS);

#ifdef DRWA_NETNS
/* Interfaces are those of one name space, where a machine may have several. */
DRWA_MAP(drwa_netns, ARRAY, u32, u64, 1);

static __always_inline bool ours(struct bpf_sock_ops *ops)
{
	u32 zero = 0;
	u64 *cookie = bpf_map_lookup_elem(&drwa_netns, &zero);

	return cookie && *cookie == bpf_get_netns_cookie(ops);
}
#else
static __always_inline bool ours(struct bpf_sock_ops *ops)
{
	return true;
}
#endif

/* Zeroes, which a new entry begins with: they have no room on the stack. */
union drwa_none {
	struct drwa_queue	queue;
	struct drwa_sock	sock;
	struct drwa_stats	stats;
};

DRWA_MAP(drwa_none, ARRAY, u32, union drwa_none, 1);

/* The entry of a key, made if there is none */
static __always_inline void *entry(const void *where, const void *key)
{
	void *map = (void *)where, *found = bpf_map_lookup_elem(map, key), *none;
	u32 zero = 0;

	if (found)
		return found;
	none = bpf_map_lookup_elem(&drwa_none, &zero);
	if (none)
		bpf_map_update_elem(map, key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline struct drwa_queue *queue_of(u32 ifindex, const struct drwa_dev *dev)
{
	u64 id = dev->queue ? dev->queue : 1ULL << 32 | ifindex;

	return entry(&drwa_queues, &id);
}

static __always_inline struct drwa_stats *stats_of(u32 ifindex)
{
	return entry(&drwa_stats, &ifindex);
}

/* Timestamps behind two NOPs, as senders align them (RFC 7323, appendix A) */
struct ts_option {
	__be32	head;
	__be32	val;
	__be32	ecr;
};

#define TS_HEAD	bpf_htonl(0x0101080a)
#define TS_LEN	10

/* Options of a header that has timestamps: four of one byte, and MSS, window scale,
 * SACK permitted, and SACK or another one
 */
#define OPTIONS_MAX	8

/* The timestamps of a segment whose options are from @at to @end */
static __always_inline bool load_ts(struct __sk_buff *skb, u32 at, u32 end,
				    struct ts_option *ts)
{
	u8 option[2];
	int i;

	if (!bpf_skb_load_bytes(skb, at, ts, sizeof(*ts)) && ts->head == TS_HEAD)
		return true;
	for (i = 0; i < OPTIONS_MAX && at + TS_LEN <= end; i++) {
		if (bpf_skb_load_bytes(skb, at, option, sizeof(option)))
			return false;
		if (option[0] == TCPOPT_TIMESTAMP)
			return option[1] == TS_LEN &&
			       !bpf_skb_load_bytes(skb, at + 2, &ts->val, 2 * sizeof(ts->val));
		if (option[0] == TCPOPT_EOL)
			return false;
		at += option[0] == TCPOPT_NOP ? 1 : option[1];
	}
	return false;
}

/* The segment's TCP header in the packet, or 0 */
static __always_inline u32 tcp_offset(struct __sk_buff *skb)
{
	u8 first;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 0, &first, 1))
			return 0;
		return (first & 15) * 4;
	}
	/* Next header; options of IPv6 are nothing that data comes with. */
	if (bpf_skb_load_bytes(skb, 6, &first, 1) || first != IPPROTO_TCP)
		return 0;
	return 40;
}

/* As tcp_measure_rcv_mss() has it: two alike are full ones, unless they are short
 * and something ended there.
 */
static __always_inline void measure_mss(struct drwa_sock *s, u32 len, u32 mss, u8 flags)
{
	if (mss >= s->mss ||
	    (len == s->last_len && (len >= DRWA_MSS_DEFAULT || !(flags & DRWA_REMNANT))))
		s->mss = mss;
	s->last_len = len;
}

/* The least of each */
static __always_inline void keep_least(struct drwa_sample *least, u32 rtt_us, u32 owd_us)
{
	if (!least->rtt_us || (s32)(owd_us - least->owd_us) < 0)
		least->owd_us = owd_us;
	if (!least->rtt_us || rtt_us < least->rtt_us)
		least->rtt_us = rtt_us;
}

/* Was the round over at @at_us, with the samples until then? One that nothing governs is. */
static __always_inline bool round_over(const struct drwa_sock *s, const struct drwa_queue *queue,
				       u32 at_us)
{
	struct drwa d = s->d;

	if (!d.rtt_us || !queue)
		return d.rtt_us;
	if (s->least.rtt_us)
		drwa_sample(&d, s->least.rtt_us, s->least.owd_us);
	return drwa_due(&d, &queue->link, at_us);
}

/* Data comes, after a while: what came before is whole, and a round of it is no part of a
 * burst. The next segment that is sent ends it.
 *
 * Where rcv_nxt stood still, data waits behind a hole that is not counted yet.
 */
static __always_inline void next_delivery(struct drwa_sock *s, struct bpf_sock *sk,
					  const struct drwa_queue *queue, u32 now_us)
{
	struct bpf_tcp_sock *tp;
	u32 rcv_nxt;

	if (now_us - s->came_us < DRWA_TICK_US)
		return;
	tp = bpf_tcp_sock(sk);
	if (!tp)
		return;
	rcv_nxt = tp->rcv_nxt;
	if (!s->over && rcv_nxt != s->rcv_nxt && round_over(s, queue, s->came_us)) {
		s->over_us = s->came_us;
		s->over_nxt = rcv_nxt;
		s->over = 1;
	}
	s->rcv_nxt = rcv_nxt;
	s->came_us = now_us;
}

static __always_inline void sample(struct __sk_buff *skb, struct bpf_sock *sk,
				   struct drwa_sock *s, struct drwa_queue *queue)
{
	u32 offset = tcp_offset(skb), len, tsecr, rtt_us, owd_us;
	u64 now_ns = bpf_ktime_get_ns();
	struct ts_option ts;
	u8 words_flags[2];

	if (!offset || bpf_skb_load_bytes(skb, offset + 12, words_flags, sizeof(words_flags)))
		return;
	len = skb->len - offset - (words_flags[0] >> 4) * 4;
	if ((s32)len <= 0)
		return;
	s->ifindex = skb->ifindex;
	next_delivery(s, sk, queue, now_ns / NSEC_PER_USEC);
	if (queue && !s->aside)
		drwa_heard(&queue->link, now_ns / NSEC_PER_USEC);
	measure_mss(s, len, skb->gso_segs > 1 ? skb->gso_size : len, words_flags[1]);
	s->no_clock = !load_ts(skb, offset + 20, offset + (words_flags[0] >> 4) * 4, &ts);
	if (s->no_clock)
		return;
	tsecr = bpf_ntohl(ts.ecr);
	if (tsecr == s->tsecr)
		return;
	s->tsecr = tsecr;
	/* As tcp_rcv_rtt_measure_ts(): a shorter one may have waited for its writer. */
	if (len < s->mss)
		return;
	rtt_us = ((u32)(now_ns / NSEC_PER_MSEC) + s->ts_ms - tsecr) * USEC_PER_MSEC;
	owd_us = (u32)(now_ns / NSEC_PER_USEC) - bpf_ntohl(ts.val) * USEC_PER_MSEC;
	if ((s32)rtt_us <= 0)
		return;
	keep_least(s->over ? &s->next : &s->least, rtt_us, owd_us);
}

/* Whosever the packet is, it was in the queue.
 *
 * Return: the queue, or NULL where nothing is governed.
 */
static __always_inline struct drwa_queue *count_came(u32 ifindex, u32 bytes)
{
	struct drwa_dev *dev = bpf_map_lookup_elem(&drwa_devs, &ifindex);
	struct drwa_queue *queue;
	struct drwa_stats *stats;

	if (!dev || !dev->lambda)
		return NULL;
	stats = stats_of(ifindex);
	queue = queue_of(ifindex, dev);
	if (!stats || !queue)
		return NULL;
	__sync_fetch_and_add(&stats->came, bytes);
	if (stats->came > queue->came)
		queue->came = stats->came;
	return queue;
}

DRWA_PROG(drwa_ingress, "cgroup_skb/ingress")(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct drwa_queue *queue;
	struct drwa_sock *s;
	u64 key;

	queue = count_came(skb->ifindex, skb->len);
	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_TCP)
		return 1;
	key = (unsigned long)sk;
	s = bpf_map_lookup_elem(&drwa_socks, &key);
	if (!s)
		return 1;
	if (s->ready)
		sample(skb, sk, s, queue);
	else
		s->ifindex = skb->ifindex;
	return 1;
}

/* The handshake met no queue of its own connection: the best base there is. */
static __always_inline void connected(struct bpf_sock_ops *ops, struct drwa_sock *s)
{
	u32 now_us = bpf_ktime_get_ns() / NSEC_PER_USEC, srtt_us = ops->srtt_us >> 3;
	u8 opt[10] = {}, mptcp[24] = {};
	u32 tsval, tsecr;
	int found;

	/* A subflow's window belongs to the connection. */
	mptcp[0] = TCPOPT_MPTCP;
	found = bpf_load_hdr_opt(ops, mptcp, sizeof(mptcp), 0);
	if (found > 0 || found == -ENOSPC)
		s->aside = 1;

	opt[0] = TCPOPT_TIMESTAMP;
	if (!srtt_us || bpf_load_hdr_opt(ops, opt, sizeof(opt), 0) != sizeof(opt))
		return;
	tsval = opt[2] << 24 | opt[3] << 16 | opt[4] << 8 | opt[5];
	tsecr = opt[6] << 24 | opt[7] << 16 | opt[8] << 8 | opt[9];
	/* Our segment left that long ago and said tsecr. */
	s->ts_ms = tsecr - (u32)((bpf_ktime_get_ns() / NSEC_PER_USEC - srtt_us) / USEC_PER_MSEC);
	s->tsecr = tsecr;
	s->least.rtt_us = srtt_us;
	s->least.owd_us = now_us - tsval * USEC_PER_MSEC;
	s->came_us = now_us;
	s->rcv_nxt = ops->rcv_nxt;
	s->mss = DRWA_MSS_DEFAULT;
	s->ready = 1;
}

static __always_inline void established(struct bpf_sock_ops *ops, u64 key)
{
	struct drwa_sock *s = bpf_map_lookup_elem(&drwa_socks, &key);
	u32 remote_ip4;

	/* Of an earlier connection, whose socket had this address */
	if (s && s->family)
		bpf_map_delete_elem(&drwa_socks, &key);
	s = entry(&drwa_socks, &key);
	if (!s)
		return;
	s->family = ops->family;
	s->remote[0] = READ_ONCE(ops->remote_ip6[0]);
	s->remote[1] = READ_ONCE(ops->remote_ip6[1]);
	s->remote[2] = READ_ONCE(ops->remote_ip6[2]);
	s->remote[3] = READ_ONCE(ops->remote_ip6[3]);
	/* No choice between two places in the context, which the verifier refuses */
	remote_ip4 = READ_ONCE(ops->remote_ip4);
	if (s->family == AF_INET)
		s->remote[0] = remote_ip4;
	s->remote_port = ops->remote_port;
	s->local_port = ops->local_port;
	connected(ops, s);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
				  BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG |
				  BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* The bin of @us; no branches, each of which the verifier would follow both ways */
static __always_inline u32 bin(u32 us)
{
	u64 above;
	u32 bin = 0;
	int i;

#pragma unroll
	for (i = 0; i < DRWA_BINS - 1; i++) {
		above = us >> (DRWA_BIN_SHIFT + i);
		asm volatile("" : "+r"(above));
		bin += -above >> 63;
	}
	return bin;
}

static __always_inline void count_round(struct drwa_stats *stats, const struct drwa *d,
					bool first, bool sampled)
{
	u32 q_us = d->rtt_us > d->path_us ? d->rtt_us - d->path_us : 0;
	u32 i;

	if (first)
		__sync_fetch_and_add(&stats->sockets, 1);
	__sync_fetch_and_add(&stats->rounds, 1);
	if (!sampled)
		return;
	i = bin(q_us);
	if (i < DRWA_BINS)
		__sync_fetch_and_add(&stats->delay_us[i], 1);
	i = bin(d->path_us);
	if (i < DRWA_BINS)
		__sync_fetch_and_add(&stats->rtt_us[i], 1);
}

/* What a header could not carry would be rounded up, and so be more than the clamp. */
static __always_inline u32 up_to_scale(u32 wnd)
{
	return (wnd + (1 << DRWA_WSCALE) - 1) & -(1 << DRWA_WSCALE);
}

static __always_inline void align(struct drwa_sock *s)
{
	s->d.wnd = up_to_scale(s->d.wnd);
}

static __always_inline void take_sample(struct bpf_sock_ops *ops, struct drwa_sock *s)
{
	u32 rtt_us = s->least.rtt_us, owd_us = s->least.owd_us, ifindex = s->ifindex;
	struct drwa_queue *queue;
	struct drwa_dev *dev;

	if (!rtt_us)
		return;
	if (s->d.rtt_us) {
		s->least.rtt_us = 0;
		drwa_sample(&s->d, rtt_us, owd_us);
		return;
	}
	/* The first one waits for the interface to be known. */
	if (!ifindex)
		return;
	s->least.rtt_us = 0;
	dev = bpf_map_lookup_elem(&drwa_devs, &ifindex);
	if (!dev || !dev->lambda)
		return;
	queue = queue_of(ifindex, dev);
	if (queue)
		drwa_start(&s->d, &queue->link, s->came_us, ops->rcv_nxt, rtt_us, owd_us,
			   true);
	align(s);
}

/* Ends the round if it was over at @over_us, or if nothing governs it. Did it? */
static __always_inline bool end_round(struct bpf_sock_ops *ops, struct drwa_sock *s,
				      u32 over_us, u32 rcv_nxt)
{
	bool first = !s->d.lambda, sampled = s->d.samples;
	struct drwa_queue *queue = NULL;
	u32 ifindex = s->ifindex;
	struct drwa_stats *stats;
	struct drwa_dev *dev;

	if (!s->d.rtt_us)
		return false;
	dev = bpf_map_lookup_elem(&drwa_devs, &ifindex);
	if (dev && dev->lambda)
		queue = queue_of(ifindex, dev);
	if (queue && !drwa_due(&s->d, &queue->link, over_us))
		return false;
	/* Without the sender's clock nothing would ever move the cap. */
	if (!queue || (!sampled && s->no_clock)) {
		drwa_reset(&s->d, DRWA_LAW_DELAY);
		return true;
	}
	s->d.lambda = dev->lambda;
	drwa_round(&s->d, &queue->link, over_us, rcv_nxt, s->mss);
	if (drwa_count_due(&s->d, &queue->link, over_us))
		drwa_count(&queue->link, over_us, s->d.rtt_us, queue->came, 0);
	align(s);
	stats = stats_of(ifindex);
	if (stats)
		count_round(stats, &s->d, first, sampled);
	return true;
}

static __always_inline int set_clamp(struct bpf_sock_ops *ops, int clamp)
{
	return bpf_setsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof(clamp));
}

static __always_inline void set_delack(struct bpf_sock_ops *ops, int us)
{
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_DELACK_MAX, &us, sizeof(us));
}

/* Its entry made way for another one's: nothing is known of it any more. */
static __always_inline void let_go(struct bpf_sock_ops *ops)
{
	set_clamp(ops, DRWA_NO_CLAMP);
	set_delack(ops, DRWA_DELACK_US);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags &
				  ~(BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG |
				    BPF_SOCK_OPS_STATE_CB_FLAG));
}

/* Is each segment to be answered? Senders take the pace of a start from that (HyStart, RFC
 * 9406), and the kernel does it while rcv_ssthresh grows, by two bytes for each that comes,
 * to what the buffer has room for. A clamp below that would end it, so it keeps room for
 * one byte during a start; later what more ACKs release would wait in the queue. Where
 * that cannot be, an ACK waits no longer than it has to.
 */
static __always_inline bool answer_each(struct bpf_sock_ops *ops, struct drwa_sock *s,
					u64 ssthresh)
{
	bool each = s->d.wnd && s->d.phase == DRWA_START && ssthresh < s->own_clamp;

	if (each != s->each) {
		s->each = each;
		set_delack(ops, each ? DRWA_DELACK_SOON_US : DRWA_DELACK_US);
	}
	return each;
}

/* Follows what is offered, since no hook tells it: @wnd, or what was offered before and
 * has not come. The first one's is @ssthresh, what the handshake offered and what that
 * may have grown by.
 *
 * Return: what the last segment offered.
 */
static __always_inline u32 follow_offer(struct bpf_sock_ops *ops, struct drwa_sock *s,
					u64 ssthresh, u32 wnd)
{
	u32 last = s->offered, left, rcv_nxt = ops->rcv_nxt;

	if (!s->clamp) {
		last = min_t(u64, ssthresh, s->own_clamp);
		s->edge = rcv_nxt + last;
	}
	left = s->edge - rcv_nxt;
	s->offered = (s32)left > (s32)wnd ? up_to_scale(left) : wnd;
	s->edge = rcv_nxt + s->offered;
	return last;
}

/* Auto-tuning sets the clamp anew when the buffer grows: look at every segment.
 * 5.15 does not tell the clamp, and each call takes back what the window grew by since
 * the last segment.
 */
static __always_inline void apply(struct bpf_sock_ops *ops, struct drwa_sock *s, bool ended,
				  bool tells_clamp)
{
	u64 ssthresh = DRWA_INIT_BYTES + 2 * READ_ONCE(ops->bytes_received);
	struct drwa_stats *stats;
	u32 ifindex = s->ifindex;
	int wnd = s->d.wnd, val = 0;
	bool each, room = false;

	if (tells_clamp && wnd) {
		if (bpf_getsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &val, sizeof(val)))
			val = 0;
		if ((u32)val != s->clamp)
			s->own_clamp = val;
	}
	each = answer_each(ops, s, ssthresh);
	if (!wnd) {
		if (!s->clamp)
			return;
		val = DRWA_NO_CLAMP;
		s->clamp = 0;
	} else {
		if (!tells_clamp) {
			if (!ended)
				return;
		} else {
			/* Raised, it has rcv_ssthresh be what was offered last. */
			room = follow_offer(ops, s, ssthresh, wnd) <= (u32)wnd && each;
			if (val == wnd && !room)
				return;
		}
		val = wnd;
		s->clamp = wnd + room;
	}
	stats = stats_of(ifindex);
	if (stats)
		__sync_fetch_and_add(&stats->clamps, 1);
	if (set_clamp(ops, val) && stats)
		__sync_fetch_and_add(&stats->refused, 1);
	/* Lowered first, or rcv_ssthresh would be there already. */
	if (room)
		set_clamp(ops, wnd + 1);
}

static __always_inline void send(struct bpf_sock_ops *ops, struct drwa_sock *s,
				 bool tells_clamp)
{
	u32 now_us = bpf_ktime_get_ns() / NSEC_PER_USEC;
	u32 over_us = s->came_us, rcv_nxt = ops->rcv_nxt;
	bool over = false;

	if (!s->ready)
		return;
	if (!s->aside) {
		take_sample(ops, s);
		if (s->over) {
			over_us = s->over_us;
			rcv_nxt = s->over_nxt;
		}
		/* Or nothing more came with the last data. */
		if (s->over || (now_us - over_us >= DRWA_TICK_US && rcv_nxt != s->rcv_nxt))
			over = end_round(ops, s, over_us, rcv_nxt);
		if (s->over) {
			s->least = s->next;
			s->next.rtt_us = 0;
			s->over = 0;
		}
	} else if (s->d.rtt_us) {
		drwa_reset(&s->d, DRWA_LAW_DELAY);
	}
	apply(ops, s, over, tells_clamp);
}

/* What an application makes of them with TCP_MAXSEG is told, below the default. */
static __always_inline u32 init_segments(struct bpf_sock_ops *ops)
{
	u32 mss = ops->mss_cache + sizeof(struct ts_option);

	return ops->mss_cache && mss < DRWA_MSS_DEFAULT ? DRWA_INIT_BYTES / mss :
							  DRWA_INIT_SEGMENTS;
}

static __always_inline int sockops(struct bpf_sock_ops *ops, bool tells_clamp)
{
	struct bpf_sock *sk = ops->sk;
	struct drwa_sock *s;
	u64 key = (unsigned long)sk;
	struct drwa_dev *unknown;
	u32 zero = 0;

	/* Of a connection that is being accepted there is no socket yet. */
	if (ops->op == BPF_SOCK_OPS_RWND_INIT) {
		s = bpf_map_lookup_elem(&drwa_socks, &key);
		unknown = bpf_map_lookup_elem(&drwa_devs, &zero);
		if (!(s && s->aside) && unknown && unknown->lambda && ours(ops))
			ops->reply = init_segments(ops);
		return 1;
	}
	if (!sk)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (ours(ops))
			entry(&drwa_socks, &key);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (ours(ops))
			established(ops, key);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		/* tcp_current_mss() asks too, and nothing is sent. */
		if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
			break;
		s = bpf_map_lookup_elem(&drwa_socks, &key);
		if (s)
			send(ops, s, tells_clamp);
		else
			let_go(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == BPF_TCP_CLOSE)
			bpf_map_delete_elem(&drwa_socks, &key);
		break;
	}
	return 1;
}

#ifdef DRWA_NO_GETSOCKOPT
#define DRWA_TELLS_CLAMP	false
#else
#define DRWA_TELLS_CLAMP	true
#endif

DRWA_PROG(drwa_sockops, "sockops")(struct bpf_sock_ops *ops)
{
	return sockops(ops, DRWA_TELLS_CLAMP);
}

DRWA_PROG(drwa_setsockopt, "cgroup/setsockopt")(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct drwa_sock *s;
	bool clamp;
	u64 key;

	/* The kernel is to take what the application gave, not the copy that it made for
	 * us: that has one page at most, and a rule set of iptables more.
	 */
	ctx->optlen = 0;
	if (!sk || sk->protocol != IPPROTO_TCP)
		return 1;
	clamp = ctx->level == IPPROTO_TCP && ctx->optname == TCP_WINDOW_CLAMP;
	if (!clamp && (ctx->level != SOL_SOCKET ||
		       (ctx->optname != SO_RCVBUF && ctx->optname != SO_RCVBUFFORCE)))
		return 1;
	key = (unsigned long)sk;
	s = entry(&drwa_socks, &key);
	if (!s)
		return 1;
	s->aside = 1;
	/* The application's comes in place of ours, and is not to be taken away. */
	if (clamp)
		s->clamp = 0;
	return 1;
}

DRWA_PROG(drwa_release, "cgroup/sock_release")(struct bpf_sock *sk)
{
	u64 key = (unsigned long)sk;
	struct drwa_sock *s = bpf_map_lookup_elem(&drwa_socks, &key);

	/* What became a connection ends as one. */
	if (s && !s->family)
		bpf_map_delete_elem(&drwa_socks, &key);
	return 1;
}

#ifndef LICENSE
#define LICENSE(name)	char _license[] SEC("license") = name
#endif

LICENSE("GPL");
