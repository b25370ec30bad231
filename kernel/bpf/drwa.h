/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs and their owner in user space tell each other, by maps
 *
 * The owner writes drwa_devs and, once, drwa_netns, and reads the rest; the programs do the
 * opposite. Of what they write the owner only empties entries.
 */
#ifndef _DRWA_BPF_H
#define _DRWA_BPF_H

#include <linux/tcp_drwa.h>

/* Interfaces at a time; a phone has a dozen, VPNs included. */
#define DRWA_DEVS	64

/* Connections at a time; the least recently used makes way for another one. */
#define DRWA_FLOWS	4096

/* Flows of UDP at a time, likewise */
#define DRWA_UDP_FLOWS	1024

/* Histograms as in /proc/net/tcp_drwa: below 2^10 us, below 2^11 us, and so on */
#define DRWA_BIN_SHIFT	10
#define DRWA_BINS	14

/* RTT samples that may be under way at a time, a power of two */
#define DRWA_MARKS	16

/* Echoes, where no clock has told the delay for so long */
#define DRWA_ECHO_US	250000

enum drwa_aqm {
	DRWA_AQM_OFF,
	DRWA_AQM_ON,
	DRWA_AQM_TUNNELS,	/* and what may be a VPN's */
};

/**
 * struct drwa_dev - what the owner wants of an interface, by ifindex
 * @lambda:	hundredths, 100..1000; 0 or no entry: not governed
 * @number:	queue as the owner's user numbers it; 0: one of its own
 * @slot:	its place in drwa_counts
 * @queue:	its queue's place in drwa_queues
 * @l2:		length of its link layer's header, bytes
 * @priority:	of the filters; 0: the interface itself has the programs (tcx)
 * @clsact:	its qdisc was made for them
 * @local:	clients' connections, which are forwarded, are not governed
 * @aqm:	enum drwa_aqm: is UDP held to a short queue as well?
 * @echo:	@id of the owner's echoes, which nobody off the path can guess; 0: it sends none
 */
struct drwa_dev {
	__u32	lambda;
	__u32	number;
	__u32	slot;
	__u32	queue;
	__u32	l2;
	__u16	priority;
	__u8	clsact;
	__u8	local;
	__u32	aqm;
	__u32	echo;
};

/**
 * struct drwa_echo - the first data of an ICMP echo
 * @id:		its interface's @echo
 * @sent_us:	CLOCK_MONOTONIC when it was sent, network byte order
 */
struct drwa_echo {
	__u32	id;
	__u32	sent_us;
};

/**
 * struct drwa_queue - what connections through a queue share
 * @came:	bytes beyond headers that came over that of its interfaces which brought
 *		most since it began: what comes through a tunnel came over another one before
 * @sent:	such bytes that were sent, likewise
 * @link:	the law's
 * @delay_us:	queueing delay, by the flow with a clock that saw most
 * @delay_set_us: when it told that
 * @delay_of:	ports of it; 0: an echo
 * @echo_us:	RTT of an echo without a queue
 * @echo_came:	@came at the last one
 * @echo_sent:	@sent at the last one
 * @silent_us:	longest time without data within @delay_us of now
 * @silent_end_us: when that ended
 * @udp_us:	when a flow of UDP that is judged began, or had a part of all that came
 * @most_us:	when one of them had brought more than half of all
 */
struct drwa_queue {
	__u64			came;
	__u64			sent;
	struct drwa_link	link;
	__u32			delay_us;
	__u32			delay_set_us;
	__u32			delay_of;
	__u32			echo_us;
	__u32			echo_came;
	__u32			echo_sent;
	__u32			silent_us;
	__u32			silent_end_us;
	__u32			udp_us;
	__u32			most_us;
};

/**
 * struct drwa_counts - counters of an interface
 * @came:	bytes beyond headers that came, whosever they are
 * @sent:	such bytes that were sent
 * @not_tcp:	bytes of packets that came and have no TCP, are fragments, or have options of IPv6
 * @unknown:	those of TCP's data of no connection whose SYN was seen: it began before the
 *		programs came, or is over
 * @mptcp:	those of MPTCP, whose window belongs to more than one connection
 * @is_signed:	those whose header is signed (TCP-MD5, TCP-AO), or has too many options to tell
 * @flows:	connections that became governed
 * @rounds:	rounds of the law
 * @capped:	segments that offered less
 * @delay_us:	rounds by queueing delay
 * @rtt_us:	rounds by RTT without it
 * @began_us:	when the first packet crossed since the owner emptied @joined
 * @joined:	one more than the place of the queue that @came counts in. The owner empties it for
 *		a new interface, and for filters that come back.
 * @udp_flows:	flows of UDP that became judged
 * @udp_dropped: packets of theirs that were dropped
 * @udp_deaf:	flows that did not react, and are left alone
 * @udp_tunnels: flows that are left alone as they may be a VPN's
 * @clients:	bytes of TCP's data of clients that are not governed
 * @came_before: how far its queue's @came was ahead of @came then; wraps
 * @sent_before: likewise
 */
