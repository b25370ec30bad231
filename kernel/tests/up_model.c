// SPDX-License-Identifier: GPL-2.0-only
/* A modem's queue in user space, for the gate's law, net/sched/drwa_up_core.c
 *
 * Uploads that always have something to send, and queries, share a phone's gate and
 * the modem behind it: a FIFO whose packets cross no sooner than a grant after they
 * came, at a constant rate or at mahimahi's opportunities. Servers answer every
 * second packet of an upload, and each query. What no packet of a link takes is lost.
 *
 * What counts is measured in the lab, on the real kernel; this runs a minute in some
 * hundredths of a second. Times are in us and wrap in the law alone.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/drwa_up.h>

#define STEP_US		500
#define MSS		1448
#define WIRE_BYTES	1500
#define QUERY_BYTES	84
#define ACK_BYTES	60
#define DELACK_US	40000
#define QUEUE		(1 << 14)
#define ANSWERS		(1 << 16)
#define SPAN_US		100000
#define ASKS_US		5000
#define DOWN_PERIOD_US	4000000

/* SYN, request, and windows of ten segments and twice as many each round: 70 of them */
#define FETCH_ROUNDS	5
#define FETCH_MARKS	2

/* Who holds the modem's queue */
enum gate { GATE_LAW, GATE_OCCUPANCY, GATE_NONE };

/* A download is asked for once, and its segments come at @down_bps, with a clock; a fetch of
 * 100 kB is asked for again and again, by connections of their own.
 */
enum kind { KIND_UPLOAD, KIND_QUERY, KIND_DOWNLOAD, KIND_FETCH };

/* What a server's clock tells, and how it answers */
enum server {
	SERVER_HONEST,
	SERVER_NO_CLOCK,
	SERVER_SILENT,		/* answers, but nobody can tell what */
	SERVER_DEAD,		/* never answers */
	SERVER_EARLY_CLOCK,	/* claims that nothing ever waited */
	SERVER_LATE_CLOCK,	/* claims @claim_us more, but for 0.1 s in four */
	SERVER_EARLY,		/* answers what has just left, without having it */
	SERVER_LATE,		/* holds its answers back for 0.3 s, ditto */
	SERVER_SAME,		/* a query's name is that of the one before */
};

/* Must match up_model.py. */
struct up_flow_config {
	s64 start_us;
	s64 stop_us;		/* 0: never */
	s64 interval_us;	/* of queries, and after a fetch */
	s64 drift_ppm;
	s64 tick_us;		/* of the server's clock */
	s64 base_us;		/* its way there and back, beyond the radio's */
	s64 claim_us;
	s64 short_each;		/* so many packets of an upload are one short one, 0: none */
	int32_t kind;
	int32_t server;
};

struct up_event {
	s64 at_us;
	s64 rate_bps;		/* -1: as it was */
	s64 base_rtt_us;	/* -1: as it was */
};

struct up_config {
	s64 duration_us;
	s64 target_us;
	s64 rate_bps;
	const u32 *opportunity_ms; /* in place of a rate; the last one is the period */
	s64 opportunities;
	s64 base_rtt_us;
	s64 grant_us;
	s64 firmware_bytes;
	s64 loss_ppm;
	s64 fade_us;		/* of each half second, in which nothing comes back */
	s64 burst_us;		/* answers come back together, once in that time */
	s64 down_bps;		/* of a download beside the rest */
	s64 down_queue_us;	/* its queue, which grows to that and goes in turn */
	s64 clock_us;		/* at the start */
	s64 bytes;		/* counter at the start */
	s64 seed;
	s64 told_us;		/* between the modem's words, 0: it says nothing */
	s64 told_late_us;	/* 64 ms at most */
	s64 told_from_us;	/* it says nothing before */
	s64 told_until_us;	/* then it says nothing any more, 0: never */
	s64 told_more_bytes;	/* that it claims to hold beyond what is there */
	s64 told_more_us;	/* from then on */
	int32_t gate;
	int32_t flows;
	int32_t events;
};

