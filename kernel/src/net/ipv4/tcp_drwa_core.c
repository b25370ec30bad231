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
 *	rate   = bytes of the last round over its time
 *	dev    = average of the rate's changes from round to round, 2 * rate at most
 *	target = (lambda - 1) * R		the least of the queue's connections
 *	wnd    = (rate + 25/16 * lambda * dev) * (R + target) + 1 segment
 *
 * with the least OWD and RTT of each round, so that q is the standing queue.
 *
 * A steady link is full with any standing queue, and dev is nothing there. A
 * link whose rate varies runs dry unless the window holds what may come in the
 * next round, which is as far from the last one's as rounds have lately been
 * apart. That is RFC 6298's deviation, of rates in place of RTTs. lambda scales
 * what is in flight on either.
 *
 * The added segment, and the deviation that few segments a round have, make
 * connections that share a queue converge: each has a part that is fair once
 * the rates are, and the same more.
 *
 *	         q > max(R/4, 4 ms)          one round
 *	START ----------------------> GAUGE -----------> HOLD <------> DRAIN
 *	4 x came  ^                   2 x came           wnd           less
 *	          |                                                      |
 *	          +------------------------------------------------------+
 *	                           the path became longer
 *
 * START lets slow start run at the sender's pace: a round may bring twice what
 * the last one did, and two rounds of the sender's may fall into one of ours.
 * The round that ends it was not a full link from its beginning, so its rate is
 * too low; GAUGE waits for a whole round.
 * A connection that ran before us begins with the least window: its queue, which
 * would pass for the path, goes once what was offered has come.
 *
 * While q is below half of its target, or less than half of the window comes in a
 * round, HOLD raises the window but never lowers it: an idle sender says nothing
 * of the link. Unless the RTT grew by a quarter of the round: so much of what is
 * on its way comes later, for the link became slower.
 *
 * Where few segments fill the link, a delayed ACK withholds a part of the window, so
 * the binding acknowledges each (drwa_few()).
 *
 * DRAIN looks for the least OWD anew, every 4 s and 16 RTTs, with 1/16 less than
 * fills the link, or just that if it is few segments. Where few fill the link that is
 * a half of it, without the one that is being sent and what the sender rounds down, so
 * it comes a quarter as often there. What queue there is goes
 * within two rounds, and what delay stays is the path's. A shorter path shows by
 * a lower OWD, and DRAIN goes on, with 1/4 less, for as long as it finds one. If
 * all but an eighth of the queue stays, the path became longer (handover), and
 * START finds its window; but where a connection was in START within the last second,
 * that queue may be its, and the next DRAIN tells. DRAIN comes within a second where a
 * queue and a lost rate say that the window is too small for such a path.
 *
 * Unless others keep that queue, who do not follow this law. What came over the
 * link and was nobody's here is counted, because the phone sees all of it; when
 * that is a quarter and two DRAINs in turn leave a queue, there is a rival, and the
 * window leaves room to grow as in START, as stock's would. With three quarters any
 * queue will do: a START doubles, so its last round, which nobody has counted yet, is
 * half of what came. That ends with the rival, or when the next DRAIN finds that the
 * rival yielded nothing: what comes at its own pace is none, and its queue is the path.
 *
 * Connections through a queue tell each other things (struct drwa_link). All
 * have the same target, or the one with the longest path would have the link.
 * They DRAIN together, at whole periods of the local clock, because one alone
 * would see the others' queue and take it for the path. And they count their bytes.
 *
 * A new connection among others may meet no moment without queue. It DRAINs soon, with
 * the least window, for it does not know how much is a queue, and takes what that finds
 * for its base, longer or shorter.
 *
 * That is all that a peer can do to others: it says what its own delay is, and
 * that may be a lie. If it uses its window, a target of 8 ms costs what a lambda
 * near 1 does; a DRAIN takes 1/16 of two RTTs, once a second; who is always in START
 * has others see a longer path a DRAIN later; who hides its bytes in rounds of a minute
 * is a rival, which it can be without a lie.
 *
 * A sender whose timestamps do not tick once a millisecond makes an OWD that
 * runs away from the RTT, which no queue can. The law leaves it alone the second
 * time, for a minute; the first may have been our clock, which stops while the
 * phone sleeps, or the sender's, when its machine is moved.
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