struct drwa_counts {
	__u64	came;
	__u64	sent;
	__u64	not_tcp;
	__u64	unknown;
	__u64	mptcp;
	__u64	is_signed;
	__u64	flows;
	__u64	rounds;
	__u64	capped;
	__u64	delay_us[DRWA_BINS];
	__u64	rtt_us[DRWA_BINS];
	__u32	began_us;
	__u32	joined;
	__u64	udp_flows;
	__u64	udp_dropped;
	__u64	udp_deaf;
	__u64	udp_tunnels;
	__u64	clients;
	__u64	came_before;
	__u64	sent_before;
};

/**
 * struct drwa_key - addresses and ports as the interface sees them, in network byte order
 * @remote:	IPv4 in the first word
 * @local:	likewise
 * @addresses:	both, two words at a time
 * @ports:	both
 */
struct drwa_key {
	union {
		struct {
			__u32	remote[4];
			__u32	local[4];
		};
		__u64		addresses[4];
	};
	union {
		struct {
			__u16	remote_port;
			__u16	local_port;
			__u32	unused;
		};
		__u64		ports;
	};
};

/* An odd number without a pattern: 2^64 over the golden ratio, as in include/linux/hash.h */
#define DRWA_DIGEST	0x9e3779b97f4a7c15ULL

/* What a flow's entry is found by: the kernel hashes and compares 8 bytes in half the time that
 * it takes for a struct drwa_key. The entry says whose it is.
 */
static inline __u64 drwa_digest(const struct drwa_key *key)
{
	__u64 digest = key->ports;

	digest = digest * DRWA_DIGEST + key->addresses[0];
	digest = digest * DRWA_DIGEST + key->addresses[1];
	digest = digest * DRWA_DIGEST + key->addresses[2];
	return digest * DRWA_DIGEST + key->addresses[3];
}

static inline int drwa_same(const struct drwa_key *a, const struct drwa_key *b)
{
	return !((a->addresses[0] ^ b->addresses[0]) | (a->addresses[1] ^ b->addresses[1]) |
		 (a->addresses[2] ^ b->addresses[2]) | (a->addresses[3] ^ b->addresses[3]) |
		 (a->ports ^ b->ports));
}

/* When a timestamp went up, and which */
struct drwa_mark {
	__u32	tsval;
	__u32	at_us;
};

enum drwa_aside {
	DRWA_GOVERNED,
	DRWA_MPTCP,
	DRWA_SIGNED,
	DRWA_UNREAD,	/* more options than the programs read */
};

/* As in TCP's header. No packet answers a reset, so that its entry stays until another
 * connection takes the place.
 */
#define DRWA_FIN	1
#define DRWA_RST	4

/**
 * struct drwa_flow - a connection, by drwa_digest()
 * @key:	whose it is; another one of that digest is not governed
 *
 * Written where segments come, but for the first values:
 * @d:		the law's state
 * @next:	end of what came
 * @hole:	something before this was missing when what ends there came
 * @tsecr:	echo of the last sample, which one RTT has just once
 * @segment:	what a full segment of the sender's is, bytes
 * @last_len:	payload of the last segment or GRO's train, bytes
 * @came_us:	local clock when a segment last came, us
 * @came_since_us: began_us of its interface then
 * @window_seq:	without timestamps: a window has come once this has
 * @window_us:	when it began to
 * @lan_seq:	byte whose ACK, the client's or the phone's, is awaited
 * @lan_sent_us: when that passed
 * @lan_sent:	count of such
 * @echoed:	marks that were echoed or passed over
 * @answered:	both ends' SYN were seen
 * @fin_came:	DRWA_FIN and DRWA_RST, as they were seen of the sender
 * @owd_us:	one-way delay without UDP's queue, any offset
 *
 * Written where segments are sent:
 * @acked:	highest acknowledged byte
 * @edge:	byte up to which was offered; after a SYN its window alone
 * @sent_since_us: began_us of its interface then
 * @opened_us:	local clock when the SYN, or the SYN ACK, was sent, us
 * @opened_seq:	its sequence number
 * @tsval:	timestamp last sent
 * @lan_us:	RTT between here and the client, or what the phone's own ACKs wait, us
 * @ifindex:	interface
 * @mss:	what a full segment is by our offer, bytes
 * @scale:	window scale of what is sent
 * @scales:	our SYN had that option
 * @ts:		it had timestamps, and so had the other end's
 * @passive:	the other end began
 * @marked:	marks that were made
 * @lan_done:	count of lan_sent whose ACK was seen
 * @forwarded:	the connection ends on a client
 * @fin_sent:	our FIN was seen
 * @aside:	enum drwa_aside
 * @marks:	of timestamps sent
 */
