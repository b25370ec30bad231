// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: KUnit suite of the law
 *
 * It holds the law to what it promises, not to its numbers: no cap before a
 * queue shows, a short queue on a full link afterwards, and that again after
 * the path has changed.
 */
#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/tcp_drwa.h>
#include <net/tcp.h>

#define TEST_MSS		1448U
#define TEST_LAMBDA		150
#define TEST_SECOND_US		1000000U
/* Any offset between the two clocks */
#define TEST_CLOCKS_US		0xdeadbeefU
#define TEST_SEED		20121114ULL

/* A window-limited sender behind a link with a deep queue, round by round */
struct test_path {
	struct drwa drwa;
	struct drwa_link link;
	u32 now_us;
	u32 rcv_nxt;
	u32 rate_kbyte_s;
	u32 base_us;		/* RTT without any queue */
	u32 uplink_us;		/* queue on the way to the sender */
	u32 rival_us;		/* queue that others keep on the way here */
	bool blind;		/* the sender has no clock */
	u32 mss;
	u32 limit;		/* the sender's own, bytes */
	u32 window;
	u32 queue_us;
	u32 others;		/* bytes that came for them */
	u32 sent;		/* bytes of an upload */
	u64 received;
};

static void test_path_init(struct test_path *p, enum drwa_law law, u16 lambda,
			   u32 now_us)
{
	*p = (struct test_path){
		.now_us = now_us,
		.rcv_nxt = now_us,
		.rate_kbyte_s = 1250,	/* 10 Mb/s */
		.base_us = 100000,
		.mss = TEST_MSS,
		.limit = 16U << 20,
		.window = 10 * TEST_MSS,
	};
	drwa_reset(&p->drwa, law);
	p->drwa.lambda = lambda;
}

static void test_sample(struct test_path *p, u32 rtt_us, u32 owd_us)
{
	if (p->drwa.rtt_us)
		drwa_sample(&p->drwa, rtt_us, owd_us);
	else
		drwa_start(&p->drwa, p->now_us, p->rcv_nxt, rtt_us,
			   owd_us, !p->blind);
}

/* Data comes a segment at a time, the last one of it now. */
static void test_hear(struct test_path *p, u32 bytes, u32 burst_us)
{
	u32 i, segments = DIV_ROUND_UP(bytes, p->mss);

	for (i = segments; i--; )
		drwa_heard(&p->link, p->now_us - (u32)div_u64((u64)burst_us * i, segments));
}

/* Ends a round, and counts what came over the link as its binding does */
static void test_round(struct test_path *p)
{
	drwa_credit(&p->link, p->rcv_nxt - p->drwa.round_seq);
	drwa_round(&p->drwa, &p->link, p->now_us, p->rcv_nxt, p->mss);
	if (drwa_count_due(&p->drwa, &p->link, p->now_us))
		drwa_count(&p->link, p->now_us, p->drwa.rtt_us, p->received + p->others, p->sent);
}

/* One window's worth of data, and the round that it ends */
static void test_path_round(struct test_path *p)
{
	u32 path_us = p->base_us + p->uplink_us + p->rival_us;
	u32 drain_us = div_u64((u64)p->window * 1000, p->rate_kbyte_s);
	u32 rtt_us = max(path_us, drain_us);
	u32 bytes = min_t(u64, p->window, (u64)rtt_us * p->rate_kbyte_s / 1000);

	p->queue_us = rtt_us - path_us;
	p->now_us += rtt_us;
	p->rcv_nxt += bytes;
	p->received += bytes;
	/* The uplink's queue is in the RTT alone, the path in both. */
	test_sample(p, rtt_us,
		    TEST_CLOCKS_US + p->base_us / 2 + p->rival_us + p->queue_us);
	test_hear(p, bytes, drain_us);
	if (!drwa_due(&p->drwa, &p->link, p->now_us))
		return;
	test_round(p);
	p->window = min(p->drwa.wnd ?: p->window * 2, p->limit);
}

static void test_path_run(struct test_path *p, u32 seconds)
{
	u32 start_us = p->now_us;

	while (p->now_us - start_us < seconds * TEST_SECOND_US)
		test_path_round(p);
}

