/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _DRWA_TEST_PRANDOM_H
#define _DRWA_TEST_PRANDOM_H

#include <linux/types.h>

struct rnd_state {
	u64 s;
};

static inline void prandom_seed_state(struct rnd_state *state, u64 seed)
{
	state->s = seed;
}

/* SplitMix64 (Steele et al., OOPSLA 2014) */
static inline u32 prandom_u32_state(struct rnd_state *state)
{
	u64 z = state->s += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z >> 32;
}

#endif
