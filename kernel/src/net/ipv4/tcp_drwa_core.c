// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: Dynamic Receive Window Adjustment, the control law
 *
 * A base station keeps a deep queue for every phone. A loss-based sender fills
 * it, and all traffic of the phone waits behind. But a sender never has more in
 * flight than its receiver offers. So offer what the path holds, and little more:
 *
 *	wnd = (rate + lambda * dev) * (path + max(target, silence)) + 1 segment
 *
 *	lambda	 set by the administrator, 1 to 10
 *	rate	 what came, per time, in the last round that tells of the link
 *	dev	 how much that changes from round to round, its mean; two rates at most
 *	path	 RTT without the queue
 *	target	 (lambda - 1) * path, 2 ms or more: keeps a steady link full
 *	silence	 the mean of each round's longest time without data, 131 ms at most
 *
 * and at least 4 segments, in DRAIN 2. What was offered stays offered: a smaller window
 * takes effect as data comes.
 *
 * A round lasts an RTT and, after START, until the radio's next burst begins, a silence
 * longer at most. A round longer than both 4 RTTs and 262 ms had a pause in it, which no
 * radio makes.
 *
 * Why each term is there: a steady link needs target alone, and dev and silence are
 * nothing there. A link whose rate varies runs dry unless the window holds what may
 * come next, above the last rate by what rates have lately differed (RFC 6298's
 * deviation, of rates). A radio that serves in bursts brings nothing until the next
 * one, however short the path is: the window has to last for as long. The added
 * segment is the same for all that share a queue, whatever their rates: so these
 * become equal, as in FAST TCP.
 *
 * Where the queue comes from. TCP timestamps (RFC 7323) tell the one-way delay,
 * OWD = local clock - TSval, up to an offset:
 *
 *	q    = least OWD of the round - base	base = least OWD without a queue
 *	path = least RTT of the round - q	(so the queue on the way up is in it)
 *
 * q is the standing queue: the luckiest segment met it, too. What a sender sends after
 * a pause answers an ACK from before it: the pause is in such an RTT, and not in the
 * OWD. So path rises only in START, or in a round whose sender used the window.
 *
 * Without timestamps the RTT stands in for the OWD. Such a connection has no cap while
 * the phone sends more than 1/64 of what it receives, for that queue is in the RTT,
 * too; then it is in START. A pause is in the RTT as well. So a round of more than 4 paths
 * and 262 ms, with a silence in it longer than path and 131 ms, tells it nothing. If the
 * last RTT was a quarter of that round or more, the path may be longer: START again.
 * Timestamps that are no clock of milliseconds, or of microseconds, show when q exceeds
 * the RTT, or the delay falls by more than the last RTT: START again, by the RTT.
 *
 *	      a queue shows                      base not met for 3 s and 12 paths
 *	START -------------> HOLD -------------------------------------> DRAIN
 *	  ^                   ^                                          |   |
 *	  |                   +------------------------------------------+   |
 *	  +------------------------------------------------------------------+
 *	            nearly all of the queue stayed: the path is longer
 *
 * START: slow start may run. The window rises to four times what came in a round, since
 * two of a sender's doublings may fall into one, and does not fall. A queue shows when
 * q > max(target, 4 ms) + silence: a silence delays what comes after it, too (beside
 * others that bring more than 1/16, silences say nothing). The formula rules at once. Where
 * lambda is set in mid-download, or an upload ends that had taken the cap away, a round
 * brings more than twice the window (64 KB, or none): that was offered before, and stands
 * in the queue. The window is four segments until a round brings no more than twice that.
 *
 * HOLD: the window follows the formula. It rises at once. It falls only after a full
 * round, or as a rival ends, and not in the round after a DRAIN. Full: the sender used
 * half of the window, and did not pause; or others bring no more than 1/16, and path +
 * q exceeds the last round's RTT by a quarter of this round's length. Then the link
 * became slower, and the rest of the window is in its queue. Rounds that are not full
 * leave silence as it is, and rate and dev unless more came: an idle sender says
 * nothing of the link.
 *
 * DRAIN: the window is rate * max(path, silence), less 1/16 if that is a segment, for
 * two rounds. A round that brings more for an RTT than that and two segments has what
 * was offered before, and does not count; one that brings less does. The queue goes,
 * and the least delay since the round before is the path's; without that round's if the
 * first one has 4 ms and silence more, for then the path became longer meanwhile (but where
 * a count is late, it may be a rival's queue). In order:
 *   - It is 2 ms or more below base: the path is shorter. Repeat the round with 3/4 of
 *     rate * max(path, silence), until the delay falls no further.
 *   - It is up to 4 ms above: base follows.
 *   - A rival is known: base stays.
 *   - Others bring a quarter of all bytes: two more rounds, at 3/4 as well. A queue that
 *     then stays is a rival's.
 *   - All but an eighth of the queue stays: the path is longer (a handover). START.
 *   - Some of it goes: the rest is queue, and base stays.
 * DRAIN is looked for as the clock passes a multiple of 4 s, or of 16 to 32 paths if that
 * is more (beside a rival, of RTTs), and comes if base was not met for three quarters of
 * it. It comes sooner, when the clock passes a second, if q exceeds the target after a
 * full round, no rival is known, and either others bring a quarter, or rate + dev is less
 * than half of the rate before the last round without such a q, or after the last DRAIN. A
 * path that became far longer looks like a queue, too: its window is too small, so the
 * rate falls, and the window after it, round by round.
 *
 * Others are what the queue's interfaces received beyond our connections' bytes, counted
 * when a second and four RTTs are over. What comes for other hosts is not seen.
 *
 * A rival fills the queue whatever we do. Beside one the window is four times what
 * came, as in START: a share as without this law. It ends when a DRAIN finds no queue, or
 * when others bring less than 1/16. A count more than two such times after the last has
 * our pause in it: of what others brought before it leaves half at most, for rivals alone.
 *
 * A middlebox that lowers the window's scale in a SYN hides bits of each window from the
 * sender: it sees 1/2, 1/4, .. of the bytes, and a window that follows what came would
 * shrink for ever. The law's window is the one that the sender sees; the offered one has
 * the hidden bits on top. Such a sender shows by its flights, what comes in an RTT: over
 * nine rounds, of two RTTs at most and with no queue of 8 ms, each is half of the window
 * and a segment, or less, and differs from the first by no more than a quarter or a
 * segment, for who has less to send varies. In START nobody in HOLD may have used a
 * window within a second, for his queue passes for path, and flights grow when it goes.
 * Then twice the window is offered for three rounds. If all but the first have a rate
 * that is more by a quarter, and no flight is more than twice what it may have been, then
 * the window ended the flights: window by flight, both from before the trial, tells the
 * bits. The window stays meanwhile. Every second, or 16 to 32 paths, a flight of more
 * than one and a half windows takes a bit back, in START, and in a DRAIN that has had no
 * effect. A window of few segments for the sender tells nothing.
 *
 * What connections of one queue share (struct drwa_link; an interface is a queue, unless
 * the administrator gave several the same number):
 *   - the target: the least of those in HOLD that used their windows within a second. With
 *     targets of their own, the longest path would have the most in the queue, and so take
 *     all. It lowers nobody's below 8 ms, or jitter would pass for a queue;
 *   - the moment of DRAIN, because one alone would see the others' queue and take
 *     it for the path; who is in START keeps its window and watches;
 *   - their bytes, so that all received less ours is what nobody governs;
 *   - the silences, for what comes for another breaks them. Beside others they only become
 *     shorter, for what comes for these breaks them, too, and is not heard. START can only
 *     make them shorter, and does not where, with no others, somebody in HOLD used a
 *     window within 262 ms.
 * So a connection that begins among others can meet an empty queue, in a common DRAIN.
 *
 * A peer can lie only about its own delay. That makes others' target 8 ms, or costs
 * them a DRAIN a second. One that sends alone and in bursts widens their windows, by
 * 131 ms of the rate at most, until full rounds of theirs unlearn it.
 *
 * Clocks and sequence numbers are 32 bit and wrap. After a round of a minute all is
 * forgotten.
 */
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/tcp_drwa.h>

#include "tcp_drwa_classic.h"

/* Four segments keep fast retransmit (RFC 5681) at work. DRAIN has half: twenty
 * connections at 10 Mb/s and 50 ms hold two segments each.
 */
#define DRWA_FLOOR_SEGMENTS	4

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define DRWA_TICK_US		1000

/* 4 ms: a queue shows above the jitter of a radio scheduler, 1..3 ms a grant, and
 * above what clocks that are 2^-10 apart, the most that NTP slews by, drift from
 * one DRAIN to the next.
 */
#define DRWA_QUEUE_MIN_US	4096

/* Longer silences are outages: connected-mode DRX sleeps 10 to 160 ms (3GPP TS
 * 36.331), mostly up to 80, TDD frames pause for 10.
 */
#define DRWA_SILENCE_MAX_US	131072u

/* Weight of a round in the means of changes and of silences: 1/8 as in RFC 6298 */
#define DRWA_MEAN_SHIFT		3

/* START, and beside a rival: four times what came */
#define DRWA_START_SHIFT	2

/* DRAIN: two rounds with 1/16 less; the second is the first one to feel it. */
#define DRWA_DRAIN_ROUNDS	2
#define DRWA_DRAIN_SHIFT	4

/* DRAIN is due every 2^22 us, between LEDBAT's minutes and the time a user waits
 * for a stalled page, but after 2^4 paths at the soonest: 1/16 of two is then 1/128.
 */
#define DRWA_OLD_SHIFT		22

/* Of all that came, in 255ths: a quarter makes a rival, and less than 1/16 is none. */
#define DRWA_RIVAL_PART		(U8_MAX / 4)
#define DRWA_NOBODY_PART	(U8_MAX / 16)

/* More than 1/64 of what came makes an upload; calls and requests are less. */
#define DRWA_UPLOAD_SHIFT	6

/* The most that struct drwa has room for: a scale of 9 that became 2 */
#define DRWA_HIDDEN_MAX		7

/* Rounds of the same flight, and rounds with twice the window: the second is the first
 * one that more was offered for. With half of the former, connections that come one after
 * the other show bits that nobody hides, and share unevenly ("so many of them" in the
 * ablation's table).
 */
#define DRWA_WATCH_ROUNDS	8
#define DRWA_TRIAL_ROUNDS	3

/* Bounds what forged timestamps can make of the RTT: RFC 6298's 60 s. */
#define DRWA_RTT_MAX_US		60000000u

/* What a round brought */
struct drwa_look {
	u32	now_us;
	u32	elapsed_us;
	u32	bytes;
	u32	rate;		/* bytes per 2^20 us */
	u32	mss;
	u32	q_us;		/* standing queue */
	u32	target_us;	/* the one to aim at */
	u32	silent_us;	/* the longest time without data */
	bool	alone;		/* nobody else's bytes count */
	bool	used;		/* the sender used the window */
	bool	full;		/* so the link decided what came */
	bool	stands;		/* a queue, beyond what the link's silences make of delay */
};

static u32 quarter(u32 x)
{
	return x >> 2;
}

/* Did the sender pause in this round? No radio does for so long. */
static bool look_paused(const struct drwa_look *r, u32 rtt_us)
{
	return quarter(r->elapsed_us) > max(rtt_us, DRWA_SILENCE_MAX_US / 2);
}

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
}

