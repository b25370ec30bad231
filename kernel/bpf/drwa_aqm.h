/* SPDX-License-Identifier: GPL-2.0-only */
/* CoDel (RFC 8289) for flows without a receive window, at the far end of their queue
 *
 * A phone cannot offer QUIC a window, but it can lose a packet of it: the sender takes
 * that for the base station's loss, and slows down. The packets that are lost have
 * crossed the radio, so they are few: CoDel's law drops faster only for as long as the
 * queue stays above the target.
 *
 * CoDel reads the delay of each packet as it leaves the queue. Here it comes from what
 * crossed the same queue with a clock: TCP's timestamps, or an echo (drwa.h).
 *
 * Judged is a flow that brings more than 250 kb/s in the mean of 4 s: a call, a game or
 * DNS never is, even if an outage's worth of it comes at once. What may be a tunnel is
 * not judged: it has flows of others in it, and a loss there is anybody's.
 *
 * A sender that does not react to loss (BBR) only loses by it. If in three windows of four
 * seconds in a row it brought more than one that reacts could with so many drops, it is
 * left alone from there on.
 *
 * If the queue does not fall in four trials in a row, of two queues or half a second each,
 * and the flow brought less, the queue was no queue: the path became longer.
 */
#ifndef _DRWA_AQM_H
#define _DRWA_AQM_H

#include "drwa.h"

/* Beside governed TCP, whose queue is 2 ms to a quarter of an RTT, 60 ms: less costs a
 * sender with CUBIC its share of a link whose rate varies. Alone, the queue is all that
 * keeps such a link full between two drops, so twice that. The interval is two targets
 * in both, as an RTT is then the path's and a target's.
 */
#define DRWA_AQM_TARGET_US	61440u

/* 250 kb/s in bytes per 2^20 us, and four seconds of it */
#define DRWA_AQM_RATE		32768u
#define DRWA_AQM_BURST		(4 * DRWA_AQM_RATE)

/* RFC 8289, 4.2: one that comes back so soon goes on where it was. */
#define DRWA_AQM_AGAIN		16

/* No more than one packet in 16 is dropped. That leaves a sender that reacts five segments in an
 * RTT (1.22 times the square root), which is 0.5 Mb/s with a path of 50 ms and the target. A
 * call in a queue that is not its own loses no more, either.
 */
#define DRWA_AQM_PART		16

/* A queue may rise for as long as a sender's start goes on, one trial, and where the link
 * became slower.
 */
#define DRWA_AQM_TRIALS		4

/* A start has one loud window, and where the link then becomes slower, another. Of fewer
 * than 16 drops, chance has more than a quarter.
 */
#define DRWA_AQM_WINDOW_US	(4 * DRWA_SECOND_US)
#define DRWA_AQM_WINDOWS	3
#define DRWA_AQM_WINDOW_DROPS	16

/* 1.5 segments of 1,200 bytes, times the square of 4: CUBIC has more than Reno, and an RTT
 * may be four times the queue. Where one in 32 is lost, it has no more than twice as much in
 * RTTs up to a second (RFC 9438, 5.1), so the square of 2 is enough.
 */
#define DRWA_AQM_SEGMENT	1200
#define DRWA_AQM_FRIENDLY	(DRWA_AQM_SEGMENT * 3 / 2 * 2 * 2)
#define DRWA_AQM_MUCH		32

/* What a tunnel's handshake is, at most; data of QUIC that begins is padded to 1200. */
#define DRWA_TUNNEL_HELLO	256

/* As codel_Newton_step() in include/net/codel_impl.h: 1/sqrt(count), 16 bits of fraction */
static u32 aqm_inverse_sqrt(u32 last, u32 count)
{
	u32 x = last << 16;
	u64 square = (u64)x * x >> 32;
	u64 value = (3ULL << 32) - count * square;

	value >>= 2;
	return (value * x >> 31) >> 16;
}

static u32 aqm_next(struct drwa_udp *u, u32 from_us, u32 interval_us)
{
	u->inverse_sqrt = aqm_inverse_sqrt(u->inverse_sqrt, u->count);
	return from_us + ((u64)interval_us * u->inverse_sqrt >> 16);
}

/* Is it less than @old_us ago? Another CPU's clock may have been ahead, and what is due is. */
static bool is_fresh(u32 now_us, u32 stamp_us, u32 old_us)
{
	return now_us - stamp_us + DRWA_SECOND_US < old_us + DRWA_SECOND_US;
}

static void aqm_new_trial(struct drwa_udp *u, u32 now_us, u32 q_us)
{
	u->trial_us = now_us | 1;
	u->trial_q_us = q_us;
	u->least_q_us = q_us;
	u->bytes = 0;
	u->drops = 0;
}

/* Should a packet be dropped, with a queue of @q_us?
 *
 * A row ends when the queue is empty (RFC 8289, 5.6): so the flow's was if, after a drop was due,
 * nothing was judged for as long as this packet waited.
 */
