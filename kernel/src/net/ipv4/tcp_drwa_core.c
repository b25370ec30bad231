// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: Dynamic Receive Window Adjustment, the control law
 *
 * A cellular base station keeps a deep queue for every phone. A loss-based
 * sender fills it, and all traffic of the phone waits behind. The receiver can
 * end that alone: no more than the advertised window is ever in flight, so a
 * window of
 *
 *	lambda * bandwidth * (RTT without the queue)
 *
 * keeps the link full and leaves (lambda - 1) bandwidth-delay products in the
 * queue. Two laws estimate the right-hand side, once a round. A round is the
 * time of one RTT at least.
 *
 * classic, Algorithm 1 of Jiang, Wang, Lee, Rhee, "Tackling Bufferbloat in
 * 3G/4G Networks", IMC 2012. With RTTest the average of the round's samples,
 * RTTmin the least RTTest ever and data_rcvd the bytes received in the round:
 *
 *	cwndest = 7/8 * cwndest + 1/8 * data_rcvd
 *	wnd     = lambda * RTTmin / RTTest * cwndest
 *
 * Its equilibrium is RTT = lambda * RTTmin. It is here to reproduce the paper.
 * It throttles the start of a flow (cwndest grows by 1.25 a round at lambda 3)
 * and starves when the RTT grows for any reason but its own queue.
 *
 * delay, the default, tells the own queue from all else by the one-way delay
 * (local clock - TSval, RFC 7323), as LEDBAT (RFC 6817) does:
 *
 *	q      = OWD - least OWD		queue on the way to us
 *	R      = RTT - q			distance, uplink queue included
 *	rate   = best of the last three rounds
 *	target = (lambda - 1) * R		the least of the link's connections
 *	wnd    = rate * (R + target + room) + 1 segment
 *
 * with the least OWD and RTT of each round, so that q is the standing queue.
 *
 * A steady link is full with any standing queue. A link whose rate varies runs
 * dry behind the same queue, and room is what it needs besides: room grows by
 * 3/8 R in a round whose q fell below 3/4 of the target, and shrinks by 1/32 in
 * any other. A room of R stays when one round in thirteen does so, and where the
 * rate is steady, none remains.
 *
 * The added segment makes connections that share a queue converge: each takes
 * rate * (R + target + room), a part that is fair once the rates are, and the
 * same more.
 *
 *	         q > max(R/4, 4 ms)          one round
 *	START ----------------------> GAUGE -----------> HOLD <------> DRAIN
 *	no cap    ^                   no growth          wnd           less
 *	          |                                                      |
 *	          +------------------------------------------------------+
 *	                           the path became longer
 *
 * There is no cap in START, so that slow start runs at the sender's pace. The
 * round that ends it was not a full link from its beginning, so its rate is too
 * low; GAUGE only stops the growth until a whole round gives the link's rate.
 * While q is below half of its target, or less than half of the window comes in a
 * round, HOLD raises the window but never lowers it: an idle sender says nothing
 * of the link.
 *
 * DRAIN looks for the least OWD anew, with 1/8 less than fills the link, or just
 * that if it is few segments. What queue there is goes within two rounds, and
 * what delay stays is the path's. That is due when
 *
 *  - the least OWD was not seen for 6 s or 24 RTTs, to find a path that became
 *    shorter: its OWD stays, because the window fills what became free with a
 *    queue. DRAIN goes on for as long as it finds a lower OWD.
 *  - q stays above what the window explains. A longer path does that
 *    (handover), a queue does not. Then START finds the new path's window, from
 *    the present one and twice what came in a round.
 *
 * All connections over the interface share the base station's queue, and four
 * things with it (struct drwa_link). A new connection takes the queue that
 * another one sees for its own, for it may meet no moment without queue. All
 * have the same target and the same room, or the one with the most would have
 * the link. And they DRAIN together, at whole periods of the local clock, because
 * one alone would see the others' queue and take it for the path.
 *
 * A sender whose timestamps do not tick once a millisecond makes an OWD that
 * runs away from the RTT, which no queue can. The law leaves it alone the second
 * time; the first may have been our clock, which stops while the phone sleeps.
 *
 * Clocks and sequence numbers are 32 bit and wrap; only differences count.
 */
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/tcp_drwa.h>

/* Paper, section 5.1: alpha = 7/8, the weight of TCP's own RTT average. */
#define CLASSIC_ALPHA_SHIFT	3