/* A round's clock is that of its last segment, so a stamp of another connection, which
 * was read sooner, or on another CPU, may be ahead of it: by up to a second.
 */
static bool link_fresh(u32 now_us, u32 stamp_us)
{
	return now_us - stamp_us + DRWA_SECOND_US <= 2 * DRWA_SECOND_US - DRWA_TICK_US;
}

/**
 * drwa_start() - take the first RTT sample
 * @d:		connection, just reset
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	sample, us; 0 and more than a minute are refused
 * @owd_us:	local clock minus the sender's, us, any offset
 * @clock:	false: the sender has none, and @owd_us is nothing
 *
 * Until data came, nothing is known that could justify more than the SYN offers.
 */
void drwa_start(struct drwa *d, u32 now_us, u32 rcv_nxt, u32 rtt_us, u32 owd_us,
		bool clock)
{
	if (!rtt_us || rtt_us > DRWA_RTT_MAX_US)
		return;
	drwa_new_round(d, now_us, rcv_nxt);
	d->rtt_us = rtt_us;
	d->path_us = rtt_us;
	d->clock = clock;
	if (d->law == DRWA_LAW_DELAY) {
		d->base_us = clock ? owd_us : rtt_us;
		d->base_seen_us = now_us;
		d->wnd = U16_MAX;
	}
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
		classic_sample(d, rtt_us);
		return;
	}
	if (!d->clock)
		owd_us = rtt_us;
	if (!d->samples || rtt_us < d->least_us)
		d->least_us = rtt_us;
	if (!d->samples || (s32)(owd_us - d->owd_us) < 0)
		d->owd_us = owd_us;
	d->samples++;
}

