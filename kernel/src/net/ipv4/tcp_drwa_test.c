// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: KUnit suites of the law and of its binding to sockets and interfaces
 *
 * They hold the law to what it promises, not to its numbers: no cap before a
 * queue shows, a short queue on a full link afterwards, and that again after
 * the path has changed.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/rtnetlink.h>
#include <net/dst.h>
#include <net/tcp.h>
#include <net/tcp_drwa.h>

#include "tcp_drwa_compat.h"

/* Declares dev_change_name() since 5.18; sparse lacks __has_include(). */
#ifdef __CHECKER__
#include "../core/dev.h"
#elif __has_include("../core/dev.h")
#include "../core/dev.h"
#endif

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
	u32 mss;
	u32 limit;		/* the sender's own, bytes */
	u32 window;
	u32 queue_us;
	u32 others;		/* bytes that came for them */
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
		drwa_start(&p->drwa, &p->link, p->now_us, p->rcv_nxt, rtt_us,
			   owd_us);
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
	if (!drwa_due(&p->drwa, p->now_us))
		return;
	drwa_round(&p->drwa, &p->link, p->now_us, p->rcv_nxt, p->mss,
		   p->received + p->others);
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
	struct drwa d;

	memset(&d, 0xff, sizeof(d));
	drwa_reset(&d, DRWA_LAW_CLASSIC);
	KUNIT_EXPECT_EQ(test, d.wnd, 0U);
	KUNIT_EXPECT_EQ(test, (int)d.lambda, 0);
	KUNIT_EXPECT_EQ(test, (int)d.law, (int)DRWA_LAW_CLASSIC);
	KUNIT_EXPECT_FALSE(test, drwa_due(&d, 0));
	KUNIT_EXPECT_FALSE(test, drwa_due(&d, U32_MAX));
	KUNIT_EXPECT_LE(test, sizeof(d), (size_t)64);
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
	u32 window, i;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	for (i = 0; i < 100; i++) {
		p.rate_kbyte_s = i % 2 ? 1500 : 1000;
		test_path_round(&p);
	}
	KUNIT_EXPECT_GT(test, p.drwa.wnd, window * 3 / 2);
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
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.rival_us = 3 * p.base_us;
	for (i = 0; i < 60; i++) {
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
	KUNIT_EXPECT_GE(test, p.drwa.rtt_min_us, p.base_us * 7 / 2);
}

/* One DRAIN that leaves a queue beside others' traffic is no rival yet. */
static void drwa_core_asks_twice_for_a_rival(struct kunit *test)
{
	struct test_path p;
	u32 window;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	test_path_run(&p, 20);
	window = p.drwa.wnd;
	p.rival_us = 3 * p.base_us;
	while (!p.drwa.contested) {
		p.others += window;
		test_path_round(&p);
		KUNIT_ASSERT_FALSE(test, p.drwa.rival);
	}
	p.rival_us = 0;
	test_path_run(&p, 10);
	KUNIT_EXPECT_FALSE(test, p.drwa.contested);
	KUNIT_EXPECT_FALSE(test, p.drwa.rival);
	test_expect_good(test, &p, 75);
}

/* TSval that ticks every 10 ms; a minute later, another try */
static void drwa_core_leaves_no_clock_alone(struct kunit *test)
{
	u32 i, owd_us = TEST_CLOCKS_US;
	struct test_path p;

	test_path_init(&p, DRWA_LAW_DELAY, TEST_LAMBDA, 0);
	for (i = 0; i < 60; i++) {
		p.now_us += p.base_us;
		p.rcv_nxt += 10 * TEST_MSS;
		owd_us += p.base_us / 10 * 9;
		test_sample(&p, p.base_us, owd_us);
		if (drwa_due(&p.drwa, p.now_us))
			drwa_round(&p.drwa, &p.link, p.now_us, p.rcv_nxt, TEST_MSS, 0);
	}
	KUNIT_EXPECT_EQ(test, (int)p.drwa.phase, (int)DRWA_ASIDE);
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 0U);
	p.limit = 375000;
	test_path_run(&p, 80);
	KUNIT_EXPECT_NE(test, (int)p.drwa.phase, (int)DRWA_ASIDE);
	test_expect_good(test, &p, 75);
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
	KUNIT_EXPECT_GE(test, p.drwa.rtt_us, p.drwa.rtt_min_us);
	KUNIT_EXPECT_GE(test, p.drwa.rtt_min_us, p.base_us * 9 / 10);
	KUNIT_EXPECT_LE(test, p.drwa.rtt_min_us, p.base_us * 11 / 10);
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
	drwa_round(&p.drwa, &p.link, p.now_us, p.rcv_nxt, TEST_MSS, 0);
	KUNIT_EXPECT_EQ(test, p.drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, p.drwa.rtt_us, 0U);
	KUNIT_EXPECT_EQ(test, (int)p.drwa.lambda, TEST_LAMBDA);
}

