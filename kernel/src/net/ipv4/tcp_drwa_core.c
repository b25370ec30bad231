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
 *	wnd  = lambda * rate * R
 *
 *	           q > max(R/4, 4 ms)            base unseen for 8 s
 *	START -------------------------> HOLD ------------------------> DRAIN
 *	no cap                           wnd  <------------------------ wnd/2
 *	                                          two rounds later
 *
 * There is no cap in START, so that slow start runs at the sender's pace.
 * DRAIN empties the queue for a moment: what it then sees is the new base,
 * lower or higher, and so the end of a handover's error.
 *
 * Clocks and sequence numbers are 32 bit and wrap; only differences count.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/tcp_drwa.h>

/* Paper, section 5.1: alpha = 7/8, the weight of TCP's own RTT average. */
#define CLASSIC_ALPHA_SHIFT	3

/* Two segments: less would end in the sender's silly window avoidance. */
#define CLASSIC_FLOOR_MSS	2

/* The window must carry delayed ACKs and fast retransmit. */
#define DELAY_FLOOR_MSS		8

/* A queue shows above the jitter of a radio scheduler, 1..3 ms a grant. */
#define DELAY_QUEUE_MIN_US	4000

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define DELAY_TICK_US		1000

/* Between BBR's 10 s and the time a user waits for a stalled page. */
#define DELAY_BASE_AGE_US	8000000u

/* One round to empty the queue, one to see the delay without it. */
#define DELAY_DRAIN_ROUNDS	2

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
 * drwa_sample() - take one RTT sample
 * @d:		connection
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	sample, us; 0 and more than a minute are refused
 * @owd_us:	local clock minus the sender's, us, any offset
 */
void drwa_sample(struct drwa *d, u32 now_us, u32 rcv_nxt, u32 rtt_us, u32 owd_us)
{
	if (!rtt_us || rtt_us > DRWA_RTT_MAX_US || d->samples == U16_MAX)
		return;

	if (!d->rtt_us) {
		drwa_new_round(d, now_us, rcv_nxt);
		d->rtt_us = rtt_us;
		d->rtt_min_us = rtt_us;
		d->base_us = owd_us;
		d->base_seen = now_us;
	}
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
	if (d->law == DRWA_LAW_CLASSIC && d->samples)
		return d->sum_us / d->samples;
	return d->rtt_us;
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

	/* RTTmin <= RTTest and RTTest > 0: neither overflow nor division by 0 */
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

/* Keeps the least one-way delay; returns the queueing delay in us. */
static u32 delay_queue(struct drwa *d, u32 now_us)
{
	s32 q = d->owd_us - d->base_us;

	if (q <= DELAY_TICK_US)
		d->base_seen = now_us;
	if (q < 0) {
		d->base_us = d->owd_us;
		q = 0;
	}
	return q;
}

static void delay_round(struct drwa *d, u32 now_us, u32 elapsed_us, u32 data_rcvd,
			u32 mss)
{
	u32 q_us, floor = DELAY_FLOOR_MSS * mss;

	if (!d->samples || elapsed_us / DELAY_IDLE_RTTS > d->least_us)
		return;

	if (d->phase == DRWA_DRAIN && !--d->drain) {
		d->phase = DRWA_HOLD;
		d->base_us = d->owd_us;
		d->base_seen = now_us;
	}
	q_us = delay_queue(d, now_us);

	d->rtt_us = d->least_us;
	d->rtt_min_us = d->rtt_us > q_us ? d->rtt_us - q_us : 1;
	d->head = (d->head + 1) % DRWA_RATE_ROUNDS;
	d->rate[d->head] = div64_u64((u64)data_rcvd * 1000, elapsed_us);
	d->cwnd = div64_u64((u64)delay_best_rate(d) * d->rtt_min_us, 1000);

	switch (d->phase) {
	case DRWA_START:
		if (q_us <= d->rtt_min_us / 4 || q_us <= DELAY_QUEUE_MIN_US)
			return;
		d->phase = DRWA_HOLD;
		break;
	case DRWA_HOLD:
		if (now_us - d->base_seen > DELAY_BASE_AGE_US) {
			d->phase = DRWA_DRAIN;
			d->drain = DELAY_DRAIN_ROUNDS;
		}
		break;
	}
	d->wnd = drwa_window(d, d->cwnd, floor);
	if (d->phase == DRWA_DRAIN)
		d->wnd = d->wnd / 2 > floor ? d->wnd / 2 : floor;
}

/**
 * drwa_round() - end the round and set the target window
 * @d:		connection; drwa_due() was true
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @mss:	segment size, bytes
 */
void drwa_round(struct drwa *d, u32 now_us, u32 rcv_nxt, u32 mss)
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
		delay_round(d, now_us, elapsed_us, data_rcvd, mss);
	drwa_new_round(d, now_us, rcv_nxt);
}