struct drwa_flow {
	struct drwa_key	key;
	struct drwa	d;
	__u32		next;
	__u32		hole;
	__u32		tsecr;
	__u32		segment;
	__u32		last_len;
	__u32		came_us;
	__u32		came_since_us;
	__u32		window_seq;
	__u32		window_us;
	__u32		lan_seq;
	__u32		lan_sent_us;
	__u8		lan_sent;
	__u8		echoed;
	__u8		answered;
	__u8		fin_came;
	__u32		owd_us;

	__u32		acked;
	__u32		edge;
	__u32		sent_since_us;
	__u32		opened_us;
	__u32		opened_seq;
	__u32		tsval;
	__u32		lan_us;
	__u32		ifindex;
	__u16		mss;
	__u8		scale;
	__u8		scales;
	__u8		ts;
	__u8		passive;
	__u8		marked;
	__u8		lan_done;
	__u8		forwarded;
	__u8		fin_sent;
	__u8		aside;
	struct drwa_mark marks[DRWA_MARKS];
};

enum drwa_udp_state {
	DRWA_UDP_SEEN,
	DRWA_UDP_JUDGED,	/* it has brought more than a call does */
	DRWA_UDP_DEAF,
};

/**
 * struct drwa_udp - a flow of UDP that comes (drwa_aqm.h), by drwa_digest()
 * @key:	whose it is; another one of that digest is left alone
 * @share_came:	struct drwa_queue's @came when its share of the queue began to be counted
 * @level:	bytes above 250 kb/s
 * @level_us:	when that was counted
 * @above_us:	when the delay will have been above the target for an interval, 0: it is not
 * @next_us:	the next drop
 * @count:	drops since the first of a row
 * @last_count:	@count when that row began
 * @inverse_sqrt: of @count, 16 bits of fraction
 * @trial_us:	when the trial began, 0: there was none
 * @trial_q_us:	queueing delay then
 * @least_q_us:	the least since
 * @bytes:	that came since
 * @drops:	since
 * @last_q_us:	@least_q_us of the trial before
 * @share_us:	when that was
 * @share_bytes: that it brought since, beyond headers
 * @window_us:	when the window began (drwa_aqm.h)
 * @window_bytes: that came since
 * @window_drops: since
 * @window_q:	sum of the delays at them, in 2^10 us
 * @trials:	in a row, over which the queue did not fall, and the flow brought little
 * @windows:	in a row, in which the flow brought too much
 * @dropping:	a row of drops goes on
 * @state:	enum drwa_udp_state
 * @tunnel:	it may be a VPN's
 * @client:	it was a client's while those were not governed; written where it is sent
 * @since:	packets judged since the last drop, 16 at most
 * @came:	something came
 */
struct drwa_udp {
	struct drwa_key	key;
	__u64	share_came;
	__u32	level;
	__u32	level_us;
	__u32	above_us;
	__u32	next_us;
	__u32	count;
	__u32	last_count;
	__u32	inverse_sqrt;
	__u32	trial_us;
	__u32	trial_q_us;
	__u32	least_q_us;
	__u32	bytes;
	__u32	drops;
	__u32	last_q_us;
	__u32	share_us;
	__u32	share_bytes;
	__u32	window_us;
	__u32	window_bytes;
	__u32	window_drops;
	__u32	window_q;
	__u8	trials;
	__u8	windows;
	__u8	dropping;
	__u8	state;
	__u8	tunnel;
	__u8	client;
	__u8	since;
	__u8	came;
};

#endif
