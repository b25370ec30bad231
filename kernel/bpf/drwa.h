/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs and their owner in user space tell each other, by maps
 *
 * The owner writes drwa_devs and reads the rest; the programs do the opposite.
 */
#ifndef _DRWA_BPF_H
#define _DRWA_BPF_H

#include <linux/tcp_drwa.h>

/* Interfaces at a time; a phone has a dozen, VPNs included. */
#define DRWA_DEVS	64

/* Connections at a time; the least recently used makes way for another one. */
#define DRWA_FLOWS	4096

/* Histograms as in /proc/net/tcp_drwa: below 2^10 us, below 2^11 us, and so on */
#define DRWA_BIN_SHIFT	10
#define DRWA_BINS	14

/* RTT samples that may be under way at a time, a power of two */
#define DRWA_MARKS	16

/**
 * struct drwa_dev - what the owner wants of an interface, by ifindex
 * @lambda:	hundredths, 100..1000; 0 or no entry: not governed
 * @number:	queue as the owner's user numbers it; 0: one of its own
 * @slot:	its place in drwa_counts
 * @queue:	its queue's place in drwa_queues
 * @l2:		length of its link layer's header, bytes
 * @priority:	of the filters
 * @clsact:	its qdisc was made for them
 */
struct drwa_dev {
	__u32	lambda;
	__u32	number;
	__u32	slot;
	__u32	queue;
	__u32	l2;
	__u16	priority;
	__u16	clsact;
};

/**
 * struct drwa_queue - what connections through a queue share
 * @came:	bytes beyond headers that came over that of its interfaces which brought
 *		most: what comes through a tunnel came over another one before
 * @sent:	such bytes that were sent, likewise
 * @link:	the law's
 */
struct drwa_queue {
	__u64			came;
	__u64			sent;
	struct drwa_link	link;
};

/**
 * struct drwa_counts - counters of an interface
 * @came:	bytes beyond headers that came, whosever they are
 * @sent:	such bytes that were sent
 * @not_tcp:	bytes of packets that came and have no TCP, are fragments, or have options of IPv6
 * @unknown:	those of TCP's data of no connection whose SYN was seen: it began before the
 *		programs came, or is over
 * @mptcp:	those of MPTCP, whose window belongs to more than one connection
 * @is_signed:	those whose header is signed (TCP-MD5, TCP-AO)
 * @flows:	connections that became governed
 * @rounds:	rounds of the law
 * @capped:	segments that offered less
 * @delay_us:	rounds by queueing delay
 * @rtt_us:	rounds by RTT without it
 * @began_us:	when the first packet crossed since the owner emptied this, odd
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
	__u64	began_us;
};

/* Addresses and ports as the interface sees them, in network byte order; IPv4 in the
 * first word
 */
struct drwa_key {
	__u32	remote[4];
	__u32	local[4];
	__u16	remote_port;
	__u16	local_port;
};

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

/**
 * struct drwa_flow - a connection
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
 * @lan_seq:	forwarded: byte whose ACK by the client is awaited
 * @lan_sent_us: when that passed
 * @lan_sent:	count of such
 * @echoed:	marks that were echoed or passed over
 * @answered:	both ends' SYN were seen
 * @fin_came:	the sender's FIN, or RST, was seen
 *
 * Written where segments are sent:
 * @acked:	highest acknowledged byte
 * @edge:	byte up to which was offered; after a SYN its window alone
 * @sent_since_us: began_us of its interface then
 * @opened_us:	local clock when the SYN, or the SYN ACK, was sent, us
 * @opened_seq:	its sequence number
 * @tsval:	timestamp last sent
 * @lan_us:	RTT between here and the client, us
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

#endif