/* Mean queue in us and use of the link in percent over some seconds */
static void test_path_measure(struct test_path *p, u32 seconds, u32 *queue_us,
			      u32 *used)
{
	u64 start = p->received, sum_us = 0;
	u32 elapsed_us, start_us = p->now_us;
	int rounds = 0;

	do {
		test_path_round(p);
		sum_us += p->queue_us;
		rounds++;
		elapsed_us = p->now_us - start_us;
	} while (elapsed_us < seconds * TEST_SECOND_US);
	*queue_us = div_u64(sum_us, rounds);
	*used = div64_u64((p->received - start) * 100 * 1000,
			  (u64)elapsed_us * p->rate_kbyte_s);
}

/* The link is full, and the queue no more than @percent of the base RTT. */
static void test_expect_good(struct kunit *test, struct test_path *p, u32 percent)
{
	u32 queue_us, used;

	test_path_measure(p, 10, &queue_us, &used);
	KUNIT_EXPECT_LE(test, queue_us, p->base_us * percent / 100);
	KUNIT_EXPECT_GE(test, used, 90U);
}

static void drwa_core_reset(struct kunit *test)
{
	struct drwa_link link = { 0 };
	struct drwa d;

	memset(&d, 0xff, sizeof(d));
	drwa_reset(&d, DRWA_LAW_CLASSIC);
	KUNIT_EXPECT_EQ(test, d.wnd, 0U);
	KUNIT_EXPECT_EQ(test, (int)d.lambda, 0);
	KUNIT_EXPECT_EQ(test, (int)d.law, (int)DRWA_LAW_CLASSIC);
	KUNIT_EXPECT_FALSE(test, drwa_due(&d, &link, 0));
	KUNIT_EXPECT_FALSE(test, drwa_due(&d, &link, U32_MAX));
	KUNIT_EXPECT_LE(test, sizeof(d), (size_t)56);
}

static void drwa_core_room_to_double_without_queue(struct kunit *test)
{
	u32 window = 10 * TEST_MSS;
	struct test_path p;
	int i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	/* Slow start, then far longer than any timer of the law */
	for (i = 0; i < 600; i++) {
		p.window = window;
		test_path_round(&p);
		KUNIT_ASSERT_EQ(test, p.queue_us, 0U);
		KUNIT_ASSERT_GE(test, p.drwa.wnd, 2 * window);
		KUNIT_ASSERT_EQ(test, (int)p.drwa.phase, (int)DRWA_START);
		window = min(2 * window, 120000U);
	}
	KUNIT_EXPECT_LE(test, p.drwa.wnd, 4 * window);
}

/* Nothing is known of the link before data came. */
static void drwa_core_begins_with_what_a_syn_offers(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_sample(&p, p.base_us, 0);
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 65535U);
	test_path_init(&p, DRWA_LAW_CLASSIC, TEST_LAMBDA, 0);
	test_sample(&p, p.base_us, 0);
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 0U);
}

/* Rates that differ from round to round make room for the next one. */
static void drwa_core_makes_room_for_change(struct kunit *test)
{
	struct test_path p;
	u32 window, windows = 0, i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	for (i = 0; i < 100; i++) {
		p.rate_kbyte_s = i % 2 ? 1500 : 1000;
		test_path_round(&p);
		windows += p.drwa.wnd;
	}
	KUNIT_EXPECT_GT(test, windows / 100, window * 5 / 4);
	p.rate_kbyte_s = 1250;
	test_path_run(&p, 20);
	KUNIT_EXPECT_LT(test, p.drwa.wnd, window * 9 / 8);
}