static void drwa_core_refuses_samples(struct kunit *test)
{
	struct drwa_link link = { 0 };
	struct drwa d;

	drwa_reset(&d, DRWA_LAW_DELAY);
	drwa_start(&d, &link, 1, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, d.rtt_us, 0U);
	drwa_start(&d, &link, 1, 1, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, d.rtt_us, 0U);
	drwa_start(&d, &link, 1, 1, 1000, 0);
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
		if (!drwa_due(&p.drwa, p.now_us))
			continue;
		drwa_round(&p.drwa, &p.link, p.now_us, p.rcv_nxt, mss,
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
	KUNIT_CASE(drwa_core_asks_twice_for_a_rival),
	KUNIT_CASE(drwa_core_leaves_no_clock_alone),
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

static netdev_tx_t test_dev_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops test_dev_ops = {
	.ndo_start_xmit = test_dev_xmit,
};

static struct net_device *test_dev_new(struct kunit *test)
{
	struct net_device *dev;

	dev = alloc_netdev(0, "drwatest%d", NET_NAME_UNKNOWN, ether_setup);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	dev->netdev_ops = &test_dev_ops;
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	return dev;
}

static void test_dev_free(struct net_device *dev)
{
	if (dev->reg_state == NETREG_REGISTERED)
		unregister_netdev(dev);
	free_netdev(dev);
}

/* Each test of the binding has an interface of its own, off. */
static int tcp_drwa_test_init(struct kunit *test)
{
	test->priv = test_dev_new(test);
	return 0;
}

static void tcp_drwa_test_exit(struct kunit *test)
{
	if (test->priv)
		test_dev_free(test->priv);
}

static struct tcp_drwa_dev *test_knob(struct net_device *dev)
{
	struct tcp_drwa_dev *knob;

	/* Stays while the interface does; no test looks on after that. */
	rcu_read_lock();
	knob = tcp_drwa_dev_get(dev_net(dev), dev->ifindex);
	rcu_read_unlock();
	return knob;
}

enum test_file {
	TEST_FILE_LAMBDA,
	TEST_FILE_QUEUE,
};

static int test_write_to(struct net_device *dev, enum test_file file,
			 const char *value)
{
	struct ctl_table *table = &test_knob(dev)->table[file];
	size_t len = strlen(value);
	loff_t pos = 0;
	char buf[32];

	strscpy(buf, value, sizeof(buf));
	return table->proc_handler(table, 1, buf, &len, &pos);
}

static int test_write(struct net_device *dev, const char *value)
{
	return test_write_to(dev, TEST_FILE_LAMBDA, value);
}

static int test_write_queue(struct net_device *dev, const char *value)
{
	return test_write_to(dev, TEST_FILE_QUEUE, value);
}

static int test_lambda(struct net_device *dev)
{
	return READ_ONCE(test_knob(dev)->lambda);
}

/* Stays as long as no interface leaves it. */
static struct tcp_drwa_queue *test_queue(struct net_device *dev)
{
	return rcu_dereference_protected(test_knob(dev)->queue, true);
}

/* Are the hooks on, once what is late with turning them off has done it? */
static bool test_hooks_on(void)
{
	static_key_deferred_flush(&tcp_drwa_enabled);
	return static_key_enabled(&tcp_drwa_enabled.key);
}

static struct tcp_sock *test_sock(struct kunit *test, const struct net_device *dev)
{
	struct tcp_sock *tp;
	struct sock *sk;

	tp = kunit_kzalloc(test, sizeof(*tp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tp);
	sk = (struct sock *)tp;
	sock_net_set(sk, &init_net);
	sk->sk_family = AF_INET;
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_state = TCP_ESTABLISHED;
	tcp_drwa_rx_ifindex(sk) = dev ? dev->ifindex : 0;
	WRITE_ONCE(sk->sk_rcvbuf, 131072);
#ifdef TCP_DEFAULT_SCALING_RATIO
	tp->scaling_ratio = TCP_DEFAULT_SCALING_RATIO;
#endif
	tp->window_clamp = tcp_win_from_space(sk, sk->sk_rcvbuf);
	tp->advmss = TEST_MSS;
	tp->rx_opt.rcv_wscale = 9;
	tp->rx_opt.tstamp_ok = 1;
	tp->rx_opt.saw_tstamp = 1;
	tcp_drwa_init(tp);
	return tp;
}

/* Slow start into a link of 10 Mb/s and 100 ms, as the socket's hooks see it */
static void test_sock_run(struct tcp_sock *tp, u32 seconds)
{
	u64 end_us = tp->tcp_mstamp + (u64)seconds * TEST_SECOND_US;
	struct sock *sk = (struct sock *)tp;
	u32 rtt_us, window, cwnd = 10 * TEST_MSS;

	while (tp->tcp_mstamp < end_us) {
		window = tcp_drwa_cap(tp, cwnd);
		cwnd = min(2 * cwnd, 500000U);
		rtt_us = max(100000U, window * 1000 / 1250);
		tp->tcp_mstamp += rtt_us;
		tp->rcv_nxt += min(window, 125 * (rtt_us / 100));
		tp->rx_opt.rcv_tsval = div_u64(tp->tcp_mstamp - rtt_us, 1000);
		tcp_drwa_rtt_sample(sk, rtt_us);
		tcp_drwa_space_adjust(sk);
	}
}

static unsigned long test_counted(struct net_device *dev, int item)
{
	return tcp_drwa_counted(test_knob(dev), item);
}

static void tcp_drwa_knob_values(struct kunit *test)
{
	static const char * const good[] = { "100", "150", "1000", "250\n", "0" };
	static const char * const bad[] = {
		"-1", "1", "50", "99", "1001", "2147483647", "4294967446",
		"99999999999", "text", "1.5",
	};
	struct net_device *dev = test->priv;
	int i, lambda;

	KUNIT_EXPECT_EQ(test, test_lambda(dev), 0);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ(test, test_write(dev, good[i]), 0);
		KUNIT_ASSERT_EQ(test, kstrtoint(good[i], 10, &lambda), 0);
		KUNIT_EXPECT_EQ(test, test_lambda(dev), lambda);
	}
	KUNIT_EXPECT_EQ(test, test_write(dev, "150"), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, test_write(dev, bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, test_lambda(dev), 150);
	}
}

/* The hooks are on while an interface is, and no longer. */
static void tcp_drwa_knob_counts(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);

	KUNIT_EXPECT_FALSE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_EXPECT_EQ(test, test_write(other, "300"), 0);
	KUNIT_EXPECT_TRUE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, test_write(dev, "0"), 0);
	KUNIT_EXPECT_EQ(test, test_write(dev, "0"), 0);
	KUNIT_EXPECT_TRUE(test, test_hooks_on());
	/* Goes with the interface, though not at any rate that one may write it */
	test_dev_free(other);
	if (IS_ENABLED(CONFIG_JUMP_LABEL))
		KUNIT_EXPECT_TRUE(test, static_key_enabled(&tcp_drwa_enabled.key));
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
}