/* Four segments keep fast retransmit (RFC 5681) at work; in DRAIN, half: twenty
 * connections at 10 Mb/s and 50 ms have two segments each.
 */
#define DELAY_FLOOR_MSS		4

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define DELAY_TICK_US		1000

/* Four times as much, or a quarter, is no noise. Slow start doubles, and a round of
 * ours may hold two of the sender's.
 */
#define DELAY_FAR_SHIFT		2

/* Weight of a round's change of rate in their average, and how much of that the
 * window holds beside the rate: a 64th for each hundredth of lambda.
 */
#define DELAY_DEV_SHIFT		4
#define DELAY_DEV_GAIN_SHIFT	6

/* One round with less window, and the next one, in which that arrives. */
#define DELAY_DRAIN_ROUNDS	2
#define DELAY_DRAIN_SHIFT	4

/* DRAIN is due every 2^22 us, between LEDBAT's minutes and the time a user waits
 * for a stalled page, but after 2^4 RTTs at the soonest: 1/16 of two is then 1/128.
 */
#define DELAY_OLD_SHIFT		22

/* 4 ms: a queue shows above the jitter of a radio scheduler, 1..3 ms a grant, and
 * above what clocks that are 2^-10 apart, the most that NTP slews by, drift from
 * one DRAIN to the next.
 */
#define DELAY_QUEUE_MIN_US	(1 << (DELAY_OLD_SHIFT - 10))

/* A rival is gone when no more is left than headers, which are not governed bytes:
 * 52 of 1500.
 */
#define LINK_HEADERS		(U8_MAX / 16)

/* Less than 2^14 bytes a second is a call, a chat or a ping, and no download. */
#define LINK_RIVAL_MIN_SHIFT	(LINK_SHIFT - 14)

/* What connections tell each other is of the last second. */
#define LINK_SHIFT		DRWA_SECOND_SHIFT

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

/* All but what the owner set */
static void drwa_forget(struct drwa *d)
{
	u16 lambda = d->lambda;

	drwa_reset(d, d->law);
	d->lambda = lambda;
}

static void drwa_new_round(struct drwa *d, u32 now_us, u32 rcv_nxt)
{
	d->round_us = now_us;
	d->round_seq = rcv_nxt;
	d->samples = 0;
}

/* A round's clock is that of its last segment, so a stamp of another connection, which
 * was read sooner, or on another CPU, may be ahead of it: by up to a second.
 */
static bool link_fresh(u32 now_us, u32 stamp_us)
{
	return now_us - stamp_us + (1U << LINK_SHIFT) <= (2U << LINK_SHIFT) - DELAY_TICK_US;
}

/* Bytes of ours, or that soon will be. */
static void link_expect(struct drwa_link *l, u32 bytes)
{
	WRITE_ONCE(l->governed, READ_ONCE(l->governed) + bytes);
}

/**
 * drwa_start() - take the first RTT sample
 * @d:		connection, just reset
 * @l:		queue that it came through
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	sample, us; 0 and more than a minute are refused
 * @owd_us:	local clock minus the sender's, us, any offset
 * @clock:	false: the sender has none
 *
 * Until data came, nothing is known that could justify more than the SYN offers. All
 * of that counts as come: what follows the last whole round is never counted, and
 * that may be all of a short connection's.
 */
