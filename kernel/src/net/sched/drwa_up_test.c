// SPDX-License-Identifier: GPL-2.0-only
/* DRWA on the uplink: KUnit suite of the gate's law
 *
 * It holds the law to what it promises, not to its numbers: a link that is full
 * with a short queue, found again when rate or path change, and never to the harm
 * of who shares it with servers that answer otherwise, or not at all.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "drwa_up_core.c"

#define TEST_MS			1000U
#define TEST_SECOND_US		1000000U
#define TEST_PACKET		1500U
#define TEST_QUERY		84U
#define TEST_MODEM	600000	/* bytes that it takes */
#define TEST_QUEUE		1024U
#define TEST_SEED		20121114ULL
/* Any offset between the two clocks, and counters that wrap within seconds */
#define TEST_CLOCKS_US		0xdeadbeefU
#define TEST_EARLY		(0U - 3 * TEST_SECOND_US)

#define TEST_UPLOAD		1U
#define TEST_PROBES		2U

enum test_server {
	TEST_HONEST,
	TEST_SILENT,		/* answers, and nobody can tell what */
	TEST_DEAD,		/* TCP that never answers */
	TEST_SLOW_CLOCK,	/* claims 40 ms more, but for 0.1 s in four */
	TEST_FAST_CLOCK,	/* claims that nothing ever waited */
};

struct test_packet {
	u32	us;
	u32	end;
	u32	len;
	u32	key;
};

struct test_answer {
	u32	us;
	u32	end;
	u32	clock_us;
	u32	key;
};

/* A modem, one upload that always has something to send, and queries beside it */
struct test_modem {
	struct drwa_up		law;
	struct test_packet	queue[TEST_QUEUE];
	struct test_answer	answer[TEST_QUEUE];
	u32			head;
	u32			tail;
	u32			first;
	u32			last;
	u32			start_us;
	u32			now_us;
	u32			rate_byte_ms;
	u32			base_us;
	u32			credit;
	u32			queued;		/* bytes */
	u32			most;		/* of them, since it was cleared */
	u32			sent;
	u32			queries;
	u32			crossed;
	bool			probes;
	bool			told;
	u32			more;		/* bytes that it claims to have */
	enum test_server	server;
};

static struct test_modem *test_modem(struct kunit *test)
{
	struct test_modem *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, m);
	m->rate_byte_ms = 625;	/* 5 Mb/s */
	m->base_us = 50 * TEST_MS;
	m->start_us = TEST_EARLY;
	m->now_us = TEST_EARLY;
	m->probes = true;
	drwa_up_reset(&m->law, DRWA_UP_TARGET_US, m->now_us);
	m->law.released = TEST_EARLY;
	m->law.crossed = TEST_EARLY;
	return m;
}

static void test_release(struct test_modem *m, u32 key, u32 len, u32 end)
{
	enum drwa_up_kind kind = key == TEST_PROBES ? DRWA_UP_EXACT : DRWA_UP_UPTO;

	m->queue[m->tail++ % TEST_QUEUE] = (struct test_packet){
		.us = m->now_us, .end = end, .len = len, .key = key,
	};
	m->queued += len;
	m->most = max(m->most, m->queued);
	drwa_up_release(&m->law, len);
	if (key == TEST_PROBES || m->server != TEST_SILENT)
		drwa_up_mark(&m->law, key, kind, end, m->now_us);
}

static void test_arrive(struct test_modem *m, const struct test_packet *p)
{
	u32 clock_us = m->now_us;

	if (p->key == TEST_UPLOAD) {
		m->crossed += p->len;
		if (m->server == TEST_SILENT || m->server == TEST_DEAD)
			return;
		if (m->server == TEST_SLOW_CLOCK &&
		    (m->now_us - m->start_us) % (4 * TEST_SECOND_US) > 100 * TEST_MS)
			clock_us += 40 * TEST_MS;
		if (m->server == TEST_FAST_CLOCK)
			clock_us = p->us;
	}
	m->answer[m->last++ % TEST_QUEUE] = (struct test_answer){
		.us = m->now_us + m->base_us,
		.end = p->end, .key = p->key,
		.clock_us = clock_us / TEST_MS * TEST_MS + TEST_CLOCKS_US,
	};
}

static void test_hear(struct test_modem *m)
{
	const struct test_answer *a = &m->answer[m->first % TEST_QUEUE];

	for (; m->first != m->last && (s32)(m->now_us - a->us) >= 0;
	     a = &m->answer[++m->first % TEST_QUEUE]) {
		drwa_up_heard(&m->law, 60);
		drwa_up_answer(&m->law, a->key, a->end,
			       a->key == TEST_UPLOAD ? &a->clock_us : NULL, m->now_us);
	}
}

