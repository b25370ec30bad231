// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "autorate.h"

/* defaults.sh of cake-autorate; delays in us. */
static const double BASELINE_START = 100000, BASELINE_UP = 0.001, BASELINE_DOWN = 0.9;
static const double UP_FULL = 10000, LATE = 30000, DOWN_FULL = 60000;
static const double UP = 1.04, DOWN_LEAST = 0.99, DOWN_MOST = 0.75;
static const double DECAY_DOWN = 0.99, DECAY_UP = 1.01;
static const double HIGH_LOAD = 0.75;
static const int LATE_OF_WINDOW = 3;
static const int64_t BLOAT_US = 300000, DECAY_US = 1000000;
/* There, what the user enters. Its example has a quarter of the base rate, and 1.75 times it. */
static const double LEAST_OF_BASE = 0.1, MOST_OF_BASE = 4;
static const double PACKET_BITS = 1500 * 8;

void autorate_start(struct autorate *a, double base_bps, int64_t now_us)
{
	int i;

	memset(a, 0, sizeof(*a));
	a->base_bps = base_bps;
	a->rate_bps = base_bps;
	a->min_bps = base_bps * LEAST_OF_BASE;
	a->max_bps = base_bps * MOST_OF_BASE;
	a->bloated_us = now_us;
	a->decayed_us = now_us;
	for (i = 0; i < AUTORATE_REFLECTORS; i++)
		a->baseline_us[i] = BASELINE_START;
}

void autorate_achieved(struct autorate *a, double bps)
{
	a->achieved_bps = bps;
	a->achieved_is_new = true;
}

/* 0 at @low, 1 at @high */
static double part(double value, double low, double high)
{
	double x = (value - low) / (high - low);

	return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double limited(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

void autorate_answered(struct autorate *a, unsigned int ping, int64_t rtt_us, int64_t now_us)
{
	double *baseline = &a->baseline_us[ping % AUTORATE_REFLECTORS];
	double owd_us = rtt_us / 2.0, sum = 0, mean, packet_us;
	double alpha = owd_us >= *baseline ? BASELINE_UP : BASELINE_DOWN;
	int late = 0, i;

	*baseline += alpha * (owd_us - *baseline);
	/* A packet's own time is no queue. */
	packet_us = PACKET_BITS / a->rate_bps * 1e6;
	a->delta_us[a->next] = owd_us - *baseline;
	a->late[a->next] = a->delta_us[a->next] > LATE + packet_us;
	a->next = (a->next + 1) % AUTORATE_WINDOW;
	for (i = 0; i < AUTORATE_WINDOW; i++) {
		sum += a->delta_us[i];
		late += a->late[i];
	}
	mean = sum / AUTORATE_WINDOW - packet_us;

	if (late >= LATE_OF_WINDOW) {
		if (now_us <= a->bloated_us + BLOAT_US)
			return;
		a->rate_bps *= DOWN_LEAST - part(mean, LATE, DOWN_FULL) * (DOWN_LEAST - DOWN_MOST);
		a->bloated_us = now_us;
		a->decayed_us = now_us;
	} else if (a->achieved_bps > HIGH_LOAD * a->rate_bps) {
		if (!a->achieved_is_new || now_us <= a->bloated_us + BLOAT_US)
			return;
		a->rate_bps *= 1 + (1 - part(mean, UP_FULL, LATE)) * (UP - 1);
		a->achieved_is_new = false;
		a->decayed_us = now_us;
	} else {
		if (now_us <= a->decayed_us + DECAY_US)
			return;
		if (a->rate_bps > a->base_bps)
			a->rate_bps = limited(a->rate_bps * DECAY_DOWN, a->base_bps, a->max_bps);
		else
			a->rate_bps = limited(a->rate_bps * DECAY_UP, a->min_bps, a->base_bps);
		a->decayed_us = now_us;
	}
	a->rate_bps = limited(a->rate_bps, a->min_bps, a->max_bps);
}
