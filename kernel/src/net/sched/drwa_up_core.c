// SPDX-License-Identifier: GPL-2.0-only
/* DRWA on the uplink: the gate's law
 *
 * An upload fills the modem's own queue, behind whatever the kernel keeps in
 * order, and all that the phone sends waits there. How long that queue is, most
 * modems do not tell. But it is first in, first out: an answer to any packet
 * tells that all that was handed over before it has left, of whatever
 * connection and protocol. So packets that will be answered are marks, which
 * remember what had been released, and the gate hands over no more while
 *
 *	released - crossed >= rate * (age + target) + more		alone
 *			      rate * (age + target) - dev * back	beside a download
 *
 *	crossed	what was released with the newest mark that was answered
 *	age	how old that news is by now: rtt + back, and the time since then
 *	rtt	the path's, without any queue
 *	back	how long it waited on its way back, in a download's queue
 *	rate	what left, per time in which something was there, over 2^17 us and one age
 *	dev	how much that changes from one age to the next, its mean
 *	more	2 * dev * rtt, or rate * (silence - target), whichever is more (told: their sum)
 *	silence	the longest time in which nothing left of what was there, its mean
 *	target	the queue to keep
 *
 * which is FAST TCP's window, and the deviation of net/ipv4/tcp_drwa_core.c: on
 * a steady link dev is nothing, and target is all that waits. On one that varies
 * the modem would run dry whenever more leaves than an age ago, which costs the upload
 * some percent. What prevents it costs who waits for an answer a longer queue, so it is
 * for uploads alone. So is what covers a silence of a radio that serves in bursts: four packets
 * that leave together after each gap would bring the window down to themselves.
 *
 * For each age without a queue, target is taken once more, at most as
 * much as an age: START's doubling.
 *
 * News come in bursts, and so does what they let go: the modem is dry, then has a queue,
 * and what left in both says less than the link carries. So time counts from when what
 * came before a mark should have left to when the mark was handed over, and to its grant,
 * for none of the link's.
 *
 * How late a mark came to the far end, beyond its flow's best, is the queue that
 * it met. The far end's clock tells, in TSval (RFC 7323), which no queue on the
 * way back disturbs. Without that clock it is RTT less the least RTT, or what a flow with a
 * clock has just met; without any clock the downlink's queue is taken for the uplink's.
 *
 *	     a queue stays           no mark met an empty queue for 2^22 us
 *	START ------------> HOLD <--> DRAIN <-- OPEN, when answers tell what leaves
 *	  ^ \                 |         |
 *	  |  +----> OPEN <----+         | shut for 2^20 us without an answer
 *	  +-----------------------------+ after OPEN, when all has left
 *
 * START doubles, as slow start does, whose bursts wait as well; what half of an age does
 * not empty is the link's queue. DRAIN hands over as much as crosses, less what one packet
 * may be ahead: the queue ends, and no time is lost. Where that is not enough, or nobody
 * knows, it is 3/4 of what crosses, and 3/4 of that in each round after: a link that became
 * slower just before shows by a queue that goes with it, and so does its rate. A round counts
 * from when the last that waited at its begin has left, whatever that one's delay was: after
 * a silence it tells of the silence. What delay
 * stays, and is the same within an eighth from one such round to the next, is the path's,
 * which became longer, as in a handover. A shorter one shows by
 * itself. A new flow may have begun in somebody's queue, so its DRAIN comes after 2^20 us.
 * After OPEN nobody knows his path, so DRAIN hands over nothing until all that was has left.
 *
 * OPEN leaves all to the modem, as if there were no gate: where nobody answers,
 * or nobody in a way that is understood, nothing is known. TCP's first answer is waited for for
 * 2^21 us; after half of that, the window doubles each 2^18 us. While flows are asked
 * that have answered before, it is the radio that is silent, and more would only
 * wait. After 2^18 us one more packet passes, for marks get lost, and after twice, four
 * times that; one each 2^21 us in any case, so that somebody is asked. Where nobody is
 * asked, no news are late: in HOLD what left before is taken to leave still, START
 * becomes OPEN at once. OPEN ends when answers tell for long enough what leaves.
 *
 * A server may answer what it has not got yet, or at another time than it says.
 * Early, it would open the gate to all. Our own clock bounds what it can claim: an
 * answer waits no longer on its way back than what comes meanwhile explains, on a
 * slow downlink.
 * Late, it brings no news anyway while any other flow answers; alone, it would slow
 * who talks to it, but both ways together are no later than our own clock tells.
 * Silent, it is not missed, or ends in OPEN.
 *
 * Where the modem's driver tells how much more it takes, that is all the law needs, whatever
 * the far ends do: what is missing from all that it takes has not crossed, as of some ms ago.
 * News of that age make a window of that age, with a packet more, for one may be half gone.
 * All that it takes is learnt when it is empty: at first, and if that does not happen in
 * 2^23 us, by handing over nothing until it takes no more. Answers tell in between if it
 * takes less.
 *
 * Who has no room asks again when half of target has left, or after 5 ms: to run the qdisc
 * for each answer costs more than all of this, and what is in the modem lasts until then.
 *
 * Clocks, byte counts and sequence numbers are 32 bit and wrap; only differences
 * count.
 */
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/drwa_up.h>