/**
 * drwa_heard() - data arrived
 * @l:		queue that it came through
 * @now_us:	local clock, us
 */
void drwa_heard(struct drwa_link *l, u32 now_us)
{
	s32 silent_us = now_us - READ_ONCE(l->heard_us);

	WRITE_ONCE(l->heard_us, now_us);
	if (silent_us > (s32)READ_ONCE(l->longest_us))
		WRITE_ONCE(l->longest_us, silent_us);
	if (silent_us >= (s32)quarter(READ_ONCE(l->silence_us)))
		WRITE_ONCE(l->burst_us, now_us);
}

/**
 * drwa_due() - is the round over?
 * @d:		connection
 * @l:		queue that its data comes through; drwa_heard() knows of all of it
 * @now_us:	local clock, us
 *
 * A round that ended within a radio's burst would have the rate of no burst or of two.
 * So it lasts until the next one begins, a usual silence longer at most.
 */
bool drwa_due(const struct drwa *d, const struct drwa_link *l, u32 now_us)
{
	u32 elapsed_us = now_us - d->round_us;

	if (!d->samples)
		return d->rtt_us && elapsed_us >= d->rtt_us;
	if (d->law == DRWA_LAW_CLASSIC)
		return classic_due(d, elapsed_us);
	if (elapsed_us < d->least_us)
		return false;
	/* START learns no silence, so an old one must not last. */
	return d->phase == DRWA_START ||
	       (s32)(READ_ONCE(l->burst_us) - d->round_us - d->least_us) >= 0 ||
	       elapsed_us - d->least_us >= READ_ONCE(l->silence_us);
}