static bool aqm_codel(struct drwa_udp *u, u32 now_us, u32 q_us, u32 target_us)
{
	u32 interval_us = 2 * target_us, more;

	if (u->since < DRWA_AQM_PART)
		u->since++;
	if (q_us < target_us) {
		u->above_us = 0;
		u->dropping = 0;
		return false;
	}
	if (u->above_us && !is_fresh(now_us, u->dropping ? u->next_us : u->above_us,
				     max(interval_us, q_us) + 1)) {
		u->above_us = 0;
		u->dropping = 0;
	}
	if (!u->above_us)
		u->above_us = (now_us + interval_us) | 1;
	if ((s32)(now_us - u->above_us) < 0)
		return false;
	if (!u->dropping) {
		u->dropping = 1;
		u->last_q_us = 0;
		u->trials = 0;
		aqm_new_trial(u, now_us, q_us);
		more = u->count - u->last_count;
		if ((s32)more <= 1 || now_us - u->next_us >= DRWA_AQM_AGAIN * interval_us) {
			more = 1;
			u->inverse_sqrt = U16_MAX;
		}
		u->count = more - 1;
		u->last_count = more;
		u->next_us = now_us;
	}
	if ((s32)(now_us - u->next_us) < 0)
		return false;
	if (u->since < DRWA_AQM_PART) {
		/* No more than one is due. */
		u->next_us = now_us;
		return false;
	}
	u->since = 0;
	u->count++;
	u->next_us = aqm_next(u, u->next_us, interval_us);
	return true;
}

/* Does the flow bring more than a call, in the mean? */
static bool aqm_is_bulk(struct drwa_udp *u, u32 now_us, u32 bytes)
{
	u32 elapsed_us = now_us - u->level_us;
	u64 gone = (u64)elapsed_us * DRWA_AQM_RATE >> DRWA_SECOND_SHIFT;

	u->level_us = now_us;
	u->level = u->level - min_t(u64, gone, u->level) + bytes;
	/* Some more than it takes, so that a round's end is none of a download's. */
	u->level = min_t(u32, u->level, DRWA_AQM_BURST + DRWA_AQM_RATE / 4);
	return u->level > DRWA_AQM_BURST;
}

/* With so many drops, did it bring more than a sender that reacts could in RTTs of @q_us?
 *
 * The test of Floyd and Fall (ToN 7(4), 1999, 3.1): such a one has 1.22 segments in an RTT
 * for each 1/sqrt(loss). The queue is the least that an RTT can be. Squared:
 *
 *	bytes * drops * (q / time)^2 > 1.5 * MSS
 *
 * and DRWA_AQM_FRIENDLY has a margin of 2 in the rate, 4 here; it is 4 where little is lost.
 */
static bool aqm_unfriendly(u32 bytes, u32 drops, u32 q_us, u32 passed_us)
{
	u32 part = div_u64((u64)q_us << 10, passed_us);
	u64 product = (u64)bytes * drops;

	part = min(part, 1U << 10);
	product = min_t(u64, product, U32_MAX) * part * part >> 20;
	if (bytes > (u64)drops * DRWA_AQM_MUCH * DRWA_AQM_SEGMENT)
		product /= 4;
	return product > DRWA_AQM_FRIENDLY;
}

/* A drop, with a queue of @q_us */
static void aqm_dropped(struct drwa_udp *u, u32 q_us)
{
	u->drops++;
	u->window_drops++;
	u->window_q += q_us >> 10;
}

/* A window lasts eight queues at least: in fewer, a start's queue has not gone yet. A few
 * drops say nothing.
 */
static bool aqm_is_deaf(struct drwa_udp *u, u32 now_us, u32 bytes)
{
	u32 passed_us = now_us - u->window_us, drops = u->window_drops;
	bool loud;

	u->window_bytes += bytes;
	if (passed_us < DRWA_AQM_WINDOW_US ||
	    (u64)(passed_us >> 10) * drops < 8ULL * u->window_q)
		return false;
	loud = drops >= DRWA_AQM_WINDOW_DROPS &&
	       aqm_unfriendly(u->window_bytes, drops, (u->window_q / drops) << 10, passed_us);
	u->windows = loud ? u->windows + 1 : 0;
	u->window_us = now_us;
	u->window_bytes = 0;
	u->window_drops = 0;
	u->window_q = 0;
	return u->windows == DRWA_AQM_WINDOWS;
}

/* Was all dropping in vain, since the queue is none of the flow's?
 *
 * A trial lasts two queues and half a second: by then, a sender has seen its first drop. The
 * first one begins with a row of drops.
 */
static bool aqm_in_vain(struct drwa_udp *u, u32 now_us, u32 q_us, u32 bytes)
{
	u32 passed_us = now_us - u->trial_us, before_us;
	bool stays;

	if (!u->dropping || !u->trial_us)
		return false;
	u->bytes += bytes;
	u->least_q_us = min(u->least_q_us, q_us);
	if (passed_us < DRWA_SECOND_US / 2 || passed_us / 2 < u->trial_q_us)
		return false;
	before_us = max(u->trial_q_us, u->last_q_us);
	stays = u->least_q_us >= before_us - before_us / 4 &&
		!aqm_unfriendly(u->bytes, u->drops, u->least_q_us, passed_us);
	u->trials = stays ? u->trials + 1 : 0;
	u->last_q_us = u->least_q_us;
	aqm_new_trial(u, now_us, q_us);
	if (u->trials < DRWA_AQM_TRIALS)
		return false;
	u->trials = 0;
	return true;
}

#endif