struct up_result {
	s64 crossed_bytes;	/* wire bytes of all that crossed */
	s64 capacity_bytes;
	s64 max_queue_bytes;
	s64 mean_queue_us;
	s64 asides;		/* flows whose clock is not believed at the end */
	s64 fetch_us;		/* what fetches took, on average */
	struct tc_drwa_up_xstats law;
};

struct packet {
	int flow;
	u32 len;
	u32 end;
	s64 in_us;
};

struct answer {
	s64 at_us;
	s64 sent_us;
	u32 end;
	u32 clock_us;
	int flow;
	int clock;
};

struct flow {
	u32 sent;		/* sequence number, or the count of queries */
	u32 pending;		/* received and not answered */
	int count;
	s64 pending_us;
	s64 next_us;
	s64 arrived_us;		/* at its server, of the last packet */
	s64 packets;
	int round;		/* of a fetch */
	u32 fetches;
	s64 fetch_us;		/* all of them */
	s64 began_us;
};

static struct packet queue[QUEUE];
static struct answer answers[ANSWERS];

static struct {
	const struct up_config *c;
	const struct up_flow_config *f;
	struct drwa_up law;
	struct flow flow[256];
	unsigned int turn, head, tail, answer_head, answer_tail;
	s64 bytes, total, now, rate_bps, up_us, down_us;
	s64 asks_us;		/* the gate's clock, until which it is shut without news */
	u64 random;
	struct up_result *r;
	s64 *flow_bytes;
	s64 *rtt_us;
	s64 rtts;
} m;

static u32 draw(void)
{
	m.random = m.random * 6364136223846793005ull + 1442695040888963407ull;
	return m.random >> 33;
}

static u32 law_now(void)
{
	return (u32)(m.c->clock_us + m.now);
}

/* The server's clock, in us, as TSval * 1000 tells it */
static u32 server_clock(const struct up_flow_config *f, s64 at_us)
{
	s64 us = at_us + at_us * f->drift_ppm / 1000000;

	return (u32)(us / f->tick_us * 1000 + 123456789);
}

/* What an answer waits for on its way back; nothing overtakes below half a period. */
static s64 down_queue_us(s64 at_us)
{
	s64 part_us = at_us % DOWN_PERIOD_US;

	return m.c->down_queue_us * min(part_us, DOWN_PERIOD_US - part_us) /
	       (DOWN_PERIOD_US / 2);
}

static void answer(int flow, u32 end, s64 arrived_us, s64 sent_us)
{
	const struct up_flow_config *f = &m.f[flow];
	s64 phase = arrived_us % 2000000, back_us = m.down_us + f->base_us / 2;
	s64 claimed_us = arrived_us, at_us;
	unsigned int at;

	if (f->server == SERVER_DEAD)
		return;
	at_us = arrived_us + back_us + down_queue_us(arrived_us);
	if (m.c->burst_us)
		at_us = (at_us / m.c->burst_us + 1) * m.c->burst_us;
	if (at_us % 500000 < m.c->fade_us)
		at_us += m.c->fade_us - at_us % 500000;
	if (f->server == SERVER_LATE && phase < 1000000)
		at_us += 300000;
	if (f->server == SERVER_EARLY_CLOCK)
		claimed_us = sent_us + m.up_us;
	if (f->server == SERVER_LATE_CLOCK && arrived_us % 4000000 >= 100000)
		claimed_us += f->claim_us;
	/* They come in the order of their times, whoever held some back. */
	for (at = m.answer_tail++; at != m.answer_head; at--) {
		if (answers[(at - 1) % ANSWERS].at_us <= at_us)
			break;
		answers[at % ANSWERS] = answers[(at - 1) % ANSWERS];
	}
	answers[at % ANSWERS] = (struct answer){
		.at_us = at_us, .sent_us = sent_us, .end = end,
		.clock_us = server_clock(f, claimed_us), .flow = flow,
		.clock = f->server != SERVER_NO_CLOCK && f->kind != KIND_QUERY,
	};
}

