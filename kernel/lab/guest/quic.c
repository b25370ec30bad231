// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control of a QUIC-like sender: CUBIC (RFC 9438) in packets, with
 * the start, the recovery period and the probe timeout of RFC 9002. It has no
 * HyStart and does not pace, so that its start ends with a full queue.
 *
 * Packets arrive in the order of sending, so that what is missing below the
 * highest number that arrived is lost.
 */
#include <math.h>

#include "quic.h"

/* RFC 9002, 7.2: initial and least window. */
static const double CWND_INITIAL = 10, CWND_MIN = 2;
/* RFC 9438, 4.6 and 4.1 */
static const double BETA = 0.7, C = 0.4;
/* RFC 9002, 6.2: at least three RTTs, and no less than a second here. */
static const int64_t TIMEOUT_MIN_US = 1000000;

void quic_start(struct quic *q, int64_t now_us)
{
	*q = (struct quic){
		.cwnd = CWND_INITIAL,
		.ssthresh = INFINITY,
		.progress_us = now_us,
	};
}

static void reduce(struct quic *q, int64_t now_us)
{
	/* RFC 9438, 4.7: one that shrinks leaves room for others. */
	q->w_max = q->cwnd < q->w_max ? q->cwnd * (1 + BETA) / 2 : q->cwnd;
	q->cwnd = fmax(CWND_MIN, q->cwnd * BETA);
	q->ssthresh = q->cwnd;
	q->reno = q->cwnd;
	q->k_s = cbrt(fmax(0, q->w_max - q->cwnd) / C);
	q->epoch_us = now_us;
	q->recovery_until = q->next;
}

static void grow(struct quic *q, double acked, int64_t now_us)
{
	double t, target;

	if (q->cwnd < q->ssthresh) {
		q->cwnd += acked;
		return;
	}
	t = (now_us + q->srtt_us - q->epoch_us) / 1e6 - q->k_s;
	target = fmin(C * t * t * t + q->w_max, 1.5 * q->cwnd);
	if (target > q->cwnd)
		q->cwnd += acked * (target - q->cwnd) / q->cwnd;
	q->reno += acked * 3 * (1 - BETA) / (1 + BETA) / q->cwnd;
	q->cwnd = fmax(q->cwnd, q->reno);
}

void quic_acked(struct quic *q, const struct quic_ack *ack, int64_t now_us)
{
	uint64_t lost = q->highest - q->received;
	double acked;

	if (ack->received <= q->received || ack->highest > q->next)
		return;
	acked = ack->received - q->received;
	q->highest = ack->highest;
	q->received = ack->received;
	q->progress_us = now_us;
	if (q->flight_from < q->highest)
		q->flight_from = q->highest;
	q->srtt_us += (now_us - ack->sent_us - q->srtt_us) / (q->srtt_us ? 8 : 1);
	if (q->highest <= q->recovery_until)
		return;
	if (q->highest - q->received > lost)
		reduce(q, now_us);
	else if (!q->blocked)
		/* RFC 9002, 7.8: only what is used can be found to be enough. */
		grow(q, acked, now_us);
}

bool quic_may_send(const struct quic *q)
{
	return q->next - q->flight_from < (uint64_t)q->cwnd;
}

int64_t quic_timeout_us(const struct quic *q)
{
	int64_t wait_us = 3 * q->srtt_us;

	return q->progress_us + (wait_us > TIMEOUT_MIN_US ? wait_us : TIMEOUT_MIN_US);
}

/* RFC 9002, 7.6: all that was in flight is gone. */
void quic_timed_out(struct quic *q, int64_t now_us)
{
	q->ssthresh = fmax(CWND_MIN, q->cwnd * BETA);
	q->w_max = q->cwnd;
	q->cwnd = CWND_MIN;
	q->reno = q->cwnd;
	q->k_s = cbrt(q->w_max * (1 - BETA) / C);
	q->epoch_us = now_us;
	q->flight_from = q->next;
	q->progress_us = now_us;
}
