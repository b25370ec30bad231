// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer harness of the law, net/ipv4/tcp_drwa_core.c
 *
 * An input is a story of up to three connections over one link: flights of
 * data, forged timestamps, jumps of the clock and of the sequence numbers, the
 * knob, the law, the link's state. The binding (tcp_drwa.c) and the rule of
 * tcp_select_window() that the right edge never moves back are modelled, and
 * what the law promises is checked after each step.
 *
 * The story ends with an honest part: whatever happened before, and whatever a
 * hostile neighbour goes on doing, one connection over a link of constant rate
 * must come to use that link, and its queue must become short.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/tcp_drwa.h>

#define CONNECTIONS	3

/* The largest window that TCP can offer (RFC 7323, 2.3), and what it holds. */
#define WSCALE_MAX	14
#define FIELD_MAX	65535u

/* The binding's advmss: TCP_MAXSEG's least, and an IPv4 packet's most. */
#define MSS_MIN		88
#define MSS_MAX		65495

/* Longest sample that the law takes. */
#define RTT_MAX_US	60000000u

/* The honest part, see settles(). */
#define FIRST_WND	131070u
#define BLOCK_RTTS	32
/* A minute that its past may cost a connection; two DRAINs, each due within 15 s,
 * as a queue may hide a wrong base from the first one; the time that a queue
 * takes to go.
 */
#define SETTLE_US	100000000u
#define SETTLE_LAMBDA	125
#define SETTLE_BLOCKS	4
#define STAY_BLOCKS	4

/* The law's least window, and what it adds to lambda's part. */
#define FLOOR_MSS	4
#define CUSHION_MSS	1

/* The longest silence that is no outage */
#define SILENCE_MAX_US	(1u << 17)

/* A flight's segments come one by one; so many of them show how. */
#define HEARD_MOST	64u

