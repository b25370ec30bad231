// SPDX-License-Identifier: GPL-2.0-only
/* A base station's queue in user space, for the law, net/ipv4/tcp_drwa_core.c
 *
 * Packets of several connections pass one FIFO queue, whose link has a constant
 * rate or a list of opportunities, and probes share it with them. A phone takes
 * them in order, acknowledges every second one, and offers what the law says,
 * never less than before; TSval and TSecr tick once a millisecond and give one
 * RTT sample for each TSecr, as in tcp_rcv_rtt_measure_ts(). Servers are CUBIC
 * with HyStart's exit by delay, or BBR version 1; losses are found by selective
 * ACKs and a timer.
 *
 * It is here because it runs a minute of a link in some hundredths of a second,
 * which a search and a table of sensitivities need. What counts is measured in
 * the lab, on the real kernel. Times are in us and wrap in the law alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/tcp_drwa.h>

#define MSS		1448
#define WIRE_BYTES	1500
#define PROBE_BYTES	98
#define HEADER_BYTES	86
#define ACK_BYTES	60
#define INIT_CWND	10
/* What a SYN can offer (RFC 7323, 2.2), and the unit of what comes after it. */
#define FIRST_WND	65535
#define WSCALE		9
#define TICK_US		1000
#define DELACK_US	40000
#define RTO_MIN_US	200000
#define MAX_FLIGHT	(1 << 15)
#define MAX_QUEUES	8
/* The law's clocks start close to their wrap. */
#define CLOCK_US	4290000000u

enum cc { CC_CUBIC, CC_BBR };

/* Must match model.py. */
struct flow_config {
	s64 start_us;
	s64 stop_us;		/* the phone leaves; 0: never */
	s64 base_rtt_us;	/* without queue and serialisation */
	s64 bytes;		/* to fetch; 0: no end */
	s64 think_us;		/* from one object's end to the next one's request; 0: one */
	s64 app_bps;		/* what the server has to send; 0: no bound */
	s64 wnd_bytes;		/* what the kernel would offer */
	s64 drift_ppm;		/* of the server's clock */
	s64 tick_us;		/* of its timestamps, which count in it */
	s64 pause_at_us;	/* all of it stands still; 0: never */
	s64 pause_us;
	s64 lag_us;		/* what its clock loses at that time */
	s64 on_us;		/* when lambda is set */
	int32_t lambda;		/* 0: not governed */
	int32_t queue;		/* whose struct drwa_link */
	int32_t counted;	/* whose bytes that came over the link */
	int32_t cc;
	int32_t forged;		/* what the phone takes comes from forged() alone */
	int32_t blind;		/* no timestamps */
	int32_t lowered;	/* bits that a middlebox took off the window's scale */
};

struct event_config {
	s64 at_us;
	s64 rate_bps;		/* 0: as it was */
	s64 base_rtt_us;	/* of all connections; 0: as it was */
};

/* The server has more to send, unasked. */
struct push_config {
	s64 at_us;
	s64 bytes;
	int32_t flow;
};

/* One word of a server that lies: data, and a sample of any RTT and delay. */
struct forgery {
	s64 at_us;
	int32_t flow;
	int32_t packets;
	u32 rtt_us;
	u32 owd_us;
	int32_t reset;		/* a new connection begins */
};

struct flow_result {
	s64 bytes;		/* in order, from warm_us on */
	s64 done_us;		/* when the last fetch was complete; 0: none was */
	s64 fetched_us;		/* time that all complete ones took */
	s64 lost;
};

struct segment {
	s64 sent_us;
	s64 delivered;		/* server's count at that time, for BBR */
	s64 delivered_us;
	bool sacked, lost, again;
};

struct packet {
	s64 sent_us, tsval_us, echo_us;
	u32 flow, seq, bytes;
	u32 forgery;		/* its number and one; 0: none */
	bool syn;
};