/* The bytes that @rate is in @us; no overflow below 2^34 and 2^30 */
static u32 drwa_bytes(u64 rate, u32 us)
{
	return min_t(u64, rate * us >> DRWA_SECOND_SHIFT, U32_MAX / 4);
}

/* The sender's timestamps tell nothing. What learned from them goes. */
static void delay_mistrust(struct drwa *d, u32 now_us)
{
	d->clock = 0;
	d->owd_us = d->rtt_us;
	d->base_us = d->rtt_us;
	d->base_seen_us = now_us;
	d->phase = DRWA_START;
	d->rounds = 0;
}

/* Keeps the least one-way delay; returns the queue, us. @last_rtt_us: of the round before */
static u32 delay_queue(struct drwa *d, u32 now_us, u32 last_rtt_us)
{
	s32 q = d->owd_us - d->base_us;

	if (d->clock && (q > (s32)(d->rtt_us + 2 * DRWA_TICK_US) ||
			 q < -(s32)(last_rtt_us + 2 * DRWA_TICK_US))) {
		delay_mistrust(d, now_us);
		return 0;
	}
	if (d->phase == DRWA_DRAIN)
		return max(q, 0);
	if (q <= DRWA_TICK_US)
		d->base_seen_us = now_us;
	if (q >= 0)
		return q;
	d->base_us = d->owd_us;
	return 0;
}

/* What stays of a queue of @q_us when it was to go: none, a rival's, or a longer path */
static void delay_judge(struct drwa *d, s32 left_us, u32 q_us, bool others)
{
	if (left_us <= DRWA_QUEUE_MIN_US) {
		d->base_us += left_us;
		d->rival = 0;
	} else if (!d->rival && others) {
		d->rival = 1;
	} else if (!d->rival && left_us >= (s32)(q_us - q_us / 8) - DRWA_TICK_US) {
		d->base_us += left_us;
		d->phase = DRWA_START;
		d->rounds = 0;
	}
}

