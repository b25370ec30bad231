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
 *	q    = OWD - least OWD		queue on the way to us
 *	R    = RTT - q			distance, uplink queue included
 *	rate = best of the last four rounds
 *	wnd  = lambda * rate * R + 2 segments
 *
 * with the least OWD and RTT of each round, so that q is the standing queue.
 *
 *	         q > max(R/4, 4 ms)          one round
 *	START ----------------------> GAUGE -----------> HOLD <------> DRAIN
 *	no cap                        no growth          wnd           less
 *
 * There is no cap in START, so that slow start runs at the sender's pace. The
 * round that ends it was not a full link from its beginning, so its rate is too
 * low; GAUGE only stops the growth until a whole round gives the link's rate.
 * While q is below half of its target, HOLD raises the window but never lowers
 * it: an idle sender says nothing of the link.
 *
 * DRAIN looks for the least OWD anew. A lower window takes a queue away, so
 * what delay does not go is the path's. That is due when
 *
 *  - the least OWD was not seen for 6 s, or
 *  - q stays above its target though the window was lowered, which a longer
 *    path does (handover) and a queue does not.
 *
 * All connections over the interface share the base station's queue, and two
 * things with it (struct drwa_link). A new connection takes the queue that
 * another one sees for its own, for it may meet no moment without queue. And
 * they DRAIN together, at whole periods of the local clock, because one alone
 * would see the others' queue and take it for the path.
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

/* A delayed ACK withholds two segments' worth of window. */
#define DELAY_CUSHION_MSS	2

/* A queue shows above the jitter of a radio scheduler, 1..3 ms a grant. */
#define DELAY_QUEUE_MIN_US	4000

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define DELAY_TICK_US		1000

/* Between LEDBAT's minutes and the time a user waits for a stalled page. */
#define DELAY_BASE_AGE_US	6000000u

/* Periods of DRAIN: 2^23 us for an old base, 2^20 us when it must be wrong. */
#define DELAY_OLD_SHIFT		23
#define DELAY_WRONG_SHIFT	20

/* One round with less window, and the next one, in which that arrives. */
#define DELAY_DRAIN_ROUNDS	2

/* Longer than the rate's memory: a slower link has been followed by then. */
#define DELAY_STRIKES		8

/* A queue that another connection saw longer ago has changed since. */
#define LINK_FRESH_US		500000u

/* A round this much longer than the RTT says nothing of the rate. */
#define DELAY_IDLE_RTTS		4

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
	if (now_us - READ_ONCE(l->q_seen_us) > LINK_FRESH_US)
		q_us = 0;
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
	if (!rtt_us || rtt_us > DRWA_RTT_MAX_US || d->samples == U16_MAX)
		return;

	if (d->law == DRWA_LAW_CLASSIC) {
		/* No overflow below 71 samples of 60 s. */
		if (d->sum_us > U32_MAX - rtt_us)
			return;
		d->sum_us += rtt_us;
	} else {
		if (!d->samples || rtt_us < d->least_us)
			d->least_us = rtt_us;
		if (!d->samples || (s32)(owd_us - d->owd_us) < 0)
			d->owd_us = owd_us;
	}
	d->samples++;
}

/* RTTest: classic averages what the round has seen so far. */
static u32 drwa_rtt_us(const struct drwa *d)
{
	if (!d->samples)
		return d->rtt_us;
	return d->law == DRWA_LAW_CLASSIC ? d->sum_us / d->samples : d->least_us;
}

/**
 * drwa_due() - is the round over?
 * @d:		connection
 * @now_us:	local clock, us
 */
