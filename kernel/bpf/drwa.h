/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs and their owner in user space tell each other, by maps
 *
 * The owner writes drwa_devs and reads the rest; the programs do the opposite.
 */
#ifndef _DRWA_BPF_H
#define _DRWA_BPF_H

#include <linux/tcp_drwa.h>

/* Histograms as in /proc/net/tcp_drwa: below 2^10 us, below 2^11 us, and so on */
#define DRWA_BIN_SHIFT	10
#define DRWA_BINS	14

/* Governed interfaces at a time; a phone has a dozen, 464xlat's and VPNs included. */
#define DRWA_DEVS	64

/* Connections at a time; the least recently used makes way for another one. */
#define DRWA_SOCKS	4096

/* More than any window: the clamp of a connection that is let go */
#define DRWA_NO_CLAMP		(1 << 30)

/**
 * struct drwa_dev - what the owner wants of an interface, by ifindex
 * @lambda:	hundredths, 100..1000; 0 or no entry: not governed
 * @queue:	interfaces with the same number share a queue; 0: one of its own
 *
 * The entry of ifindex 0 is for connections whose interface is not known yet, in
 * their handshake: if its lambda is not 0, they offer 64 KiB at most until data has
 * come.
 */
struct drwa_dev {
	__u32	lambda;
	__u32	queue;
};

/**
 * struct drwa_queue - what connections through a queue share, by id
 * @came:	bytes that came to sockets over that of its interfaces which brought most:
 *		of stacked ones, the lowest has what the others have unpacked
 * @link:	the law's
 *
 * Ids are those of struct drwa_dev, or 2^32 and the ifindex.
 */
struct drwa_queue {
	__u64			came;
	struct drwa_link	link;
};

/**
 * struct drwa_sample - the least of some samples
 * @rtt_us:	RTT, 0: there was none
 * @owd_us:	one-way delay, any offset
 */
struct drwa_sample {
	__u32	rtt_us;
	__u32	owd_us;
};

/**
 * struct drwa_sock - a connection, by the address of its socket in the kernel
 * @d:		the law's state
 * @ifindex:	interface that data, or the SYN ACK, last came from, 0: none yet
 * @least:	samples since the last segment sent that the law has not seen
 * @next:	of these, those after the round that is over
 * @tsecr:	echo of the last sample, which one RTT has just once
 * @ts_ms:	our own timestamps minus the clock, ms
 * @mss:	what a full segment of the sender's is, bytes
 * @came_us:	local clock when data last came after a while, us
 * @rcv_nxt:	next byte expected ahead of that
 * @over_us:	local clock at the end of the round that is over, us
 * @over_nxt:	next byte expected there
 * @last_len:	payload of the last segment or GRO's train, bytes
 * @clamp:	window clamp that was set here, bytes, 0: none
 * @own_clamp:	that of the kernel, which is what the buffer has room for, bytes
 * @edge:	byte up to which the last segment sent offered, at most
 * @offered:	window that it offered, at most
 * @remote:	the other end's address, as bpf_sock_ops has it; IPv4 in the first word
 * @remote_port: its port, network byte order
 * @local_port:	ours, host byte order
 * @family:	AF_INET or AF_INET6
 * @ready:	its handshake was seen, with timestamps
 * @over:	the round is over, but no segment was sent since
 * @aside:	its application chose its buffer or clamp itself, or it is MPTCP's
 * @no_clock:	the last segment with data had no timestamps
 * @each:	each segment is to be acknowledged
 */
struct drwa_sock {
	struct drwa	d;
	__u32		ifindex;
	struct drwa_sample least;
	struct drwa_sample next;
	__u32		tsecr;
	__u32		ts_ms;
	__u32		mss;
	__u32		came_us;
	__u32		rcv_nxt;
	__u32		over_us;
	__u32		over_nxt;
	__u32		last_len;
	__u32		clamp;
	__u32		own_clamp;
	__u32		edge;
	__u32		offered;
	__u32		remote[4];
	__u32		remote_port;
	__u32		local_port;
	__u8		family;
	__u8		ready;
	__u8		aside;
	__u8		no_clock;
	__u8		over;
	__u8		each;
};

/**
 * struct drwa_stats - counters of an interface, by ifindex
 * @came:	bytes of all packets that came over it to sockets while it was governed
 * @sockets:	connections that became governed
 * @rounds:	rounds of the law
 * @clamps:	windows that were set
 * @refused:	of these, those that the kernel refused
 * @delay_us:	queueing delay of the rounds that had an RTT
 * @rtt_us:	their RTT without it
 */
struct drwa_stats {
	__u64	came;
	__u64	sockets;
	__u64	rounds;
	__u64	clamps;
	__u64	refused;
	__u64	delay_us[DRWA_BINS];
	__u64	rtt_us[DRWA_BINS];
};

#endif