static void test_run(struct test_modem *m, u32 us)
{
	u32 end_us = m->now_us + us;

	for (; m->now_us != end_us; m->now_us += TEST_MS) {
		test_hear(m);
		if (m->told && (m->now_us - m->start_us) % (5 * TEST_MS) == 0)
			drwa_up_told(&m->law, TEST_MODEM - min(TEST_MODEM, m->queued + m->more), 0,
				     m->now_us);
		if (m->probes && (m->now_us - m->start_us) % (50 * TEST_MS) == 0)
			test_release(m, TEST_PROBES, TEST_QUERY, ++m->queries);
		while (m->tail - m->head < TEST_QUEUE / 2 &&
		       drwa_up_room(&m->law, m->now_us)) {
			m->sent += TEST_PACKET;
			test_release(m, TEST_UPLOAD, TEST_PACKET, m->sent);
		}
		m->credit += m->rate_byte_ms;
		while (m->head != m->tail &&
		       m->queue[m->head % TEST_QUEUE].len <= m->credit) {
			const struct test_packet *p = &m->queue[m->head++ % TEST_QUEUE];

			m->credit -= p->len;
			m->queued -= p->len;
			test_arrive(m, p);
		}
		if (m->head == m->tail)
			m->credit = 0;
	}
}

/* Percent of the link that the upload has in so long a time */
static u32 test_use(struct test_modem *m, u32 us)
{
	u32 before = m->crossed;

	m->most = 0;
	test_run(m, us);
	return (m->crossed - before) / (us / TEST_MS) * 100 / m->rate_byte_ms;
}

static u32 test_most_ms(const struct test_modem *m)
{
	return m->most / m->rate_byte_ms;
}

static void full_and_short(struct kunit *test)
{
	static const u32 rates[] = { 63, 125, 625, 2500 };
	struct test_modem *m;
	int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		m = test_modem(test);
		m->rate_byte_ms = rates[i];
		test_run(m, 3 * TEST_SECOND_US);
		KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 92U);
		/* The target, a packet that leaves and another one */
		KUNIT_EXPECT_LE(test, test_most_ms(m), 30 + 3 * TEST_PACKET / rates[i]);
		KUNIT_EXPECT_EQ(test, m->law.opened, 0U);
		kunit_kfree(test, m);
	}
}

static void slower_link(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	test_run(m, 5 * TEST_SECOND_US);
	m->rate_byte_ms = 125;
	test_run(m, 2 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 10 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 70U);
	m->rate_byte_ms = 1250;
	test_run(m, 4 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 10 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 40U);
}

static void another_path(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	test_run(m, 5 * TEST_SECOND_US);
	m->base_us = 150 * TEST_MS;
	test_run(m, 12 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 85U);
	m->base_us = 50 * TEST_MS;
	test_run(m, 2 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 30U);
}

static struct drwa_up_flow *test_flow(struct kunit *test, struct test_modem *m, u32 key)
{
	struct drwa_up_flow *f, *found = NULL;

	for (f = m->law.flow; f < m->law.flow + DRWA_UP_FLOWS; f++)
		if (f->used && f->key == key)
			found = f;
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, found);
	return found;
}

/* In a DRAIN nobody met more than a packet and a grant, and one met two packets. */
static void no_other_path(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	struct drwa_up_flow *probes;
	u32 jumps;

	m->rate_byte_ms = 125;
	test_run(m, 8 * TEST_SECOND_US);
	jumps = m->law.jumps;
	probes = test_flow(test, m, TEST_PROBES);
	drwa_up_release(&m->law, TEST_QUERY);
	drwa_up_mark(&m->law, TEST_PROBES, DRWA_UP_EXACT, ++m->queries, m->now_us);
	m->law.phase = DRWA_UP_DRAIN;
	m->law.deep = 1;
	m->law.drain_emptied = 1;
	m->law.drain_from_us = m->now_us - TEST_SECOND_US;
	m->law.clock = 0;
	m->law.drain_late_us = 25 * TEST_MS;
	m->now_us += probes->rtt_min_us + 16 * TEST_MS;
	drwa_up_answer(&m->law, TEST_PROBES, m->queries, NULL, m->now_us);
	KUNIT_EXPECT_EQ(test, m->law.phase, DRWA_UP_HOLD);
	KUNIT_EXPECT_EQ(test, m->law.jumps, jumps);
}

