// SPDX-License-Identifier: GPL-2.0-only
/* DRWA at an interface: binding of the law to the packets that cross it
 *
 *	tc/ingress	samples, rounds
 *	tc/egress	what was offered, and the window in the header
 *
 * The window of what a phone sends is written there, whoever made the header: the
 * phone's own TCP, or that of a client of its hotspot. Nothing else of a packet is
 * changed, none is held back or kept from filters behind, and none is dropped but
 * UDP's where that was asked for (drwa_aqm.h).
 *
 * What was offered stays offered (RFC 9293, 3.8.6.2.1), so a lower target takes
 * effect as data comes.
 *
 * The programs keep within what Linux 4.14's verifier, helpers and maps are: no BTF,
 * no calls, no loops, and no field of struct __sk_buff that came later. A branch of
 * the parser doubles what the verifier sees, so it computes where it can.
 *
 * Segments of one connection may come and go on two CPUs. A field of struct
 * drwa_flow is written on one of the two ways alone, once the SYN is answered, and the
 * other one may read what is a segment old. Only a SYN makes an entry, and only what is
 * sent takes it away.
 */
#include <stddef.h>
#include <linux/types.h>
#include <linux/bpf.h>
#ifndef DRWA_PROG	/* android/drwa.c has the form of another loader. */
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#endif

/* All is inlined but what the kernel runs. */
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#include "tcp_drwa_classic.h"
/* No flow follows the paper's law, which need not be among the instructions. */
#define classic_sample(...)	__builtin_unreachable()
#define classic_due(...)	(__builtin_unreachable(), false)
#define classic_round(...)	__builtin_unreachable()
#include "tcp_drwa_core.c"
#pragma clang attribute pop

#include "drwa_aqm.h"

/* UAPI that Debian's headers for user space define beside libc's. */
#define ETH_P_IP		0x0800
#define ETH_P_IPV6		0x86dd
#define IPPROTO_ICMP		1
#define IPPROTO_TCP		6
#define IPPROTO_UDP		17
#define IPPROTO_ICMPV6		58
#define ICMP_ECHOREPLY		0
#define ICMPV6_ECHO_REPLY	129
#define ICMP_BYTES		8
#define UDP_BYTES		8
#define TC_ACT_UNSPEC		(-1)
#define TC_ACT_SHOT		2

#define TCPOPT_EOL		0
#define TCPOPT_NOP		1
#define TCPOPT_MSS		2
#define TCPOPT_WINDOW		3
#define TCPOPT_TIMESTAMP	8
#define TCPOPT_MD5SIG		19
#define TCPOPT_AO		29
#define TCPOPT_MPTCP		30

#define TCPHDR_FIN		0x01
#define TCPHDR_SYN		0x02
#define TCPHDR_RST		0x04
#define TCPHDR_PSH		0x08
#define TCPHDR_ACK		0x10
#define TCPHDR_URG		0x20

/* RFC 9293, 3.7.1: what a full segment has where nobody says anything; and the least
 * that Linux takes.
 */
#define DRWA_MSS_DEFAULT	536
#define DRWA_MSS_MIN		88

/* RFC 7323, 2.3 */
#define DRWA_SCALE_MAX		14

/* What timestamps take of each segment, with two NOPs */
#define DRWA_TS_BYTES		12

/* Options of a SYN are ten at most on the systems that are known, NOPs included. */
#define DRWA_OPTIONS		10

/* Weight of a sample in the mean of the way to the client and back, as in RFC 6298 */
#define DRWA_LAN_SHIFT		3

/* Of TCP over IPv6 with timestamps. What is no more than that, ACKs and pings, fills no
 * queue, whatever part it is of a slow link's bytes.
 */
#define DRWA_HEADER_BYTES	72

/* A delay that is older is none: an echo each 250 ms, and its RTT */
#define DRWA_DELAY_OLD_US	DRWA_SECOND_US

/* Who saw a longer one tells it for so long. */
#define DRWA_DELAY_MOST_US	(DRWA_SECOND_US / 4)

/* Shares of what comes are counted in windows of half a second: several RTTs */
#define DRWA_SHARE_US		(DRWA_SECOND_US / 2)

/* Who brings a 16th of what comes has no more of the queue, and the law sees the path. Half and
 * twice as much do alike.
 */
#define DRWA_PART_SHIFT		4

/* Ports of tunnels in UDP: IKE and IPsec (RFC 3948), OpenVPN, WireGuard */
#define PORT_IKE		500
#define PORT_IPSEC		4500
#define PORT_OPENVPN		1194
#define PORT_WIREGUARD		51820

/* Of OpenVPN's first packet: its first byte; where the number is from its beginning, in bytes,
 * and where the ACK from its end
 */
#define OPENVPN_RESET		(8 << 3)
#define OPENVPN_NUMBER		(1 + 8)
#define OPENVPN_ACK		(1 + 4 + 8 + 4)

#define NSEC_PER_USEC		1000
#define USEC_PER_MSEC		1000