static void tcp_drwa_knob_none(struct kunit *test)
{
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, LOOPBACK_IFINDEX),
			    NULL);
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, INT_MAX), NULL);
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, -1), NULL);
	rcu_read_unlock();
}

static int test_rename(struct net_device *dev, const char *name)
{
	char newname[IFNAMSIZ] = "";
	int err;

	strscpy(newname, name, sizeof(newname));
	rtnl_lock();
	err = dev_change_name(dev, newname);
	rtnl_unlock();
	return err;
}

static void tcp_drwa_knob_renamed(struct kunit *test)
{
	struct net_device *dev = test->priv;
	int lambda;

	KUNIT_ASSERT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_rename(dev, "drwaother"), 0);
	KUNIT_EXPECT_EQ(test, test_lambda(dev), 200);
	KUNIT_EXPECT_PTR_NE(test, (void *)test_knob(dev)->header, NULL);
	KUNIT_EXPECT_EQ(test, test_queue(dev)->id, 7);
	/* Refused, or without files, for sysctl gives it a meaning: then it is off. */
	lambda = test_rename(dev, "all") ? 200 : 0;
	KUNIT_EXPECT_EQ(test, test_hooks_on(), lambda > 0);
	KUNIT_EXPECT_EQ(test, test_rename(dev, "drwathird"), 0);
	KUNIT_ASSERT_PTR_NE(test, (void *)test_knob(dev), NULL);
	KUNIT_EXPECT_PTR_NE(test, (void *)test_knob(dev)->header, NULL);
	KUNIT_EXPECT_EQ(test, test_lambda(dev), lambda);
}