static void silent_radio(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	test_run(m, 5 * TEST_SECOND_US);
	m->rate_byte_ms = 0;
	m->most = 0;
	test_run(m, 3 * TEST_SECOND_US);
	/* A tenth of what comes */
	KUNIT_EXPECT_LE(test, m->most, TEST_QUEUE / 2 / 10 * TEST_PACKET);
	m->rate_byte_ms = 625;
	test_run(m, 2 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 5 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_EQ(test, m->law.opened, 0U);
}

/* At once where nobody is asked, within a second where TCP is, and it closes again. */
static void nobody_answers(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	m->probes = false;
	m->server = TEST_SILENT;
	test_run(m, TEST_MS);
	KUNIT_EXPECT_EQ(test, m->law.phase, DRWA_UP_OPEN);
	m->server = TEST_HONEST;
	test_run(m, 15 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 10 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 40U);

	m = test_modem(test);
	m->probes = false;
	m->server = TEST_DEAD;
	test_run(m, 900 * TEST_MS);
	KUNIT_EXPECT_NE(test, m->law.phase, DRWA_UP_OPEN);
	KUNIT_EXPECT_LE(test, m->sent, 16 * TEST_PACKET);
	test_run(m, 700 * TEST_MS);
	KUNIT_EXPECT_LE(test, m->sent, 128 * TEST_PACKET);
	test_run(m, 600 * TEST_MS);
	KUNIT_EXPECT_EQ(test, m->law.phase, DRWA_UP_OPEN);
}

static void queries_are_enough(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	m->server = TEST_SILENT;
	test_run(m, 5 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 10 * TEST_SECOND_US), 85U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 60U);
	/* They end: what left before leaves still, then the gate opens. */
	m->probes = false;
	KUNIT_EXPECT_GE(test, test_use(m, 4 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_EQ(test, m->law.phase, DRWA_UP_OPEN);
}

static void servers_lie(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	m->server = TEST_SLOW_CLOCK;
	test_run(m, 5 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 90U);

	m = test_modem(test);
	m->server = TEST_FAST_CLOCK;
	test_run(m, 5 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 90U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 230U);
}

static bool test_answered(struct test_modem *m, u32 key, u32 end)
{
	return drwa_up_answer(&m->law, key, end, NULL, m->now_us);
}

static void names(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	u32 i;

	for (i = 1; i <= 4; i++) {
		m->now_us += 20 * TEST_MS;
		test_release(m, TEST_PROBES, TEST_QUERY, i);
	}
	m->now_us += 50 * TEST_MS;
	KUNIT_EXPECT_FALSE(test, test_answered(m, TEST_PROBES, 5));
	KUNIT_EXPECT_FALSE(test, test_answered(m, TEST_UPLOAD, 2));
	KUNIT_EXPECT_TRUE(test, test_answered(m, TEST_PROBES, 2));
	/* It left before that one. */
	KUNIT_EXPECT_FALSE(test, test_answered(m, TEST_PROBES, 1));
	KUNIT_EXPECT_TRUE(test, test_answered(m, TEST_PROBES, 4));
	KUNIT_EXPECT_EQ(test, m->law.released - m->law.crossed, 0U);
	test_release(m, TEST_PROBES, TEST_QUERY, 5);
	/* It ends with the flow that another one of its name follows. */
	drwa_up_mark(&m->law, TEST_PROBES, DRWA_UP_FIRST, 6, m->now_us);
	KUNIT_EXPECT_FALSE(test, test_answered(m, TEST_PROBES, 5));
	KUNIT_EXPECT_TRUE(test, test_answered(m, TEST_PROBES, 6));
}

/* The qdisc is not run for each packet that left, but for those of half a target: three. */
static void asks_again(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	u32 crossed, end;
	bool again;

	test_run(m, 5 * TEST_SECOND_US);
	while (drwa_up_room(&m->law, m->now_us)) {
		m->sent += TEST_PACKET;
		test_release(m, TEST_UPLOAD, TEST_PACKET, m->sent);
	}
	crossed = m->law.crossed;
	for (end = 0; end != m->sent; end += TEST_PACKET) {
		again = test_answered(m, TEST_UPLOAD, end);
		if (m->law.crossed - crossed <= 2 * TEST_PACKET)
			KUNIT_EXPECT_FALSE(test, again);
		else if (m->law.crossed - crossed >= 3 * TEST_PACKET && again)
			break;
	}
	KUNIT_EXPECT_NE(test, end, m->sent);
}

/* Marks of flows without number stay within their places; whoever has one keeps it. */
static void many_flows(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	u32 key;

	KUNIT_EXPECT_LE(test, sizeof(m->law), 31000U);
	test_run(m, 2 * TEST_SECOND_US);
	for (key = 100; key < 20000; key++) {
		drwa_up_mark(&m->law, key, DRWA_UP_UPTO, 1, m->now_us);
		if (key % 16 == 0)
			test_run(m, TEST_MS);
	}
	test_flow(test, m, TEST_UPLOAD);
	KUNIT_EXPECT_GE(test, test_use(m, 5 * TEST_SECOND_US), 85U);
}

static void test_lists(struct kunit *test, const struct drwa_up *u)
{
	u32 held = 0, listed = 0, waiting, i;
	u16 at;

	for (i = 0; i < DRWA_UP_MARKS; i++)
		held += u->mark[i].flow < DRWA_UP_FLOWS;
	for (i = 0; i < DRWA_UP_FLOWS; i++) {
		if (!u->flow[i].used)
			continue;
		waiting = 0;
		for (at = u->flow[i].head; at != UP_NONE; at = u->mark[at].next) {
			KUNIT_ASSERT_LT(test, at, DRWA_UP_MARKS);
			KUNIT_ASSERT_EQ(test, u->mark[at].flow, i);
			KUNIT_ASSERT_LE(test, ++waiting, DRWA_UP_MARKS);
		}
		KUNIT_ASSERT_EQ(test, waiting, u->flow[i].waiting);
		listed += waiting;
	}
	KUNIT_ASSERT_EQ(test, held, listed);
}

/* Whatever is released, answered and told, in any order, at any time */
static void anything(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	struct drwa_up *u = &m->law;
	u32 now_us = TEST_EARLY, i, op, key, end, clock_us;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, TEST_SEED);
	for (i = 0; i < 100000; i++) {
		op = prandom_u32_state(&rnd);
		key = op >> 8 & 0x7f;
		end = prandom_u32_state(&rnd) % 200 * 500;
		clock_us = prandom_u32_state(&rnd);
		switch (op & 7) {
		case 0:
		case 1:
		case 2:
			drwa_up_release(u, 1 + (op >> 16) % TEST_PACKET);
			drwa_up_mark(u, key, key & 1 ? DRWA_UP_EXACT : DRWA_UP_UPTO, end,
				     now_us);
			break;
		case 3:
		case 4:
			drwa_up_answer(u, key, end, op >> 31 ? &clock_us : NULL, now_us);
			break;
		case 5:
			drwa_up_mark(u, key, DRWA_UP_FIRST, end, now_us);
			break;
		case 6:
			if (op & 8)
				drwa_up_told(u, clock_us >> 8, end, now_us);
			else
				drwa_up_heard(u, op >> 16);
			break;
		case 7:
			now_us += 1U << (op >> 16) % 28;
			break;
		}
		drwa_up_room(u, now_us);
		if (i % 64 == 0)
			test_lists(test, u);
	}
}

/* The modem's driver tells, so that nobody has to answer; and it may be wrong, or stop. */
static void driver_tells(struct kunit *test)
{
	struct test_modem *m = test_modem(test);

	m->told = true;
	m->probes = false;
	m->server = TEST_SILENT;
	test_run(m, 3 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 97U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 30U);
	m->more = 64000;
	test_run(m, 12 * TEST_SECOND_US);
	KUNIT_EXPECT_GE(test, test_use(m, 12 * TEST_SECOND_US), 97U);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 30U);
	KUNIT_EXPECT_EQ(test, m->law.opened, 0U);
	m->told = false;
	test_run(m, 2 * TEST_SECOND_US);
	KUNIT_EXPECT_EQ(test, m->law.phase, DRWA_UP_OPEN);
	m->told = true;
	test_run(m, 3 * TEST_SECOND_US);
	m->most = 0;
	test_run(m, 3 * TEST_SECOND_US);
	KUNIT_EXPECT_LE(test, test_most_ms(m), 30U);
}