/* What nobody governs keeps a queue: hold the share, and let go afterwards. */
static void drwa_core_meets_a_rival(struct kunit *test)
{
	struct test_path p;
	u32 window, i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.limit = 375000;
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.rival_us = 3 * p.base_us;
	for (i = 0; i < 60 && p.drwa.wnd <= 2 * window; i++) {
		/* As much again comes for the rival. */
		p.others += window;
		test_path_round(&p);
	}
	KUNIT_EXPECT_TRUE(test, p.drwa.rival);
	KUNIT_EXPECT_GT(test, p.drwa.wnd, 2 * window);
	p.rival_us = 0;
	test_path_run(&p, 20);
	KUNIT_EXPECT_FALSE(test, p.drwa.rival);
	test_expect_good(test, &p, 75);
}

/* The same queue without any traffic of others is a longer path. */
static void drwa_core_tells_a_path_from_a_rival(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	p.rival_us = 3 * p.base_us;
	test_path_run(&p, 20);
	KUNIT_EXPECT_FALSE(test, p.drwa.rival);
	KUNIT_EXPECT_GE(test, p.drwa.path_us, p.base_us * 7 / 2);
}

/* Where nobody counts, nothing is a rival's. */
static void drwa_core_needs_a_count_for_a_rival(struct kunit *test)
{
	struct test_path p;
	u32 i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	p.rival_us = 3 * p.base_us;
	for (i = 0; i < 100; i++) {
		/* It is what came, though never compared. */
		p.link.counted_us = p.now_us;
		p.others += p.window;
		test_path_round(&p);
	}
	KUNIT_EXPECT_EQ(test, (int)p.link.others, 0);
	KUNIT_EXPECT_FALSE(test, p.drwa.rival);
}

/* TSval that counts in other units than ms, and in none */
static void drwa_core_does_without_a_clock(struct kunit *test)
{
	static const s32 steps_us[] = { -99900000, 75000, 90000 };
	struct test_path p;
	u32 owd_us;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(steps_us); i++) {
		test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
		owd_us = TEST_CLOCKS_US;
		for (j = 0; j < 10; j++) {
			p.now_us += p.base_us;
			p.rcv_nxt += 10 * TEST_MSS;
			owd_us += steps_us[i];
			test_sample(&p, p.base_us, owd_us);
			if (drwa_due(&p.drwa, &p.link, p.now_us))
				test_round(&p);
		}
		KUNIT_EXPECT_FALSE(test, p.drwa.clock);
		KUNIT_EXPECT_NE(test, p.drwa.wnd, 0U);
		test_path_run(&p, 20);
		KUNIT_EXPECT_FALSE(test, p.drwa.clock);
		test_expect_good(test, &p, 75);
	}
	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.blind = true;
	test_path_run(&p, 20);
	KUNIT_EXPECT_FALSE(test, p.drwa.clock);
	test_expect_good(test, &p, 75);
}

/* While the phone sends, its queue is in the RTT, and the rest of it is not known. */
static void drwa_core_lets_go_beside_an_upload(struct kunit *test)
{
	struct test_path p;
	int i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.blind = true;
	/* A base station's buffer */
	p.limit = 1U << 20;
	test_path_run(&p, 50);
	KUNIT_EXPECT_NE(test, p.drwa.wnd, 0U);
	p.uplink_us = 300000;
	for (i = 0; i < 50; i++) {
		test_path_round(&p);
		p.sent = p.received / 16;
	}
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 0U);
	p.uplink_us = 0;
	test_path_run(&p, 50);
	test_expect_good(test, &p, 75);
	/* Of a sender with a clock, the queue is known. */
	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.uplink_us = 300000;
	for (i = 0; i < 50; i++) {
		test_path_round(&p);
		p.sent = p.received / 16;
	}
	KUNIT_EXPECT_NE(test, p.drwa.wnd, 0U);
}

/* A radio that serves in bursts: the link knows for how long it does not, and a
 * round ends where the next burst begins.
 */