static void tcp_drwa_knob_unregistered(struct kunit *test)
{
	struct net_device *dev = test->priv;
	int ifindex = dev->ifindex;

	KUNIT_ASSERT_EQ(test, test_write(dev, "200"), 0);
	unregister_netdev(dev);
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, ifindex), NULL);
	rcu_read_unlock();
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
}

#ifdef CONFIG_NET_NS
static void tcp_drwa_knob_moved(struct kunit *test)
{
	struct net_device *dev = test->priv;
	struct net *net;
	int err;

	net = copy_net_ns(CLONE_NEWNET, &init_user_ns, &init_net);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, net);
	KUNIT_EXPECT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	rtnl_lock();
	err = dev_change_net_namespace(dev, net, NULL);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		KUNIT_EXPECT_EQ(test, test_lambda(dev), 0);
		KUNIT_EXPECT_EQ(test, test_queue(dev)->id, 0);
		KUNIT_EXPECT_FALSE(test, test_hooks_on());
		/* Set when the name space goes */
		KUNIT_EXPECT_EQ(test, test_write(dev, "300"), 0);
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
		unregister_netdev(dev);
		KUNIT_EXPECT_FALSE(test, test_hooks_on());
	}
	put_net(net);
}
#endif

static void tcp_drwa_queue_values(struct kunit *test)
{
	static const char * const good[] = { "0", "1", "100", "2147483647", "7\n" };
	static const char * const bad[] = {
		"-1", "2147483648", "4294967303", "99999999999", "text", "1.5",
	};
	struct net_device *dev = test->priv;
	int i, id;

	KUNIT_EXPECT_EQ(test, test_queue(dev)->id, 0);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, good[i]), 0);
		KUNIT_ASSERT_EQ(test, kstrtoint(good[i], 10, &id), 0);
		KUNIT_EXPECT_EQ(test, test_queue(dev)->id, id);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, test_queue(dev)->id, 7);
	}
}

/* Those with a number share a queue, and it is there as long as one of them. */
static void tcp_drwa_queue_shared(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_drwa_queue *seven;

	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), test_queue(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_write_queue(other, "8"), 0);
	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), test_queue(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(other, "7"), 0);
	seven = test_queue(dev);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(other), seven);
	KUNIT_EXPECT_EQ(test, seven->users, 2U);
	/* The same once more is no second user. */
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, seven->users, 2U);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "0"), 0);
	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), seven);
	KUNIT_EXPECT_EQ(test, seven->users, 1U);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(dev), seven);
	test_dev_free(other);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(dev), seven);
	KUNIT_EXPECT_EQ(test, seven->users, 1U);
}

static bool test_queue_is_used(struct net_device *dev)
{
	return memchr_inv(&test_queue(dev)->link, 0, sizeof(struct drwa_link));
}

/* A connection takes its interface's queue, and the new one from its next round. */
static void tcp_drwa_queue_followed(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "7"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_TRUE(test, test_queue_is_used(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "8"), 0);
	KUNIT_EXPECT_FALSE(test, test_queue_is_used(dev));
	test_sock_run(tp, 10);
	KUNIT_EXPECT_TRUE(test, test_queue_is_used(dev));
	test_dev_free(other);
}

static void tcp_drwa_off_is_absent(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rmem_max = init_net.ipv4.sysctl_tcp_rmem[2];

	tp->drwa.wnd = 5000;
	tp->drwa.lambda = TEST_LAMBDA;
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 100000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 100000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk), rmem_max);
	tcp_drwa_rtt_sample(sk, 1000);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 0U);
}