static u32 key(int flow)
{
	return 1000 + flow + 1000 * m.flow[flow].fetches;
}

static void enqueue(int flow, u32 len, u32 end);

/* What the server sends in a round has come. */
static void fetch_goes_on(int i)
{
	struct flow *flow = &m.flow[i];

	if (flow->round > FETCH_MARKS)
		drwa_up_heard(&m.law, WIRE_BYTES * 10 << (flow->round - FETCH_MARKS - 1));
	if (flow->round++ < FETCH_ROUNDS) {
		flow->sent += flow->round <= FETCH_MARKS ? QUERY_BYTES : 0;
		enqueue(i, QUERY_BYTES, flow->sent);
		return;
	}
	flow->round = 0;
	flow->fetches++;
	flow->fetch_us += m.now - flow->began_us;
	flow->next_us = m.now + m.f[i].interval_us;
}

static void hear(void)
{
	while (m.answer_head != m.answer_tail &&
	       answers[m.answer_head % ANSWERS].at_us <= m.now) {
		struct answer a = answers[m.answer_head++ % ANSWERS];
		const struct up_flow_config *f = &m.f[a.flow];

		drwa_up_heard(&m.law, ACK_BYTES);
		if (f->kind == KIND_QUERY)
			m.rtt_us[m.rtts++] = m.now - a.sent_us;
		if (f->server != SERVER_SILENT &&
		    drwa_up_answer(&m.law, key(a.flow), a.end,
				   a.clock ? &a.clock_us : NULL, law_now()))
			m.asks_us = 0;
		if (f->kind == KIND_FETCH)
			fetch_goes_on(a.flow);
	}
}

/* A download's segments, and when they left, as their server's clock has it */
static void come(void)
{
	s64 left_us = m.now - m.down_us - down_queue_us(m.now);
	u32 clock_us;
	int i;

	drwa_up_heard(&m.law, m.c->down_bps / 8 * STEP_US / 1000000);
	for (i = 0; i < m.c->flows; i++) {
		if (m.f[i].kind != KIND_DOWNLOAD || !m.flow[i].sent ||
		    m.now < m.flow[i].next_us)
			continue;
		clock_us = server_clock(&m.f[i], left_us);
		if (drwa_up_answer(&m.law, key(i), m.flow[i].sent,
				   m.f[i].server == SERVER_NO_CLOCK ? NULL : &clock_us,
				   law_now()))
			m.asks_us = 0;
	}
}

static void arrive(const struct packet *p)
{
	const struct up_flow_config *f = &m.f[p->flow];
	struct flow *flow = &m.flow[p->flow];
	s64 at_us = m.now + m.up_us + f->base_us / 2;

	m.r->crossed_bytes += p->len;
	m.flow_bytes[p->flow] += p->len;
	/* A shorter path does not let packets overtake. */
	at_us = max(at_us, m.flow[p->flow].arrived_us);
	m.flow[p->flow].arrived_us = at_us;
	if (m.c->loss_ppm && draw() % 1000000 < m.c->loss_ppm)
		return;
	if (f->server == SERVER_EARLY)
		return;
	if (f->kind == KIND_QUERY || f->kind == KIND_FETCH) {
		answer(p->flow, p->end, at_us, p->in_us);
		return;
	}
	flow->pending = p->end;
	flow->pending_us = at_us;
	if (++flow->count < 2)
		return;
	flow->count = 0;
	answer(p->flow, p->end, at_us, p->in_us);
}