static void drwa_core_hears_silences(struct kunit *test)
{
	u32 i, j, q_us, start_us, segments, rounds = 0, aligned = 0;
	const u32 gap_us = 40000;
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.base_us = 30000;
	for (i = 0; i < 300; i++) {
		q_us = i && p.drwa.phase != DRWA_DRAIN ? 30000 : 0;
		/* A queue shows beyond a silence. */
		if (q_us && p.drwa.phase == DRWA_START)
			q_us += gap_us;
		segments = q_us ? 40 : min(p.drwa.wnd / TEST_MSS ?: 40, 40U);
		start_us = p.now_us + gap_us;
		for (j = 0; j < segments; j++) {
			p.now_us = start_us + 250 * j;
			p.rcv_nxt += TEST_MSS;
			test_sample(&p, p.base_us + q_us, TEST_CLOCKS_US + q_us);
			drwa_heard(&p.link, p.now_us);
			if (!drwa_due(&p.drwa, &p.link, p.now_us))
				continue;
			test_round(&p);
			rounds += i >= 200;
			aligned += i >= 200 && !j;
		}
	}
	KUNIT_EXPECT_GE(test, p.link.silence_us, gap_us * 9 / 10);
	KUNIT_EXPECT_LE(test, p.link.silence_us, gap_us * 11 / 10);
	KUNIT_EXPECT_GE(test, rounds, 30U);
	KUNIT_EXPECT_GE(test, aligned, rounds * 9 / 10);
}

/* What a pause, or an outage, leaves is no silence of the radio. */
static void drwa_core_forgets_an_outage(struct kunit *test)
{
	struct test_path p;
	u32 window;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.now_us += 3 * TEST_SECOND_US;
	test_path_run(&p, 1);
	KUNIT_EXPECT_GE(test, p.drwa.wnd, window * 9 / 10);
	test_path_run(&p, 2);
	KUNIT_EXPECT_LE(test, p.drwa.wnd, window * 11 / 10);
}

static void drwa_core_holds_a_short_queue(struct kunit *test)
{
	static const u32 rates_kbyte_s[] = { 250, 1250, 12500 };
	static const u32 bases_us[] = { 50000, 100000, 300000 };
	struct test_path p;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(rates_kbyte_s); i++) {
		for (j = 0; j < ARRAY_SIZE(bases_us); j++) {
			test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
			p.rate_kbyte_s = rates_kbyte_s[i];
			p.base_us = bases_us[j];
			/* That of the handshake, which no window filled */
			test_sample(&p, p.base_us, TEST_CLOCKS_US + p.base_us / 2);
			test_path_run(&p, 20);
			KUNIT_EXPECT_NE(test, p.drwa.wnd, 0U);
			KUNIT_EXPECT_NE(test, (int)p.drwa.phase, (int)DRWA_START);
			test_expect_good(test, &p, 75);
		}
	}
}

static void drwa_core_reports_rtts(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	KUNIT_EXPECT_GE(test, p.drwa.rtt_us, p.drwa.path_us);
	KUNIT_EXPECT_GE(test, p.drwa.path_us, p.base_us * 9 / 10);
	KUNIT_EXPECT_LE(test, p.drwa.path_us, p.base_us * 11 / 10);
}

static void drwa_core_window_follows_lambda(struct kunit *test)
{
	u32 queue_us, less_us = 0, used;
	struct test_path p;
	int lambda;

	for (lambda = 150; lambda <= 600; lambda *= 2) {
		test_path_init(&p, DRWA_LAW_DELAY, lambda, 0);
		test_path_run(&p, 20);
		test_path_measure(&p, 10, &queue_us, &used);
		KUNIT_EXPECT_GT(test, queue_us, less_us);
		less_us = queue_us;
	}
}

static void drwa_core_follows_the_rate(struct kunit *test)
{
	struct test_path p;
	u32 window;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.rate_kbyte_s *= 5;
	test_path_run(&p, 20);
	KUNIT_EXPECT_GT(test, p.drwa.wnd, 3 * window);
	test_expect_good(test, &p, 75);

	p.rate_kbyte_s /= 5;
	test_path_run(&p, 20);
	KUNIT_EXPECT_LT(test, p.drwa.wnd, 2 * window);
	test_expect_good(test, &p, 75);
}

static void drwa_core_falls_when_the_queue_grows(struct kunit *test)
{
	struct test_path p;
	u32 window;
	int i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.rate_kbyte_s /= 10;
	for (i = 0; i < 8; i++)
		test_path_round(&p);
	KUNIT_EXPECT_LT(test, p.drwa.wnd, window / 2);
}