static void tcp_drwa_caps(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 100000U);
	tp->drwa.wnd = 5000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 5000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 4000), 4000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 0), 0U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 4000), 4000U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 0UL);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 6000), 5000U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 1UL);
}

/* What was offered stays offered, also where the kernel may shrink windows. */
static void tcp_drwa_keeps_right_edge(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	tp->drwa.wnd = 5120;
	tp->rcv_wnd = 51200;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 51200U);
	/* In whole units of 512 bytes, upwards */
	tp->rcv_nxt = 1000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 50688U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 2UL);
	/* What stock would offer less, it may. */
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 50688), 50688U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 20480), 20480U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 0), 0U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 2UL);
	tp->rcv_nxt = 60000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 5120U);
}

static void tcp_drwa_rmem_limits(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rmem_max = init_net.ipv4.sysctl_tcp_rmem[2];

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	/* Governed from the SYN on, limited from the first round on */
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	tp->drwa.lambda = TEST_LAMBDA;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	/* With a window, as far as that needs */
	tp->drwa.wnd = 5 << 19;
	KUNIT_EXPECT_GT(test, tcp_drwa_rmem_max(sk), 2 * (5 << 19));
	KUNIT_EXPECT_LT(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	tp->drwa.wnd = 10000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	tp->drwa.wnd = U32_MAX / 2;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	/* Not where buffers shall stay as they are */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 1);
	/* A SYN without timestamps opens nothing that can be governed. */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_timestamps, 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk), rmem_max);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_timestamps, 1);
	tp->drwa.wnd = 0;
	/* A limit that is higher already stays. */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], 2 * TCP_DRWA_RMEM_MAX);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), 2 * TCP_DRWA_RMEM_MAX);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], rmem_max);
}

static void tcp_drwa_which_interface(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, NULL);
	struct sock *sk = (struct sock *)tp;
	struct dst_entry *dst;

	dst = kunit_kzalloc(test, sizeof(*dst), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dst);
	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write(other, "300"), 0);

	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	/* Before any data the route counts, afterwards where data comes from. */
	dst->dev = other;
	RCU_INIT_POINTER(sk->sk_dst_cache, dst);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 300U);
	tcp_drwa_rx_ifindex(sk) = dev->ifindex;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	RCU_INIT_POINTER(sk->sk_dst_cache, NULL);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	tcp_drwa_rx_ifindex(sk) = other->ifindex;
	test_dev_free(other);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
}

static void tcp_drwa_stands_aside(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	sk->sk_userlocks = SOCK_RCVBUF_LOCK;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk),
			init_net.ipv4.sysctl_tcp_rmem[2]);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	sk->sk_userlocks = SOCK_SNDBUF_LOCK;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
#ifdef CONFIG_MPTCP
	tp->is_mptcp = 1;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
#endif
}

static void tcp_drwa_governs(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	unsigned long rounds, told[2] = {};
	int i;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 20);
	KUNIT_EXPECT_EQ(test, (int)tp->drwa.lambda, 150);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd % 512, 0U);
	/* Stays near lambda bandwidth-delay products of 125000 bytes */
	KUNIT_EXPECT_GE(test, tp->drwa.wnd, 90000U);
	KUNIT_EXPECT_LE(test, tp->drwa.wnd, 230000U);
	/* A window twice, and its overhead; far from what there is */
	KUNIT_EXPECT_GE(test, sk->sk_rcvbuf, 180000);
	KUNIT_EXPECT_LE(test, sk->sk_rcvbuf, 4 << 20);
	rounds = test_counted(test->priv, TCP_DRWA_ROUNDS);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_SOCKETS), 1UL);
	KUNIT_EXPECT_GT(test, rounds, 50UL);
	for (i = 0; i < TCP_DRWA_BINS; i++) {
		told[0] += test_counted(test->priv, TCP_DRWA_DELAY_US + i);
		told[1] += test_counted(test->priv, TCP_DRWA_RTT_US + i);
	}
	KUNIT_EXPECT_EQ(test, told[0], told[1]);
	KUNIT_EXPECT_LE(test, told[0], rounds);
	/* 2^16 <= 100000 us < 2^17 */
	KUNIT_EXPECT_GT(test, test_counted(test->priv, TCP_DRWA_RTT_US + 7), rounds / 2);
}

