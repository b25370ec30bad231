# SPDX-License-Identifier: GPL-2.0-only
"""The mechanisms of the uplink's law: ablation.py looks at what it is without each."""

from builds import Edits

# Half a percent of target makes no difference that means anything: the row "by chance".
CHANCE: Edits = (
    (
        "		.target_us = target_us,\n",
        "		.target_us = target_us + target_us / 200,\n",
    ),
)

# Old text that is there once, and what stays without the mechanism
MECHANISMS: dict[str, Edits] = {
    "dev": (("dev = up_bytes(2 * (u64)u->dev, min(age_us, u->rtt_min_us));", "dev = 0;"),),
    "the limit of dev": (("			u->dev = min(u->dev, 2 * rate);\n", ""),),
    "a packet is no change": (
        (
            "			change -= min_t(u32, change, (UP_SEGMENT << UP_RATE_SHIFT) /\n"
            "						     u->age_us);\n",
            "",
        ),
    ),
    "silence": (
        (
            "silence = up_bytes(u->rate, u->silence_us - min(u->silence_us, u->more_us));",
            "silence = 0;",
        ),
    ),
    "an outage is no silence": (("min(u->longest_us, UP_SILENCE_US)", "u->longest_us"),),
    "what leaves takes time": (
        ("	us -= min(us, up_time(u, bytes));", "	us -= 0 * up_time(u, bytes);"),
    ),
    "others first": (
        ("		if (u->beside)\n			wnd -=", "		if (0)\n			wnd -="),
    ),
    "less beside a download": (
        ("wnd -= up_bytes(min(u->dev, u->rate), min(age_us, u->back_us));", "wnd -= 0;"),
    ),
    "the way back": (
        (
            "age_us = u->rtt_min_us + (u->back_us ? now_us - u->drained_us : u->rtt_min_us);",
            "age_us = U32_MAX;",
        ),
    ),
    "time without data": (("if (f->bounded || !before_us(dry_us, m->us)) {", "if (1) {"),),
    "but not by who claims too little": (("if (f->bounded || !before_us", "if (!before_us"),),
    "nor the wait for a grant": (
        ("granted_us = m->us + UP_WAIT_US + up_noise(u);", "granted_us = m->us;"),
    ),
    "an empty queue is not the link's": (("if (rate && (full || rate > u->rate))", "if (rate)"),),
    "a rate anew after a silence": (
        (
            "	if (now_us - u->answered_us > (1 << UP_TRICKLE_SHIFT) + u->age_us)\n"
            "		up_rate_anew(u, at_us);\n",
            "",
        ),
    ),
    "the mean in a packet's time": (("u32 rate = max(u->mean, u->rate),", "u32 rate = u->rate,"),),
    "more while no queue shows": (("if (!full && u->refused)", "if (0)"),),
    "START's queue outlasts a burst": ((" &&\n	    m->us - u->empty_us > u->age_us / 2)", ")"),),
    "START does not end by a download": (
        ("	if (u->beside && !up_told_up(u, now_us - m->us, now_us))", "	if (0)"),
    ),
    "DRAIN": (
        ("	if (up_drain_due(u, f, now_us)) {", "	if (0 && up_drain_due(u, f, now_us)) {"),
    ),
    "DRAIN of a new flow at once": (("		f->shared = 1;\n", ""),),
    "the first DRAIN withholds a packet": (
        (
            "			age_us -= min(age_us / 4, up_noise(u));\n",
            "			age_us -= age_us / 4;\n",
        ),
    ),
    "deeper DRAIN": (
        ("		u->deep = min(u->deep + 1, UP_DEEPEST);\n", "		u->deep = 1;\n"),
    ),
    "two rounds before a longer path": (
        ("(u->deep < UP_QUEUE_SURE - 1 || changed_us", "(changed_us"),
    ),
    "a rate in DRAIN": (
        ("		if (u->deep >= UP_QUEUE_SURE)\n			up_rates(u, full);\n", ""),
    ),
    "DRAIN's own rate does not count": (
        (
            "	if (now_us - u->drained_us < UP_FORGET_US && before_us(m->us, u->drained_us))\n",
            "	if (0)\n",
        ),
    ),
    "DRAIN after OPEN": (
        (
            "		u->phase = DRWA_UP_DRAIN;\n		u->blind = 1;\n",
            "		u->phase = DRWA_UP_START;\n		return;\n",
        ),
    ),
    "OPEN at once": (
        (
            "	if (!u->told && (u->phase == DRWA_UP_START || u->blind) &&"
            " !up_asked(u, true, now_us))\n		return up_open(u);\n",
            "",
        ),
    ),
    "late news are none while somebody is asked": (
        ("if (silent_us > usual_us && up_asked(u, true, now_us))", "if (0)"),
    ),
    "what left before leaves still": (
        ("if (silent_us > usual_us && up_asked(u, true, now_us))", "if (silent_us > usual_us)"),
    ),
    "a radio may take long to begin": (
        (
            "		wnd <<= 1 + min_t(u32, (late_us - UP_OPEN_US) >> UP_TRICKLE_SHIFT, 7);\n",
            "		wnd = U32_MAX / 2;\n",
        ),
    ),
    "a flow's own path": (
        (
            "left_us = f->least_us < U32_MAX ? up_longer(f->least_us, noise_us) : late_us;",
            "left_us = late_us;",
        ),
    ),
    "a packet now and then in a silence": (
        (
            "return wnd + UP_SEGMENT * (fls(min_t(u32, periods, 7)) + periods / 8);",
            "return wnd + 0 * periods;",
        ),
    ),
    "asks for half of the target": (
        (
            "	return u->crossed - u->refused_crossed >= up_bytes(u->rate, u->target_us / 2);\n",
            "	return true;\n",
        ),
    ),
    "though more is on its way": (("	wnd = max(wnd, u->closed_released - u->crossed);\n", ""),),
    "the far end's clock": (("	if (!clock_us || f->aside) {", "	if (1) {"),),
    "clocks that tick otherwise": (
        ("	f->aside = f->strayed_us >= 2 * UP_OPEN_US;\n", "	f->aside = 0;\n"),
    ),
    "no queue is longer than the RTT": (
        (" || stray_us > rtt + 2 * UP_TICK_US) {", " || before_us(x, f->base_us)) {"),
    ),
    "the least that it waited": (
        ("late = min(max(x - f->base_us, *least_us), late);", "late = min(x - f->base_us, late);"),
    ),
    "the most": (("	late += 2 * UP_TICK_US;\n", "	late = U32_MAX;\n"),),
    "a clock's word for who has none": (
        ("		if (up_told_up(u, rtt, now_us)) {", "		if (0) {"),
    ),
    "queries": (("(exact ? u->mark[i].end == end :", "(exact ? false :"),),
    "one mark a tick": (
        (
            "	if (kind != DRWA_UP_EXACT && m->flow == f - u->flow && now_us",
            "	if (0 && m->flow == f - u->flow && now_us",
        ),
    ),
    "who has a place keeps it": (
        (
            "		if (!up_is(f, key) && f->used && now_us - f->used_us < UP_OPEN_US)\n"
            "			return;\n",
            "",
        ),
    ),
    "told: more for a grant": (("up_bytes(u->rate, UP_TOLD_US) + UP_SEGMENT", "UP_SEGMENT"),),
    "told: a packet more": (
        ("up_bytes(u->rate, UP_TOLD_US) + UP_SEGMENT", "up_bytes(u->rate, UP_TOLD_US)"),
    ),
    "told: learns again": (
        (
            "} else if (u->learning || at_us - u->empty_us > UP_LEARN_US) {",
            "} else if (u->learning) {",
        ),
    ),
    "told: answers tell of less": (
        ("	u->full -= min(u->full, m->released - u->crossed);\n", ""),
    ),
    "told: the time between words": (
        ("	if (u->closed)\n		u->gap_us +=", "	if (0)\n		u->gap_us +="),
    ),
}