#define UP_NONE		U16_MAX

/* TSval ticks of 1 ms make two equal delays differ by that much. */
#define UP_TICK_US	1000
#define UP_TICK_SHIFT	10

/* RFC 6928's initial window, ten segments, passes before anything is known. */
#define UP_SEGMENT	1500
#define UP_FIRST	(10 * UP_SEGMENT)

/* A full-sized packet and one more to answer: less would end the ACK clock. */
#define UP_FLOOR	(2 * UP_SEGMENT)

/* A dozen of grants, which come every 10 ms or so */
#define UP_SPAN_US	(2 << 16)

/* Rates are in bytes per 2^20 us: B/s within 5 %. */
#define UP_RATE_SHIFT	20
#define UP_RATE_MAX	(U32_MAX / 8)
#define UP_DEV_SHIFT	4

/* How often DRAIN takes 3/4: a tenth is left, as from 20 to 2 Mb/s. */
#define UP_DEEPEST	8

/* A path that became longer is told by now. */
#define UP_QUEUE_SURE	3

/* As tcp_drwa_core.c's DRAIN */
#define UP_OLD_US	(4 << 20)

/* A silence that ends in OPEN, within a second */
#define UP_OPEN_US	(4 << 18)
#define UP_TRICKLE_SHIFT 18

/* A grant's period */
#define UP_WAIT_US	(10 * UP_TICK_US)

/* How often a modem is asked, and the law while it has no room. Told each 5, 10 and 20 ms, the
 * gate has the same upload on generated LTE within a hundredth, and 1, 7 and 24 ms more than
 * QCUT-D's p95 RTT (test_how_often_a_modem_is_asked). Where answers come together each 20 ms
 * beside a download, it has .954 of the link if asked each 5 ms, and .904 each 10 ms
 * (test_a_dry_modems_time_is_not_the_links).
 */
#define UP_ASK_US	(UP_WAIT_US / 2)

/* Older answers and words tell nothing any more. */
#define UP_FORGET_US	(64 << 20)

/* Queries of one flow that wait for an answer at a time */
#define UP_WAITING	32

/* A modem that runs dry waits for a grant, UP_WAIT_US, before anything leaves: with 0, 1/4, 1/2
 * and 3/4 of that beyond the target, the gate has .94, .97, .99 and 1.0 of QCUT-D's upload on
 * generated LTE, 7 and 2 ms below, 1 and 6 ms above its p95 RTT
 * (test_what_a_told_gate_keeps_for_a_grant).
 */
#define UP_TOLD_US	(UP_WAIT_US / 2)

/* So often a modem that is never empty is emptied, to learn how much it takes: some 30 ms. */
#define UP_LEARN_US	(8 << 20)

/* What lasts longer is an outage. */
#define UP_SILENCE_US	(80 * UP_TICK_US)

/* 16 us for each byte that came: half of a Mb/s, as EVDO has it */
#define UP_BACK_SHIFT	4

/* What the way back may add by itself: other users, a handover's gap */
#define UP_JITTER_US	(4 << 14)

