/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DRWA on the uplink: state and interface of the gate's law
 *
 * The law (net/sched/drwa_up_core.c) is told what the modem is handed and what
 * is answered, and says how much more it may be handed. It knows neither packets
 * nor devices, so that the same file is built into the kernel and into tests.
 */
#ifndef _LINUX_DRWA_UP_H
#define _LINUX_DRWA_UP_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/types.h>
#include <uapi/linux/drwa_up.h>

#define DRWA_UP_TARGET_US	10000

#define DRWA_UP_FLOWS		64
#define DRWA_UP_WAYS		4	/* places that a flow may have */
#define DRWA_UP_MARKS		1024
#define DRWA_UP_POINTS		64

/* How the answers of a flow name what they answer */
enum drwa_up_kind {
	DRWA_UP_UPTO,		/* all before a sequence number: TCP */
	DRWA_UP_EXACT,		/* one packet: DNS, ICMP echo, STUN */
	DRWA_UP_FIRST,		/* as TCP, whose earlier flow of that name is over */
};

/**
 * struct drwa_up_mark - a packet that will be answered
 * @end:	what an answer to it says
 * @before:	bytes that the modem had been handed before the first of its packets
 * @released:	the same with the last one
 * @came:	bytes that had come from the network then
 * @us:		when the first was handed over
 * @next:	the flow's next mark
 * @flow:	whose it is, DRWA_UP_FLOWS: nobody's any more
 */
struct drwa_up_mark {
	u32	end;
	u32	before;
	u32	released;
	u32	came;
	u32	us;
	u16	next;
	u16	flow;
};

/**
 * struct drwa_up_flow - who answers
 * @key:	name of the flow
 * @used_us:	when it was last marked
 * @end:	the highest end marked yet, of DRWA_UP_UPTO
 * @base_us:	least delay to the far end, its clock less ours, any offset
 * @rtt_min_us:	least time from a mark to its answer
 * @strayed_us:	how much @base_us was set anew by
 * @seen_us:	when it last met no queue
 * @least_us:	least lateness in this round of DRWA_UP_DRAIN, U32_MAX: none
 * @head:	oldest mark
 * @tail:	newest mark
 * @waiting:	its marks
 * @kind:	enum drwa_up_kind
 * @used:	somebody has this place
 * @answered:	@rtt_min_us is set
 * @clock:	@base_us is set
 * @aside:	that clock is not believed
 * @bounded:	its clock has just claimed less than there was
 * @shared:	its bases may be a queue's: no DRWA_UP_DRAIN since it began
 */
struct drwa_up_flow {
	u32	key;
	u32	used_us;
	u32	end;
	u32	base_us;
	u32	rtt_min_us;
	u32	strayed_us;
	u32	seen_us;
	u32	least_us;
	u16	head;
	u16	tail;
	u16	waiting;
	u8	kind;
	u8	used:1,
		answered:1,
		clock:1,
		aside:1,
		bounded:1,
		shared:1;
};

/**
 * struct drwa_up_point - what had reached the far end by then
 * @us:		local clock, as if the way took nothing
 * @crossed:	bytes
 * @busy_us:	what of the time the link had something to do
 * @busy:	bytes that crossed in that
 */
struct drwa_up_point {
	u32	us;
	u32	crossed;
	u32	busy_us;
	u32	busy;
};

