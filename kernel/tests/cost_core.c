// SPDX-License-Identifier: GPL-2.0-only
/* Runs stories of fuzz_core.c under callgrind and dumps the cost of each call
 *
 * The name of a dump is the function, and for drwa_round() also the law and
 * the phase that the call found; for drwa_due() the law and what it said. A
 * story hears data, gives samples and asks whether the round is over more
 * often than rounds end: a part of these is enough.
 */
#include <linux/tcp_drwa.h>
#include <valgrind/callgrind.h>

#define SHORT_CALLS_A_STORY	64

static int short_calls;

static void cost_sample(struct drwa *d, u32 rtt_us, u32 owd_us)
{
	CALLGRIND_ZERO_STATS;
	drwa_sample(d, rtt_us, owd_us);
	if (short_calls++ > SHORT_CALLS_A_STORY)
		return;
	CALLGRIND_DUMP_STATS_AT(d->law == DRWA_LAW_CLASSIC ? "sample classic" : "sample delay");
}

static void cost_heard(struct drwa_link *l, u32 now_us)
{
	CALLGRIND_ZERO_STATS;
	drwa_heard(l, now_us);
	if (short_calls++ > SHORT_CALLS_A_STORY)
		return;
	CALLGRIND_DUMP_STATS_AT("heard");
}

static bool cost_due(const struct drwa *d, const struct drwa_link *l, u32 now_us)
{
	static const char * const names[][2] = {
		[DRWA_LAW_DELAY] = { "due delay no", "due delay yes" },
		[DRWA_LAW_CLASSIC] = { "due classic no", "due classic yes" },
	};
	bool due;

	CALLGRIND_ZERO_STATS;
	due = drwa_due(d, l, now_us);
	if (short_calls++ > SHORT_CALLS_A_STORY)
		return due;
	CALLGRIND_DUMP_STATS_AT(names[d->law][due]);
	return due;
}

static void cost_round(struct drwa *d, struct drwa_link *l, u32 now_us, u32 rcv_nxt, u32 mss)
{
	static const char * const names[] = {
		[DRWA_START] = "round delay START",
		[DRWA_HOLD] = "round delay HOLD",
		[DRWA_DRAIN] = "round delay DRAIN",
	};
	const char *name = d->law == DRWA_LAW_CLASSIC ? "round classic" : names[d->phase];

	CALLGRIND_ZERO_STATS;
	drwa_round(d, l, now_us, rcv_nxt, mss);
	CALLGRIND_DUMP_STATS_AT(name);
}

static void cost_count(struct drwa_link *l, u32 now_us, u32 rtt_us, u32 all, u32 sent)
{
	CALLGRIND_ZERO_STATS;
	drwa_count(l, now_us, rtt_us, all, sent);
	CALLGRIND_DUMP_STATS_AT("count");
}

#define drwa_sample cost_sample
#define drwa_heard cost_heard
#define drwa_due cost_due
#define drwa_round cost_round
#define drwa_count cost_count
#include "fuzz_core.c"

int main(int, char **argv)
{
	static u8 story[1 << 16];
	size_t size;
	FILE *file;

	keep_going = true;
	while (*++argv) {
		file = fopen(*argv, "rb");
		if (!file) {
			perror(*argv);
			return 1;
		}
		size = fread(story, 1, sizeof(story), file);
		fclose(file);
		short_calls = 0;
		LLVMFuzzerTestOneInput(story, size);
	}
	return 0;
}