struct flow {
	struct flow_config c;
	/* server */
	struct segment segments[MAX_FLIGHT];
	u32 una, nxt, high, recover, limit;
	s64 edge;		/* right edge it knows, bytes */
	double cwnd, ssthresh, wmax, k, origin;
	s64 epoch_us, srtt_us, rttvar_us, min_rtt_us, round_min_us, curr_min_us;
	u32 round_end, sacked, lost, flight;
	s64 rto_us, echo_us;
	int backoff;
	bool recovering, restarting, established, timed_out;
	double undo_cwnd, undo_ssthresh;
	s64 timed_out_us;
	s64 delivered, delivered_us, app_from_us, asked_us;
	/* BBR */
	double bw[10], pacing_gain, cwnd_gain, full_bw;
	int full_rounds, phase;
	u32 bbr_rounds;
	s64 next_round_delivered, min_stamp_us, phase_us, probe_rtt_until_us, pace_us;
	bool pacing;
	enum { STARTUP, DRAIN_, PROBE_BW, PROBE_RTT } mode;
	/* phone */
	struct drwa d;
	u8 got[MAX_FLIGHT];
	u32 rcv_nxt;
	u32 credited;	/* the same, as far as the law was told */
	s64 offered, last_echo_us;
	int unacked;
	s64 delack_us;
	bool measured;
	u32 rcv_wup, window_end;	/* tcp_rcv_rtt_measure() */
	s64 window_us;
};

enum what { AT_START, AT_SERVICE, AT_PHONE, AT_SERVER, AT_DELACK, AT_RTO,
	    AT_PACE, AT_PROBE, AT_CHANGE, AT_FORGERY, AT_REQUEST };

struct event {
	s64 at_us;
	u64 order;
	enum what what;
	u32 flow;
	s64 number;		/* cumulative ACK, or index */
	s64 edge;
	s64 echo_us;
	struct packet p;
};

struct model {
	s64 now_us, rate_bps, buffer_bytes, queued_bytes, warm_us;
	const u32 *opportunities;	/* ms */
	s64 count, next, period_us, wrapped_us;
	s64 left;			/* of this opportunity, bytes */
	bool busy, serving;
	struct packet *fifo;
	u32 head, tail, mask;
	struct event *heap;
	size_t events, room;
	u64 order;
	struct flow *flows;
	u32 flow_count;
	struct drwa_link links[MAX_QUEUES];
	u32 arrived[MAX_QUEUES];	/* bytes beyond headers */
	struct flow_result *results;
	s64 probe_every_us, probe_rtt_us;
	double *probe_sent_s, *probe_rtt_s;
	s64 probes;
};