/* Ends DRAIN, or lets it look further. Called once a round of it. */
static void delay_drained(struct drwa *d, const struct drwa_link *l, u32 now_us)
{
	bool others = READ_ONCE(l->others) > DRWA_RIVAL_PART;
	u32 q_us = d->drain_q_us, jitter_us = DRWA_QUEUE_MIN_US + READ_ONCE(l->silence_us);
	s32 left_us = d->owd_us - d->drain_owd_us;
	bool longer = left_us > (s32)jitter_us && !READ_ONCE(l->late);

	if (left_us < 0 || (longer && d->rounds == 2 * DRWA_DRAIN_ROUNDS))
		d->drain_owd_us = d->owd_us;
	if (d->rounds > DRWA_DRAIN_ROUNDS && --d->rounds > DRWA_DRAIN_ROUNDS)
		return;
	left_us = d->drain_owd_us - d->base_us;
	if (left_us < -2 * DRWA_TICK_US) {
		d->base_us = d->drain_owd_us;
		return;
	}
	if (left_us > DRWA_QUEUE_MIN_US && others && !d->rival && d->rounds) {
		d->rounds--;
		return;
	}
	d->phase = DRWA_HOLD;
	/* Until the queue stands again; its absence says nothing of the link. */
	d->rounds = DRWA_DRAIN_ROUNDS;
	d->base_seen_us = now_us;
	d->good = d->rate;
	if (d->rival)
		d->wnd = 0;
	delay_judge(d, left_us, q_us, others);
}

/* Keeps the round's rate and how much rates differ; returns what may come next. */
static u64 delay_rate(struct drwa *d, const struct drwa_look *r)
{
	u32 rate = r->rate, change;

	/* DRAIN's window gave its rounds their rate, not the link. */
	if (!d->rounds && d->phase != DRWA_DRAIN) {
		if (d->phase != DRWA_HOLD) {
			d->dev = 0;
			d->rate = rate;
		/* An idle sender says nothing of the link. */
		} else if (r->full || rate > d->rate) {
			change = rate > d->rate ? rate - d->rate : d->rate - rate;
			d->dev += (s32)(change - d->dev) >> DRWA_MEAN_SHIFT;
			/* A rate that no link had would hide for minutes all that DRAIN tells. */
			d->dev = min(d->dev, 2 * rate);
			d->rate = rate;
		}
	}
	return d->rate + drwa_times_lambda(d, d->dev);
}

/* Queueing delay to aim at on a steady link, us: the least of the link's connections.
 * Who does not use its window has no part of the queue, and nothing to say of it.
 */
static u32 delay_target(const struct drwa *d, struct drwa_link *l, const struct drwa_look *r)
{
	u32 target_us = max_t(u32, drwa_times_lambda(d, d->path_us) - d->path_us, 2 * DRWA_TICK_US);
	u32 others_us = READ_ONCE(l->target_us);

	/* No jitter may pass for a queue at others' word. */
	if (others_us < target_us && link_fresh(r->now_us, READ_ONCE(l->target_set_us)))
		return min_t(u32, max_t(u32, others_us, 2 * DRWA_QUEUE_MIN_US), target_us);
	if (d->phase == DRWA_HOLD && r->used) {
		WRITE_ONCE(l->target_us, target_us);
		WRITE_ONCE(l->target_set_us, r->now_us);
	}
	return target_us;
}

/* Keeps how long the link is silent, once a round for all its connections; if not @known,
 * because there are others or the sender may have paused, it can only become shorter.
 */
static void link_silence(struct drwa_link *l, const struct drwa_look *r, bool known)
{
	u32 since_us = r->now_us - READ_ONCE(l->silence_set_us);
	u32 silence_us = READ_ONCE(l->silence_us);
	s32 change = r->silent_us - silence_us;

	if (since_us < r->elapsed_us / 2)
		return;
	if (since_us / 2 < r->elapsed_us && (known || change < 0))
		WRITE_ONCE(l->silence_us,
			   silence_us + (silence_us ? change >> DRWA_MEAN_SHIFT : change));
	WRITE_ONCE(l->longest_us, 0);
	WRITE_ONCE(l->silence_set_us, r->now_us);
}

/* In START, a sender's pauses are silences, too. So nothing is learned of these, and who
 * has learned within the longest round without a pause is left alone.
 */
static void delay_silence(const struct drwa *d, struct drwa_link *l, const struct drwa_look *r)
{
	bool learned = r->alone &&
		       r->now_us - READ_ONCE(l->target_set_us) < 2 * DRWA_SILENCE_MAX_US;

	if (d->phase == DRWA_HOLD ? r->full : d->phase == DRWA_START && !learned)
		link_silence(l, r, r->alone && d->phase == DRWA_HOLD);
}