static void enqueue(int flow, u32 len, u32 end)
{
	const struct up_flow_config *f = &m.f[flow];
	int kind = f->kind == KIND_QUERY ? DRWA_UP_EXACT : DRWA_UP_UPTO;

	queue[m.tail++ % QUEUE] = (struct packet){
		.flow = flow, .len = len, .end = end, .in_us = m.now,
	};
	m.bytes += len;
	m.total += len;
	drwa_up_release(&m.law, len);
	/* An ACK without data is no mark. */
	if (f->server != SERVER_SILENT && m.flow[flow].round <= FETCH_MARKS)
		drwa_up_mark(&m.law, key(flow), kind, end, law_now());
	if (f->server == SERVER_EARLY)
		answer(flow, end, m.now - m.down_us, m.now);
}

static void tell(s64 step)
{
	static s64 crossed[128];
	s64 late = m.c->told_late_us / STEP_US, more, grant;

	crossed[step % 128] = m.total - m.bytes;
	if (!m.c->told_us || step < late || m.now % m.c->told_us >= STEP_US ||
	    m.now < m.c->told_from_us ||
	    (m.c->told_until_us && m.now >= m.c->told_until_us))
		return;
	more = m.now >= m.c->told_more_us ? m.c->told_more_bytes : 0;
	/* Probes pass a modem that is full. */
	grant = m.c->firmware_bytes - more - (m.total - crossed[(step - late) % 128]);
	drwa_up_told(&m.law, max(grant, 0ll), m.c->told_late_us, law_now());
	m.asks_us = 0;
}

static int active(int flow)
{
	const struct up_flow_config *f = &m.f[flow];

	return m.now >= f->start_us && (!f->stop_us || m.now < f->stop_us);
}

static int is_open(s64 recent_bytes)
{
	if (m.bytes >= m.c->firmware_bytes)
		return 0;
	switch (m.c->gate) {
	case GATE_LAW:
		/* As the qdisc does: anew when something was answered, or after some time. */
		if (m.now < m.asks_us)
			return 0;
		if (drwa_up_room(&m.law, law_now()))
			return 1;
		m.asks_us = m.now + ASKS_US;
		return 0;
	case GATE_OCCUPANCY:
		return m.bytes < max(recent_bytes * m.c->target_us / SPAN_US,
				     (s64)2 * WIRE_BYTES);
	}
	return 1;
}

static void send(s64 recent_bytes)
{
	int i, j, sent, brief;

	for (i = 0; i < m.c->flows; i++) {
		struct flow *flow = &m.flow[i];

		if (m.f[i].kind == KIND_DOWNLOAD && active(i) && !flow->sent) {
			flow->next_us = m.now + m.up_us + m.down_us;
			enqueue(i, QUERY_BYTES, ++flow->sent);
		}
		if (m.f[i].kind == KIND_FETCH && active(i) && !flow->round &&
		    m.now >= flow->next_us) {
			flow->round = 1;
			flow->began_us = m.now;
			enqueue(i, QUERY_BYTES, ++flow->sent);
		}
		if (m.f[i].kind != KIND_QUERY || !active(i) || m.now < flow->next_us)
			continue;
		flow->next_us = m.now + m.f[i].interval_us;
		if (m.f[i].server != SERVER_SAME || !flow->sent)
			flow->sent++;
		enqueue(i, QUERY_BYTES, flow->sent);
	}
	do {
		sent = 0;
		for (j = 0; j < m.c->flows && is_open(recent_bytes); j++) {
			i = m.turn++ % m.c->flows;
			if (m.f[i].kind != KIND_UPLOAD || !active(i))
				continue;
			brief = m.f[i].short_each && ++m.flow[i].packets % m.f[i].short_each == 0;
			m.flow[i].sent += MSS;
			enqueue(i, brief ? QUERY_BYTES : WIRE_BYTES, m.flow[i].sent);
			sent = 1;
		}
	} while (sent);
}

/* Does the head of the queue have its grant? */
static int granted(void)
{
	return m.head != m.tail && queue[m.head % QUEUE].in_us + m.c->grant_us <= m.now;
}