/**
 * struct drwa_up - one modem queue
 * @target_us:	what may wait there
 * @released:	bytes that the modem was handed
 * @before:	the same without the last packet
 * @crossed:	of these, what has left, for what came after was answered
 * @crossed_us:	when that reached the far end, as if the way took nothing
 * @answered_us: when that was heard
 * @closed_us:	when something was first held back since
 * @closed_released: @released then
 * @refused_crossed: @crossed when something was last held back
 * @full:	what the modem takes when it is empty, bytes
 * @learn_us:	since when nothing was handed over, to see whether it takes more
 * @learn_grant: what it took then
 * @gap_us:	average time between such news
 * @age_us:	how old they are: RTT without the queue
 * @rtt_min_us:	of that, without a download's queue
 * @back_us:	what they waited on their way back, behind a download
 * @delay_us:	queue that they tell of
 * @busy_us:	how long it had something to do
 * @busy:	bytes that crossed in that
 * @empty_us:	when the last mark that met none there was handed over
 * @silence_us:	average of the longest time, in which nothing left that could, of spans
 * @longest_us:	of this span
 * @silent_from_us: when it began
 * @asked:	@released with the last mark of who has answered before; of TCP's that has not
 * @asked_us:	when those were handed over
 * @more_us:	what HOLD hands over beyond an age's
 * @rate:	what leaves, bytes per 2^20 us
 * @mean:	average of it
 * @last:	what left during the last age
 * @dev:	average change of that
 * @last_us:	when @last was measured
 * @came:	bytes that came from there
 * @clock_us:	when a flow with a clock was last answered
 * @clock_late_us: how late its mark was
 * @drain_from_us: marks from then on count in this round of DRWA_UP_DRAIN
 * @drain_q_us:	queue at its start
 * @drain_late_us: least lateness of these marks
 * @drain_released: @released then
 * @drained_us:	when DRWA_UP_DRAIN last ended
 * @points:	points so far
 * @next_mark:	marks so far
 * @answers:	news so far
 * @drains:	how often DRWA_UP_DRAIN began
 * @opened:	how often DRWA_UP_OPEN did
 * @jumps:	how often the path became longer
 * @phase:	DRWA_UP_START and so on
 * @deep:	how often DRWA_UP_DRAIN takes 3/4 of what crosses
 * @answered:	there were news
 * @closed:	@closed_us is set
 * @told:	the modem's driver tells what has crossed, and nobody else is believed
 * @empty:	no more than a packet was there, it told
 * @learning:	nothing is handed over
 * @refused:	something was held back since @last_us
 * @clock:	@clock_us is
 * @beside:	a download is
 * @drain_emptied: all that has left, and @drain_from_us is set
 * @blind:	DRWA_UP_DRAIN is after DRWA_UP_OPEN: who answers may not know his path
 * @point:	the last of them
 * @flow:	who answers
 * @mark:	the last of them
 */
struct drwa_up {
	u32	target_us;
	u32	released;
	u32	before;
	u32	crossed;
	u32	crossed_us;
	u32	answered_us;
	u32	closed_us;
	u32	closed_released;
	u32	refused_crossed;
	u32	full;
	u32	learn_us;
	u32	learn_grant;
	u32	gap_us;
	u32	age_us;
	u32	rtt_min_us;
	u32	back_us;
	u32	delay_us;
	u32	busy_us;
	u32	busy;
	u32	empty_us;
	u32	silence_us;
	u32	longest_us;
	u32	silent_from_us;
	u32	asked[2];
	u32	asked_us[2];
	u32	more_us;
	u32	rate;
	u32	mean;
	u32	last;
	u32	dev;
	u32	last_us;
	u32	came;
	u32	clock_us;
	u32	clock_late_us;
	u32	drain_from_us;
	u32	drain_q_us;
	u32	drain_late_us;
	u32	drain_released;
	u32	drained_us;
	u32	points;
	u32	next_mark;
	u32	answers;
	u32	drains;
	u32	opened;
	u32	jumps;
	u8	phase;
	u8	deep;
	u8	answered:1,
		closed:1,
		refused:1,
		told:1,
		empty:1,
		learning:1,
		clock:1,
		beside:1,
		drain_emptied:1,
		blind:1;
	struct drwa_up_point point[DRWA_UP_POINTS];
	struct drwa_up_flow flow[DRWA_UP_FLOWS];
	struct drwa_up_mark mark[DRWA_UP_MARKS];
};

static_assert(sizeof(struct drwa_up) <= 32 << 10);

void drwa_up_reset(struct drwa_up *u, u32 target_us, u32 now_us);
void drwa_up_release(struct drwa_up *u, u32 bytes);
void drwa_up_release_other(struct drwa_up *u, u32 bytes);
void drwa_up_heard(struct drwa_up *u, u32 bytes);
void drwa_up_mark(struct drwa_up *u, u32 key, enum drwa_up_kind kind, u32 end,
		  u32 now_us);
bool drwa_up_answer(struct drwa_up *u, u32 key, u32 end, const u32 *clock_us,
		    u32 now_us);
void drwa_up_told(struct drwa_up *u, u32 grant, u32 late_us, u32 now_us);
u32 drwa_up_room(struct drwa_up *u, u32 now_us);
void drwa_up_report(const struct drwa_up *u, u32 now_us,
		    struct tc_drwa_up_xstats *st);

#endif /* _LINUX_DRWA_UP_H */