static void at(struct model *m, struct event e)
{
	size_t i, up;

	if (m->events == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->heap = realloc(m->heap, m->room * sizeof(*m->heap));
	}
	e.order = m->order++;
	for (i = m->events++; i; i = up) {
		up = (i - 1) / 2;
		if (m->heap[up].at_us < e.at_us ||
		    (m->heap[up].at_us == e.at_us && m->heap[up].order < e.order))
			break;
		m->heap[i] = m->heap[up];
	}
	m->heap[i] = e;
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

static struct event take(struct model *m)
{
	struct event first = m->heap[0], last = m->heap[--m->events];
	size_t i = 0, down;

	while ((down = 2 * i + 1) < m->events) {
		if (down + 1 < m->events && before(&m->heap[down + 1], &m->heap[down]))
			down++;
		if (!before(&m->heap[down], &last))
			break;
		m->heap[i] = m->heap[down];
		i = down;
	}
	m->heap[i] = last;
	return first;
}

/* --- the queue */

static s64 next_opportunity_us(struct model *m)
{
	s64 at_us;

	do {
		if (m->next == m->count) {
			m->next = 0;
			m->wrapped_us += m->period_us;
		}
		at_us = m->wrapped_us + m->opportunities[m->next++] * 1000ll;
	} while (at_us < m->now_us);
	return at_us;
}

static void serve(struct model *m)
{
	const struct packet *p = &m->fifo[m->head & m->mask];
	s64 at_us = m->now_us;

	if (m->head == m->tail)
		return;
	m->busy = true;
	if (!m->count) {
		at_us += (p->bytes * 8000000ll + m->rate_bps - 1) / m->rate_bps;
	} else if (!m->serving || p->bytes > m->left) {
		at_us = next_opportunity_us(m);
		m->left = WIRE_BYTES;
	}
	m->left -= p->bytes;
	at(m, (struct event){ .at_us = at_us, .what = AT_SERVICE });
}

static bool enqueue(struct model *m, struct packet p)
{
	if (m->queued_bytes + p.bytes > m->buffer_bytes)
		return false;
	if (m->tail - m->head > m->mask) {
		u32 size = m->mask + 1, i;
		struct packet *grown = malloc(2 * size * sizeof(*grown));

		for (i = 0; i < size; i++)
			grown[(m->head + i) & (2 * size - 1)] = m->fifo[(m->head + i) & m->mask];
		free(m->fifo);
		m->fifo = grown;
		m->mask = 2 * size - 1;
	}
	m->fifo[m->tail++ & m->mask] = p;
	m->queued_bytes += p.bytes;
	if (!m->busy)
		serve(m);
	return true;
}

/* --- the server */

/* By the phone, which takes each count of it for 1 ms */
static s64 server_clock_us(const struct flow *f, s64 now_us)
{
	s64 us = now_us + now_us * f->c.drift_ppm / 1000000;

	if (f->c.pause_at_us && now_us >= f->c.pause_at_us)
		us -= f->c.lag_us;
	return us / f->c.tick_us * TICK_US;
}

static s64 paused_until_us(const struct model *m, const struct flow *f)
{
	s64 end_us = f->c.pause_at_us + f->c.pause_us;

	if (f->c.pause_at_us && m->now_us >= f->c.pause_at_us && m->now_us < end_us)
		return end_us;
	return 0;
}

static u32 available(const struct model *m, const struct flow *f)
{
	s64 limit = f->limit;

	if (f->c.app_bps) {
		s64 sent = (m->now_us - f->app_from_us) * f->c.app_bps / 8000000 / MSS + INIT_CWND;

		limit = min(limit, sent);
	}
	return limit;
}

static double bbr_bw(const struct flow *f)
{
	double best = 0;
	int i;

	for (i = 0; i < 10; i++)
		best = fmax(best, f->bw[i]);
	return best;
}

static void arm_rto(struct model *m, struct flow *f, u32 which)
{
	s64 rto_us = f->srtt_us + max(RTO_MIN_US, 4 * f->rttvar_us);

	if (!f->srtt_us)
		rto_us = 1000000;
	rto_us <<= f->backoff;
	f->rto_us = m->now_us + rto_us;
	at(m, (struct event){ .at_us = f->rto_us, .what = AT_RTO, .flow = which });
}

static void transmit(struct model *m, struct flow *f, u32 which, u32 seq)
{
	struct segment *s = &f->segments[seq % MAX_FLIGHT];
	struct packet p = {
		.sent_us = m->now_us, .flow = which, .seq = seq, .bytes = WIRE_BYTES,
		.tsval_us = server_clock_us(f, m->now_us), .echo_us = f->echo_us,
	};

	if (!f->flight) {
		f->delivered_us = m->now_us;
		arm_rto(m, f, which);
	}
	s->sent_us = m->now_us;
	s->delivered = f->delivered;
	s->delivered_us = f->delivered_us;
	f->flight++;
	if (!enqueue(m, p))
		m->results[which].lost++;
}

/* The phone resets a connection that it leaves. */
static bool left(const struct model *m, const struct flow *f)
{
	return f->c.stop_us && m->now_us >= f->c.stop_us;
}

static void send_more(struct model *m, u32 which)
{
	struct flow *f = &m->flows[which];
	u32 seq = f->una;

	if (!f->established || left(m, f) || paused_until_us(m, f))
		return;
	while (f->flight + 1 <= f->cwnd) {
		if (f->c.cc == CC_BBR && m->now_us < f->pace_us) {
			if (!f->pacing)
				at(m, (struct event){ .at_us = f->pace_us, .what = AT_PACE,
						      .flow = which });
			f->pacing = true;
			return;
		}
		if (f->lost) {
			struct segment *s = &f->segments[seq % MAX_FLIGHT];

			while (seq < f->nxt && !(s->lost && !s->sacked))
				s = &f->segments[++seq % MAX_FLIGHT];
			if (seq == f->nxt) {
				f->lost = 0;
				continue;
			}
			s->lost = false;
			s->again = true;
			f->lost--;
			transmit(m, f, which, seq);
		} else {
			if (f->nxt >= available(m, f) || f->nxt - f->una >= MAX_FLIGHT - 8 ||
			    (s64)(f->nxt + 1) * MSS > f->edge)
				return;
			f->segments[f->nxt % MAX_FLIGHT] = (struct segment){};
			transmit(m, f, which, f->nxt++);
		}
		if (f->c.cc == CC_BBR) {
			double bw = bbr_bw(f), rate;

			rate = bw ? bw : INIT_CWND / 0.001;
			if (f->pace_us < m->now_us)
				f->pace_us = m->now_us;
			f->pace_us += 1e6 / (rate * f->pacing_gain);
		}
	}
}

static void cubic_ack(struct model *m, struct flow *f, u32 acked)
{
	double t, target;

	if (f->cwnd < f->ssthresh) {
		f->cwnd += acked;
		return;
	}
	if (!f->epoch_us) {
		f->epoch_us = m->now_us;
		if (f->cwnd < f->wmax) {
			f->k = cbrt((f->wmax - f->cwnd) / 0.4);
			f->origin = f->wmax;
		} else {
			f->k = 0;
			f->origin = f->cwnd;
		}
	}
	t = (m->now_us - f->epoch_us + f->min_rtt_us) / 1e6 - f->k;
	target = f->origin + 0.4 * t * t * t;
	if (target > 1.5 * f->cwnd)
		target = 1.5 * f->cwnd;
	f->cwnd += acked * fmax((target - f->cwnd) / f->cwnd, 0.01);
}

/* A round's least RTT that rose by an eighth ends slow start. */
static void hystart(struct flow *f, s64 rtt_us)
{
	s64 more_us;

	if (f->una >= f->round_end) {
		f->round_min_us = f->curr_min_us;
		f->curr_min_us = S64_MAX;
		f->round_end = f->nxt;
	}
	f->curr_min_us = min(f->curr_min_us, rtt_us);
	if (f->cwnd >= f->ssthresh || f->cwnd < 16 || f->round_min_us == S64_MAX)
		return;
	more_us = min(max(f->min_rtt_us / 8, 4000), 16000);
	if (f->round_min_us >= f->min_rtt_us + more_us)
		f->ssthresh = f->cwnd;
}

static void bbr_ack(struct model *m, struct flow *f, const struct segment *s, s64 rtt_us)
{
	static const double cycle[8] = { 1.25, .75, 1, 1, 1, 1, 1, 1 };
	s64 elapsed_us = max(m->now_us - s->delivered_us, 1);
	double rate = (f->delivered - s->delivered) * 1e6 / elapsed_us, bdp;
	bool round = s->delivered >= f->next_round_delivered;

	if (round) {
		f->next_round_delivered = f->delivered;
		f->bbr_rounds++;
		f->bw[f->bbr_rounds % 10] = 0;
	}
	f->bw[f->bbr_rounds % 10] = fmax(f->bw[f->bbr_rounds % 10], rate);
	if (rtt_us <= f->min_rtt_us || m->now_us - f->min_stamp_us > 10000000) {
		if (m->now_us - f->min_stamp_us > 10000000 && f->mode != PROBE_RTT) {
			f->mode = PROBE_RTT;
			f->probe_rtt_until_us = m->now_us + 200000 + rtt_us;
		}
		f->min_rtt_us = rtt_us;
		f->min_stamp_us = m->now_us;
	}
	if (f->mode == STARTUP && round) {
		if (bbr_bw(f) >= 1.25 * f->full_bw) {
			f->full_bw = bbr_bw(f);
			f->full_rounds = 0;
		} else if (++f->full_rounds >= 3) {
			f->mode = DRAIN_;
		}
	}
	bdp = bbr_bw(f) * f->min_rtt_us / 1e6;
	if (f->mode == DRAIN_ && f->flight <= bdp)
		f->mode = PROBE_BW;
	if (f->mode == PROBE_RTT && m->now_us > f->probe_rtt_until_us) {
		f->min_stamp_us = m->now_us;
		f->mode = f->full_rounds >= 3 ? PROBE_BW : STARTUP;
	}
	f->cwnd_gain = f->mode == PROBE_BW ? 2 : 2.885;
	f->pacing_gain = f->mode == STARTUP ? 2.885 : f->mode == DRAIN_ ? 0.347 : 1;
	if (f->mode == PROBE_BW) {
		if (m->now_us - f->phase_us > f->min_rtt_us) {
			f->phase = (f->phase + 1) % 8;
			f->phase_us = m->now_us;
		}
		f->pacing_gain = cycle[f->phase];
	}
	f->cwnd = f->mode == PROBE_RTT ? 4 : fmax(f->cwnd_gain * bdp, INIT_CWND);
}

static void lose(struct flow *f)
{
	f->recovering = true;
	f->recover = f->nxt;
	if (f->c.cc == CC_BBR)
		return;
	f->wmax = f->cwnd < f->wmax ? f->cwnd * 0.85 : f->cwnd;
	f->cwnd = fmax(f->cwnd * 0.7, 2);
	f->ssthresh = f->cwnd;
	f->epoch_us = 0;
}

/* @ack: next segment expected; @sack: the one that made the phone say so */
static void server_takes(struct model *m, const struct event *e)
{
	struct flow *f = &m->flows[e->flow];
	u32 ack = e->number, sack = e->p.seq, acked = 0, seq;
	struct segment *s, newest = {};
	s64 pause_us = paused_until_us(m, f), rtt_us = 0;
	bool limited;

	if (pause_us) {
		struct event later = *e;

		later.at_us = pause_us;
		at(m, later);
		return;
	}
	if (e->p.syn) {
		f->established = true;
		f->edge = e->edge;
		f->echo_us = e->echo_us;
		f->app_from_us = m->now_us;
		send_more(m, e->flow);
		return;
	}
	limited = f->flight + 1 > f->cwnd || f->cwnd < 2 * f->flight;
	f->edge = max(f->edge, e->edge);
	f->echo_us = e->echo_us;
	if (sack >= f->una && sack < f->nxt && sack >= ack) {
		s = &f->segments[sack % MAX_FLIGHT];
		if (!s->sacked) {
			s->sacked = true;
			newest = *s;
			if (s->lost)
				f->lost--;
			else
				f->flight--;
			f->delivered++;
			f->high = max(f->high, sack);
		}
	}
	for (; f->una < ack; f->una++) {
		s = &f->segments[f->una % MAX_FLIGHT];
		acked++;
		if (s->sacked)
			continue;
		if (s->lost)
			f->lost--;
		else
			f->flight--;
		f->delivered++;
		if (!s->again)
			newest = *s;
	}
	f->high = max(f->high, f->una ? f->una - 1 : 0);
	if (newest.sent_us && !newest.again) {
		rtt_us = m->now_us - newest.sent_us;
		if (!f->srtt_us) {
			f->srtt_us = rtt_us;
			f->rttvar_us = rtt_us / 2;
		} else {
			f->rttvar_us += (llabs(rtt_us - f->srtt_us) - f->rttvar_us) / 4;
			f->srtt_us += (rtt_us - f->srtt_us) / 8;
		}
		if (f->c.cc == CC_CUBIC)
			f->min_rtt_us = min(f->min_rtt_us, rtt_us);
	}
	f->delivered_us = m->now_us;
	/* RFC 3522: what had been sent before the timer came after it. */
	if (f->timed_out && (acked || newest.sent_us)) {
		f->timed_out = false;
		if (e->p.sent_us < f->timed_out_us) {
			f->cwnd = f->undo_cwnd;
			f->ssthresh = f->undo_ssthresh;
			f->recovering = f->restarting = false;
			for (seq = f->una; seq < f->nxt; seq++) {
				s = &f->segments[seq % MAX_FLIGHT];
				if (s->lost && !s->sacked) {
					s->lost = false;
					f->lost--;
					f->flight++;
				}
			}
		}
	}
	/* Three later ones came: lost. What was sent again waits for the timer. */
	if (f->high > f->una + 2) {
		for (seq = f->una; seq + 3 <= f->high; seq++) {
			s = &f->segments[seq % MAX_FLIGHT];
			if (s->sacked || s->lost || s->again)
				continue;
			s->lost = true;
			f->lost++;
			f->flight--;
			if (!f->recovering)
				lose(f);
		}
	}
	if (f->una >= f->recover)
		f->recovering = f->restarting = false;
	if (acked) {
		f->backoff = 0;
		if (f->flight || f->lost)
			arm_rto(m, f, e->flow);
		else
			f->rto_us = 0;
	}
	if (f->c.cc == CC_BBR) {
		if (newest.sent_us)
			bbr_ack(m, f, &newest, rtt_us ? rtt_us : f->srtt_us);
	} else if (acked && (!f->recovering || f->restarting)) {
		if (rtt_us)
			hystart(f, rtt_us);
		if (limited)
			cubic_ack(m, f, acked);
	}
	send_more(m, e->flow);
}

static void timed_out(struct model *m, const struct event *e)
{
	struct flow *f = &m->flows[e->flow];
	u32 seq;

	if (f->rto_us != e->at_us || f->una == f->nxt)
		return;
	for (seq = f->una; seq < f->nxt; seq++) {
		struct segment *s = &f->segments[seq % MAX_FLIGHT];

		s->again = false;
		if (!s->sacked && !s->lost) {
			s->lost = true;
			f->lost++;
		}
	}
	f->flight = 0;
	if (!f->timed_out) {
		f->undo_cwnd = f->cwnd;
		f->undo_ssthresh = f->ssthresh;
	}
	f->timed_out = true;
	f->timed_out_us = m->now_us;
	if (!f->restarting)
		lose(f);
	f->restarting = true;
	if (f->c.cc == CC_CUBIC)
		f->cwnd = 1;
	f->backoff = min(f->backoff + 1, 6);
	send_more(m, e->flow);
}

/* --- the phone */

static u32 law_clock(s64 us)
{
	return CLOCK_US + us;
}

/* Right edge that the server takes from it */
static s64 seen_edge(const struct flow *f)
{
	s64 nxt = (s64)f->rcv_nxt * MSS;

	return f->rcv_nxt ? nxt + ((f->offered - nxt) >> f->c.lowered) : f->offered;
}

static void acknowledge(struct model *m, u32 which, const struct packet *p)
{
	struct flow *f = &m->flows[which];
	s64 wnd = f->c.wnd_bytes;

	if (f->d.wnd)
		wnd = min(wnd, f->d.wnd);
	wnd = p->syn ? FIRST_WND : wnd >> WSCALE << WSCALE;
	f->offered = max(f->offered, (s64)f->rcv_nxt * MSS + wnd);
	f->unacked = 0;
	f->delack_us = 0;
	f->rcv_wup = f->rcv_nxt;
	at(m, (struct event){
		.at_us = m->now_us + f->c.base_rtt_us / 2, .what = AT_SERVER, .flow = which,
		.number = f->rcv_nxt, .edge = seen_edge(f),
		.echo_us = m->now_us - m->now_us % TICK_US, .p = *p,
	});
}

/* __tcp_drwa_rtt_sample() */
static void sample(struct model *m, struct flow *f, u32 rtt_us, u32 owd_us)
{
	if (!f->c.lambda || m->now_us < f->c.on_us)
		return;
	if (f->d.rtt_us) {
		drwa_sample(&f->d, rtt_us, owd_us);
		return;
	}
	drwa_reset(&f->d, DRWA_LAW_DELAY);
	drwa_start(&f->d, law_clock(m->now_us), f->rcv_nxt * MSS, rtt_us,
		   owd_us, !f->c.blind);
}

/* __tcp_drwa_space_adjust() */
static void space_adjust(struct model *m, struct flow *f)
{
	struct drwa_link *l = &m->links[f->c.queue];

	if (!f->c.lambda)
		return;
	drwa_credit(l, (f->rcv_nxt - f->credited) * MSS);
	f->credited = f->rcv_nxt;
	drwa_heard(l, law_clock(m->now_us));
	if (!drwa_due(&f->d, l, law_clock(m->now_us)))
		return;
	f->d.lambda = f->c.lambda;
	drwa_round(&f->d, l, law_clock(m->now_us), f->rcv_nxt * MSS, MSS);
	if (drwa_count_due(&f->d, l, law_clock(m->now_us)))
		drwa_count(l, law_clock(m->now_us), f->d.rtt_us, m->arrived[f->c.queue], 0);
	f->d.wnd = (f->d.wnd + (1 << WSCALE) - 1) >> WSCALE << WSCALE;
}

/* tcp_rcv_rtt_measure(): how long a window's worth of data takes */
static void measure_window(struct model *m, struct flow *f)
{
	if (f->window_us) {
		if (f->rcv_nxt < f->window_end)
			return;
		sample(m, f, max(m->now_us - f->window_us, 1), 0);
	}
	f->window_end = f->rcv_nxt + f->offered / MSS - f->rcv_wup;
	f->window_us = m->now_us;
}

static void fetched(struct model *m, u32 which)
{
	struct flow *f = &m->flows[which];

	m->results[which].done_us = m->now_us;
	m->results[which].fetched_us += m->now_us - f->asked_us;
	if (!f->c.think_us)
		return;
	f->asked_us = m->now_us + f->c.think_us;
	at(m, (struct event){ .at_us = f->asked_us + f->c.base_rtt_us / 2, .what = AT_REQUEST,
			      .flow = which, .number = f->c.bytes });
}

static void phone_takes(struct model *m, const struct event *e)
{
	const struct packet *p = &e->p;
	struct flow *f = &m->flows[e->flow];
	s64 stamp_us = m->now_us - m->now_us % TICK_US;
	u32 owd_us = law_clock(m->now_us) - (u32)p->tsval_us, before = f->rcv_nxt;

	if (p->syn) {
		sample(m, f, m->now_us - p->sent_us, owd_us);
		acknowledge(m, e->flow, p);
		return;
	}
	if (left(m, f))
		return;
	if (p->seq >= f->rcv_nxt)
		f->got[p->seq % MAX_FLIGHT] = 1;
	while (f->got[f->rcv_nxt % MAX_FLIGHT]) {
		f->got[f->rcv_nxt % MAX_FLIGHT] = 0;
		f->rcv_nxt++;
		if (m->now_us >= m->warm_us)
			m->results[e->flow].bytes += MSS;
		if (f->c.bytes && f->rcv_nxt == f->limit)
			fetched(m, e->flow);
	}
	if (f->c.blind) {
		measure_window(m, f);
	} else if (f->rcv_nxt != before && (!f->measured || p->echo_us != f->last_echo_us)) {
		f->measured = true;
		f->last_echo_us = p->echo_us;
		sample(m, f, max(stamp_us - p->echo_us, 1000), owd_us);
	}
	space_adjust(m, f);
	if (f->rcv_nxt == before || p->seq + 1 != f->rcv_nxt || ++f->unacked >= 2 ||
	    f->rcv_nxt < INIT_CWND) {
		acknowledge(m, e->flow, p);
	} else if (!f->delack_us) {
		f->delack_us = m->now_us + DELACK_US;
		at(m, (struct event){ .at_us = f->delack_us, .what = AT_DELACK, .flow = e->flow,
				      .p = *p });
	}
}

/* A forged word goes over the link as its data, or as an ACK, does. A phone takes no more than
 * it offered, and a liar knows that at once.
 */
static void forge(struct model *m, const struct event *e, const struct forgery *word)
{
	struct flow *f = &m->flows[word->flow];
	s64 offered = f->offered / MSS - f->nxt;
	u32 i, packets = min((s64)word->packets, max(offered, (s64)0));
	struct packet p = { .flow = word->flow, .bytes = packets ? WIRE_BYTES : ACK_BYTES };

	f->nxt += packets;
	p.seq = f->nxt;
	for (i = 1; i < packets; i++)
		enqueue(m, p);
	p.forgery = e->number + 1;
	enqueue(m, p);
}

/* It reaches the law as data and samples of its choice, all with its last packet. */
static void forged(struct model *m, const struct forgery *word, u32 nxt)
{
	struct flow *f = &m->flows[word->flow];
	s64 wnd;

	if (word->reset) {
		drwa_reset(&f->d, DRWA_LAW_DELAY);
		f->d.lambda = 0;
		f->offered = max(f->offered, (s64)f->rcv_nxt * MSS + FIRST_WND);
	}
	/* What the queue had no room for comes again, and in time. */
	f->rcv_nxt = max(f->rcv_nxt, nxt);
	sample(m, f, word->rtt_us, word->owd_us);
	space_adjust(m, f);
	wnd = f->d.wnd ? min(f->c.wnd_bytes, (s64)f->d.wnd) : f->c.wnd_bytes;
	f->offered = max(f->offered, (s64)f->rcv_nxt * MSS + (wnd >> WSCALE << WSCALE));
}

/* --- all of it */

static void start(struct model *m, u32 which)
{
	struct flow *f = &m->flows[which];
	struct packet p = { .flow = which, .bytes = ACK_BYTES, .syn = true, .sent_us = m->now_us };

	/* The SYN is on its way up for half of the RTT; its answer meets the queue. */
	p.tsval_us = server_clock_us(f, m->now_us);
	p.sent_us -= f->c.base_rtt_us / 2;
	enqueue(m, p);
}

static void happens(struct model *m, const struct event *e, const struct event_config *changes,
		    const struct forgery *forgeries)
{
	struct flow *f = &m->flows[e->flow];
	struct packet p;
	u32 i;

	switch (e->what) {
	case AT_START:
		start(m, e->flow);
		break;
	case AT_SERVICE:
		p = m->fifo[m->head++ & m->mask];
		m->queued_bytes -= p.bytes;
		m->busy = false;
		if (p.flow == UINT32_MAX) {
			m->probe_rtt_s[p.seq] = (m->now_us - p.sent_us + m->probe_rtt_us) / 1e6;
		} else {
			at(m, (struct event){ .at_us = m->now_us +
					      (m->flows[p.flow].c.base_rtt_us + 1) / 2,
					      .what = AT_PHONE, .flow = p.flow, .p = p });
		}
		m->serving = true;
		serve(m);
		m->serving = false;
		break;
	case AT_PHONE:
		m->arrived[f->c.counted] += max(e->p.bytes, HEADER_BYTES) - HEADER_BYTES;
		if (!f->c.forged)
			phone_takes(m, e);
		else if (e->p.forgery)
			forged(m, &forgeries[e->p.forgery - 1], e->p.seq);
		break;
	case AT_SERVER:
		server_takes(m, e);
		break;
	case AT_DELACK:
		if (f->delack_us == e->at_us)
			acknowledge(m, e->flow, &e->p);
		break;
	case AT_RTO:
		timed_out(m, e);
		break;
	case AT_PACE:
		f->pacing = false;
		send_more(m, e->flow);
		break;
	case AT_PROBE:
		m->probe_sent_s[m->probes] = m->now_us / 1e6;
		m->probe_rtt_s[m->probes] = NAN;
		enqueue(m, (struct packet){ .sent_us = m->now_us, .flow = UINT32_MAX,
					    .seq = m->probes++, .bytes = PROBE_BYTES });
		at(m, (struct event){ .at_us = m->now_us + m->probe_every_us, .what = AT_PROBE });
		break;
	case AT_CHANGE:
		if (changes[e->number].rate_bps)
			m->rate_bps = changes[e->number].rate_bps;
		if (changes[e->number].base_rtt_us) {
			m->probe_rtt_us = changes[e->number].base_rtt_us;
			for (i = 0; i < m->flow_count; i++)
				m->flows[i].c.base_rtt_us = changes[e->number].base_rtt_us;
		}
		break;
	case AT_REQUEST:
		f->limit += (e->number + MSS - 1) / MSS;
		send_more(m, e->flow);
		break;
	case AT_FORGERY:
		forge(m, e, &forgeries[e->number]);
		break;
	}
}

/* Runs @end_us of a link; arrays of probes hold one more than end_us / probe_every_us. */
int model_run(s64 end_us, s64 warm_us, s64 rate_bps, const u32 *opportunities, s64 count,
	      s64 buffer_bytes, s64 probe_every_us, s64 probe_rtt_us, double *probe_sent_s,
	      double *probe_rtt_s, const struct flow_config *configs,
	      struct flow_result *results, u32 flow_count, const struct event_config *changes,
	      u32 change_count, const struct forgery *forgeries, u32 forgery_count,
	      const struct push_config *pushes, u32 push_count)
{
	struct model m = {
		.rate_bps = rate_bps, .opportunities = opportunities, .count = count,
		.period_us = count ? opportunities[count - 1] * 1000ll : 0,
		.buffer_bytes = buffer_bytes, .warm_us = warm_us, .results = results,
		.flow_count = flow_count, .probe_every_us = probe_every_us,
		.probe_rtt_us = probe_rtt_us, .probe_sent_s = probe_sent_s,
		.probe_rtt_s = probe_rtt_s, .mask = 1023,
	};
	u32 i;

	m.fifo = malloc((m.mask + 1) * sizeof(*m.fifo));
	m.flows = calloc(flow_count ? flow_count : 1, sizeof(*m.flows));
	for (i = 0; i < flow_count; i++) {
		struct flow *f = &m.flows[i];

		f->c = configs[i];
		f->asked_us = f->c.start_us;
		f->limit = f->c.bytes ? (f->c.bytes + MSS - 1) / MSS : UINT32_MAX / 2;
		f->cwnd = INIT_CWND;
		f->ssthresh = 1e9;
		f->min_rtt_us = f->round_min_us = f->curr_min_us = S64_MAX;
		f->pacing_gain = f->cwnd_gain = 2.885;
		if (f->c.forged)
			f->offered = FIRST_WND;
		else
			at(&m, (struct event){ .at_us = f->c.start_us, .what = AT_START, .flow = i });
	}
	for (i = 0; i < change_count; i++)
		at(&m, (struct event){ .at_us = changes[i].at_us, .what = AT_CHANGE, .number = i });
	for (i = 0; i < forgery_count; i++)
		at(&m, (struct event){ .at_us = forgeries[i].at_us, .what = AT_FORGERY,
				       .flow = forgeries[i].flow, .number = i });
	for (i = 0; i < push_count; i++)
		at(&m, (struct event){ .at_us = pushes[i].at_us, .what = AT_REQUEST,
				       .flow = pushes[i].flow, .number = pushes[i].bytes });
	if (probe_every_us)
		at(&m, (struct event){ .what = AT_PROBE });
	while (m.events) {
		struct event e = take(&m);

		if (e.at_us >= end_us)
			break;
		m.now_us = e.at_us;
		happens(&m, &e, changes, forgeries);
	}
	free(m.fifo);
	free(m.heap);
	free(m.flows);
	return m.probes;
}