/* Two segments: less would end in the sender's silly window avoidance. */
#define CLASSIC_FLOOR_MSS	2

/* Four segments keep fast retransmit (RFC 5681) at work. */
#define DELAY_FLOOR_MSS		4

/* Twenty connections at 10 Mb/s and 50 ms have two segments each. */
#define DELAY_DRAIN_FLOOR_MSS	2

/* Seven segments of 7.2 are the path, and an eighth less would be six. */
#define DELAY_DRAIN_FEW_MSS	8

/* A queue shows above the jitter of a radio scheduler, 1..3 ms a grant. */
#define DELAY_QUEUE_MIN_US	4000

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define DELAY_TICK_US		1000

/* Periods of DRAIN: 2^23 us for a base not seen in 3/4 of that, between
 * LEDBAT's minutes and the time a user waits for a stalled page; 2^20 us when
 * the base must be wrong.
 */
#define DELAY_OLD_SHIFT		23
#define DELAY_WRONG_SHIFT	20

/* Once in 2^5 RTTs at most, as DRAIN costs 1/8 of two. */
#define DELAY_OLD_RTTS_SHIFT	5
#define DELAY_OLD_SHIFT_MAX	26

/* One round with less window, and the next one, in which that arrives. */
#define DELAY_DRAIN_ROUNDS	2

/* More than the first round of any slow start (RFC 6928: 10 segments). */
#define DELAY_FIRST_MSS		64

/* Until the queue stands again; its absence says nothing of the link. */
#define DELAY_REFILL_ROUNDS	3

/* Three rounds of twice the queue that the window explains, or six of more. */
#define DELAY_STRIKES		6

/* The most room, in R: more would be the queue that we are here to prevent. */
#define DELAY_ROOM_MAX		2

/* What another connection saw longer ago has changed since. */
#define LINK_FRESH_US		500000u

/* A round this much longer than the RTT says nothing of the rate. */
#define DELAY_IDLE_RTTS		4

/* Rates are in bytes per 2^20 us: that is B/s within 5 %, and no division. */
#define DELAY_RATE_SHIFT	20

/* Bounds what forged timestamps can make of the RTT: RFC 6298's 60 s. */
#define DRWA_RTT_MAX_US		60000000u

/**
 * drwa_reset() - forget everything; no cap until the law has learned again
 * @d:		connection
 * @law:	law to follow from now on
 */
void drwa_reset(struct drwa *d, enum drwa_law law)
{
	*d = (struct drwa){ .law = law };
}

static void drwa_new_round(struct drwa *d, u32 now_us, u32 rcv_nxt)
{
	d->round_us = now_us;
	d->round_seq = rcv_nxt;
	d->samples = 0;
	d->sum_us = 0;
}

/* Another CPU's stamp may be a little ahead of our clock. */
static bool link_fresh(u32 now_us, u32 stamp_us)
{
	return now_us - stamp_us + DELAY_TICK_US <= LINK_FRESH_US;
}

/**
 * drwa_start() - take the first RTT sample
 * @d:		connection, just reset
 * @l:		link that it came over
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	sample, us; 0 and more than a minute are refused
 * @owd_us:	local clock minus the sender's, us, any offset
 *
 * A connection that comes to a full queue takes the others' word for it.
 */
void drwa_start(struct drwa *d, const struct drwa_link *l, u32 now_us, u32 rcv_nxt,
		u32 rtt_us, u32 owd_us)
{
	u32 q_us = READ_ONCE(l->q_us);

	if (!rtt_us || rtt_us > DRWA_RTT_MAX_US)
		return;
	if (!link_fresh(now_us, READ_ONCE(l->q_seen_us)))
		q_us = 0;
	/* One forging sender must not stop the others. */
	q_us = min(q_us, rtt_us / 2);
	drwa_new_round(d, now_us, rcv_nxt);
	d->rtt_us = rtt_us;
	d->rtt_min_us = rtt_us;
	d->base_us = owd_us - q_us;
	d->base_seen_us = now_us;
	drwa_sample(d, rtt_us, owd_us);
}

/**
 * drwa_sample() - take one more RTT sample
 * @d:		connection
 * @rtt_us:	sample, us; 0 and more than a minute are refused
 * @owd_us:	local clock minus the sender's, us, same offset as before
 */