static void drwa_core_finds_a_new_base(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.base_us = 30000;
	test_path_run(&p, 20);
	p.base_us = 150000;
	test_path_run(&p, 30);
	test_expect_good(test, &p, 100);
	p.base_us = 30000;
	test_path_run(&p, 30);
	test_expect_good(test, &p, 100);
}

/* Switched on in a download that has had its queue for long */
static void drwa_core_meets_a_standing_queue(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.limit = 375000;
	p.window = p.limit;
	test_path_round(&p);
	KUNIT_EXPECT_EQ(test, p.queue_us, 2 * p.base_us);
	test_path_run(&p, 30);
	test_expect_good(test, &p, 100);
}

static void drwa_core_small_segments(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	p.rate_kbyte_s = 50;
	p.mss = 76;
	p.window = 10 * p.mss;
	test_path_run(&p, 30);
	test_expect_good(test, &p, 100);
}

static void drwa_core_leaves_the_uplink_alone(struct kunit *test)
{
	struct test_path p;
	u32 window, queue_us, used;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.uplink_us = 1000000;
	test_path_run(&p, 20);
	KUNIT_EXPECT_GT(test, p.drwa.wnd, window);
	test_path_measure(&p, 10, &queue_us, &used);
	KUNIT_EXPECT_GE(test, used, 90U);
}

/* All periods of the law divide 2^27 us, so these runs may differ by the wrap
 * of clock and sequence numbers alone.
 */
static void drwa_core_wraps(struct kunit *test)
{
	struct test_path a, b;
	int i;

	test_path_init(&a, DRWA_LAW_DELAY, TEST_LAMBDA, 1U << 27);
	test_path_init(&b, DRWA_LAW_DELAY, TEST_LAMBDA, 0U - (1U << 27));
	b.rcv_nxt = 0U - 10000000U;
	for (i = 0; i < 3000; i++) {
		test_path_round(&a);
		test_path_round(&b);
		KUNIT_ASSERT_EQ(test, a.drwa.wnd, b.drwa.wnd);
		KUNIT_ASSERT_EQ(test, (int)a.drwa.phase, (int)b.drwa.phase);
	}
	KUNIT_EXPECT_LT(test, b.now_us, 0U - (1U << 27));
}

static void drwa_core_silence_forgets(struct kunit *test)
{
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 10);
	KUNIT_ASSERT_NE(test, p.drwa.wnd, 0U);
	p.now_us += 61 * TEST_SECOND_US;
	test_round(&p);
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, p.drwa.rtt_us, 0U);
	KUNIT_EXPECT_EQ(test, (int)p.drwa.lambda, TEST_LAMBDA);
}

static void drwa_core_refuses_samples(struct kunit *test)
{
	struct drwa d;

	drwa_reset(&d, DRWA_LAW_DELAY);
	drwa_start(&d, 1, 1, 0, 0, true);
	KUNIT_EXPECT_EQ(test, d.rtt_us, 0U);
	drwa_start(&d, 1, 1, U32_MAX, 0, true);
	KUNIT_EXPECT_EQ(test, d.rtt_us, 0U);
	drwa_start(&d, 1, 1, 1000, 0, true);
	KUNIT_EXPECT_EQ(test, d.rtt_us, 1000U);
}

/* Any numbers at all: a window of two segments at least, of which a SYN can offer
 * no two of 64 kB, or none
 */