static void tcp_drwa_buffers_untouched(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rcvbuf = sk->sk_rcvbuf;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 0);
	test_sock_run(tp, 20);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 1);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, rcvbuf);
}

/* Beside one that is governed, an interface that is not costs nothing. */
static void tcp_drwa_off_beside_others(struct kunit *test)
{
	struct net_device *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	tcp_drwa_rtt_sample(sk, 100000);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 0U);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_ROUNDS), 0UL);
	test_dev_free(other);
}

static void tcp_drwa_handshake(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct net_device *other = test_dev_new(test);
	struct sock *sk = (struct sock *)tp;

	tp->rcv_wnd = 3 << 20;
	tp->srtt_us = 40000 << 3;
	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_EQ(test, tp->rcv_wnd, 3U << 20);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	tp->rx_opt.saw_tstamp = 0;
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_EQ(test, tp->rcv_wnd, 3U << 20);
	/* The window of a SYN has no scale. */
	tp->rx_opt.saw_tstamp = 1;
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_EQ(test, tp->rcv_wnd, 65535U);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 40000U);
	test_dev_free(other);
}

/* The peer sends no timestamps any more, and later does again. */
static void tcp_drwa_clock_goes(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int i;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* A round without data is none without timestamps. */
	for (i = 0; i < 3; i++) {
		tp->tcp_mstamp += TEST_SECOND_US;
		tcp_drwa_space_adjust(sk);
	}
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	tp->rx_opt.saw_tstamp = 0;
	for (i = 0; i < 2; i++) {
		tp->tcp_mstamp += TEST_SECOND_US;
		tp->rcv_nxt += 100000;
		tcp_drwa_space_adjust(sk);
	}
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 250000), 250000U);
	tp->rx_opt.saw_tstamp = 1;
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
}

static void tcp_drwa_switched_off(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct net_device *other = test_dev_new(test);

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* One of two: at the end of the round */
	KUNIT_EXPECT_EQ(test, test_write(other, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 250000), 250000U);
	KUNIT_EXPECT_EQ(test, (int)tp->drwa.lambda, 0);
	/* And on again */
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* The last one: at once, when the hooks go */
	KUNIT_EXPECT_EQ(test, test_write(other, "0"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 250000), 250000U);
	/* The interface goes in a flow. */
	KUNIT_EXPECT_EQ(test, test_write(other, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	unregister_netdev(test->priv);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	test_dev_free(other);
}

static struct kunit_case tcp_drwa_cases[] = {
	KUNIT_CASE(tcp_drwa_knob_values),
	KUNIT_CASE(tcp_drwa_knob_counts),
	KUNIT_CASE(tcp_drwa_knob_none),
	KUNIT_CASE(tcp_drwa_knob_renamed),
	KUNIT_CASE(tcp_drwa_knob_unregistered),
#ifdef CONFIG_NET_NS
	KUNIT_CASE(tcp_drwa_knob_moved),
#endif
	KUNIT_CASE(tcp_drwa_queue_values),
	KUNIT_CASE(tcp_drwa_queue_shared),
	KUNIT_CASE(tcp_drwa_queue_followed),
	KUNIT_CASE(tcp_drwa_off_is_absent),
	KUNIT_CASE(tcp_drwa_off_beside_others),
	KUNIT_CASE(tcp_drwa_caps),
	KUNIT_CASE(tcp_drwa_keeps_right_edge),
	KUNIT_CASE(tcp_drwa_rmem_limits),
	KUNIT_CASE(tcp_drwa_which_interface),
	KUNIT_CASE(tcp_drwa_stands_aside),
	KUNIT_CASE(tcp_drwa_governs),
	KUNIT_CASE(tcp_drwa_buffers_untouched),
	KUNIT_CASE(tcp_drwa_handshake),
	KUNIT_CASE(tcp_drwa_clock_goes),
	KUNIT_CASE(tcp_drwa_switched_off),
	{}
};

static struct kunit_suite tcp_drwa_suite = {
	.name = "tcp_drwa",
	.init = tcp_drwa_test_init,
	.exit = tcp_drwa_test_exit,
	.test_cases = tcp_drwa_cases,
};

kunit_test_suites(&tcp_drwa_core_suite, &tcp_drwa_suite);