void drwa_start(struct drwa *d, struct drwa_link *l, u32 now_us, u32 rcv_nxt,
		u32 rtt_us, u32 owd_us, bool clock)
{
	if (!rtt_us || rtt_us > DRWA_RTT_MAX_US)
		return;
	drwa_new_round(d, now_us, rcv_nxt);
	d->rtt_us = rtt_us;
	d->rtt_min_us = rtt_us;
	d->clock = clock;
	d->base_us = clock ? owd_us : rtt_us;
	d->base_seen_us = now_us;
	d->shared = link_fresh(now_us, READ_ONCE(l->target_set_us));
	if (d->law == DRWA_LAW_DELAY)
		d->wnd = U16_MAX;
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

	if (!d->clock)
		owd_us = rtt_us;
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
	d->sum_us = 0;
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

/* Is that more delay than jitter makes? */
static bool delay_shows(const struct drwa *d, u32 q_us)
{
	return q_us > d->rtt_min_us >> DELAY_FAR_SHIFT && q_us > DELAY_QUEUE_MIN_US;
}

/* Is the base the path's again? Called once a round of DRAIN. */
static void delay_drained(struct drwa *d, const struct drwa_link *l, u32 now_us)
{
	u8 others = READ_ONCE(l->others);
	u32 drain_q_us;
	bool shared;
	s32 left;

	if ((s32)(d->owd_us - d->drain_us) < 0)
		d->drain_us = d->owd_us;
	if (d->rounds > DELAY_DRAIN_ROUNDS && --d->rounds > DELAY_DRAIN_ROUNDS)
		return;
	left = d->drain_us - d->base_us;
	if (left < -2 * DELAY_TICK_US) {
		/* A shorter path, and still a queue: look further. */
		d->base_us = d->drain_us;
		return;
	}
	d->phase = DRWA_HOLD;
	drain_q_us = d->drain_q_us;
	/* Of the last round before, since which no rate was kept. */
	d->good = d->rate;
	/* Until the queue stands again; its absence says nothing of the link. */
	d->rounds = DELAY_DRAIN_ROUNDS + 1;
	d->base_seen_us = now_us;
	shared = d->shared;
	d->shared = 0;
	if (left <= DELAY_QUEUE_MIN_US || shared) {
		d->base_us = d->drain_us;
		if (d->rival)
			d->wnd = 0;
		d->rival = 0;
	} else if (!d->rival && others > U8_MAX >> DELAY_FAR_SHIFT) {
		d->rival = 1;
	} else if (!d->rival && left + DELAY_TICK_US >= (s32)(drain_q_us - drain_q_us / 8)) {
		d->base_us = d->drain_us;
		d->phase = DRWA_START;
		d->rounds = 0;
	}
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

/* The bytes that @rate is in @us; no overflow below 2^34 and 2^30 */
static u32 delay_bytes(u64 rate, u32 us)
{
	return min_t(u64, rate * us >> DELAY_RATE_SHIFT, U32_MAX / 4);
}

/* Keeps the round's rate and how much rates differ; returns what may come next. */
static u64 delay_rate(struct drwa *d, u32 elapsed_us, u32 data_rcvd, bool full)
{
	u32 rate, change;

	/* DRAIN's window gave its rounds their rate, not the link. */
	if (d->rounds < DELAY_DRAIN_ROUNDS) {
		rate = min_t(u64, div_u64((u64)data_rcvd << DELAY_RATE_SHIFT, elapsed_us),
			     U32_MAX / 8);
		if (d->phase != DRWA_HOLD) {
			d->dev = 0;
			d->rate = rate;
		/* An idle sender says nothing of the link. */
		} else if (full || rate > d->rate) {
			change = rate > d->rate ? rate - d->rate : d->rate - rate;
			d->dev += (s32)(change - d->dev) >> DELAY_DEV_SHIFT;
			/* Rates differ by twice their mean at most: a faster link's end. */
			d->dev = min(d->dev, 2 * rate);
			d->rate = rate;
		}
	}
	return d->rate + ((u64)d->dev * d->lambda >> DELAY_DEV_GAIN_SHIFT);
}

/* Queueing delay to aim at on a steady link, us: the least (lambda - 1) * R of
 * the link's connections, or the one with the longest path would have the link.
 * Who does not use its window has no part of the queue, and nothing to say of it.
 */
static u32 delay_target(const struct drwa *d, struct drwa_link *l, u32 now_us, bool used)
{
	u32 others_us = READ_ONCE(l->target_us);
	u32 more = d->lambda - DRWA_LAMBDA_ONE;
	u32 target_us = div_u64((u64)d->rtt_min_us * more, DRWA_LAMBDA_ONE);

	target_us = max_t(u32, target_us, 2 * DELAY_TICK_US);
	/* At half of it HOLD lowers the window, which no jitter may do at others' word. */
	if (others_us < target_us && link_fresh(now_us, READ_ONCE(l->target_set_us)))
		return min_t(u32, max_t(u32, others_us, 2 * DELAY_QUEUE_MIN_US), target_us);
	if (d->phase == DRWA_HOLD && used) {
		WRITE_ONCE(l->target_us, target_us);
		WRITE_ONCE(l->target_set_us, now_us);
	}
	return target_us;
}

/**
 * drwa_count() - count what comes over the queue
 * @l:		queue
 * @now_us:	local clock, us
 * @rtt_us:	RTT of the connection for which drwa_count_due() was true, us
 * @all:	bytes that came over the link so far, whosever they are; wraps
 *
 * Nobody counted for most of twice the time: what came then tells nothing of now.
 */
void drwa_count(struct drwa_link *l, u32 now_us, u32 rtt_us, u32 all)
{
	u32 elapsed_us = now_us - READ_ONCE(l->counted_us);
	u32 governed = READ_ONCE(l->governed), came = all - READ_ONCE(l->all);
	/* Another interface's count may have come in its place. */
	u32 others = came > U32_MAX / 2 || governed >= came ? 0 : came - governed;

	if (others < elapsed_us >> LINK_RIVAL_MIN_SHIFT ||
	    (elapsed_us >> (DRWA_SECOND_SHIFT + 1) && elapsed_us / 8 >= rtt_us))
		others = 0;
	WRITE_ONCE(l->others, others ? div_u64((u64)others * U8_MAX, came) : 0);
	WRITE_ONCE(l->counted_us, now_us);
	WRITE_ONCE(l->all, all);
	WRITE_ONCE(l->governed, 0);
}

/* Is DRAIN due, here or at another connection? @queue: its own is too long; beside so
 * much traffic of others there would be little window left after a DRAIN.
 */
static bool delay_drain_due(struct drwa *d, struct drwa_link *l, u32 now_us,
			    bool queue)
{
	u32 us, begun = now_us ^ d->round_us;
	int old = DELAY_OLD_SHIFT;
	bool soon;
	u8 others;

	if (now_us - READ_ONCE(l->drain_us) <= now_us - d->round_us)
		return true;
	if (!(begun >> LINK_SHIFT))
		return false;
	others = READ_ONCE(l->others);
	soon = others > U8_MAX >> DELAY_FAR_SHIFT || d->rate < d->good >> DELAY_FAR_SHIFT;
	if (!d->shared && !(queue && !d->rival && soon)) {
		/* A longer path must not put it off; a rival's queue should. */
		us = d->rival ? d->rtt_us : d->rtt_min_us;
		while (us >> (old - DELAY_DRAIN_SHIFT))
			old++;
		if (!(begun >> old) || now_us - d->base_seen_us < 3U << (old - 2))
			return false;
	}
	WRITE_ONCE(l->drain_us, now_us);
	return true;
}

static void delay_round(struct drwa *d, struct drwa_link *l, u32 now_us,
			u32 elapsed_us, u32 data_rcvd, u32 mss)
{
	u32 floor = DELAY_FLOOR_MSS * mss, last_rtt_us = d->rtt_us;
	u32 q_us, target_us, last_rate, wnd, bdp;
	bool used, full;
	u64 rate;

	if (!d->samples)
		return;
	d->rtt_us = d->least_us;
	/* A round that is far longer than the RTT says nothing of the rate. */
	if (elapsed_us >> DELAY_FAR_SHIFT > d->rtt_us &&
	    elapsed_us >> DELAY_FAR_SHIFT > last_rtt_us)
		return;

	/* What was offered before d->wnd fell is still to come. */
	if (d->phase == DRWA_DRAIN && data_rcvd <= d->wnd + 2 * mss)
		delay_drained(d, l, now_us);
	q_us = delay_queue(d, now_us);
	/* No queue is longer than the RTT. */
	if (q_us > d->rtt_us + 2 * DELAY_TICK_US) {
		d->base_us = d->owd_us;
		q_us = 0;
	}
	d->rtt_min_us = q_us < d->rtt_us ? d->rtt_us - q_us : 1;
	/* Behind a link that became far slower, the window is still on its way. */
	used = data_rcvd >= d->wnd / 2;
	full = used || (d->rtt_us > last_rtt_us + (elapsed_us >> DELAY_FAR_SHIFT) &&
			READ_ONCE(l->others) <= LINK_HEADERS);
	last_rate = d->rate;
	rate = delay_rate(d, elapsed_us, data_rcvd, full);
	target_us = delay_target(d, l, now_us, used);
	wnd = max(delay_bytes(rate, d->rtt_min_us + target_us) + mss, floor);
	if (d->rival) {
		if (READ_ONCE(l->others) > LINK_HEADERS) {
			wnd = max(wnd, data_rcvd << DELAY_FAR_SHIFT);
		} else {
			d->rival = 0;
			d->wnd = min(d->wnd, wnd);
		}
	}

	switch (d->phase) {
	case DRWA_START:
		/* It ran before us: what was offered comes first, and a queue stands. */
		if (data_rcvd / 2 > d->wnd) {
			d->wnd = floor;
			return;
		}
		if (delay_shows(d, q_us)) {
			d->phase = DRWA_HOLD;
			d->wnd = wnd;
		} else {
			d->wnd = max(max(d->wnd, data_rcvd << DELAY_FAR_SHIFT), floor);
		}
		return;
	case DRWA_HOLD:
		if (d->rounds) {
			d->rounds--;
			d->wnd = max(d->wnd, wnd);
			return;
		}
		if ((full && q_us >= target_us / 2) || wnd > d->wnd)
			d->wnd = wnd;
		/* Its own rate may already be a longer path's. */
		if (q_us <= target_us)
			d->good = last_rate;
		if (!delay_drain_due(d, l, now_us, full && q_us > target_us))
			return;
	}
	bdp = delay_bytes(d->rate, d->rtt_min_us);
	if (d->phase != DRWA_DRAIN) {
		d->phase = DRWA_DRAIN;
		d->rounds = 2 * DELAY_DRAIN_ROUNDS;
		d->drain_us = d->owd_us;
		d->drain_q_us = q_us;
		/* Where the window is not used, more than comes would be no DRAIN. */
		bdp = min(bdp, data_rcvd);
	}
	/* Senders round down to whole segments, which are a part of few. */
	if (d->rounds == DELAY_DRAIN_ROUNDS)
		bdp -= bdp >> DELAY_FAR_SHIFT;
	else if (bdp >> DELAY_DRAIN_SHIFT >= mss)
		bdp -= bdp >> DELAY_DRAIN_SHIFT;
	d->wnd = d->shared ? floor / 2 : max(bdp, floor / 2);
}

/**
 * drwa_round() - end the round and set the target window
 * @d:		connection; drwa_due() was true
 * @l:		queue that its data comes through
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
		drwa_forget(d);
		return;
	}
	if (d->law == DRWA_LAW_CLASSIC) {
		classic_round(d, data_rcvd, mss);
	} else {
		link_expect(l, data_rcvd);
		delay_round(d, l, now_us, elapsed_us, data_rcvd, mss);
	}
	/* A connection that was just forgotten has none. */
	if (d->rtt_us)
		drwa_new_round(d, now_us, rcv_nxt);
}