/* Is DRAIN due, here or at another connection? */
static bool delay_drain_due(struct drwa *d, struct drwa_link *l, const struct drwa_look *r)
{
	u32 begun = r->now_us ^ d->round_us;
	bool lost;
	int old;

	if (r->now_us - READ_ONCE(l->drain_us) <= r->elapsed_us)
		return true;
	if (!(begun >> DRWA_SECOND_SHIFT))
		return false;
	/* Beside so much of others there would be little window left after a DRAIN. */
	lost = READ_ONCE(l->others) > DRWA_RIVAL_PART || d->rate + d->dev < d->good / 2;
	if (!lost || !r->full || r->q_us <= r->target_us || d->rival) {
		/* A longer path must not put it off; a rival's queue should. */
		old = max(DRWA_OLD_SHIFT,
			  fls(d->rival ? d->rtt_us : d->path_us) + DRWA_DRAIN_SHIFT);
		if (!(begun >> old) ||
		    r->now_us - d->base_seen_us < (1U << old) - quarter(1U << old))
			return false;
	}
	WRITE_ONCE(l->drain_us, r->now_us);
	return true;
}

/* Is twice the window offered? */
static bool delay_tries(const struct drwa *d)
{
	return d->trial && d->trial <= DRWA_TRIAL_ROUNDS;
}

/* The bit that it tried goes, and good is again what HOLD makes of it. */
static void delay_trial_ends(struct drwa *d)
{
	if (!d->trial)
		return;
	d->hidden -= delay_tries(d);
	d->trial = 0;
	d->good = d->phase == DRWA_HOLD ? d->rate : 0;
}

static void delay_drain(struct drwa *d, const struct drwa_link *l, const struct drwa_look *r)
{
	u32 least = DRWA_FLOOR_SEGMENTS / 2 * r->mss;
	u32 bdp = drwa_bytes(d->rate, max(d->path_us, READ_ONCE(l->silence_us)));

	if (d->phase != DRWA_DRAIN) {
		delay_trial_ends(d);
		d->phase = DRWA_DRAIN;
		d->rounds = 2 * DRWA_DRAIN_ROUNDS;
		d->drain_owd_us = d->owd_us;
		d->drain_q_us = r->q_us;
	}
	if (d->rounds <= DRWA_DRAIN_ROUNDS)
		bdp -= quarter(bdp);
	/* Senders round down to whole segments, which are a part of few. */
	else if (bdp >> DRWA_DRAIN_SHIFT >= r->mss)
		bdp -= bdp >> DRWA_DRAIN_SHIFT;
	d->wnd = max(bdp, least);
}

/* The window that the link needs, and beside a rival what it takes to have a part of it */
static u32 delay_window(struct drwa *d, const struct drwa_link *l, const struct drwa_look *r,
			u64 rate)
{
	u32 us = d->path_us + max(r->target_us, READ_ONCE(l->silence_us));
	u32 wnd = max(drwa_bytes(rate, us) + r->mss, DRWA_FLOOR_SEGMENTS * r->mss);

	if (!d->rival)
		return wnd;
	if (READ_ONCE(l->others) > DRWA_NOBODY_PART)
		return max(wnd, r->bytes << DRWA_START_SHIFT);
	d->rival = 0;
	d->wnd = min(d->wnd, wnd);
	return wnd;
}

static void delay_start(struct drwa *d, const struct drwa_look *r, u32 wnd)
{
	u32 least = DRWA_FLOOR_SEGMENTS * r->mss;

	if (r->bytes / 2 > d->wnd) {
		/* It ran before us: what was offered comes first, and a queue stands. */
		d->wnd = least;
	} else if (r->stands) {
		delay_trial_ends(d);
		d->phase = DRWA_HOLD;
		d->wnd = wnd;
	} else if (!delay_tries(d)) {
		d->wnd = max(max(d->wnd, r->bytes << DRWA_START_SHIFT), least);
	}
}

