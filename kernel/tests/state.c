// SPDX-License-Identifier: GPL-2.0-only
/* What law.py sees of the law's structures and inline functions */
#include <linux/tcp_drwa.h>

#define STATE(member)	u32 state_##member(const struct drwa *d) { return d->member; }
#define LINK(member)	u32 link_##member(const struct drwa_link *l) { return l->member; }

STATE(wnd)
STATE(rtt_us)
STATE(path_us)
STATE(lambda)
STATE(clock)
STATE(rival)
STATE(phase)
LINK(target_us)
LINK(silence_us)
LINK(others)

u32 state_size(void)
{
	return sizeof(struct drwa);
}

u32 link_size(void)
{
	return sizeof(struct drwa_link);
}

void state_set_lambda(struct drwa *d, u32 lambda)
{
	d->lambda = lambda;
}

bool count_due(const struct drwa *d, const struct drwa_link *l, u32 now_us)
{
	return drwa_count_due(d, l, now_us);
}

void credit(struct drwa_link *l, u32 bytes)
{
	drwa_credit(l, bytes);
}

/* So many segments, the last one @us after @from_us, at equal distances */
void hear_evenly(struct drwa_link *l, u32 from_us, u32 us, u32 segments)
{
	u32 i;

	for (i = 1; i <= segments; i++)
		drwa_heard(l, from_us + (u32)((u64)us * i / segments));
}