void drwa_sample(struct drwa *d, u32 rtt_us, u32 owd_us)
{
	if (rtt_us - 1 >= DRWA_RTT_MAX_US || d->samples == U16_MAX)
		return;

	if (d->law == DRWA_LAW_CLASSIC) {
		/* No overflow below 71 samples of 60 s. */
		if (d->sum_us > U32_MAX - rtt_us)
			return;
		d->sum_us += rtt_us;
	} else if (!d->samples) {
		d->least_us = rtt_us;
		d->owd_us = owd_us;
	} else {
		if (rtt_us < d->least_us)
			d->least_us = rtt_us;
		if ((s32)(owd_us - d->owd_us) < 0)
			d->owd_us = owd_us;
	}
	d->samples++;
}

/**
 * drwa_due() - is the round over?
 * @d:		connection
 * @now_us:	local clock, us
 */
bool drwa_due(const struct drwa *d, u32 now_us)
{
	u32 elapsed_us = now_us - d->round_us;

	if (!d->samples)
		return d->rtt_us && elapsed_us >= d->rtt_us;
	if (d->law == DRWA_LAW_DELAY)
		return elapsed_us >= d->least_us;
	return (u64)elapsed_us * d->samples >= d->sum_us;
}

/* lambda * @bytes, at least @floor */
static u32 drwa_window(const struct drwa *d, u32 bytes, u32 floor)
{
	u64 wnd = div64_u64((u64)bytes * d->lambda, DRWA_LAMBDA_ONE);

	if (wnd < floor)
		return floor;
	return wnd > U32_MAX / 2 ? U32_MAX / 2 : wnd;
}

static void classic_round(struct drwa *d, u32 data_rcvd, u32 mss)
{
	if (d->samples)
		d->rtt_us = d->sum_us / d->samples;
	if (d->rtt_us < d->rtt_min_us)
		d->rtt_min_us = d->rtt_us;

	if (!d->cwnd)
		d->cwnd = data_rcvd;
	else
		d->cwnd += (data_rcvd >> CLASSIC_ALPHA_SHIFT) -
			   (d->cwnd >> CLASSIC_ALPHA_SHIFT);

	/* 0 < RTTmin <= RTTest, as every sample is: no division by 0 */
	d->wnd = drwa_window(d, div64_u64((u64)d->cwnd * d->rtt_min_us, d->rtt_us),
			     CLASSIC_FLOOR_MSS * mss);
	d->phase = DRWA_HOLD;
}

/* Is the base the path's again? Called once a round of DRAIN. */
static void delay_drained(struct drwa *d, u32 now_us)
{
	s32 left;

	if ((s32)(d->owd_us - d->drain_us) < 0)
		d->drain_us = d->owd_us;
	if (--d->rounds)
		return;
	left = d->drain_us - d->base_us;
	if (left < -2 * DELAY_TICK_US) {
		/* A shorter path, and still a queue: look further. */
		d->base_us = d->drain_us;
		d->rounds = 1;
		return;
	}
	d->phase = DRWA_HOLD;
	d->rounds = DELAY_REFILL_ROUNDS;
	/* Clocks drift; and what outlived most of the queue was no queue. */
	if (left <= 2 * DELAY_TICK_US) {
		d->base_us = d->drain_us;
	} else if (left + max_t(u32, d->drain_q_us / 8, DELAY_TICK_US) >= d->drain_q_us) {
		d->base_us = d->drain_us;
		d->phase = DRWA_START;
		d->rounds = 0;
	}
	d->base_seen_us = now_us;
}

/* Queueing delay of the round in us; keeps the least one-way delay. */
static u32 delay_queue(struct drwa *d, u32 now_us)
{
	s32 q = d->owd_us - d->base_us;

	if (d->phase == DRWA_DRAIN)
		return q > 0 ? q : 0;
	if (q <= DELAY_TICK_US)
		d->base_seen_us = now_us;
	if (q < 0) {
		d->base_us = d->owd_us;
		q = 0;
	}
	return q;
}

/* The bytes that @rate is in @us */
static u32 delay_bytes(u32 rate, u32 us)
{
	return min_t(u64, (u64)rate * us >> DELAY_RATE_SHIFT, U32_MAX / 4);
}