static bool before_us(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/**
 * drwa_up_reset() - forget everything
 * @u:		queue
 * @target_us:	what may wait in it, DRWA_UP_TARGET_MIN_US to _MAX_US
 * @now_us:	local clock, us
 */
void drwa_up_reset(struct drwa_up *u, u32 target_us, u32 now_us)
{
	int i;

	*u = (struct drwa_up){
		.target_us = target_us,
		.more_us = target_us,
		.empty_us = now_us,
		.answered_us = now_us,
		.drained_us = now_us,
		.last_us = now_us,
		.asked_us = { now_us - UP_OLD_US, now_us - UP_OLD_US },
	};
	for (i = 0; i < DRWA_UP_MARKS; i++)
		u->mark[i].flow = DRWA_UP_FLOWS;
}

/* What the link takes for that; its rate has to be known. */
static u32 up_time(const struct drwa_up *u, u32 bytes)
{
	return min_t(u64, U32_MAX, div_u64((u64)bytes << UP_RATE_SHIFT, u->rate));
}

static u32 up_bytes(u64 rate, u32 us)
{
	return min_t(u64, rate * us >> UP_RATE_SHIFT, U32_MAX / 8);
}

/**
 * drwa_up_release() - something is handed to the modem
 * @u:		queue
 * @bytes:	how much
 */
void drwa_up_release(struct drwa_up *u, u32 bytes)
{
	u->before = u->released;
	u->released += bytes;
}

/**
 * drwa_up_release_other() - another queue handed something to the same of the modem's
 * @u:		queue
 * @bytes:	how much
 *
 * Words are of both; answers are not, so that what is not told of would wait for ever.
 */
void drwa_up_release_other(struct drwa_up *u, u32 bytes)
{
	if (u->told)
		u->released += bytes;
}

/**
 * drwa_up_heard() - something came from the network
 * @u:		queue
 * @bytes:	how much
 */
void drwa_up_heard(struct drwa_up *u, u32 bytes)
{
	u->came += bytes;
}

static void up_drop_oldest(struct drwa_up *u, struct drwa_up_flow *f)
{
	struct drwa_up_mark *m = &u->mark[f->head];

	f->head = m->next;
	f->waiting--;
	m->flow = DRWA_UP_FLOWS;
}

/* The flow of this name, or the place that it may have: free, or of the flow that was silent
 * for longest.
 */
static struct drwa_up_flow *up_place(struct drwa_up *u, u32 key)
{
	struct drwa_up_flow *f = &u->flow[key % (DRWA_UP_FLOWS / DRWA_UP_WAYS) * DRWA_UP_WAYS];
	struct drwa_up_flow *place = f, *end = f + DRWA_UP_WAYS;

	for (; f < end; f++) {
		if (f->used && f->key == key)
			return f;
		if (place->used && (!f->used || before_us(f->used_us, place->used_us)))
			place = f;
	}
	return place;
}

static bool up_is(const struct drwa_up_flow *f, u32 key)
{
	return f->used && f->key == key;
}

/**
 * drwa_up_mark() - what has just been released will be answered
 * @u:		queue
 * @key:	name of the flow
 * @kind:	how it answers
 * @end:	what the answer will say: a sequence number, or a name
 * @now_us:	local clock, us
 */
void drwa_up_mark(struct drwa_up *u, u32 key, enum drwa_up_kind kind, u32 end,
		  u32 now_us)
{
	struct drwa_up_mark *m = &u->mark[(u->next_mark - 1) % DRWA_UP_MARKS];
	struct drwa_up_flow *f = up_place(u, key);
	u16 place;

	if (!up_is(f, key) || kind == DRWA_UP_FIRST) {
		/* Each of many would take it before the one there is answered. */
		if (!up_is(f, key) && f->used && now_us - f->used_us < UP_OPEN_US)
			return;
		while (f->used && f->head != UP_NONE)
			up_drop_oldest(u, f);
		*f = (struct drwa_up_flow){
			.key = key, .kind = kind, .end = end - 1, .used = 1,
			.head = UP_NONE,
		};
	}
	f->used_us = now_us;
	/* The answer to a second copy may be to the first (Karn); what has the same bytes each time
	 * has no name.
	 */
	if (kind == DRWA_UP_EXACT ? f->end == end : !before_us(f->end, end))
		return;
	f->end = end;
	if (kind != DRWA_UP_EXACT || f->answered) {
		u->asked[!f->answered] = u->released;
		u->asked_us[!f->answered] = now_us;
	}
	/* What crosses within a tick needs one mark, and there are few. */
	if (kind != DRWA_UP_EXACT && m->flow == f - u->flow && now_us - m->us < UP_TICK_US &&
	    u->before - m->before < max(u->mean >> UP_TICK_SHIFT,
					(u->released - u->crossed) / 64)) {
		m->end = end;
		m->released = u->released;
		return;
	}
	place = u->next_mark++ % DRWA_UP_MARKS;
	m = &u->mark[place];
	/* All marks are in the order of their times: it is its flow's oldest. */
	if (m->flow != DRWA_UP_FLOWS)
		up_drop_oldest(u, &u->flow[m->flow]);
	/* Whose answers are not understood is looked through for each of them. */
	if (kind == DRWA_UP_EXACT && f->waiting == UP_WAITING)
		up_drop_oldest(u, f);
	f->waiting++;
	*m = (struct drwa_up_mark){
		.end = end, .before = u->before, .released = u->released,
		.came = u->came, .us = now_us, .next = UP_NONE, .flow = f - u->flow,
	};
	if (f->head == UP_NONE)
		f->head = place;
	else
		u->mark[f->tail].next = place;
	f->tail = place;
}

/* Takes the marks that are answered from a flow; the newest of them is @last. */
static bool up_pop(struct drwa_up *u, struct drwa_up_flow *f, u32 end,
		   struct drwa_up_mark *last)
{
	bool exact = f->kind == DRWA_UP_EXACT;
	u16 i, newest = UP_NONE;

	for (i = f->head; i != UP_NONE; i = u->mark[i].next) {
		if (exact ? u->mark[i].end == end : !before_us(end, u->mark[i].end))
			newest = i;
		else if (!exact)
			break;
	}
	if (newest == UP_NONE)
		return false;
	*last = u->mark[newest];
	do {
		i = f->head;
		up_drop_oldest(u, f);
	} while (i != newest);
	return true;
}

/* One packet may be ahead on a link without queue. */
static u32 up_noise(const struct drwa_up *u)
{
	/* Neither a rate that falls nor a few queries tell what a packet takes. */
	u32 rate = max(u->mean, u->rate), packet_us = UP_OPEN_US;

	if (rate > UP_SEGMENT)
		packet_us = (UP_SEGMENT << UP_RATE_SHIFT) / rate;
	return 2 * UP_TICK_US + packet_us;
}

/* Has more come since this mark than the answers to an upload, or to a few queries, are? */
static bool up_beside_download(const struct drwa_up *u, const struct drwa_up_mark *m)
{
	return u->came - m->came > max_t(u32, (u->released - m->before) / 16, UP_FLOOR);
}

/* Has a clock just told of the queue on the way up? */
static bool up_told_up(const struct drwa_up *u, u32 rtt_us, u32 now_us)
{
	return u->clock && now_us - u->clock_us < (1 << UP_TRICKLE_SHIFT) + rtt_us;
}

/**
 * up_late() - how much later than at best a mark reached the far end
 * @u:		queue
 * @f:		flow
 * @m:		mark
 * @clock_us:	the far end's clock, NULL: unknown
 * @now_us:	local clock
 * @least_us:	gets the least that it can have been, whatever the far end says
 *
 * What its answer may have waited on the way back is little more than what came
 * meanwhile is on a slow downlink. What others saw within the last second is ahead of
 * the first mark of a flow, too.
 */
static u32 up_late(struct drwa_up *u, struct drwa_up_flow *f,
		   const struct drwa_up_mark *m, const u32 *clock_us, u32 now_us,
		   u32 *least_us)
{
	u32 rtt = now_us - m->us, known = 0, late, back_us, there_us, stray_us, x;

	if (u->answered && now_us - u->answered_us < UP_OPEN_US)
		known = u->delay_us;
	f->bounded = 0;
	if (!f->answered) {
		f->answered = 1;
		f->seen_us = now_us;
		f->shared = 1;
		f->rtt_min_us = rtt > known ? rtt - known : 1;
	}
	f->rtt_min_us = min(f->rtt_min_us, rtt);
	late = rtt - f->rtt_min_us;
	back_us = min(u->came - m->came, late >> UP_BACK_SHIFT) << UP_BACK_SHIFT;
	back_us += UP_JITTER_US;
	*least_us = late > back_us ? late - back_us : 0;
	/* Without a download nothing waits on the way back. Who claims less does not tell. */
	there_us = up_beside_download(u, m) ? *least_us : late;
	if (!clock_us || f->aside) {
		/* Somebody with a clock has just told how much of it is the uplink's. */
		if (up_told_up(u, rtt, now_us)) {
			f->bounded = u->clock_late_us + up_noise(u) < there_us;
			late = max(min(late, u->clock_late_us), *least_us);
		}
		return late;
	}
	x = *clock_us - m->us;
	/* A clock that falls behind by two seconds, or leaps ahead so far, is none that ticks once
	 * a millisecond, unless a queue of so long went. No queue is longer than the RTT.
	 */
	stray_us = x - f->base_us;
	if (!f->clock || stray_us > rtt + 2 * UP_TICK_US) {
		if (f->clock)
			f->strayed_us += min(min(stray_us, -stray_us), UP_OPEN_US);
		f->clock = 1;
		f->base_us = x - *least_us;
	}
	f->aside = f->strayed_us >= 2 * UP_OPEN_US;
	f->bounded = x - f->base_us + up_noise(u) < there_us;
	/* Both ways together are no later than our own clock says, if no download's queue
	 * was on the way back when they were at their best.
	 */
	late += 2 * UP_TICK_US;
	if (up_beside_download(u, m))
		late = U32_MAX;
	late = min(max(x - f->base_us, *least_us), late);
	u->clock = 1;
	u->clock_us = now_us;
	u->clock_late_us = late;
	*least_us = late;
	return late;
}

/* A radio was silent for so long, but for the time that this takes. */
static void up_silent(struct drwa_up *u, u32 us, u32 bytes)
{
	if ((s32)us <= (s32)u->longest_us || !u->rate)
		return;
	us -= min(us, up_time(u, bytes));
	u->longest_us = max(u->longest_us, us);
}

static u32 up_per_time(u32 bytes, u32 us)
{
	return min_t(u64, UP_RATE_MAX, div_u64((u64)bytes << UP_RATE_SHIFT, us));
}

/* The last point before @span_us, in half of which the link had something to do, if @busy */
static const struct drwa_up_point *up_point(const struct drwa_up *u, u32 span_us, bool busy)
{
	u32 all = min_t(u32, u->points, DRWA_UP_POINTS), low = 1, high = all + 1, i;
	const struct drwa_up_point *p;

	while (low < high) {
		i = (low + high) / 2;
		p = &u->point[(u->points - i) % DRWA_UP_POINTS];
		if (u->crossed_us - p->us >= span_us &&
		    (!busy || u->busy_us - p->busy_us >= span_us / 2))
			high = i;
		else
			low = i + 1;
	}
	return low > all ? NULL : &u->point[(u->points - low) % DRWA_UP_POINTS];
}

/* What left in the last @span_us, per time that the link had something to do, if it was
 * full; no link carries less than what left, and START doubles that. 0: not known
 */
static u32 up_rate_over(const struct drwa_up *u, u32 span_us, bool full)
{
	const struct drwa_up_point *p = up_point(u, span_us, false);
	u32 rate;

	if (!p)
		return 0;
	rate = up_per_time(u->crossed - p->crossed, u->crossed_us - p->us);
	p = full && u->phase != DRWA_UP_START ? up_point(u, span_us, true) : NULL;
	return p ? max(rate, up_per_time(u->busy - p->busy, u->busy_us - p->busy_us)) : rate;
}

/* When all that was handed over before this mark had left, and it was not there yet, the
 * link had nothing to do, nor until its grant came. What took longer than that says
 * against the link, as in an outage. Who claims that nothing waited does not tell.
 */
static void up_busy(struct drwa_up *u, const struct drwa_up_flow *f,
		    const struct drwa_up_mark *m, u32 at_us)
{
	s32 ahead = m->before - u->crossed;
	/* A clock's tick makes what left seem to have left that much earlier. */
	u32 dry_us = u->crossed_us + UP_TICK_US, granted_us;

	if (!u->answered)
		return;
	if (ahead > 0 && u->rate)
		dry_us += min(up_time(u, ahead), UP_OPEN_US);
	if (f->bounded || !before_us(dry_us, m->us)) {
		u->busy_us += at_us - u->crossed_us;
		u->busy += m->released - u->crossed;
		up_silent(u, at_us - u->crossed_us, m->released - u->crossed);
		return;
	}
	granted_us = m->us + UP_WAIT_US + up_noise(u);
	if (before_us(granted_us, at_us))
		u->busy_us += at_us - granted_us;
}

/* Measures from now on; what is known holds until then. */
static void up_rate_anew(struct drwa_up *u, u32 at_us)
{
	u->points = 0;
	u->last_us = at_us;
}

static u32 up_span(const struct drwa_up *u)
{
	return max_t(u32, UP_SPAN_US, u->age_us);
}

static void up_rates(struct drwa_up *u, bool full)
{
	u32 span_us = up_span(u);
	u32 n = u->points, rate, change;

	if (full)
		u->more_us = u->target_us;
	if (n && u->crossed_us - u->point[(n - 1) % DRWA_UP_POINTS].us < span_us / 32)
		return;
	if (u->crossed_us - u->silent_from_us >= span_us) {
		u->silence_us += (s32)(min(u->longest_us, UP_SILENCE_US) - u->silence_us) / 8;
		u->longest_us = 0;
		u->silent_from_us = u->crossed_us;
	}
	rate = up_rate_over(u, span_us, full);
	if (rate && (full || rate > u->rate))
		u->rate = rate;
	if (u->crossed_us - u->last_us >= u->age_us) {
		rate = up_rate_over(u, u->age_us, full);
		if (rate && (full || rate > u->last)) {
			change = rate > u->last ? rate - u->last : u->last - rate;
			/* A packet more or less is no change. */
			change -= min_t(u32, change, (UP_SEGMENT << UP_RATE_SHIFT) /
						     u->age_us);
			u->dev += (s32)(change - u->dev) >> UP_DEV_SHIFT;
			u->dev = min(u->dev, 2 * rate);
			u->mean += (s32)(rate - u->mean) >> (u->last ? UP_DEV_SHIFT : 0);
			u->last = rate;
		}
		if (!full && u->refused)
			u->more_us = min(u->more_us + u->target_us,
					 max(u->target_us, u->age_us));
		u->refused = 0;
		u->last_us = u->crossed_us;
	}
	u->point[n % DRWA_UP_POINTS] = (struct drwa_up_point){
		.us = u->crossed_us, .crossed = u->crossed, .busy_us = u->busy_us,
		.busy = u->busy,
	};
	u->points++;
}

static void up_drain_round(struct drwa_up *u, u32 queue_us)
{
	struct drwa_up_flow *f;

	for (f = u->flow; f < u->flow + DRWA_UP_FLOWS; f++)
		f->least_us = U32_MAX;
	u->drain_q_us = queue_us;
	u->drain_late_us = U32_MAX;
	u->drain_released = u->released;
	u->drain_emptied = 0;
}

/* How much longer the path became: one packet may be ahead, and one wait for a grant. */
static u32 up_longer(u32 late_us, u32 noise_us)
{
	return late_us > 2 * noise_us ? late_us : 0;
}

/* The marks of a whole age are answered that were released when no queue should be
 * left.
 */
static void up_drained(struct drwa_up *u, u32 now_us)
{
	u32 noise_us = up_noise(u), late_us = u->drain_late_us, left_us;
	u32 changed_us = max(late_us, u->drain_q_us) - min(late_us, u->drain_q_us);
	struct drwa_up_flow *f;

	/* A path stays as it is; a queue goes, after OPEN though it was taken for the path,
	 * or grows with a radio that fades. What waits for a grant is none.
	 */
	if (late_us > u->target_us / 2 + noise_us &&
	    (u->deep < UP_QUEUE_SURE - 1 || changed_us > UP_TICK_US + u->drain_q_us / 8)) {
		u->deep = min(u->deep + 1, UP_DEEPEST);
		up_rate_anew(u, u->crossed_us);
		up_drain_round(u, late_us);
		return;
	}
	late_us = up_longer(late_us, noise_us);
	u->jumps += late_us > 0;
	/* A flow that began in a queue may know too short a path, and no other one does. */
	for (f = u->flow; f < u->flow + DRWA_UP_FLOWS; f++) {
		left_us = f->least_us < U32_MAX ? up_longer(f->least_us, noise_us) : late_us;
		f->seen_us = now_us;
		f->base_us += left_us;
		f->rtt_min_us += left_us;
	}
	u->phase = DRWA_UP_HOLD;
	u->drained_us = now_us;
}

/* A new flow may never have met an empty queue. What crosses is to be known: in a DRAIN
 * nobody would measure it.
 */
static bool up_drain_due(const struct drwa_up *u, const struct drwa_up_flow *f,
			 u32 now_us)
{
	if (u->phase == DRWA_UP_OPEN || now_us - u->drained_us < UP_OPEN_US ||
	    u->phase == DRWA_UP_START || !up_rate_over(u, up_span(u), false))
		return false;
	return now_us - f->seen_us > (f->shared ? UP_OPEN_US : UP_OLD_US);
}

/* All that OPEN left has gone, which the flows may have taken for their paths. */
static void up_start_anew(struct drwa_up *u)
{
	struct drwa_up_flow *f;

	for (f = u->flow; f < u->flow + DRWA_UP_FLOWS; f++) {
		f->answered = 0;
		f->clock = 0;
	}
	u->blind = 0;
	u->delay_us = 0;
	u->phase = DRWA_UP_START;
	u->empty_us = u->answered_us;
	u->drained_us = u->answered_us;
	up_rate_anew(u, u->crossed_us);
}

/* Is somebody asked who has answered before, or TCP's first answer awaited, if @first? Then
 * the radio is silent, not he. Whether one of EXACT's comes, nobody knows.
 */
static bool up_asked(const struct drwa_up *u, bool first, u32 now_us)
{
	int i;

	for (i = 0; i <= first; i++)
		if (before_us(u->crossed, u->asked[i]) && now_us - u->asked_us[i] < UP_OLD_US)
			return true;
	return false;
}

/* This has left, as it was answered, and before the modem told the last time: no answer comes
 * within a frame. So it takes less than it did.
 */
static void up_told_less(struct drwa_up *u, const struct drwa_up_mark *m, u32 now_us)
{
	if (now_us - u->answered_us >= UP_WAIT_US || !before_us(u->crossed, m->released))
		return;
	u->full -= min(u->full, m->released - u->crossed);
	u->crossed = m->released;
}

/* All that was handed over with this mark and before has left. */
static void up_news(struct drwa_up *u, struct drwa_up_flow *f, const struct drwa_up_mark *m,
		    const u32 *clock_us, u32 now_us)
{
	u32 least_us, late_us = up_late(u, f, m, clock_us, now_us, &least_us);
	bool full = late_us > up_noise(u);
	u32 at_us = m->us + late_us;

	if (!full && !f->shared)
		f->seen_us = now_us;
	if (u->phase == DRWA_UP_DRAIN && u->drain_emptied &&
	    !before_us(m->us, u->drain_from_us)) {
		f->shared = 0;
		f->least_us = min(f->least_us, late_us);
		u->drain_late_us = min(u->drain_late_us, late_us);
		if (!before_us(m->us, u->drain_from_us + min(u->age_us, 2 * f->rtt_min_us)))
			up_drained(u, now_us);
	}
	if (!before_us(u->crossed, m->released))
		return;

	/* It is a queue: nothing overtakes. */
	if (u->answered && now_us - u->answered_us < UP_FORGET_US &&
	    before_us(at_us, u->crossed_us))
		at_us = u->crossed_us;
	u->gap_us += (s32)(min_t(u32, now_us - u->answered_us, 2 * UP_SPAN_US) -
			   u->gap_us) >> (u->answered ? 3 : 0);
	/* What left in a silence says nothing of what leaves after it; a window that is small
	 * for old news makes pauses by itself.
	 */
	if (now_us - u->answered_us > (1 << UP_TRICKLE_SHIFT) + u->age_us)
		up_rate_anew(u, at_us);
	up_busy(u, f, m, at_us);
	u->crossed = m->released;
	u->crossed_us = at_us;
	u->answered_us = now_us;
	u->age_us = max_t(s32, now_us - m->us - late_us, UP_TICK_US);
	u->back_us = 0;
	u->beside = up_beside_download(u, m);
	if (u->beside && u->age_us > f->rtt_min_us)
		u->back_us = u->age_us - f->rtt_min_us;
	u->delay_us = late_us;
	if (!full)
		u->empty_us = m->us;
	u->rtt_min_us = f->rtt_min_us;
	u->answered = 1;
	u->closed = 0;
	u->answers++;
	if (u->blind) {
		/* What was handed over behind the last who is asked, nobody tells of. */
		if (!before_us(u->crossed, u->drain_released) || !up_asked(u, true, now_us))
			up_start_anew(u);
		return;
	}
	if (u->phase == DRWA_UP_DRAIN) {
		if (!u->drain_emptied && !before_us(u->crossed, u->drain_released)) {
			u->drain_emptied = 1;
			u->drain_from_us = u->crossed_us;
		}
		/* Who withheld more and saw less has a queue, which leaves as fast as it can. */
		if (u->deep >= UP_QUEUE_SURE)
			up_rates(u, full);
		return;
	}
	/* Until then DRAIN gave its time the rate, not the link. */
	if (now_us - u->drained_us < UP_FORGET_US && before_us(m->us, u->drained_us))
		up_rate_anew(u, at_us);
	else
		up_rates(u, full);
	/* An answer now and then, such as a name server's, tells too little, unless a queue
	 * has told the link's rate before, and more is to come.
	 */
	if (u->phase == DRWA_UP_OPEN && up_rate_over(u, up_span(u), false)) {
		u->phase = DRWA_UP_DRAIN;
		u->blind = 1;
		u->deep = UP_DEEPEST;
		up_drain_round(u, late_us);
		return;
	}
	/* While no clock tells, a download's queue would end START at next to nothing. */
	if (u->beside && !up_told_up(u, now_us - m->us, now_us))
		late_us = least_us;
	if (u->phase == DRWA_UP_START && late_us > u->target_us / 2 + up_noise(u) &&
	    m->us - u->empty_us > u->age_us / 2)
		u->phase = DRWA_UP_HOLD;
	if (up_drain_due(u, f, now_us)) {
		u->phase = DRWA_UP_DRAIN;
		u->drains++;
		u->deep = 0;
		up_drain_round(u, late_us);
	}
}

/**
 * drwa_up_answer() - something was answered
 * @u:		queue
 * @key:	name of the flow
 * @end:	what the answer says
 * @clock_us:	the far end's clock when it answered, us, any offset; NULL: unknown
 * @now_us:	local clock, us
 *
 * Return: whether so much has left since there was no room that to ask again is worth it.
 */
bool drwa_up_answer(struct drwa_up *u, u32 key, u32 end, const u32 *clock_us,
		    u32 now_us)
{
	struct drwa_up_flow *f = up_place(u, key);
	struct drwa_up_mark last;

	if (!up_is(f, key) || !up_pop(u, f, end, &last) || now_us - last.us > UP_FORGET_US)
		return false;
	if (u->told)
		up_told_less(u, &last, now_us);
	else
		up_news(u, f, &last, clock_us, now_us);
	/* To ask costs more than to hear, and half of what may wait keeps the modem busy. */
	return u->crossed - u->refused_crossed >= up_bytes(u->rate, u->target_us / 2);
}

/* What may be released and not yet known to have crossed, but for what asks whether it has */
static u32 up_wants(const struct drwa_up *u, u32 now_us)
{
	u32 silent_us = min(now_us - u->answered_us, UP_OPEN_US);
	u32 usual_us = u->gap_us + u->target_us, age_us, wnd, silence, dev;
	u8 i;

	/* News that are later than that say that nothing leaves, if any are to come. */
	if (silent_us > usual_us && up_asked(u, true, now_us))
		silent_us = usual_us;
	/* What DRAIN withheld beside a download's queue would wait if it came at once. */
	age_us = u->rtt_min_us + (u->back_us ? now_us - u->drained_us : u->rtt_min_us);
	age_us = u->told ? u->age_us : min(u->age_us, age_us) + silent_us;
	switch (u->phase) {
	case DRWA_UP_DRAIN:
		if (!u->deep)
			age_us -= min(age_us / 4, up_noise(u));
		for (i = 0; i < u->deep; i++)
			age_us -= age_us / 4;
		wnd = up_bytes(u->rate, min(age_us, u->rtt_min_us));
		break;
	case DRWA_UP_START:
		wnd = max_t(u32, 2 * up_bytes(u->rate, age_us + u->target_us), UP_FIRST);
		break;
	default:
		wnd = up_bytes(u->rate, age_us + u->more_us);
		silence = up_bytes(u->rate, u->silence_us - min(u->silence_us, u->more_us));
		dev = up_bytes(2 * (u64)u->dev, min(age_us, u->rtt_min_us));
		/* What left that long ago may be more than leaves now. */
		if (u->beside)
			wnd -= up_bytes(min(u->dev, u->rate), min(age_us, u->back_us));
		else
			wnd += u->told ? silence + dev : max(silence, dev);
	}
	/* Which packets have left is told, not how much of the one that is leaving. */
	if (u->told)
		wnd += up_bytes(u->rate, UP_TOLD_US) + UP_SEGMENT;
	return max_t(u32, wnd, u->phase == DRWA_UP_DRAIN ? UP_SEGMENT : UP_FLOOR);
}

static u32 up_window(const struct drwa_up *u, u32 now_us)
{
	u32 wnd = up_wants(u, now_us), late_us, periods;

	/* Of a silence the modem tells itself. */
	if (!u->closed || u->told)
		return wnd;
	late_us = now_us - u->closed_us;
	periods = late_us >> UP_TRICKLE_SHIFT;
	wnd = max(wnd, u->closed_released - u->crossed);
	/* TCP's first answer may wait for a 3G radio, which takes two seconds to begin. */
	if (!u->answered && late_us > UP_OPEN_US)
		wnd <<= 1 + min_t(u32, (late_us - UP_OPEN_US) >> UP_TRICKLE_SHIFT, 7);
	return wnd + UP_SEGMENT * (fls(min_t(u32, periods, 7)) + periods / 8);
}

/* All that the modem takes is what it takes when it is empty: when it has been handed nothing
 * until that grows no more, by two packets' time at the link's rate. Who is wrong, for a radio
 * faded just then, finds more later, and takes that. One that takes nothing is full.
 */
static void up_learn(struct drwa_up *u, u32 grant, u32 at_us)
{
	u32 wait_us = UP_SPAN_US;

	if (u->rate)
		wait_us = clamp_t(u32, max(up_time(u, 2 * UP_SEGMENT), 2 * u->silence_us),
				  UP_WAIT_US, UP_SPAN_US);
	if (!u->learning) {
		u->learning = 1;
	} else if (at_us - u->learn_us < wait_us) {
		return;
	} else if (grant && grant <= u->learn_grant + UP_SEGMENT) {
		u->full = grant;
		u->learning = 0;
		u->empty_us = at_us;
	}
	u->learn_us = at_us;
	u->learn_grant = grant;
}

/**
 * drwa_up_told() - the modem's driver knows how much more fits there
 * @u:		queue
 * @grant:	bytes, of what has not been handed over by now
 * @late_us:	how long ago that was, us
 * @now_us:	local clock, us
 *
 * From then on it alone tells what has crossed, but for what is answered and it claims to have
 * still, and until it says nothing for 2^20 us while something waits.
 */
void drwa_up_told(struct drwa_up *u, u32 grant, u32 late_us, u32 now_us)
{
	u32 at_us = now_us - late_us, held, crossed, us;
	bool empty;

	if (!u->told) {
		drwa_up_reset(u, u->target_us, now_us);
		u->told = 1;
		u->answered = 1;
		u->learning = 1;
		u->learn_us = at_us;
		u->learn_grant = grant;
	} else if (u->learning || at_us - u->empty_us > UP_LEARN_US) {
		up_learn(u, grant, at_us);
	}
	u->full = max(u->full, grant);
	held = u->full - grant;
	crossed = u->released - held;
	empty = held <= UP_SEGMENT;
	if (before_us(crossed, u->crossed)) {
		up_rate_anew(u, at_us);
	} else if (!u->empty && (crossed != u->crossed || empty)) {
		/* It became empty some time since the word before. */
		us = empty ? (now_us - u->answered_us) / 2 : 0;
		u->busy_us += at_us - u->crossed_us - us;
		u->busy += crossed - u->crossed;
		/* Until the word before nothing did, or it was not waited for. */
		up_silent(u, u->answered_us - late_us - u->crossed_us, UP_SEGMENT);
	}
	if (u->closed)
		u->gap_us += (s32)(min_t(u32, now_us - u->answered_us, UP_SPAN_US) -
				   u->gap_us) >> 3;
	u->empty = empty;
	if (crossed != u->crossed || empty)
		u->crossed_us = at_us;
	u->crossed = crossed;
	u->answered_us = now_us;
	u->answers++;
	u->age_us = late_us + max_t(u32, u->gap_us, UP_TICK_US);
	u->rtt_min_us = u->age_us;
	u->delay_us = u->rate ? min(up_time(u, held), UP_FORGET_US) : 0;
	if (empty)
		u->empty_us = at_us;
	up_rates(u, !empty);
	if (u->phase == DRWA_UP_START && u->rate && at_us - u->empty_us > u->age_us &&
	    held > up_bytes(u->rate, u->target_us / 2) + UP_FLOOR)
		u->phase = DRWA_UP_HOLD;
	if (held < up_wants(u, now_us))
		u->closed = 0;
}

static bool up_learns(const struct drwa_up *u, u32 now_us)
{
	return u->learning && now_us - u->learn_us < UP_SPAN_US + u->age_us;
}

static u32 up_open(struct drwa_up *u)
{
	u->blind = 0;
	u->phase = DRWA_UP_OPEN;
	u->opened++;
	return U32_MAX;
}

/**
 * drwa_up_room() - how much more may be handed to the modem
 * @u:		queue
 * @now_us:	local clock, us
 *
 * Return: bytes; a packet may be larger. Where there is none, ask again when something is
 * answered, or after UP_ASK_US, for the window grows with time as long as news may be late.
 */
u32 drwa_up_room(struct drwa_up *u, u32 now_us)
{
	u32 out, wnd, closed_us;

	if (u->told && u->closed && now_us - u->closed_us > UP_OPEN_US &&
	    now_us - u->answered_us > UP_OPEN_US)
		drwa_up_reset(u, u->target_us, now_us);
	out = u->released - u->crossed;
	if (u->phase == DRWA_UP_OPEN)
		return U32_MAX;
	closed_us = u->closed ? now_us - u->closed_us : 0;
	if (!u->told && closed_us > UP_OPEN_US &&
	    !up_asked(u, !u->answered && closed_us < 2 * UP_OPEN_US, now_us))
		return up_open(u);
	wnd = up_window(u, now_us);
	if (out < wnd && !up_learns(u, now_us))
		return wnd - out;
	/* Nothing is known yet, and nobody is there to tell. */
	if (!u->told && (u->phase == DRWA_UP_START || u->blind) && !up_asked(u, true, now_us))
		return up_open(u);
	u->refused = 1;
	u->refused_crossed = u->crossed;
	if (!u->closed) {
		u->closed = 1;
		u->closed_us = now_us;
		u->closed_released = u->released;
	}
	return 0;
}

/**
 * drwa_up_report() - what is known of the queue
 * @u:		queue
 * @now_us:	local clock, us
 * @st:		gets it, but for @st->shorts
 */
void drwa_up_report(const struct drwa_up *u, u32 now_us, struct tc_drwa_up_xstats *st)
{
	st->rate = (u64)u->rate * 1000000 >> UP_RATE_SHIFT;
	st->window_bytes = up_window(u, now_us);
	st->in_flight_bytes = u->released - u->crossed;
	st->delay_us = u->delay_us;
	st->age_us = u->age_us;
	st->phase = u->phase;
	st->marks = u->next_mark;
	st->answers = u->answers;
	st->drains = u->drains;
	st->jumps = u->jumps;
	st->opened = u->opened;
	st->told = u->told;
}