bool drwa_due(const struct drwa *d, u32 now_us)
{
	return d->rtt_us && now_us - d->round_us >= drwa_rtt_us(d);
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
	d->rtt_us = drwa_rtt_us(d);
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

static u32 delay_best_rate(const struct drwa *d)
{
	u32 best = 0;
	int i;

	for (i = 0; i < DRWA_RATE_ROUNDS; i++)
		if (d->rate[i] > best)
			best = d->rate[i];
	return best;
}

/* DRAIN: what delay the lower window does not take away is the path's. */
static void delay_drained(struct drwa *d, u32 now_us, u32 mss)
{
	s32 left, pair_us = 2 * mss * 1000 / max(delay_best_rate(d), 1U);

	if ((s32)(d->owd_us - d->drain_us) < 0)
		d->drain_us = d->owd_us;
	if (--d->drain_rounds)
		return;
	left = d->drain_us - d->base_us;
	/* A delayed ACK releases two segments, which queue behind each other. */
	d->deep = left < -2 * DELAY_TICK_US ||
		  (left > DELAY_QUEUE_MIN_US + pair_us &&
		   left < d->drain_q_ms * 1000 / 2);
	if (left < 0 || !d->deep)
		d->base_us = d->drain_us;
	d->base_seen_us = now_us;
	d->phase = DRWA_HOLD;
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

/* Counts the rounds whose queue the window does not explain. */
static void delay_judge(struct drwa *d, u32 q_us, u32 target_us)
{
	if (q_us > 2 * target_us)
		d->strikes += 2;
	else if (q_us > target_us + target_us / 4 + DELAY_TICK_US)
		d->strikes++;
	else
		d->strikes = 0;
	if (d->strikes > DELAY_STRIKES)
		d->strikes = DELAY_STRIKES;
}

/* Begins DRAIN when it is due; half the window where the base is wrong. */
static void delay_drain(struct drwa *d, struct drwa_link *l, u32 now_us,
			u32 q_us, u32 floor)
{
	u32 crossed = now_us ^ d->round_us;
	u32 others_us = now_us - READ_ONCE(l->drain_us);
	bool wrong = d->deep || d->strikes == DELAY_STRIKES;

	if ((wrong && crossed >> DELAY_WRONG_SHIFT) ||
	    (crossed >> DELAY_OLD_SHIFT &&
	     now_us - d->base_seen_us > DELAY_BASE_AGE_US))
		WRITE_ONCE(l->drain_us, now_us);
	else if (others_us > now_us - d->round_us)
		return;
	d->wnd = wrong ? d->cwnd / 2 : d->cwnd - d->cwnd / 4;
	d->wnd = max(d->wnd, floor);
	d->phase = DRWA_DRAIN;
	d->drain_rounds = DELAY_DRAIN_ROUNDS;
	d->drain_us = d->owd_us;
	d->drain_q_ms = min(q_us / 1000, (u32)U16_MAX);
	d->strikes = 0;
}

/* Tells the link's other connections the queue that this one sees. */
static void delay_share(struct drwa_link *l, u32 now_us, u32 q_us)
{
	if (q_us < READ_ONCE(l->q_us) &&
	    now_us - READ_ONCE(l->q_seen_us) < LINK_FRESH_US)
		return;
	WRITE_ONCE(l->q_us, q_us);
	WRITE_ONCE(l->q_seen_us, now_us);
}

static void delay_round(struct drwa *d, struct drwa_link *l, u32 now_us,
			u32 elapsed_us, u32 data_rcvd, u32 mss)
{
	u32 q_us, target_us, counted, wnd, floor = DELAY_FLOOR_MSS * mss;
	u32 last_rtt_us = d->rtt_us;

	if (!d->samples || !elapsed_us)
		return;
	d->rtt_us = d->least_us;
	if (elapsed_us / DELAY_IDLE_RTTS > d->least_us &&
	    elapsed_us / DELAY_IDLE_RTTS > last_rtt_us)
		return;

	if (d->phase == DRWA_DRAIN)
		delay_drained(d, now_us, mss);
	q_us = delay_queue(d, now_us);
	d->rtt_min_us = d->rtt_us > q_us ? d->rtt_us - q_us : 1;
	d->newest = (d->newest + 1) % DRWA_RATE_ROUNDS;
	/* The best of several counts of segments is one too many. */
	counted = data_rcvd - min(data_rcvd, mss);
	d->rate[d->newest] = div64_u64((u64)counted * 1000, elapsed_us);
	d->cwnd = div64_u64((u64)delay_best_rate(d) * d->rtt_min_us, 1000);
	wnd = drwa_window(d, d->cwnd, floor) + DELAY_CUSHION_MSS * mss;

	switch (d->phase) {
	case DRWA_START:
		if (q_us <= d->rtt_min_us / 4 || q_us <= DELAY_QUEUE_MIN_US)
			return;
		d->phase = DRWA_GAUGE;
		d->wnd = max(2 * data_rcvd, floor);
		return;
	case DRWA_GAUGE:
		d->phase = DRWA_HOLD;
		d->wnd = wnd;
		return;
	case DRWA_DRAIN:
		d->wnd = wnd;
		return;
	}
	target_us = drwa_window(d, d->rtt_min_us, 0) - d->rtt_min_us;
	if (target_us < 2 * DELAY_TICK_US)
		target_us = 2 * DELAY_TICK_US;
	if (q_us >= target_us / 2 || wnd > d->wnd)
		d->wnd = wnd;
	delay_share(l, now_us, q_us);
	delay_judge(d, q_us, target_us);
	delay_drain(d, l, now_us, q_us, floor);
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
	u32 data_rcvd = rcv_nxt - d->round_seq;

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