/* Keeps the round's rate; returns the best of the last ones. */
static u32 delay_rate(struct drwa *d, u32 elapsed_us, u32 data_rcvd)
{
	u64 rate = div_u64((u64)data_rcvd << DELAY_RATE_SHIFT, elapsed_us);

	/* DRAIN's window gave its rounds their rate, not the link. */
	if (d->phase != DRWA_DRAIN && d->rounds < DELAY_DRAIN_ROUNDS) {
		d->rate[2] = d->rate[1];
		d->rate[1] = d->rate[0];
		d->rate[0] = min_t(u64, rate, U32_MAX);
	}
	return max(max(d->rate[0], d->rate[1]), d->rate[2]);
}

/* Queueing delay to aim at on a steady link, us: the least (lambda - 1) * R of
 * the link's connections, or the one with the longest path would have the link.
 */
static u32 delay_target(const struct drwa *d, struct drwa_link *l, u32 now_us)
{
	u32 others_us = READ_ONCE(l->target_us);
	u32 more = d->lambda - DRWA_LAMBDA_ONE;
	u32 target_us = div_u64((u64)d->rtt_min_us * more, DRWA_LAMBDA_ONE);

	target_us = max_t(u32, target_us, 2 * DELAY_TICK_US);
	if (others_us < target_us && link_fresh(now_us, READ_ONCE(l->target_set_us)))
		return others_us;
	if (d->phase == DRWA_HOLD) {
		WRITE_ONCE(l->target_us, target_us);
		WRITE_ONCE(l->target_set_us, now_us);
	}
	return target_us;
}

/* Adapts the link's room, once a round of any of its connections; @full: half of
 * the window was used or more, so that an empty queue is the window's fault.
 */
static u32 delay_room(const struct drwa *d, struct drwa_link *l, u32 now_us,
		      u32 q_us, u32 target_us, bool full)
{
	u32 room_max_us = DELAY_ROOM_MAX * d->rtt_min_us;
	u32 room_us = min(READ_ONCE(l->room_us), room_max_us);

	if (d->phase != DRWA_HOLD || d->rounds ||
	    now_us - READ_ONCE(l->room_set_us) < d->rtt_us - d->rtt_us / 4)
		return room_us;
	/* TSval's tick hides as much of a queue. */
	if (q_us + DELAY_TICK_US >= target_us - target_us / 4)
		room_us -= room_us / 32;
	else if (full)
		room_us = min(room_us + d->rtt_min_us / 8 * 3, room_max_us);
	else
		return room_us;
	WRITE_ONCE(l->room_us, room_us);
	WRITE_ONCE(l->room_set_us, now_us);
	return room_us;
}

/* Counts the rounds whose @queue is not @explained by the window; all in bytes,
 * and @tick is what comes in a tick of TSval.
 */
static void delay_judge(struct drwa *d, u32 queue, u32 explained, u32 tick)
{
	if (queue / 2 > explained)
		d->strikes += 2;
	else if (queue > explained + explained / 8 + tick)
		d->strikes++;
	else
		d->strikes = 0;
	if (d->strikes > DELAY_STRIKES)
		d->strikes = DELAY_STRIKES;
}

/* Is DRAIN due, here or at another connection? */
static bool delay_drain_due(const struct drwa *d, struct drwa_link *l, u32 now_us)
{
	u32 begun = now_us ^ d->round_us;
	int old = DELAY_OLD_SHIFT;

	if (now_us - READ_ONCE(l->drain_us) <= now_us - d->round_us)
		return true;
	if (!(begun >> DELAY_WRONG_SHIFT))
		return false;
	if (d->strikes < DELAY_STRIKES) {
		while (d->rtt_min_us >> (old - DELAY_OLD_RTTS_SHIFT) && old < DELAY_OLD_SHIFT_MAX)
			old++;
		if (!(begun >> old) || now_us - d->base_seen_us < 3U << (old - 2))
			return false;
	}
	WRITE_ONCE(l->drain_us, now_us);
	return true;
}

/* Tells the link's other connections the queue that this one sees: the longest
 * that one of them saw in the last RTT. What they saw before, a new one would
 * take off its base for good.
 */
static void delay_share(const struct drwa *d, struct drwa_link *l, u32 now_us,
			u32 q_us)
{
	if (q_us < READ_ONCE(l->q_us) && now_us - READ_ONCE(l->q_seen_us) < d->rtt_us)
		return;
	WRITE_ONCE(l->q_us, q_us);
	WRITE_ONCE(l->q_seen_us, now_us);
}