/* DRAIN takes one part of so many off the window. */
#define DRAIN_PART	16u

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define check(condition)	check_line(condition, #condition, __LINE__)

struct story {
	const u8 *at;
	size_t left;
};

struct connection {
	struct drwa d;
	u32 rcv_nxt;
	u32 credited;
	u32 rcv_wup;
	u32 rcv_wnd;
	u32 kernel_wnd;
	u32 owd_offset_us;
	u32 least_rtt_us;
	u32 mss;
	u16 lambda;
	u8 wscale;
	bool blind;
};

struct world {
	u32 now_us;
	enum drwa_law law;
	struct drwa_link link;
	/* Bytes that came over it, whosever they are */
	u32 came;
	/* Bytes that the phone sent, without those of ACKs */
	u32 sent;
	struct connection connection[CONNECTIONS];
};

/* cost_core.c counts what the law costs, whatever it does. */
static bool keep_going;

static void check_line(bool condition, const char *text, int line)
{
	if (condition || keep_going)
		return;
	fprintf(stderr, "fuzz_core.c:%d: not true: %s\n", line, text);
	abort();
}

/* Next byte; zeros follow the end. */
static u8 take_byte(struct story *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->at++;
}

/* Any magnitude of 32 bits from two bytes: eleven bits and a shift. */
static u32 take_number(struct story *s)
{
	u32 number = take_byte(s);

	number |= (u32)take_byte(s) << 8;
	return (u32)((u64)(number & 0x7ff) << (number >> 11) % 22);
}

static u32 align_up(u32 bytes, u8 wscale)
{
	u32 mask = (1u << wscale) - 1;

	return (bytes + mask) & ~mask;
}

static void check_state(const struct connection *c, u32 least_wnd)
{
	const struct drwa *d = &c->d;

	if (!d->wnd) {
		/* Nothing is known: no sample came, no round of the classic law, or an upload's
		 * queue is in the RTT.
		 */
		check(!d->rtt_us || d->law == DRWA_LAW_CLASSIC || !d->clock);
		return;
	}
	check(d->wnd >= least_wnd);
	/* Half the sequence space, and two segments that a delayed ACK withholds. */
	check(d->wnd <= U32_MAX / 2 + 2 * c->mss + (1u << c->wscale));
	check(d->rtt_us >= c->least_rtt_us && d->rtt_us <= RTT_MAX_US);
	check(d->path_us && d->path_us <= RTT_MAX_US);
	check(d->phase <= DRWA_DRAIN);
	check(d->phase == DRWA_DRAIN || !d->rounds || d->phase == DRWA_HOLD);
}

/* __tcp_drwa_rtt_sample() */
static void sample(struct world *w, struct connection *c, u32 rtt_us, u32 owd_us)
{
	if (!c->d.rtt_us)
		c->least_rtt_us = RTT_MAX_US;
	if (rtt_us && rtt_us < c->least_rtt_us)
		c->least_rtt_us = rtt_us;
	if (c->d.rtt_us) {
		drwa_sample(&c->d, rtt_us, owd_us);
		return;
	}
	drwa_reset(&c->d, w->law);
	drwa_start(&c->d, w->now_us, c->rcv_nxt, rtt_us, owd_us, !c->blind);
}

/* __tcp_drwa_data_recv() */
static void data_recv(struct world *w, struct connection *c)
{
	if (c->d.rtt_us)
		drwa_credit(&w->link, c->rcv_nxt - c->credited);
	c->credited = c->rcv_nxt;
	drwa_heard(&w->link, w->now_us);
	if (!drwa_due(&c->d, &w->link, w->now_us))
		return;
	if (!c->lambda || c->d.law != w->law) {
		drwa_reset(&c->d, w->law);
		return;
	}
	c->d.lambda = c->lambda;
	drwa_round(&c->d, &w->link, w->now_us, c->rcv_nxt, c->mss);
	if (drwa_count_due(&c->d, &w->link, w->now_us)) {
		drwa_count(&w->link, w->now_us, c->d.rtt_us, w->came, w->sent);
		check(!drwa_count_due(&c->d, &w->link, w->now_us));
	}
	check(c->d.lambda == c->lambda);
	check(c->d.law == w->law);
	check(!drwa_due(&c->d, &w->link, w->now_us));
	c->d.wnd = align_up(c->d.wnd, c->wscale);
	check_state(c, min(2 * c->mss, U16_MAX));
}

static u32 tcp_receive_window(const struct connection *c)
{
	s32 window = c->rcv_wup + c->rcv_wnd - c->rcv_nxt;

	return window > 0 ? window : 0;
}

/* tcp_select_window(); returns the window that the sender sees, in bytes */
static u32 offer(struct connection *c)
{
	u32 edge = c->rcv_wup + c->rcv_wnd;
	u32 current = tcp_receive_window(c);
	u32 wnd = c->kernel_wnd;

	if (c->d.wnd)
		wnd = min(wnd, c->d.wnd);
	if (wnd < current)
		wnd = align_up(current, c->wscale);
	c->rcv_wnd = wnd;
	c->rcv_wup = c->rcv_nxt;
	check((s32)(c->rcv_wup + c->rcv_wnd - edge) >= 0);
	wnd = min(wnd, FIELD_MAX << c->wscale);
	check(c->kernel_wnd < 1u << c->wscale || wnd >> c->wscale);
	return wnd >> c->wscale << c->wscale;
}

static void receive(struct world *w, struct connection *c, u32 bytes)
{
	c->rcv_nxt += bytes;
	w->came += bytes;
}

/* Data that came until now, evenly, and the last of it is still to be taken */
static void hear(struct world *w, u32 segments, u32 us)
{
	u32 i;

	segments = min(segments, HEARD_MOST);
	for (i = 1; i < segments; i++)
		drwa_heard(&w->link, w->now_us - us + (u64)us * i / segments);
}

/* One flight that takes @rtt_us, and what the receiver does when it is in */
static void flight(struct world *w, struct connection *c, u32 bytes, u32 rtt_us,
		   u32 queue_us)
{
	w->now_us += rtt_us;
	receive(w, c, min(bytes, tcp_receive_window(c)));
	sample(w, c, rtt_us, c->owd_offset_us + queue_us);
	data_recv(w, c);
	offer(c);
}

static void take_setting(struct story *s, struct connection *c)
{
	u32 number = take_number(s);

	switch (take_byte(s) % 3) {
	case 0:
		c->lambda = DRWA_LAMBDA_MIN + number % (DRWA_LAMBDA_MAX - DRWA_LAMBDA_MIN + 1);
		break;
	case 1:
		c->lambda = 0;
		break;
	default:
		c->kernel_wnd = min(number, FIELD_MAX << c->wscale);
		break;
	}
}

/* A word of the link's state is a time, or any number. */
static void take_link(struct story *s, struct world *w)
{
	u32 words[offsetof(struct drwa_link, others) / sizeof(u32)];
	u8 which = take_byte(s);
	u32 number = take_number(s), i;

	i = which % (ARRAY_SIZE(words) + 3);
	if (i == ARRAY_SIZE(words)) {
		w->link.others = (u8)number;
	} else if (i == ARRAY_SIZE(words) + 1) {
		w->sent += number;
	} else if (i > ARRAY_SIZE(words)) {
		w->came += number;
	} else {
		memcpy(words, &w->link, sizeof(words));
		words[i] = which & 0x80 ? w->now_us - number : number;
		memcpy(&w->link, words, sizeof(words));
		/* The mean of what is no outage is none. */
		w->link.silence_us = min(w->link.silence_us, SILENCE_MAX_US);
	}
}

static void take_step(struct story *s, struct world *w)
{
	u8 step = take_byte(s);
	struct connection *c = &w->connection[(step >> 4) % CONNECTIONS];
	u32 rtt_us, owd_us, bytes;
	int times, queue;

	switch (step & 15) {
	case 0:
		rtt_us = take_number(s);
		owd_us = take_number(s);
		for (times = take_byte(s); times >= 0; times--)
			sample(w, c, rtt_us, owd_us);
		break;
	case 1:
		rtt_us = take_number(s);
		sample(w, c, rtt_us, c->owd_offset_us - take_number(s));
		break;
	case 2:
		w->now_us += take_number(s);
		break;
	case 3:
		/* TCP takes nothing beyond its window; the law must not rely on it. */
		receive(w, c, take_number(s));
		c->rcv_wup = c->rcv_nxt;
		c->rcv_wnd = 0;
		break;
	case 4:
		take_link(s, w);
		break;
	case 5:
		take_setting(s, c);
		break;
	case 6:
		w->law = w->law == DRWA_LAW_DELAY ? DRWA_LAW_CLASSIC : DRWA_LAW_DELAY;
		break;
	case 7:
		c->owd_offset_us += take_number(s);
		break;
	case 8:
		c->owd_offset_us -= take_number(s);
		break;
	case 9:
		drwa_reset(&c->d, DRWA_LAW_DELAY);
		break;
	default:
		rtt_us = take_number(s);
		bytes = take_number(s);
		queue = take_byte(s);
		times = step & 1 ? 1 : 1 + take_byte(s) % 16;
		while (times--)
			flight(w, c, bytes, rtt_us, (u64)rtt_us * queue / 255);
	}
	data_recv(w, c);
	offer(c);
}

/* The honest part, chosen at the beginning of the story. */
struct honest {
	u32 base_us;
	u32 bdp;
	u32 cwnd;
	bool patient;
	bool new;
	bool blind;
	/* Bits that a middlebox took off the window's scale. Among others nobody looks for them. */
	u8 lowered;
	enum drwa_law law;
	/* What a hostile neighbour forges. */
	bool neighbour;
	u32 forged_rtt_us;
	u32 forged_owd_us;
	u32 forged_step_us;
};

struct block {
	u64 bytes;
	u64 us;
	u32 wnd;
};

/* One story in sixteen. By all of its bytes: what mutation makes of a patient one, which
 * shows more than others and so is kept, shall not be patient, too. FNV-1a.
 */
static bool is_patient(const u8 *data, size_t size)
{
	u32 hash = 2166136261u;

	while (size--)
		hash = (hash ^ *data++) * 16777619u;
	return hash >> 28 == 0;
}

static void take_honest(struct story *s, struct honest *h)
{
	u8 flags = take_byte(s);
	u32 step_us, rate;

	h->neighbour = flags & 2;
	h->new = flags & 4;
	h->law = flags & 8 ? DRWA_LAW_CLASSIC : DRWA_LAW_DELAY;
	h->blind = flags & 16;
	h->lowered = h->new && !h->neighbour ? flags >> 5 & 3 : 0;
	h->base_us = 20000 + (take_byte(s) << 11);
	/* 0.3 to 100 Mb/s */
	rate = 37500 + take_number(s) % (12500000 - 37500);
	h->bdp = (u64)rate * h->base_us / 1000000;
	h->forged_rtt_us = take_number(s);
	step_us = take_number(s);
	h->forged_step_us = flags & 1 ? step_us : -step_us;
}

/* One RTT of a sender that fills what it may; returns the RTT. */
static u32 honest_rtt(struct world *w, struct honest *h, struct connection *c,
		      struct connection *neighbour, u32 *sent)
{
	u32 bytes = min(offer(c) >> h->lowered, h->cwnd);
	u32 rtt_us, tick_us;

	bytes = max(bytes, min(c->mss, offer(c)));

	/* Before the first round, what a SYN can offer: less than the longest segments. */
	check(bytes >= min(c->mss, U16_MAX >> c->wscale << c->wscale));
	if (bytes > c->mss)
		bytes -= bytes % c->mss;
	rtt_us = max(h->base_us, (u32)((u64)h->base_us * bytes / h->bdp));
	w->now_us += rtt_us;
	receive(w, c, bytes);
	hear(w, bytes / c->mss, min(rtt_us, (u32)((u64)h->base_us * bytes / h->bdp)));
	/* Timestamps tell milliseconds. */
	tick_us = w->now_us % 1000;
	sample(w, c, rtt_us, c->owd_offset_us + rtt_us - h->base_us + tick_us);
	data_recv(w, c);
	h->cwnd = min(2 * h->cwnd, max(8 * h->bdp, 10 * c->mss));
	/* Auto-tuning stays ahead of the sender. */
	c->kernel_wnd = min(max(4 * bytes, FIRST_WND) << h->lowered, FIELD_MAX << c->wscale);
	*sent = bytes;
	if (!h->neighbour)
		return rtt_us;
	h->forged_owd_us += h->forged_step_us;
	/* Not over this link: its bytes would pass for a rival's while its rounds are long.
	 * No more than the link carries: 2^32 in a second would pass for none.
	 */
	neighbour->rcv_nxt += min(tcp_receive_window(neighbour), h->bdp);
	sample(w, neighbour, h->forged_rtt_us, h->forged_owd_us);
	data_recv(w, neighbour);
	offer(neighbour);
	return rtt_us;
}

/* A block of RTTs: mean goodput and RTT */
static struct block honest_block(struct world *w, struct honest *h, struct connection *c,
				 struct connection *neighbour)
{
	struct block b = {};
	u32 sent;
	int i;

	for (i = 0; i < BLOCK_RTTS; i++) {
		b.us += honest_rtt(w, h, c, neighbour, &sent);
		b.bytes += sent;
		b.wnd = max(b.wnd, c->d.wnd);
	}
	return b;
}

/* Three quarters of the rate, bdp / base_us, are used. */
static bool link_used(const struct honest *h, const struct block *b, const struct connection *c)
{
	/* The queue that a high lambda asks for hides a base that its past made too short, if
	 * the window is enough for the path: each DRAIN costs. A neighbour's target takes that
	 * queue away for a second.
	 */
	if (!h->new && c->d.path_us < h->base_us - h->base_us / 4 &&
	    (b->wnd >= h->bdp || h->neighbour))
		return true;
	/* Of a window that is few segments for the sender, twice as much tells nothing; and what
	 * comes of one of few units does not let it become smaller.
	 */
	if (h->lowered &&
	    h->bdp >> h->lowered < FLOOR_MSS * max(c->mss, 1u << c->wscale))
		return true;
	/* Half of the window is more than half of what the path holds, and with the other half
	 * its queue stands: then the sender keeps to the first one.
	 */
	if (h->lowered)
		return 2 * b->bytes * h->base_us >= b->us * h->bdp;
	return 4 * b->bytes * h->base_us >= 3 * b->us * h->bdp;
}

/* The mean RTT is at most one and a half times what the law allows. */
static bool queue_short(const struct honest *h, const struct block *b,
			const struct connection *c)
{
	u64 wnd, bdp;

	/* The least window may be more than the path holds. */
	if (h->bdp < 2 * FLOOR_MSS * c->mss)
		return true;
	/* Windows are rounded up to their unit, which hides DRAIN's part of few. */
	if (h->bdp < DRAIN_PART << c->wscale)
		return true;
	/* An idle sender says nothing of the link, whatever its past made of the window. */
	if (!h->new && b->bytes < (u64)b->wnd / 2 * BLOCK_RTTS)
		return true;
	/* What the sender's own window keeps in the queue is no other's, and the only delay
	 * that such a past has seen.
	 */
	if (!h->new && h->cwnd <= c->d.wnd && b->bytes >= (u64)(h->cwnd - c->mss) * BLOCK_RTTS)
		return true;
	/* An absurd rate of its past is in the mean change until that fell, 1/8 a round. */
	if (!h->new && (u64)c->d.dev * c->lambda > (u64)c->d.rate * DRWA_LAMBDA_ONE / 2)
		return true;
	/* DRAIN's part is of a window that is beyond what the header can say: a base that its
	 * past made too long stays.
	 */
	if (!h->new && c->d.wnd / DRAIN_PART * (DRAIN_PART - 1) >= FIELD_MAX << c->wscale)
		return true;
	/* Senders send whole segments, and DRAIN leaves few of them alone. */
	bdp = max(h->bdp, DRAIN_PART * (c->mss + (1u << c->wscale)));
	wnd = bdp * c->lambda / DRWA_LAMBDA_ONE + CUSHION_MSS * c->mss + (1u << c->wscale);
	return 2 * b->us * h->bdp <= 3 * wnd * h->base_us * BLOCK_RTTS;
}

/*
 * The link is used and its queue short within SETTLE_US and SETTLE_BLOCKS, and
 * stays so. Most stories end at the first good block, which keeps them quick.
 */
static void settles(struct world *w, struct honest *h)
{
	struct connection *c = &w->connection[0], *neighbour = &w->connection[1];
	u64 settling_us = 0;
	struct block b;
	int blocks;

	/* Of a first window that is less than two segments for the sender nobody learns, and what
	 * comes of one with less than two units does not let it become smaller.
	 */
	if (U16_MAX >> h->lowered < 2 * max(c->mss, 1u << c->wscale))
		h->lowered = 0;
	if ((2 * max(h->bdp, (FLOOR_MSS + CUSHION_MSS) * c->mss)) << h->lowered >
	    FIELD_MAX << c->wscale)
		return;
	h->cwnd = c->mss;
	if (h->new || c->d.law != h->law) {
		drwa_reset(&c->d, h->law);
		c->blind = h->blind;
	}
	w->law = h->law;
	if (c->lambda < SETTLE_LAMBDA)
		c->lambda = SETTLE_LAMBDA;
	/* What was offered before is used up. */
	c->kernel_wnd = min(FIRST_WND, FIELD_MAX << c->wscale);
	c->rcv_wup = c->rcv_nxt;
	c->rcv_wnd = 0;
	if (h->law == DRWA_LAW_CLASSIC) {
		/* It starves on links that its past makes look slow: bounds alone count. */
		honest_block(w, h, c, neighbour);
		return;
	}
	for (blocks = 0; settling_us < SETTLE_US || blocks < SETTLE_BLOCKS; blocks++) {
		b = honest_block(w, h, c, neighbour);
		if (!h->patient && link_used(h, &b, c) && queue_short(h, &b, c))
			return;
		settling_us += b.us;
	}
	for (blocks = 0; blocks < STAY_BLOCKS; blocks++) {
		b = honest_block(w, h, c, neighbour);
		/* Until a trial shows its hidden bits, a window may follow what comes. */
		check(h->lowered || link_used(h, &b, c));
		check(queue_short(h, &b, c));
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct story s = { .at = data, .left = size };
	/* The law alone is watched; ASan sees an overrun of what lies on the heap. */
	struct world *w = calloc(1, sizeof(*w));
	struct honest h = {};
	struct connection *c;

	check(w);
	h.patient = is_patient(data, size);
	take_honest(&s, &h);
	w->now_us = take_number(&s);
	for (c = w->connection; c < w->connection + CONNECTIONS; c++) {
		c->rcv_nxt = w->now_us;
		c->credited = c->rcv_nxt;
		c->rcv_wup = c->rcv_nxt;
		c->blind = s.left && *s.at & 0x80;
		c->wscale = take_byte(&s) % (WSCALE_MAX + 1);
		c->kernel_wnd = FIELD_MAX << c->wscale;
		c->mss = MSS_MIN + take_number(&s) % (MSS_MAX - MSS_MIN + 1);
		c->lambda = 150;
		drwa_reset(&c->d, DRWA_LAW_DELAY);
		offer(c);
	}
	while (s.left)
		take_step(&s, w);
	settles(w, &h);
	free(w);
	return 0;
}
