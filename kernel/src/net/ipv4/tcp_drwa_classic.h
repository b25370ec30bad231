/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Algorithm 1 of Jiang, Wang, Lee, Rhee, "Tackling Bufferbloat in 3G/4G Networks", IMC
 * 2012. A round is the average RTT of its samples, RTTest; RTTmin is the least RTTest
 * ever, and data_rcvd the bytes received in the round:
 *
 *	cwndest = 7/8 * cwndest + 1/8 * data_rcvd
 *	wnd     = lambda * RTTmin / RTTest * cwndest
 *
 * Its equilibrium is RTT = lambda * RTTmin. It is here to reproduce the paper: it
 * throttles the start of a flow (cwndest grows by 1.25 a round at lambda 3), and starves
 * when the RTT grows for any reason but its own queue.
 */
#ifndef _TCP_DRWA_CLASSIC_H
#define _TCP_DRWA_CLASSIC_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/tcp_drwa.h>

/* Paper, section 5.1: alpha = 7/8, the weight of TCP's own RTT average. */
#define CLASSIC_ALPHA_SHIFT	3

/* Two segments: less would end in the sender's silly window avoidance. */
#define CLASSIC_FLOOR_SEGMENTS	2

static inline void classic_sample(struct drwa *d, u32 rtt_us)
{
	/* No overflow below 71 samples of 60 s. */
	if (d->sum_us > U32_MAX - rtt_us)
		return;
	d->sum_us += rtt_us;
	d->samples++;
}

static inline bool classic_due(const struct drwa *d, u32 elapsed_us)
{
	return (u64)elapsed_us * d->samples >= d->sum_us;
}

static inline void classic_round(struct drwa *d, u32 data_rcvd, u32 mss)
{
	u64 wnd;

	if (d->samples)
		d->rtt_us = d->sum_us / d->samples;
	d->sum_us = 0;
	if (d->rtt_us < d->path_us)
		d->path_us = d->rtt_us;

	if (!d->cwnd)
		d->cwnd = data_rcvd;
	else
		d->cwnd += (data_rcvd >> CLASSIC_ALPHA_SHIFT) -
			   (d->cwnd >> CLASSIC_ALPHA_SHIFT);

	/* 0 < RTTmin <= RTTest, as every sample is: no division by 0 */
	wnd = drwa_times_lambda(d, div64_u64((u64)d->cwnd * d->path_us, d->rtt_us));
	d->wnd = clamp_t(u64, wnd, CLASSIC_FLOOR_SEGMENTS * mss, U32_MAX / 2);
	d->phase = DRWA_HOLD;
}

#endif /* _TCP_DRWA_CLASSIC_H */
