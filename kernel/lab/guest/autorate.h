/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LAB_AUTORATE_H
#define LAB_AUTORATE_H

#include <stdbool.h>
#include <stdint.h>

enum { AUTORATE_REFLECTORS = 6, AUTORATE_WINDOW = 6 };

/*
 * The uplink's half of cake-autorate (3.3, with its defaults and its method
 * fping, whose delays are half an RTT): a shaper's rate that falls when several
 * of the last pings were late, and rises while it is used. Its pause on an idle
 * link, its exchange of reflectors and its handling of stalls are left out.
 */
struct autorate {
	double rate_bps, base_bps, min_bps, max_bps;
	double baseline_us[AUTORATE_REFLECTORS];
	double delta_us[AUTORATE_WINDOW];
	bool late[AUTORATE_WINDOW];
	int next;		/* of the window */
	double achieved_bps;
	bool achieved_is_new;
	int64_t bloated_us, decayed_us;
};

/* Between two looks at what was achieved. */
enum { AUTORATE_LOOK_US = 200000 };

void autorate_start(struct autorate *a, double base_bps, int64_t now_us);
void autorate_achieved(struct autorate *a, double bps);
/* An answered ping; the rate may be another one then. */
void autorate_answered(struct autorate *a, unsigned int ping, int64_t rtt_us, int64_t now_us);

#endif