/* What the round's samples and bytes tell of the queue and of the link */
static void delay_look(struct drwa *d, struct drwa_link *l, struct drwa_look *r)
{
	u32 last_rtt_us = d->rtt_us, silence_us = 0, path_us;

	d->rtt_us = d->least_us;
	/* What was offered before the window fell is still to come. */
	if (d->phase == DRWA_DRAIN &&
	    (u64)r->bytes * d->rtt_us <= (u64)(d->wnd + 2 * r->mss) * r->elapsed_us)
		delay_drained(d, l, r->now_us);
	r->q_us = delay_queue(d, r->now_us, last_rtt_us);
	path_us = r->q_us < d->rtt_us ? d->rtt_us - r->q_us : 1;
	/* A round with a pause in it says nothing of the rate. */
	r->used = r->bytes >= d->wnd / 2 && !look_paused(r, max(d->rtt_us, last_rtt_us));
	/* Behind a link that became far slower, the window is still on its way. */
	r->full = r->used ||
		  (r->alone && d->path_us + r->q_us > last_rtt_us + quarter(r->elapsed_us));
	/* The RTT of a sender that paused has the pause in it. START's window is beyond use. */
	if (r->used || d->phase == DRWA_START || path_us < d->path_us)
		d->path_us = path_us;
	r->target_us = delay_target(d, l, r);
	if (r->alone)
		silence_us = max(r->silent_us, READ_ONCE(l->silence_us));
	r->stands = r->q_us > max_t(u32, r->target_us, DRWA_QUEUE_MIN_US) + silence_us;
	delay_silence(d, l, r);
}

/* May the sender take half of the window, or less, for all of it? */
static bool delay_halved(const struct drwa *d, const struct drwa_link *l,
			 const struct drwa_look *r, u32 flight)
{
	/* START takes others' queue for path, and flights grow when it goes. */
	if (d->phase == DRWA_START && link_fresh(r->now_us, READ_ONCE(l->target_set_us)))
		return false;
	/* At 2 Mb/s a segment alone takes 6 ms. */
	return r->q_us <= 2 * DRWA_QUEUE_MIN_US && r->elapsed_us <= 2 * d->rtt_us &&
	       flight <= d->wnd / 2 + r->mss && d->hidden < DRWA_HIDDEN_MAX;
}

/* A trial: the window ends the flight if that is always the same, and more with twice of it. */
static void delay_trial(struct drwa *d, const struct drwa_link *l, const struct drwa_look *r,
			u32 flight)
{
	u32 before = drwa_bytes(d->good, d->rtt_us), near = max(quarter(before), r->mss);
	/* Rounded up to whole segments */
	u32 part = (d->wnd + d->wnd / 2) / (before + r->mss);

	if (d->trial > DRWA_TRIAL_ROUNDS) {
		/* Who has less to send than the window varies. */
		if (!delay_halved(d, l, r, flight) || flight - before + near > 2 * near)
			delay_trial_ends(d);
		else if (--d->trial == DRWA_TRIAL_ROUNDS)
			d->hidden++;
	} else if (flight > 2 * (before + near) ||
		   (d->trial < DRWA_TRIAL_ROUNDS && r->rate <= d->good + quarter(d->good))) {
		delay_trial_ends(d);
	} else if (d->trial > 1) {
		d->trial--;
	} else {
		delay_trial_ends(d);
		d->hidden = min(d->hidden + fls(part | 1) - 1, DRWA_HIDDEN_MAX);
	}
}

/* Finds bits of the window that the sender does not see, and forgets those that it does. */
static void delay_hidden(struct drwa *d, const struct drwa_link *l, const struct drwa_look *r)
{
	int often = max(DRWA_SECOND_SHIFT, fls(d->path_us) + DRWA_DRAIN_SHIFT);
	u32 flight = drwa_bytes(r->rate, d->rtt_us);

	if (d->trial) {
		delay_trial(d, l, r, flight);
	} else if (d->phase != DRWA_DRAIN && delay_halved(d, l, r, flight)) {
		d->trial = DRWA_WATCH_ROUNDS + DRWA_TRIAL_ROUNDS;
		d->good = r->rate;
	/* HOLD's window falls, and what was offered before is still to come. */
	} else if ((r->now_us ^ d->round_us) >> often && d->phase != DRWA_HOLD && d->hidden &&
		   flight > d->wnd + max(d->wnd / 2, 2 * r->mss)) {
		d->hidden--;
	}
}

/* Without a clock: is more than our queue in the round's RTT? Then it tells nothing. */
static bool delay_blind(struct drwa *d, struct drwa_link *l, const struct drwa_look *r)
{
	u32 last_rtt_us = d->rtt_us;

	/* Nothing tells the queue of an upload from ours. */
	if (READ_ONCE(l->upload)) {
		d->rtt_us = d->least_us;
		delay_mistrust(d, r->now_us);
		d->wnd = 0;
		return true;
	}
	if (READ_ONCE(l->longest_us) <= max(d->path_us, DRWA_SILENCE_MAX_US) ||
	    !look_paused(r, d->path_us))
		return false;
	WRITE_ONCE(l->longest_us, 0);
	d->rtt_us = d->least_us;
	/* A path that became so much longer is silent for most of each round, too. */
	if (quarter(r->elapsed_us) <= last_rtt_us) {
		delay_mistrust(d, r->now_us);
		d->path_us = d->least_us;
	}
	return true;
}