static void delay_round(struct drwa *d, struct drwa_link *l, u32 now_us,
			u32 elapsed_us, u32 data_rcvd, u32 mss)
{
	u32 floor = DELAY_FLOOR_MSS * mss, last_rtt_us = d->rtt_us;
	u32 q_us, rate, target_us, aim_us, wnd;
	bool ahead, first, full;

	if (!d->samples || !elapsed_us || d->phase == DRWA_ASIDE)
		return;
	d->rtt_us = d->least_us;
	if (elapsed_us / DELAY_IDLE_RTTS > d->least_us &&
	    elapsed_us / DELAY_IDLE_RTTS > last_rtt_us)
		return;

	/* What was offered before d->wnd fell is still to come. */
	ahead = d->wnd && data_rcvd > d->wnd + 2 * mss;
	if (d->phase == DRWA_DRAIN && !ahead)
		delay_drained(d, now_us);
	q_us = delay_queue(d, now_us);
	/* No queue is longer than the RTT. */
	if (q_us > d->rtt_us + 2 * DELAY_TICK_US) {
		d->base_us = d->owd_us;
		q_us = 0;
		if (d->jumped) {
			d->phase = DRWA_ASIDE;
			d->wnd = 0;
			return;
		}
		d->jumped = 1;
	}
	d->rtt_min_us = d->rtt_us > q_us ? d->rtt_us - q_us : 1;
	first = !d->cwnd;
	full = data_rcvd >= d->wnd / 2;
	rate = delay_rate(d, elapsed_us, data_rcvd);
	d->cwnd = delay_bytes(rate, d->rtt_min_us);
	target_us = delay_target(d, l, now_us);
	aim_us = target_us + delay_room(d, l, now_us, q_us, target_us, full);
	wnd = max(delay_bytes(rate, d->rtt_min_us + aim_us) + mss, floor);

	switch (d->phase) {
	case DRWA_START:
		/* It ran before us, and its base may be a queue's. */
		if (first && data_rcvd > DELAY_FIRST_MSS * mss)
			break;
		if (q_us > d->rtt_min_us / 4 && q_us > DELAY_QUEUE_MIN_US) {
			d->phase = DRWA_GAUGE;
			d->wnd = max(2 * data_rcvd, floor);
		} else if (d->wnd) {
			d->wnd = max(d->wnd, 2 * data_rcvd);
		}
		return;
	case DRWA_GAUGE:
		d->phase = DRWA_HOLD;
		d->wnd = wnd;
		return;
	case DRWA_HOLD:
		if (d->rounds) {
			d->rounds--;
			d->wnd = max(d->wnd, wnd);
			return;
		}
		if ((full && q_us >= target_us / 2) || wnd > d->wnd)
			d->wnd = wnd;
		delay_share(d, l, now_us, q_us);
		if (full && !ahead)
			delay_judge(d, delay_bytes(rate, q_us), max(wnd - d->cwnd, floor),
				    delay_bytes(rate, DELAY_TICK_US));
		if (!delay_drain_due(d, l, now_us))
			return;
	}
	if (d->phase != DRWA_DRAIN) {
		d->phase = DRWA_DRAIN;
		d->rounds = DELAY_DRAIN_ROUNDS;
		d->drain_us = d->owd_us;
		d->drain_q_us = q_us;
		d->strikes = 0;
	}
	/* Senders round down to whole segments, which are an eighth of few. */
	wnd = d->cwnd < DELAY_DRAIN_FEW_MSS * mss ? d->cwnd : d->cwnd - d->cwnd / 8;
	d->wnd = max(wnd, DELAY_DRAIN_FLOOR_MSS * mss);
}

/**
 * drwa_round() - end the round and set the target window
 * @d:		connection; drwa_due() was true
 * @l:		link that its data comes over
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @mss:	segment size, bytes
 */
void drwa_round(struct drwa *d, struct drwa_link *l, u32 now_us, u32 rcv_nxt,
		u32 mss)
{
	u32 elapsed_us = now_us - d->round_us;
	u32 data_rcvd = min_t(u32, rcv_nxt - d->round_seq, U32_MAX / 8);

	/* After so long nothing learned holds: the user has moved on. */
	if (elapsed_us > DRWA_RTT_MAX_US) {
		u16 lambda = d->lambda;

		drwa_reset(d, d->law);
		d->lambda = lambda;
		return;
	}
	if (d->law == DRWA_LAW_CLASSIC)
		classic_round(d, data_rcvd, mss);
	else
		delay_round(d, l, now_us, elapsed_us, data_rcvd, mss);
	drwa_new_round(d, now_us, rcv_nxt);
}