static void cross(double *credit)
{
	while (granted() && *credit >= queue[m.head % QUEUE].len) {
		const struct packet *p = &queue[m.head++ % QUEUE];

		*credit -= p->len;
		m.bytes -= p->len;
		arrive(p);
	}
	if (!granted())
		*credit = 0;
}

/**
 * up_model() - run it
 * @c:		link, modem and gate
 * @f:		c->flows of them, 256 at most
 * @e:		c->events of them, by time
 * @r:		gets what came of it
 * @flow_bytes:	gets the bytes of each flow that crossed
 * @rtt_us:	gets the times of the queries that were answered
 *
 * Return: how many these are.
 */
s64 up_model(const struct up_config *c, const struct up_flow_config *f,
	     const struct up_event *e, struct up_result *r, s64 *flow_bytes, s64 *rtt_us)
{
	s64 recent[SPAN_US / STEP_US] = {}, turn_us = 0, queue_us = 0, steps = 0;
	const struct up_event *end = e + c->events;
	double credit = 0, capacity = 0;
	s64 opportunity = 0;
	int fetches = 0, i;

	memset(&m, 0, sizeof(m));
	memset(r, 0, sizeof(*r));
	m.c = c;
	m.f = f;
	m.r = r;
	m.flow_bytes = flow_bytes;
	m.rtt_us = rtt_us;
	m.rate_bps = c->rate_bps;
	m.up_us = c->base_rtt_us / 2;
	m.down_us = c->base_rtt_us - m.up_us;
	m.random = c->seed;
	drwa_up_reset(&m.law, c->target_us, law_now());
	m.law.released = c->bytes;
	m.law.crossed = c->bytes;

	for (; m.now < c->duration_us; m.now += STEP_US) {
		s64 *slot = &recent[steps % (SPAN_US / STEP_US)];

		for (; e < end && e->at_us <= m.now; e++) {
			if (e->rate_bps >= 0)
				m.rate_bps = e->rate_bps;
			if (e->base_rtt_us >= 0) {
				m.up_us = e->base_rtt_us / 2;
				m.down_us = e->base_rtt_us - m.up_us;
			}
		}
		for (i = 0; i < c->flows; i++) {
			struct flow *flow = &m.flow[i];

			if (flow->count && flow->pending_us + DELACK_US <= m.now) {
				flow->count = 0;
				answer(i, flow->pending, m.now, m.now);
			}
		}
		if (m.now % 500000 >= c->fade_us)
			come();
		hear();
		tell(steps);
		send(r->crossed_bytes - *slot);
		*slot = r->crossed_bytes;
		if (c->opportunities) {
			while (c->opportunity_ms[opportunity] * 1000ll + turn_us <= m.now) {
				capacity += WIRE_BYTES;
				credit += WIRE_BYTES;
				cross(&credit);
				if (++opportunity == c->opportunities) {
					turn_us += c->opportunity_ms[--opportunity] * 1000ll;
					opportunity = 0;
				}
			}
		} else {
			capacity += m.rate_bps / 8e6 * STEP_US;
			credit += m.rate_bps / 8e6 * STEP_US;
			cross(&credit);
		}
		r->max_queue_bytes = max(r->max_queue_bytes, m.bytes);
		if (m.head != m.tail)
			queue_us += m.now - queue[m.head % QUEUE].in_us;
		steps++;
	}
	r->capacity_bytes = (s64)capacity;
	r->mean_queue_us = queue_us / steps;
	for (i = 0; i < c->flows; i++) {
		fetches += m.flow[i].fetches;
		r->fetch_us += m.flow[i].fetch_us;
	}
	r->fetch_us /= max(1, fetches);
	for (i = 0; i < DRWA_UP_FLOWS; i++)
		r->asides += m.law.flow[i].used && m.law.flow[i].aside;
	drwa_up_report(&m.law, law_now(), &r->law);
	return m.rtts;
}