/* ACKs that take another transmit queue, and fill the same of the modem's */
static void another_queue(struct kunit *test)
{
	struct test_modem *m = test_modem(test);
	u32 acks = 100 * TEST_PACKET;
	u32 released;

	m->probes = false;
	test_run(m, 10 * TEST_SECOND_US);
	drwa_up_release_other(&m->law, acks);
	KUNIT_EXPECT_GE(test, test_use(m, 2 * TEST_SECOND_US), 95U);
	KUNIT_EXPECT_EQ(test, m->law.opened, 0U);

	m->told = true;
	test_run(m, 10 * TEST_SECOND_US);
	released = m->law.released;
	drwa_up_release_other(&m->law, acks);
	KUNIT_EXPECT_EQ(test, m->law.released - released, acks);
}

static struct kunit_case drwa_up_cases[] = {
	KUNIT_CASE(full_and_short),
	KUNIT_CASE(slower_link),
	KUNIT_CASE(another_path),
	KUNIT_CASE(no_other_path),
	KUNIT_CASE(silent_radio),
	KUNIT_CASE(nobody_answers),
	KUNIT_CASE(queries_are_enough),
	KUNIT_CASE(servers_lie),
	KUNIT_CASE(driver_tells),
	KUNIT_CASE(another_queue),
	KUNIT_CASE(names),
	KUNIT_CASE(asks_again),
	KUNIT_CASE(many_flows),
	KUNIT_CASE(anything),
	{}
};

static struct kunit_suite drwa_up_suite = {
	.name = "drwa_up",
	.test_cases = drwa_up_cases,
};

kunit_test_suite(drwa_up_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit suite of the law of DRWA on the uplink");