static void drwa_core_forged(struct kunit *test)
{
	static const u32 sizes[] = { 1, 48, 536, 1448, 8960, 65495 };
	struct rnd_state rnd;
	struct test_path p;
	u32 mss, shift;
	int i;

	kunit_info(test, "seed %llu", TEST_SEED);
	prandom_seed_state(&rnd, TEST_SEED);
	for (i = 0; i < 200000; i++) {
		if (!(i % 1000)) {
			test_path_init(&p, i % 2000 ? DRWA_LAW_DELAY : DRWA_LAW_CLASSIC,
				       100 + prandom_u32_state(&rnd) % 901,
				       prandom_u32_state(&rnd));
			mss = sizes[prandom_u32_state(&rnd) % ARRAY_SIZE(sizes)];
			p.blind = prandom_u32_state(&rnd) & 1;
		}
		/* Times of all magnitudes */
		shift = prandom_u32_state(&rnd) % 32;
		p.now_us += prandom_u32_state(&rnd) >> shift;
		/* No more than the largest window, RFC 7323 */
		shift = 2 + prandom_u32_state(&rnd) % 30;
		p.rcv_nxt += prandom_u32_state(&rnd) >> shift;
		shift = prandom_u32_state(&rnd) % 32;
		test_sample(&p, prandom_u32_state(&rnd) >> shift,
			    prandom_u32_state(&rnd));
		drwa_heard(&p.link, p.now_us);
		if (!drwa_due(&p.drwa, &p.link, p.now_us))
			continue;
		drwa_round(&p.drwa, &p.link, p.now_us, p.rcv_nxt, mss);
		drwa_count(&p.link, p.now_us, p.drwa.rtt_us, prandom_u32_state(&rnd),
			   prandom_u32_state(&rnd));
		if (p.drwa.wnd)
			KUNIT_ASSERT_GE(test, p.drwa.wnd, min_t(u32, 2 * mss, U16_MAX));
		/* Rounding to the window scale must not wrap. */
		KUNIT_ASSERT_LE(test, p.drwa.wnd, U32_MAX - (1U << TCP_MAX_WSCALE));
	}
}

static void drwa_core_classic_settles(struct kunit *test)
{
	struct test_path p;
	u32 queue_us, used;

	test_path_init(&p, DRWA_LAW_CLASSIC, 300, 0);
	test_path_run(&p, 60);
	test_path_measure(&p, 10, &queue_us, &used);
	/* RTT = lambda * RTTmin */
	KUNIT_EXPECT_GE(test, queue_us, p.base_us * 19 / 10);
	KUNIT_EXPECT_LE(test, queue_us, p.base_us * 21 / 10);
	KUNIT_EXPECT_GE(test, used, 99U);
}

static struct kunit_case tcp_drwa_core_cases[] = {
	KUNIT_CASE(drwa_core_reset),
	KUNIT_CASE(drwa_core_begins_with_what_a_syn_offers),
	KUNIT_CASE(drwa_core_room_to_double_without_queue),
	KUNIT_CASE(drwa_core_holds_a_short_queue),
	KUNIT_CASE(drwa_core_reports_rtts),
	KUNIT_CASE(drwa_core_window_follows_lambda),
	KUNIT_CASE(drwa_core_follows_the_rate),
	KUNIT_CASE(drwa_core_falls_when_the_queue_grows),
	KUNIT_CASE(drwa_core_finds_a_new_base),
	KUNIT_CASE(drwa_core_meets_a_standing_queue),
	KUNIT_CASE(drwa_core_makes_room_for_change),
	KUNIT_CASE(drwa_core_meets_a_rival),
	KUNIT_CASE(drwa_core_tells_a_path_from_a_rival),
	KUNIT_CASE(drwa_core_needs_a_count_for_a_rival),
	KUNIT_CASE(drwa_core_does_without_a_clock),
	KUNIT_CASE(drwa_core_lets_go_beside_an_upload),
	KUNIT_CASE(drwa_core_hears_silences),
	KUNIT_CASE(drwa_core_forgets_an_outage),
	KUNIT_CASE(drwa_core_small_segments),
	KUNIT_CASE(drwa_core_leaves_the_uplink_alone),
	KUNIT_CASE(drwa_core_wraps),
	KUNIT_CASE(drwa_core_silence_forgets),
	KUNIT_CASE(drwa_core_refuses_samples),
	KUNIT_CASE(drwa_core_forged),
	KUNIT_CASE(drwa_core_classic_settles),
	{}
};

static struct kunit_suite tcp_drwa_core_suite = {
	.name = "tcp_drwa_core",
	.test_cases = tcp_drwa_core_cases,
};

kunit_test_suite(tcp_drwa_core_suite);
