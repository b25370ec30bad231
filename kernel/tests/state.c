// SPDX-License-Identifier: GPL-2.0-only
/* What law.py sees of the law's structures: their size, and members by name */
#include <linux/tcp_drwa.h>

#define STATE(member)	u32 state_##member(const struct drwa *d) { return d->member; }
#define LINK(member)	u32 link_##member(const struct drwa_link *l) { return l->member; }

STATE(wnd)
STATE(rtt_us)
STATE(path_us)
STATE(lambda)
STATE(phase)
STATE(rival)
STATE(contested)
LINK(target_us)
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