#ifndef DRWA_MAP
#define DRWA_MAP(name, kind, id, what, entries)			\
	struct {						\
		__uint(type, BPF_MAP_TYPE_ ## kind);		\
		__uint(max_entries, entries);			\
		__type(key, id);				\
		__type(value, what);				\
	} name SEC(".maps")
#endif

#ifndef DRWA_PROG
#define DRWA_PROG(name)	SEC("tc/" #name) int drwa_ ## name

/* Whose interfaces the numbers are, by inode: their owner asks for that. */
DRWA_MAP(drwa_netns, ARRAY, u32, u64, 1);
#endif

DRWA_MAP(drwa_devs, HASH, u32, struct drwa_dev, DRWA_DEVS);
DRWA_MAP(drwa_queues, ARRAY, u32, struct drwa_queue, DRWA_DEVS);
DRWA_MAP(drwa_counts, ARRAY, u32, struct drwa_counts, DRWA_DEVS);
DRWA_MAP(drwa_flows, LRU_HASH, u64, struct drwa_flow, DRWA_FLOWS);
DRWA_MAP(drwa_udp, LRU_HASH, u64, struct drwa_udp, DRWA_UDP_FLOWS);

struct ipv4 {
	u8	version_words;
	u8	tos;
	__be16	len;
	__be16	id;
	__be16	fragment;
	u8	ttl;
	u8	protocol;
	__be16	check;
	__be32	from;
	__be32	to;
};

struct ipv6 {
	__be32	flow;
	__be16	len;
	u8	next;
	u8	hops;
	__be64	from[2];
	__be64	to[2];
};

/* Timestamps behind two NOPs, as senders align them (RFC 7323, appendix A) */
#define TS_HEAD	bpf_htonl(0x0101080a)
#define TS_LEN	10

struct tcp {
	__be16	from;
	__be16	to;
	__be32	seq;
	__be32	ack;
	u8	words;
	u8	flags;
	__be16	window;
	__be16	check;
	__be16	urgent;
	__be32	ts_head;
	__be32	ts_val;
	__be32	ts_ecr;
};

#define TCP_BYTES	offsetof(struct tcp, ts_head)

/* An IP header without options, and TCP's behind it */
struct headers {
	union {
		struct ipv6		v6;
		struct {
			u8		unused[sizeof(struct ipv6) - sizeof(struct ipv4)];
			struct ipv4	v4;
		};
	};
	struct tcp			tcp;
};

/* A segment, with what the options say that matters here */
struct segment {
	struct drwa_key	*key;
	struct tcp	*tcp;
	u32		at;	/* of the header behind IP's in the packet */
	u32		len;	/* payload, bytes */
	u32		now_us;	/* if somebody has to know */
	u32		tsval;
	u32		tsecr;
	u32		mss;
	u32		scale;
	u8		ts;
	u8		scales;
	u8		aside;
	u8		protocol;
	u8		whole;	/* TCP's header came with IP's */
};

/* 1 if equal, else 0, without a branch; below 2^32 */
static u64 same(u64 a, u64 b)
{
	u64 differ = a ^ b;

	asm volatile("" : "+r"(differ));
	return (differ - 1) >> 63;
}

/* @a if @which is 1, @b if it is 0 */
static u64 choose(u64 which, u64 a, u64 b)
{
	u64 mask = -which;

	asm volatile("" : "+r"(mask));
	return b ^ ((a ^ b) & mask);
}

static u32 load32(const u8 *bytes)
{
	return bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Options from @at to @end */
static void parse_options(struct __sk_buff *skb, struct segment *s, u64 at, u64 end, bool out)
{
	u64 kind, kinds = 0, ts_at = 0, mss_at = 0, scale_at = 0;
	u8 option[2], value[8];
	int i;

#pragma unroll
	for (i = 0; i < DRWA_OPTIONS; i++) {
		if (at + sizeof(option) > end ||
		    bpf_skb_load_bytes(skb, at, option, sizeof(option)))
			break;
		kind = option[0];
		if (kind == TCPOPT_EOL) {
			at = end;
			break;
		}
		ts_at = choose(same(kind << 8 | option[1], TCPOPT_TIMESTAMP << 8 | TS_LEN), at + 2,
			       ts_at);
		/* asm is not left out where nobody asks for its result. */
		if (out) {
			mss_at = choose(same(kind, TCPOPT_MSS), at + 2, mss_at);
			scale_at = choose(same(kind, TCPOPT_WINDOW), at + 2, scale_at);
		}
		/* None above 63 that is assigned has the low bits of those that are asked for. */
		kinds |= 1ULL << (kind & 63);
		at += choose(same(kind, TCPOPT_NOP), 1, option[1]);
	}
	if (ts_at && !bpf_skb_load_bytes(skb, ts_at, value, sizeof(value))) {
		s->ts = 1;
		s->tsval = load32(value);
		s->tsecr = load32(value + 4);
	}
	if (out && mss_at && !bpf_skb_load_bytes(skb, mss_at, value, 2))
		s->mss = value[0] << 8 | value[1];
	/* Of what comes, that alone matters. */
	s->scales = kinds >> TCPOPT_WINDOW & 1;
	if (out && scale_at && !bpf_skb_load_bytes(skb, scale_at, value, 1))
		s->scale = min(value[0], DRWA_SCALE_MAX);
	if (kinds & (1ULL << TCPOPT_MD5SIG | 1ULL << TCPOPT_AO))
		s->aside = DRWA_SIGNED;
	else if (kinds & 1ULL << TCPOPT_MPTCP)
		s->aside = DRWA_MPTCP;
	else if (at + 1 < end)
		s->aside = DRWA_UNREAD;
}

/* Addresses and protocol, of a packet that @out says where it goes. Most have a TCP header
 * with timestamps next: it is read at once.
 *
 * Return: bytes behind IP's header, 0: it is another protocol, or a fragment.
 */
static u32 parse_ip(struct __sk_buff *skb, u32 l2, struct segment *s, struct headers *h, bool out)
{
	u32 bytes, header;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		s->whole = !bpf_skb_load_bytes(skb, l2, &h->v4, sizeof(h->v4) + sizeof(h->tcp));
		if ((!s->whole && bpf_skb_load_bytes(skb, l2, &h->v4, sizeof(h->v4))) ||
		    (h->v4.fragment & bpf_htons(0x3fff)))
			return 0;
		header = (h->v4.version_words & 15) * 4;
		s->whole &= header == sizeof(h->v4);
		bytes = bpf_ntohs(h->v4.len) - header;
		/* Longer than the field can say (BIG TCP) */
		if (!h->v4.len)
			bytes = skb->len - l2 - header;
		s->at = l2 + header;
		s->protocol = h->v4.protocol;
		s->key->remote[0] = out ? h->v4.to : h->v4.from;
		s->key->local[0] = out ? h->v4.from : h->v4.to;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		s->whole = !bpf_skb_load_bytes(skb, l2, &h->v6, sizeof(h->v6) + sizeof(h->tcp));
		if (!s->whole && bpf_skb_load_bytes(skb, l2, &h->v6, sizeof(h->v6)))
			return 0;
		bytes = bpf_ntohs(h->v6.len);
		if (!h->v6.len)
			bytes = skb->len - l2 - sizeof(h->v6);
		s->at = l2 + sizeof(h->v6);
		s->protocol = h->v6.next;
		s->key->addresses[0] = out ? h->v6.to[0] : h->v6.from[0];
		s->key->addresses[1] = out ? h->v6.to[1] : h->v6.from[1];
		s->key->addresses[2] = out ? h->v6.from[0] : h->v6.to[0];
		s->key->addresses[3] = out ? h->v6.from[1] : h->v6.to[1];
	} else {
		return 0;
	}
	return bytes;
}

/* Of UDP, as of TCP, they come first. */
static bool parse_ports(struct __sk_buff *skb, struct segment *s, bool out)
{
	struct tcp *tcp = s->tcp;

	if (!s->whole && bpf_skb_load_bytes(skb, s->at, tcp, 2 * sizeof(tcp->from)))
		return false;
	s->key->remote_port = out ? tcp->to : tcp->from;
	s->key->local_port = out ? tcp->from : tcp->to;
	return true;
}

/* TCP's header and options
 *
 * Return: false if there is none that is whole.
 */
static bool parse(struct __sk_buff *skb, u32 l2, struct segment *s, struct headers *h, bool out)
{
	struct tcp *tcp = &h->tcp;
	u32 bytes, header;

	/* Keeps it in memory, or its parts would take all registers. */
	asm volatile("" : : "r"(s->key) : "memory");
	bytes = parse_ip(skb, l2, s, h, out);
	if (s->protocol != IPPROTO_TCP)
		return false;
	if (!s->whole && bpf_skb_load_bytes(skb, s->at, tcp, sizeof(*tcp))) {
		if (bpf_skb_load_bytes(skb, s->at, tcp, TCP_BYTES))
			return false;
		tcp->ts_head = 0;
	}
	s->key->remote_port = out ? tcp->to : tcp->from;
	s->key->local_port = out ? tcp->from : tcp->to;
	header = (tcp->words >> 4) * 4;
	s->len = bytes - header;
	if (header < TCP_BYTES || (s32)s->len < 0 || s->at + bytes > skb->len)
		return false;
	if (!(tcp->flags & TCPHDR_SYN) && header >= sizeof(*tcp) && tcp->ts_head == TS_HEAD) {
		s->ts = 1;
		s->tsval = bpf_ntohl(tcp->ts_val);
		s->tsecr = bpf_ntohl(tcp->ts_ecr);
	} else if (header > TCP_BYTES) {
		parse_options(skb, s, s->at + TCP_BYTES, s->at + header, out);
	}
	return true;
}

static struct drwa_flow *find_flow(const struct drwa_key *key, u64 digest)
{
	struct drwa_flow *f = bpf_map_lookup_elem(&drwa_flows, &digest);

	return f && drwa_same(&f->key, key) ? f : NULL;
}

static u32 clock_us(void)
{
	return bpf_ktime_get_ns() / NSEC_PER_USEC;
}

static void count(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

static void raise(u64 *most, u64 n)
{
	if (n > *most)
		*most = n;
}

/* A comparison of 32 bits would cost twice that. */
static u32 beyond_headers(u32 bytes)
{
	s64 more = (u64)bytes - DRWA_HEADER_BYTES;

	return more & ~(more >> 63);
}

static u32 bin(u32 us)
{
	return fls(min(us >> DRWA_BIN_SHIFT, (1U << (DRWA_BINS - 1)) - 1));
}

static void count_round(struct drwa_counts *counts, const struct drwa *d, bool sampled)
{
	u32 i;

	count(&counts->rounds, 1);
	if (!sampled)
		return;
	i = bin(d->rtt_us - min(d->path_us, d->rtt_us));
	if (i < DRWA_BINS)
		count(&counts->delay_us[i], 1);
	i = bin(d->path_us);
	if (i < DRWA_BINS)
		count(&counts->rtt_us[i], 1);
}

/* --- What comes --- */

/* As tcp_measure_rcv_mss() has it: two alike are full ones, unless they are short and
 * something ended there.
 */
static void measure_segment(struct drwa_flow *f, u32 len, u8 flags)
{
	bool remnant = flags & (TCPHDR_FIN | TCPHDR_SYN | TCPHDR_PSH | TCPHDR_URG);

	if (len >= f->segment)
		f->segment = min(len, f->mss);
	else if (len == f->last_len && (len >= DRWA_MSS_DEFAULT || !remnant))
		f->segment = len;
	f->last_len = len;
}

/* When the echoed timestamp was first sent; marks that it passed over go.
 *
 * Return: the RTT, 0: not known.
 */
static u32 echoed_us(struct drwa_flow *f, const struct segment *s)
{
	u32 rtt_us = 0;
	u8 i = f->echoed;
	int n;

#pragma unroll
	for (n = 0; n < 4; n++) {
		struct drwa_mark *mark = &f->marks[i & (DRWA_MARKS - 1)];

		if (i == f->marked || (s32)(mark->tsval - s->tsecr) > 0)
			break;
		if (mark->tsval == s->tsecr)
			rtt_us = s->now_us - mark->at_us;
		i++;
	}
	f->echoed = i;
	return rtt_us;
}

/* As tcp_rcv_rtt_measure(): the time that a window's worth of data takes */
static u32 window_came_us(struct drwa_flow *f, const struct segment *s)
{
	u32 us = 0;

	if (f->window_us) {
		if ((s32)(f->next - f->window_seq) < 0)
			return 0;
		us = s->now_us - f->window_us;
	}
	f->window_seq = f->edge;
	f->window_us = s->now_us | 1;
	return us;
}

/* The SYN was answered. The handshake met no queue of its own connection: its RTT gives the
 * best base there is.
 *
 * Return: that RTT, 0: none.
 */
static u32 answer(struct drwa_flow *f, const struct segment *s)
{
	bool syn = s->tcp->flags & TCPHDR_SYN;

	/* Of the SYN that was seen; some send data with it. */
	if (!(s->tcp->flags & TCPHDR_ACK) ||
	    bpf_ntohl(s->tcp->ack) - f->opened_seq - 1 > U16_MAX)
		return 0;
	if (s->tcp->flags & TCPHDR_RST) {
		f->fin_came = DRWA_RST;
		return 0;
	}
	if (syn == f->passive)
		return 0;
	if (syn) {
		if (!f->scales || !s->scales)
			f->scale = 0;
		if (f->ts && !s->ts) {
			f->ts = 0;
			f->mss += DRWA_TS_BYTES;
		}
		/* A subflow is one if both ends say so. */
		if (s->aside || f->aside == DRWA_MPTCP)
			f->aside = s->aside;
		f->next = bpf_ntohl(s->tcp->seq) + 1;
		f->hole = f->next;
		f->acked = f->next;
		f->edge += f->next;
	}
	f->answered = 1;
	return s->now_us - f->opened_us;
}

static u32 sample_us(struct drwa_flow *f, const struct segment *s)
{
	u32 us;

	if (!s->ts)
		return window_came_us(f, s);
	f->window_us = 0;
	if (s->tsecr == f->tsecr)
		return 0;
	f->tsecr = s->tsecr;
	us = echoed_us(f, s);
	/* As tcp_rcv_rtt_measure_ts(): a shorter one may have waited for its writer. */
	if (!us || s->len < f->segment)
		return 0;
	return us + f->lan_us;
}

/* Is it new, and no more than was offered? What comes behind a hole has come: to wait for
 * the ACK of the rest, which a client's is on its way for long, would be to wait for ever.
 */
static bool deliver(struct drwa_flow *f, const struct segment *s)
{
	u32 seq = bpf_ntohl(s->tcp->seq), end = seq + s->len, acked = READ_ONCE(f->acked);

	if ((s32)(acked - f->next) > 0)
		f->next = acked;
	if (seq == f->next)
		f->fin_came |= s->tcp->flags & DRWA_RST;
	if ((s32)(end - f->next) < 0 || (s32)(end - READ_ONCE(f->edge)) > 0)
		return false;
	if ((s32)(seq - f->next) > 0)
		f->hole = end;
	f->fin_came |= s->tcp->flags & DRWA_FIN;
	if (end == f->next)
		return false;
	f->next = end;
	/* An ACK of what came late, or behind a hole, would have waited for what came before, and
	 * that of a lone segment waits for the next: on a slow link that is no part of the way.
	 */
	if (f->lan_sent == READ_ONCE(f->lan_done) && (s32)(f->hole - acked) <= 0 &&
	    end - acked > f->segment) {
		f->lan_seq = end;
		f->lan_sent_us = s->now_us;
		WRITE_ONCE(f->lan_sent, f->lan_sent + 1);
	}
	return true;
}

/* What the header cannot carry would be rounded up at every segment. */
static void align(struct drwa_flow *f)
{
	u32 unit = 1 << (f->scale & 15);

	f->d.wnd = (f->d.wnd + unit - 1) & -unit;
}

/* A sender that stops sending timestamps is a new one. */
static void take_sample(struct drwa_flow *f, const struct segment *s, u32 rtt_us)
{
	u32 owd_us = s->now_us - s->tsval * USEC_PER_MSEC;

	if (f->d.rtt_us && (s->ts || !f->d.clock)) {
		drwa_sample(&f->d, rtt_us, owd_us);
		return;
	}
	drwa_reset(&f->d, DRWA_LAW_DELAY);
	drwa_start(&f->d, s->now_us, f->next, rtt_us, owd_us, s->ts);
	if (!f->owd_us)
		f->owd_us = owd_us;
	align(f);
}

/* The first count has only those to come to compare with: what was before says nothing. */
static void count_link(struct drwa_queue *queue, u32 now_us, u32 rtt_us)
{
	if (!queue->link.counted_us) {
		queue->link.all = queue->came;
		queue->link.sent = queue->sent;
	}
	drwa_count(&queue->link, now_us, rtt_us, queue->came, queue->sent);
}

/* The law yields to a queue that is not its own. While a flow of UDP brings more than half
 * of all, the window lasts for the queue that CoDel leaves it.
 */
static void keep_share(struct drwa_flow *f, const struct drwa_queue *queue, u32 now_us)
{
	u64 bdp = (u64)f->d.rate * (f->d.path_us + DRWA_AQM_TARGET_US) >> DRWA_SECOND_SHIFT;

	if (f->d.phase == DRWA_HOLD && f->d.wnd &&
	    is_fresh(now_us, READ_ONCE(queue->most_us), DRWA_SHARE_US))
		f->d.wnd = max_t(u64, f->d.wnd, (bdp + f->mss) << f->d.hidden);
}

static void end_round(struct drwa_flow *f, const struct drwa_dev *dev, struct drwa_queue *queue,
		      struct drwa_counts *counts, const struct segment *s)
{
	bool sampled = f->d.samples;

	if (!f->d.lambda)
		count(&counts->flows, 1);
	f->d.lambda = dev->lambda;
	drwa_round(&f->d, &queue->link, s->now_us, f->next, f->mss);
	if (dev->aqm)
		keep_share(f, queue, s->now_us);
	if (drwa_count_due(&f->d, &queue->link, s->now_us))
		count_link(queue, s->now_us, f->d.rtt_us);
	align(f);
	count_round(counts, &f->d, sampled);
}

static void count_aside(struct drwa_counts *counts, const struct drwa_flow *f, u32 len)
{
	if (f->aside == DRWA_MPTCP)
		count(&counts->mptcp, len);
	else
		count(&counts->is_signed, len);
}

/* The filters were away. What passed meanwhile was not seen, and filled the queue. */
static void resume(struct drwa_flow *f, const struct drwa_counts *counts, const struct segment *s)
{
	f->came_since_us = counts->began_us;
	f->next = bpf_ntohl(s->tcp->seq);
	f->hole = f->next;
	f->window_us = 0;
	drwa_reset(&f->d, DRWA_LAW_DELAY);
}

/* Connections that began in a queue took some of it for the path: who saw most is right. */
static void tell_delay(struct drwa_queue *queue, u32 now_us, u32 of, u32 delay_us)
{
	if (of != queue->delay_of && delay_us < queue->delay_us &&
	    is_fresh(now_us, READ_ONCE(queue->delay_set_us), DRWA_DELAY_MOST_US))
		return;
	queue->delay_us = delay_us;
	queue->delay_of = of;
	WRITE_ONCE(queue->delay_set_us, now_us);
}

/* The law's base follows a queue that stays, as UDP's does. So it is taken while UDP brings
 * nothing or little, and only becomes less while there is more: a longer path holds UDP to the
 * least that drops can, and is known from there on.
 */
static void tell_flows_delay(struct drwa_flow *f, struct drwa_queue *queue,
			     const struct segment *s)
{
	u32 owd_us = s->now_us - s->tsval * USEC_PER_MSEC;

	if (!s->ts || !f->d.clock)
		return;
	if (!is_fresh(s->now_us, READ_ONCE(queue->udp_us), DRWA_SECOND_US))
		f->owd_us = f->d.base_us;
	if ((s32)(owd_us - f->owd_us) < 0)
		f->owd_us = owd_us;
	/* More than that is no clock, which the law sees when its second round ends. This round's
	 * RTT, for a queue that grows may be longer than all of the last one's.
	 */
	if (owd_us - f->owd_us <= f->d.least_us)
		tell_delay(queue, s->now_us, s->key->local_port << 16 | s->key->remote_port,
			   owd_us - f->owd_us);
}

/* What waits for the end of an outage is no queue that a sender could do anything about:
 * the longest that those saw which come now counts.
 */
static void hear(struct drwa_queue *queue, u32 now_us)
{
	u32 silent_us = now_us - READ_ONCE(queue->link.heard_us);

	drwa_heard(&queue->link, now_us);
	/* Another CPU's clock may have been ahead. */
	if (silent_us > U32_MAX / 2 || silent_us < DRWA_SILENCE_MAX_US ||
	    (silent_us < queue->silent_us &&
	     is_fresh(now_us, queue->silent_end_us, queue->delay_us)))
		return;
	queue->silent_us = silent_us;
	queue->silent_end_us = now_us;
}

static u32 standing_us(const struct drwa_queue *queue, u32 now_us)
{
	u32 delay_us = queue->delay_us;

	if (!is_fresh(now_us, READ_ONCE(queue->delay_set_us), DRWA_DELAY_OLD_US))
		return 0;
	if (is_fresh(now_us, queue->silent_end_us, delay_us))
		delay_us -= min(delay_us, queue->silent_us);
	return delay_us;
}

/* A client's connection is off where those are not governed. */
static u32 lambda_of(const struct drwa_flow *f, const struct drwa_dev *dev)
{
	return choose(f->forwarded & dev->local, 0, dev->lambda);
}

static void came(struct drwa_flow *f, const struct drwa_dev *dev, struct drwa_queue *queue,
		 struct drwa_counts *counts, struct segment *s)
{
	u32 rtt_us = 0;
	bool delivered;

	s->now_us = clock_us();
	if (!f->answered) {
		rtt_us = answer(f, s);
		if (!f->answered)
			return;
	}
	f->came_us = s->now_us;
	if (f->came_since_us != counts->began_us)
		resume(f, counts, s);
	if (f->aside) {
		/* What was offered is not followed, so any will do. */
		f->fin_came |= s->tcp->flags & (DRWA_FIN | DRWA_RST);
		count_aside(counts, f, s->len);
		return;
	}
	delivered = deliver(f, s);
	if (s->len) {
		measure_segment(f, s->len, s->tcp->flags);
		if (!rtt_us)
			rtt_us = sample_us(f, s);
	}
	if (!lambda_of(f, dev)) {
		if (dev->lambda)
			count(&counts->clients, s->len);
		if (f->d.rtt_us)
			drwa_reset(&f->d, DRWA_LAW_DELAY);
		return;
	}
	if (rtt_us)
		take_sample(f, s, rtt_us);
	if (!s->len)
		return;
	if (dev->aqm)
		tell_flows_delay(f, queue, s);
	if (f->d.rtt_us)
		drwa_credit(&queue->link, s->len);
	hear(queue, s->now_us);
	if (delivered && drwa_due(&f->d, &queue->link, s->now_us))
		end_round(f, dev, queue, counts, s);
}

/* --- What comes and is not TCP --- */

/* Is it the answer to an echo of the owner's? */
static void hear_echo(struct __sk_buff *skb, const struct segment *s, const struct drwa_dev *dev,
		      struct drwa_queue *queue)
{
	u32 now_us, rtt_us, came, sent;
	struct drwa_echo echo;
	u8 kind;

	if (bpf_skb_load_bytes(skb, s->at, &kind, sizeof(kind)) ||
	    kind != (s->protocol == IPPROTO_ICMP ? ICMP_ECHOREPLY : ICMPV6_ECHO_REPLY) ||
	    bpf_skb_load_bytes(skb, s->at + ICMP_BYTES, &echo, sizeof(echo)) ||
	    echo.id != dev->echo)
		return;
	now_us = clock_us();
	rtt_us = now_us - bpf_ntohl(echo.sent_us);
	if (rtt_us - 1 >= DRWA_RTT_MAX_US)
		return;
	came = (u32)queue->came - queue->echo_came;
	sent = (u32)queue->sent - queue->echo_sent;
	queue->echo_came += came;
	queue->echo_sent += sent;
	if (!queue->echo_us || rtt_us < queue->echo_us)
		queue->echo_us = rtt_us;
	/* Nothing tells the queue of an upload from ours. */
	if (sent <= came >> DRWA_UPLOAD_SHIFT)
		tell_delay(queue, now_us, 0, rtt_us - queue->echo_us);
}

static bool is_tunnels_port(u16 port)
{
	return port == bpf_htons(PORT_IKE) || port == bpf_htons(PORT_IPSEC) ||
	       port == bpf_htons(PORT_OPENVPN) || port == bpf_htons(PORT_WIREGUARD);
}

/* OpenVPN's server begins with a short P_CONTROL_HARD_RESET_SERVER_V2 of key 0, and its session.
 * Such a byte has one of 64 short headers of QUIC, too, but what follows is random there. Here it
 * ends with the ACK of one packet, 0, the client's session and a number (tls_reset_standalone()
 * in src/openvpn/ssl_pkt.c). tls-crypt hides that, and counts its packets from 1 behind the
 * session (TLS_CRYPT_OFF_PID).
 */
static bool is_openvpn(struct __sk_buff *skb, u32 at)
{
	u8 number[3], ack[5];

	if (!bpf_skb_load_bytes(skb, at + OPENVPN_NUMBER, number, sizeof(number)) &&
	    !(number[0] | number[1] | number[2]))
		return true;
	return !bpf_skb_load_bytes(skb, skb->len - OPENVPN_ACK, ack, sizeof(ack)) &&
	       ack[0] == 1 && !(ack[1] | ack[2] | ack[3] | ack[4]);
}

/* WireGuard's messages begin with their kind in 32 bits, 1 to 4, QUIC's never (RFC 9000, 17). */
static bool is_tunnel(struct __sk_buff *skb, const struct segment *s, u32 bytes)
{
	u8 first[4];

	if (is_tunnels_port(s->key->remote_port) || is_tunnels_port(s->key->local_port))
		return true;
	if (bpf_skb_load_bytes(skb, s->at + UDP_BYTES, first, sizeof(first)))
		return false;
	return (first[0] - 1U < 4 && !(first[1] | first[2] | first[3])) ||
	       (first[0] == OPENVPN_RESET && bytes < DRWA_TUNNEL_HELLO &&
		is_openvpn(skb, s->at + UDP_BYTES));
}

/* What was sent of a client's may have made its entry. */
static struct drwa_udp *find_udp(struct __sk_buff *skb, const struct segment *s,
				 struct drwa_counts *counts, u32 bytes)
{
	u64 digest = drwa_digest(s->key);
	struct drwa_udp none, *u = bpf_map_lookup_elem(&drwa_udp, &digest);

	if (!u) {
		__builtin_memset(&none, 0, sizeof(none));
		none.key = *s->key;
		bpf_map_update_elem(&drwa_udp, &digest, &none, BPF_NOEXIST);
		u = bpf_map_lookup_elem(&drwa_udp, &digest);
	}
	if (!u || !drwa_same(&u->key, s->key))
		return NULL;
	if (!u->came) {
		u->came = 1;
		u->tunnel = is_tunnel(skb, s, bytes);
		count(&counts->udp_tunnels, u->tunnel);
	}
	return u;
}

static void count_share(struct drwa_udp *u, struct drwa_queue *queue, u32 now_us, u32 bytes)
{
	u64 came;

	u->share_bytes += beyond_headers(bytes);
	if (now_us - u->share_us < DRWA_SHARE_US)
		return;
	came = queue->came - u->share_came;
	if (u->share_bytes > came >> DRWA_PART_SHIFT)
		WRITE_ONCE(queue->udp_us, now_us);
	if (u->share_bytes > came / 2)
		WRITE_ONCE(queue->most_us, now_us);
	u->share_us = now_us;
	u->share_bytes = 0;
	u->share_came = queue->came;
}

/* Return: should it be dropped? */
static bool came_udp(struct __sk_buff *skb, struct segment *s, const struct drwa_dev *dev,
		     struct drwa_queue *queue, struct drwa_counts *counts, u32 bytes)
{
	u32 now_us, delay_us, target_us;
	struct drwa_udp *u;

	if (s->protocol == IPPROTO_ICMP || s->protocol == IPPROTO_ICMPV6) {
		if (dev->echo)
			hear_echo(skb, s, dev, queue);
		return false;
	}
	if (s->protocol != IPPROTO_UDP || !parse_ports(skb, s, false))
		return false;
	u = find_udp(skb, s, counts, bytes);
	if (!u || u->state == DRWA_UDP_DEAF || (u->client && dev->local) ||
	    (u->tunnel && dev->aqm != DRWA_AQM_TUNNELS))
		return false;
	now_us = clock_us();
	drwa_credit(&queue->link, beyond_headers(bytes));
	hear(queue, now_us);
	if (!aqm_is_bulk(u, now_us, bytes))
		return false;
	if (u->state == DRWA_UDP_SEEN) {
		u->state = DRWA_UDP_JUDGED;
		WRITE_ONCE(queue->udp_us, now_us);
		count(&counts->udp_flows, 1);
	}
	delay_us = standing_us(queue, now_us);
	/* Who does not react is a rival, and the law's matter. */
	if (aqm_is_deaf(u, now_us, bytes)) {
		u->state = DRWA_UDP_DEAF;
		count(&counts->udp_deaf, 1);
		return false;
	}
	/* The flow is gone, and its queue stayed: so it is the path. */
	if (aqm_in_vain(u, now_us, delay_us, bytes) && !queue->delay_of && queue->echo_us)
		queue->echo_us += u->last_q_us;
	/* Who governs TCP has told its target within a second. */
	target_us = DRWA_AQM_TARGET_US;
	if (!is_fresh(now_us, READ_ONCE(queue->link.target_set_us), DRWA_SECOND_US))
		target_us *= 2;
	count_share(u, queue, now_us, bytes);
	if (!aqm_codel(u, now_us, delay_us, target_us))
		return false;
	aqm_dropped(u, delay_us);
	count(&counts->udp_dropped, 1);
	return true;
}

/* --- What is sent --- */

/* A SYN, or a SYN ACK, whose header @none may be written over */
static void open(struct __sk_buff *skb, const struct segment *s, const struct drwa_counts *counts,
		 struct drwa_flow *none)
{
	u32 window = bpf_ntohs(s->tcp->window), acked = bpf_ntohl(s->tcp->ack);
	u32 seq = bpf_ntohl(s->tcp->seq);
	bool passive = s->tcp->flags & TCPHDR_ACK;
	u64 digest = drwa_digest(s->key);
	struct drwa_flow *f = find_flow(s->key, digest);
	/* Which one will be answered is not known (RFC 6298, 3): the law refuses that RTT. */
	u32 sent_again = f && f->opened_seq == seq ? 1U << 31 : 0;

	/* Its padding, too */
	__builtin_memset(none, 0, sizeof(*none));
	if (bpf_map_update_elem(&drwa_flows, &digest, none, BPF_ANY))
		return;
	f = bpf_map_lookup_elem(&drwa_flows, &digest);
	if (!f)
		return;
	f->key = *s->key;
	f->opened_us = clock_us() + sent_again;
	f->came_since_us = counts->began_us;
	f->sent_since_us = counts->began_us;
	f->opened_seq = seq;
	f->ifindex = skb->ifindex;
	f->forwarded = !!skb->ingress_ifindex;
	f->mss = s->mss ? max(s->mss, DRWA_MSS_MIN) : DRWA_MSS_DEFAULT;
	if (s->ts)
		f->mss -= DRWA_TS_BYTES;
	f->segment = min(f->mss, DRWA_MSS_DEFAULT);
	f->scale = s->scale;
	f->scales = s->scales;
	f->ts = s->ts;
	f->aside = s->aside;
	f->edge = window;
	if (passive) {
		f->passive = 1;
		f->next = acked;
		f->hole = acked;
		f->acked = acked;
		f->edge += acked;
	}
}

/* Was what is awaited acknowledged? */
static bool is_lan_acked(const struct drwa_flow *f, u32 acked)
{
	return READ_ONCE(f->lan_sent) != f->lan_done && (s32)(acked - f->lan_seq) >= 0;
}

/* The mean of the way to the client and back, for the sender waits for all of it: a least one
 * would leave out what a busy Wi-Fi adds.
 *
 * The phone's own ACK takes no time but where the application does not read: as the buffer
 * fills, it waits for up to 40 ms, whatever comes (__tcp_ack_snd_check()). One that only waited
 * for a second segment is like those of any path.
 */
static void measure_lan(struct drwa_flow *f, u32 acked, u32 now_us)
{
	u32 us = now_us - f->lan_sent_us;

	WRITE_ONCE(f->lan_done, f->lan_done + 1);
	if (f->forwarded && !f->lan_us) {
		f->lan_us = us;
		return;
	}
	if (!f->forwarded && acked - f->lan_seq <= 2 * f->segment)
		us = 0;
	f->lan_us += (s32)(us - f->lan_us) >> DRWA_LAN_SHIFT;
}

/* Is its timestamp another one, with a place to keep it? */
static bool is_markable(struct drwa_flow *f, const struct segment *s)
{
	if (!s->ts || s->tsval == f->tsval)
		return false;
	f->tsval = s->tsval;
	return (u8)(f->marked - READ_ONCE(f->echoed)) < DRWA_MARKS;
}

/* Sixteen of an RTT, if timestamps tick that often. A clock of ms tells up to a tick less than the
 * RTT, half of one in the mean, and rounds that are not a hair longer keep step with the sender's
 * bursts. Longer ones drift through these, so a flow's rates differ by a burst, and its window has
 * to cover that.
 */
static void mark(struct drwa_flow *f, const struct segment *s, u32 now_us)
{
	u8 i = f->marked;
	struct drwa_mark *last = &f->marks[(i - 1) & (DRWA_MARKS - 1)];
	struct drwa_mark *next = &f->marks[i & (DRWA_MARKS - 1)];
	u32 at_us = now_us + DRWA_TICK_US / 2;

	if (at_us - last->at_us < READ_ONCE(f->d.rtt_us) / DRWA_MARKS)
		return;
	next->tsval = s->tsval;
	next->at_us = at_us;
	WRITE_ONCE(f->marked, i + 1);
}

/* Writes the window of @units, and its checksum. Did it? What makes the checksum's place writable
 * does so for the window ahead of it: not one alone is written.
 */
static bool write_window(struct __sk_buff *skb, const struct segment *s, u32 units)
{
	__be16 window = bpf_htons(units);

	return !bpf_l4_csum_replace(skb, s->at + offsetof(struct tcp, check), s->tcp->window,
				    window, sizeof(window)) &&
	       !bpf_skb_store_bytes(skb, s->at + offsetof(struct tcp, window), &window,
				    sizeof(window), 0);
}

/* The window as it is, or as the law has it, but nothing less than what was offered. */
static void offer(struct __sk_buff *skb, struct drwa_flow *f, const struct segment *s,
		  struct drwa_counts *counts, bool governed)
{
	u32 units = bpf_ntohs(s->tcp->window), acked = bpf_ntohl(s->tcp->ack);
	u32 scale = f->scale & 15, cap = READ_ONCE(f->d.wnd), left = f->edge - acked;

	if (governed && cap) {
		if ((s32)left > (s32)cap)
			cap = left;
		cap = (cap + (1 << scale) - 1) >> scale;
		if (cap < units && write_window(skb, s, cap)) {
			units = cap;
			count(&counts->capped, 1);
		}
	}
	if ((s32)((units << scale) - left) > 0)
		f->edge = acked + (units << scale);
}

static void sent(struct __sk_buff *skb, struct drwa_flow *f, const struct segment *s,
		 const struct drwa_dev *dev, struct drwa_counts *counts)
{
	u32 acked = bpf_ntohl(s->tcp->ack);
	bool seen = f->sent_since_us == counts->began_us, lan, markable;
	u32 now_us;

	/* Or it came another way meanwhile, where more was offered. */
	seen &= (s32)(acked - f->edge) <= 0;
	if (!seen) {
		/* The filters were away: this one tells what was offered meanwhile. */
		f->sent_since_us = counts->began_us;
		f->ifindex = skb->ifindex;
		f->edge = acked;
	}
	if (!seen || (s32)(acked - f->acked) > 0)
		WRITE_ONCE(f->acked, acked);
	lan = is_lan_acked(f, acked);
	markable = is_markable(f, s);
	if (lan || markable) {
		now_us = clock_us();
		if (lan)
			measure_lan(f, acked, now_us);
		if (markable)
			mark(f, s, now_us);
	}
	offer(skb, f, s, counts, lambda_of(f, dev) && seen);
}

/* What comes of UDP does not tell whether it is a client's, what is sent does. Its ports may be
 * written over by @none.
 */
static void let_client_be(struct __sk_buff *skb, struct segment *s, struct drwa_udp *none)
{
	struct drwa_udp *u;
	u64 digest;

	if (!parse_ports(skb, s, true))
		return;
	digest = drwa_digest(s->key);
	u = bpf_map_lookup_elem(&drwa_udp, &digest);
	if (u) {
		u->client |= drwa_same(&u->key, s->key);
		return;
	}
	__builtin_memset(none, 0, sizeof(*none));
	none->key = *s->key;
	none->client = 1;
	bpf_map_update_elem(&drwa_udp, &digest, none, BPF_NOEXIST);
}

/* Whose packet it is */
struct place {
	struct drwa_dev		*dev;
	struct drwa_counts	*counts;
	struct drwa_queue	*queue;
};

/* Return: false if nobody attached to its interface. */
static bool find(const struct __sk_buff *skb, struct place *p)
{
	u32 ifindex = skb->ifindex, slot, joined;

	p->dev = bpf_map_lookup_elem(&drwa_devs, &ifindex);
	if (!p->dev)
		return false;
	slot = p->dev->slot;
	p->counts = bpf_map_lookup_elem(&drwa_counts, &slot);
	slot = p->dev->queue;
	p->queue = bpf_map_lookup_elem(&drwa_queues, &slot);
	if (!p->counts || !p->queue)
		return false;
	joined = p->dev->queue + 1;
	if (p->counts->joined != joined) {
		p->counts->came_before = p->queue->came - p->counts->came;
		p->counts->sent_before = p->queue->sent - p->counts->sent;
		if (!p->counts->joined)
			p->counts->began_us = clock_us();
		p->counts->joined = joined;
	}
	return true;
}

#pragma clang attribute pop

/* --- What the kernel runs --- */

DRWA_PROG(ingress)(struct __sk_buff *skb)
{
	struct drwa_key key = {};
	struct headers headers;
	struct segment s = { .key = &key, .tcp = &headers.tcp };
	struct drwa_flow *f;
	struct place p;
	u32 bytes;

	if (!find(skb, &p))
		return TC_ACT_UNSPEC;
	/* Whosever the packet is, it was in the queue. */
	bytes = skb->len - p.dev->l2;
	count(&p.counts->came, beyond_headers(bytes));
	raise(&p.queue->came, p.counts->came_before + p.counts->came);
	if (!parse(skb, p.dev->l2, &s, &headers, false)) {
		count(&p.counts->not_tcp, bytes);
		if (p.dev->aqm && p.dev->lambda &&
		    came_udp(skb, &s, p.dev, p.queue, p.counts, bytes))
			return TC_ACT_SHOT;
		return TC_ACT_UNSPEC;
	}
	f = find_flow(&key, drwa_digest(&key));
	if (f)
		came(f, p.dev, p.queue, p.counts, &s);
	else if (s.len)
		count(&p.counts->unknown, s.len);
	return TC_ACT_UNSPEC;
}

DRWA_PROG(egress)(struct __sk_buff *skb)
{
	struct drwa_key key = {};
	/* Before 4.18, what a map is given comes from the stack, which has room for one of them. */
	union {
		struct headers headers;
		struct drwa_flow flow;
		struct drwa_udp datagrams;
	} stack;
	struct tcp *tcp = &stack.headers.tcp;
	struct segment s = { .key = &key, .tcp = tcp };
	struct drwa_flow *f;
	struct place p;
	u64 digest;

	if (!find(skb, &p))
		return TC_ACT_UNSPEC;
	count(&p.counts->sent, beyond_headers(skb->len - p.dev->l2));
	raise(&p.queue->sent, p.counts->sent_before + p.counts->sent);
	if (!parse(skb, p.dev->l2, &s, &stack.headers, true)) {
		if (p.dev->aqm && p.dev->local && skb->ingress_ifindex &&
		    s.protocol == IPPROTO_UDP)
			let_client_be(skb, &s, &stack.datagrams);
		return TC_ACT_UNSPEC;
	}
	if (tcp->flags & TCPHDR_SYN) {
		if (!(tcp->flags & (TCPHDR_FIN | TCPHDR_RST)))
			open(skb, &s, p.counts, &stack.flow);
		return TC_ACT_UNSPEC;
	}
	digest = drwa_digest(&key);
	f = find_flow(&key, digest);
	if (!f)
		return TC_ACT_UNSPEC;
	if ((tcp->flags & (TCPHDR_ACK | TCPHDR_RST)) == TCPHDR_ACK &&
	    (f->answered || f->passive) && !f->aside)
		sent(skb, f, &s, p.dev, p.counts);
	if (tcp->flags & TCPHDR_FIN)
		f->fin_sent = 1;
	/* The last ACK, or there is none to come */
	if ((tcp->flags & TCPHDR_RST) || (f->fin_sent && f->fin_came))
		bpf_map_delete_elem(&drwa_flows, &digest);
	return TC_ACT_UNSPEC;
}

#ifndef LICENSE
#define LICENSE(name)	char _license[] SEC("license") = name
#endif
LICENSE("GPL");
