/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DRWA, Dynamic Receive Window Adjustment: state and interface of the law
 *
 * The law (net/ipv4/tcp_drwa_core.c) takes numbers and returns a window. It
 * knows neither sockets nor interfaces, so that the same file is built into the
 * kernel and into user space tests.
 */
#ifndef _LINUX_TCP_DRWA_H
#define _LINUX_TCP_DRWA_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/types.h>

#define DRWA_LAMBDA_ONE		100	/* lambda is in hundredths */
#define DRWA_LAMBDA_MIN		100
#define DRWA_LAMBDA_MAX		1000

/* Rates are in bytes per 2^20 us, which is B/s within 5 % and needs no division. What
 * connections tell each other holds for as long.
 */
#define DRWA_SECOND_SHIFT	20
#define DRWA_SECOND_US		1048576u

enum drwa_law {
	DRWA_LAW_DELAY,		/* one-way queueing delay, the default */
	DRWA_LAW_CLASSIC,	/* Algorithm 1 of the paper */
};

enum drwa_phase {
	DRWA_START,		/* the queue has not shown yet */
	DRWA_HOLD,		/* the window follows the law */
	DRWA_DRAIN,		/* a lower window, to see the path's own delay */
};

/**
 * struct drwa - per connection state, please keep it within 56 bytes
 * @wnd:	target window in bytes, 0: no cap
 * @round_us:	start of the round
 * @round_seq:	next byte expected then
 * @rtt_us:	RTT of the last round (classic: RTTest), 0: none yet
 * @path_us:	the same without the queue (classic: RTTmin)
 * @lambda:	target over bandwidth-delay product, in hundredths, 0: off
 * @samples:	RTT samples of this round
 * @law:	enum drwa_law
 * @clock:	the sender has one; otherwise RTTs stand in for one-way delays
 * @rival:	traffic that nobody governs keeps a queue here
 * @hidden:	bits of the window's scale that the sender does not know of
 * @phase:	enum drwa_phase
 * @trial:	rounds left of a trial, whether more are hidden, with those that it first watches
 * @rounds:	in DRWA_DRAIN, those left and two; in DRWA_HOLD, rounds until
 *		its effect is over
 * @epoch:	the binding's: under which of its interface's switchings on it began
 * @least_us:	least RTT sample of this round
 * @sum_us:	classic: sum of this round's RTT samples
 * @owd_us:	least one-way delay of this round, any clock offset
 * @base_us:	least one-way delay without a queue, same offset
 * @base_seen_us: when the one-way delay was last that low; not in DRWA_DRAIN
 * @drain_owd_us: least one-way delay of DRWA_DRAIN
 * @good:	in DRWA_HOLD, rate before the last round whose queue was short; in a trial,
 *		that of its first round
 * @drain_q_us:	queue at the start of DRWA_DRAIN
 * @rate:	last round's rate in bytes per 2^20 us
 * @cwnd:	classic: cwndest, average of the bytes received in a round
 * @dev:	mean of the rate's changes
 */
struct drwa {
	u32	wnd;
	u32	round_us;
	u32	round_seq;
	u32	rtt_us;
	u32	path_us;
	u16	lambda;
	u16	samples;
	u8	law:1,
		clock:1,
		rival:1,
		hidden:3,
		phase:2;
	u8	trial;
	u8	rounds;
	u8	epoch;
	union {
		u32	least_us;
		u32	sum_us;
	};
	u32	owd_us;
	u32	base_us;
	union {
		u32	base_seen_us;
		u32	drain_owd_us;
	};
	union {
		u32	good;
		u32	drain_q_us;
	};
	union {
		u32	rate;
		u32	cwnd;
	};
	u32	dev;
};

static_assert(sizeof(struct drwa) <= 56);

/**
 * struct drwa_link - what the connections through one queue tell each other
 * @drain_us:	when a connection last began DRWA_DRAIN
 * @target_us:	least target of the connections
 * @target_set_us: when that was set
 * @heard_us:	when data last came
 * @burst_us:	when it last came after a silence
 * @longest_us:	longest silence since @silence_set_us
 * @silence_us:	mean of the longest silence of a round
 * @silence_set_us: when that was set
 * @counted_us:	when the bytes were last compared
 * @all:	bytes beyond headers that had come by then, whosever they are
 * @sent:	such bytes that had gone up by then
 * @governed:	bytes of these connections since
 * @others:	the part of all that was not theirs then, in 255ths
 * @upload:	more than ACKs and requests went up then
 * @late:	nobody had counted for long before, so @others tells only what may go on
 *
 * Written without a lock. A lost update costs a round; one of @governed a segment, or the
 * others of one count.
 */
struct drwa_link {
	u32	drain_us;
	u32	target_us;
	u32	target_set_us;
	u32	heard_us;
	u32	burst_us;
	u32	longest_us;
	u32	silence_us;
	u32	silence_set_us;
	u32	counted_us;
	u32	all;
	u32	sent;
	u32	governed;
	u8	others;
	u8	upload;
	u8	late;
};

static inline u64 drwa_times_lambda(const struct drwa *d, u32 x)
{
	return div_u64((u64)x * d->lambda, DRWA_LAMBDA_ONE);
}

/* What the link holds by the law's estimate, bytes */
static inline u32 drwa_cwndest(const struct drwa *d)
{
	if (d->law == DRWA_LAW_CLASSIC)
		return d->cwnd;
	return (u64)d->rate * d->path_us >> DRWA_SECOND_SHIFT;
}

/* So many bytes came for a connection that is governed. At once, not once a round: of a
 * short connection, most come after its last one.
 */
static inline void drwa_credit(struct drwa_link *l, u32 bytes)
{
	WRITE_ONCE(l->governed, READ_ONCE(l->governed) + bytes);
}

/* Should the link's bytes be counted after this connection's round? Once a second, and
 * in four RTTs: senders' flights are one apart. Whoever counted may have had a clock
 * that was up to a second ahead of this connection's.
 */
static inline bool drwa_count_due(const struct drwa *d, const struct drwa_link *l,
				  u32 now_us)
{
	u32 elapsed_us = now_us - READ_ONCE(l->counted_us);

	return elapsed_us + DRWA_SECOND_US >= 2 * DRWA_SECOND_US &&
	       elapsed_us / 4 >= d->rtt_us;
}

void drwa_reset(struct drwa *d, enum drwa_law law);
void drwa_start(struct drwa *d, u32 now_us, u32 rcv_nxt, u32 rtt_us, u32 owd_us,
		bool clock);
void drwa_sample(struct drwa *d, u32 rtt_us, u32 owd_us);
void drwa_heard(struct drwa_link *l, u32 now_us);
bool drwa_due(const struct drwa *d, const struct drwa_link *l, u32 now_us);
void drwa_round(struct drwa *d, struct drwa_link *l, u32 now_us, u32 rcv_nxt,
		u32 mss);
void drwa_count(struct drwa_link *l, u32 now_us, u32 rtt_us, u32 all,
		u32 sent);

#endif /* _LINUX_TCP_DRWA_H */