static void delay_round(struct drwa *d, struct drwa_link *l, struct drwa_look *r)
{
	u32 wnd, last_rate = d->rate;

	if (!d->clock && delay_blind(d, l, r))
		return;
	r->alone = READ_ONCE(l->others) <= DRWA_NOBODY_PART || READ_ONCE(l->late);
	r->silent_us = min_t(u32, READ_ONCE(l->longest_us), DRWA_SILENCE_MAX_US);
	delay_look(d, l, r);
	if (d->phase == DRWA_DRAIN || !d->rounds)
		delay_hidden(d, l, r);
	wnd = delay_window(d, l, r, delay_rate(d, r));

	if (d->phase == DRWA_START) {
		delay_start(d, r, wnd);
		return;
	}
	if (d->phase == DRWA_HOLD) {
		if (d->rounds) {
			d->rounds--;
			d->wnd = max(d->wnd, wnd);
			return;
		}
		if (!delay_tries(d) && (r->full || wnd > d->wnd))
			d->wnd = wnd;
		/* Its own rate may already be a longer path's. */
		if (r->q_us <= r->target_us && !d->trial)
			d->good = last_rate;
		if (!delay_drain_due(d, l, r))
			return;
	}
	delay_drain(d, l, r);
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
	struct drwa_look r = {
		.now_us = now_us,
		.elapsed_us = now_us - d->round_us,
		.bytes = min_t(u32, rcv_nxt - d->round_seq, U32_MAX / 8),
		.mss = mss,
	};

	/* After so long nothing learned holds: the user has moved on. */
	if (r.elapsed_us > DRWA_RTT_MAX_US) {
		*d = (struct drwa){ .law = d->law, .lambda = d->lambda };
		return;
	}
	if (d->law == DRWA_LAW_CLASSIC) {
		classic_round(d, r.bytes, mss);
	} else if (d->samples) {
		r.rate = min_t(u64, div_u64((u64)r.bytes << DRWA_SECOND_SHIFT, r.elapsed_us),
			       U32_MAX / 8);
		/* The law's own window is the one that the sender sees. */
		d->wnd >>= d->hidden;
		delay_round(d, l, &r);
		d->wnd = min_t(u64, (u64)d->wnd << d->hidden, U32_MAX / 4);
	}
	drwa_new_round(d, now_us, rcv_nxt);
}

/**
 * drwa_count() - count what comes over the queue
 * @l:		queue
 * @now_us:	local clock, us
 * @rtt_us:	RTT of the connection for which drwa_count_due() was true, us
 * @all:	bytes beyond headers that came over the link so far, whosever they are; wraps
 * @sent:	such bytes that went up so far; wraps
 */
void drwa_count(struct drwa_link *l, u32 now_us, u32 rtt_us, u32 all, u32 sent)
{
	u32 elapsed_us = now_us - READ_ONCE(l->counted_us);
	u32 governed = READ_ONCE(l->governed), came = all - READ_ONCE(l->all);
	/* Another interface's count may have come in its place. */
	u32 others = came > U32_MAX / 2 || governed >= came ? 0 : came - governed;
	bool late = elapsed_us / 2 > max(DRWA_SECOND_US, 4 * rtt_us);
	u8 part = others ? div_u64((u64)others * U8_MAX, came) : 0;

	/* Nobody counted for twice the time, so a pause of ours is in it: what came then tells
	 * little of now, but a rival that was there before, and went on, may still be there.
	 */
	if (late)
		part = min_t(int, part, READ_ONCE(l->others) / 2);
	WRITE_ONCE(l->others, part);
	WRITE_ONCE(l->late, late);
	WRITE_ONCE(l->counted_us, now_us);
	WRITE_ONCE(l->all, all);
	WRITE_ONCE(l->upload, sent - READ_ONCE(l->sent) > came >> DRWA_UPLOAD_SHIFT);
	WRITE_ONCE(l->sent, sent);
	WRITE_ONCE(l->governed, 0);
}
