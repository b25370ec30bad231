// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer harness of the gate's law, net/sched/drwa_up_core.c
 *
 * An input is a story: packets are released and marked, answers come for any flow,
 * to anything, with any clock, in any order, and time passes by any step. What the
 * law promises is checked after each of them: lists stay lists, the gate never closes
 * for good, nothing that a peer says lets more through than a window, and what is told
 * is told of the present.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/drwa_up.h>

#define check(condition)	check_line(condition, #condition, __LINE__)

/* Who has answered before may be silent for four seconds, and one more ends in OPEN. */
#define CLOSED_US	(6u << 20)

struct story {
	const u8 *at;
	size_t left;
};

static struct drwa_up up;
static u32 now_us;

static void check_line(int condition, const char *text, int line)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_up.c:%d: not true: %s\n", line, text);
	abort();
}

static u32 take(struct story *s, int bytes)
{
	u32 value = 0;

	while (bytes-- && s->left) {
		value = value << 8 | *s->at++;
		s->left--;
	}
	return value;
}

static void check_lists(void)
{
	int held = 0, listed = 0, i;

	for (i = 0; i < DRWA_UP_MARKS; i++)
		held += up.mark[i].flow < DRWA_UP_FLOWS;
	for (i = 0; i < DRWA_UP_FLOWS; i++) {
		const struct drwa_up_flow *f = &up.flow[i];
		u32 waiting = 0;
		u16 at;

		if (!f->used)
			continue;
		for (at = f->head; at != U16_MAX; at = up.mark[at].next) {
			check(at < DRWA_UP_MARKS);
			check(up.mark[at].flow == i);
			check(++waiting <= DRWA_UP_MARKS);
			if (up.mark[at].next == U16_MAX)
				check(at == f->tail);
		}
		check(waiting == f->waiting);
		listed += waiting;
	}
	check(held == listed);
}

static void step(struct story *s)
{
	u32 op = take(s, 1), key = take(s, 1) & 0x8f, end = take(s, 1) * 500, clock_us;

	switch (op & 7) {
	case 0:
	case 1:
		drwa_up_release(&up, 1 + (op >> 3) * 100);
		drwa_up_mark(&up, key, key & 1 ? DRWA_UP_EXACT : DRWA_UP_UPTO, end, now_us);
		break;
	case 2:
		drwa_up_release(&up, 1500);
		break;
	case 3:
		drwa_up_mark(&up, key, DRWA_UP_FIRST, end, now_us);
		break;
	case 4:
		clock_us = take(s, 4);
		drwa_up_answer(&up, key, end, op & 8 ? &clock_us : NULL, now_us);
		break;
	case 5:
		if (op & 8)
			drwa_up_told(&up, take(s, 3), end, now_us);
		else
			drwa_up_heard(&up, take(s, 2));
		drwa_up_release_other(&up, op);
		break;
	case 6:
		now_us += 1u << ((op >> 3) & 27);
		break;
	case 7:
		now_us += end;
		break;
	}
	check_lists();
	drwa_up_room(&up, now_us);
}

/* Whatever was said, and though nobody answers any more: something passes again, and
 * after a silence all may.
 */
static void check_open(void)
{
	u32 passed_us = now_us, i;

	for (i = 0; i < 30000 && up.phase != DRWA_UP_OPEN; i++) {
		check(now_us - passed_us < CLOSED_US);
		now_us += 1000;
		if (drwa_up_room(&up, now_us)) {
			drwa_up_release(&up, 1500);
			passed_us = now_us;
		}
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct story s = { data, size };
	struct tc_drwa_up_xstats st = {};

	now_us = take(&s, 4);
	drwa_up_reset(&up, DRWA_UP_TARGET_MIN_US + take(&s, 2), now_us);
	up.released = take(&s, 4);
	up.crossed = up.released;
	while (s.left)
		step(&s);
	drwa_up_report(&up, now_us, &st);
	check(st.phase <= DRWA_UP_OPEN);
	check(st.age_us <= 1u << 26);
	check_open();
	return 0;
}
