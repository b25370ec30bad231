# SPDX-License-Identifier: GPL-2.0-only
"""Other designs of the law, tried on the model's likes of the targets that it misses.

kernel/README.md has the targets. A figure's title begins with its row of the campaign.
"""

import functools
from collections.abc import Callable

import numpy as np

import constants
import model
from builds import Edits
from constants import Cells
from drwalab import burstlink
from model import BBR, Change, Flow, Link

DRIVES = (1, 2, 3, 4)
DURATION_S = 40

_NEED = "	return d->rate + drwa_times_lambda(d, d->dev);\n"
_WINDOW = "	wnd = delay_window(d, l, r, delay_rate(d, r));\n"


def _with(name: str, value: str) -> Edits:
    """A constant's other value."""
    (constant,) = (each for each in constants.constants() if each.name == name)
    return constant.edit(value)


# Old text that is there once, and the design in its place
DESIGNS: dict[str, Edits] = {
    "twice dev": ((_NEED, _NEED.replace("drwa_times", "2 * drwa_times")),),
    "four times dev": ((_NEED, _NEED.replace("drwa_times", "4 * drwa_times")),),
    "the better of two rounds' rates": (
        (_WINDOW, _WINDOW.replace("delay_rate(d, r)", "max_t(u64, delay_rate(d, r), last_rate)")),
    ),
    "twice the window after a rise by a quarter": (
        (
            "		if (!delay_tries(d) && (r->full || wnd > d->wnd))\n",
            "		if (r->used && r->rate > last_rate + quarter(last_rate))\n"
            "			wnd *= 2;\n"
            "		if (!delay_tries(d) && (r->full || wnd > d->wnd))\n",
        ),
    ),
    "START again after a rise by half": (
        (
            "	if (d->phase == DRWA_HOLD) {\n		if (d->rounds) {\n",
            "	if (d->phase == DRWA_HOLD && r->used && r->rate > last_rate + last_rate / 2)\n"
            "		d->phase = DRWA_START;\n"
            "	if (d->phase == DRWA_HOLD) {\n		if (d->rounds) {\n",
        ),
    ),
    "twice the target": (
        (
            "	u32 us = d->path_us + max(r->target_us,",
            "	u32 us = d->path_us + max(2 * r->target_us,",
        ),
    ),
    "twice the target without a clock": (
        (
            "	u32 us = d->path_us + max(r->target_us,",
            "	u32 us = d->path_us + max(r->target_us << !d->clock,",
        ),
    ),
    "twice dev without a clock": ((_NEED, _NEED.replace("d->dev)", "d->dev << !d->clock)")),),
    "no DRAIN without a clock": (
        (
            "	if (r->now_us - READ_ONCE(l->drain_us) <= r->elapsed_us)\n		return true;\n",
            "	if (!d->clock)\n		return false;\n"
            "	if (r->now_us - READ_ONCE(l->drain_us) <= r->elapsed_us)\n		return true;\n",
        ),
    ),
    "two segments at least": _with("DRWA_FLOOR_SEGMENTS", "2"),
    "eight segments at least": _with("DRWA_FLOOR_SEGMENTS", "8"),
    "no segment more": (("drwa_bytes(rate, us) + r->mss,", "drwa_bytes(rate, us),"),),
    "dev counts beside a lost rate": (("d->rate + d->dev < d->good / 2", "d->rate < d->good / 2"),),
    "two thirds of the rate are lost": (("< d->good / 2;\n	if", "< d->good / 3;\n	if"),),
    "three quarters of the rate stay": (
        ("d->rate + d->dev < d->good / 2;", "d->rate + d->dev < d->good - quarter(d->good);"),
    ),
    "half of all makes a rival": _with("DRWA_RIVAL_PART", "(U8_MAX / 2)"),
    "an eighth of all makes a rival": _with("DRWA_RIVAL_PART", "(U8_MAX / 8)"),
    "eight times what came beside a rival": (
        ("return max(wnd, r->bytes << DRWA_START_SHIFT);", "return max(wnd, r->bytes << 3);"),
    ),
    "a rival lasts for a period at least": (
        ("	if (READ_ONCE(l->others) > DRWA_NOBODY_PART)\n", "	if (d->rival)\n"),
    ),
}


@functools.cache
def _goodput(link: str, base_s: float, cc: int | None) -> float:
    """Of a download that nothing governs, Mb/s"""
    flow = Flow(base_s, None) if cc is None else Flow(base_s, None, cc=cc)
    return float(model.run(_radio(link), [flow], DURATION_S).goodput_mbps[0])


@functools.cache
def _radio(word: str) -> Link:
    times = np.array(burstlink.opportunities(word, DURATION_S), np.uint32)
    return Link(opportunities_ms=times, buffer_bytes=3_000_000)


def _governed(link: Link, flow: Flow, edits: Edits) -> float:
    return float(model.run(link, [flow], DURATION_S, edits=edits).goodput_mbps[0])


def many(edits: Edits) -> Cells:
    flows = [Flow(0.06, start_s=0.2 * i) for i in range(100)]
    stock = [Flow(0.06, None, start_s=0.2 * i) for i in range(100)]
    p95 = [model.run(Link(5), each, 60, 20, edits=edits).p95_s(20) for each in (flows, stock)]
    return {"26, 100 flows: p95": p95[0] / p95[1]}


def drives(edits: Edits) -> Cells:
    """5G drives: the least goodput over a BBR sender's"""
    jumps = [
        _governed(_radio(f"drive:{seed}"), Flow(base_s), edits)
        / _goodput(f"drive:{seed}", base_s, BBR)
        for seed in DRIVES
        for base_s in (0.04, 0.08)
    ]
    return {"27, jumps: goodput": min(jumps)}


@functools.cache
def _varying(name: str, lambda_: float | None) -> tuple[float, float]:
    """Goodput and p95 of a download, with timestamps"""
    link = Link(opportunities_ms=constants.variable_links()[name])
    outcome = model.run(link, [Flow(0.04, lambda_)], constants.DURATION_S)
    return float(outcome.goodput_mbps[0]), outcome.p95_s()


def blind(edits: Edits) -> Cells:
    """Without timestamps: goodput over stock's, and p95 over that with them, geometric means"""
    goodput, p95 = [], []
    for name, times in constants.variable_links().items():
        link, flow = Link(opportunities_ms=times), Flow(0.04, blind=True)
        outcome = model.run(link, [flow], constants.DURATION_S, edits=edits)
        goodput.append(float(outcome.goodput_mbps[0]) / _varying(name, None)[0])
        p95.append(outcome.p95_s() / _varying(name, 1.25)[1])
    longer = [
        _governed(Link(20, changes=(Change(20, base_rtt_s=rtt_s),)), Flow(0.03, blind=True), edits)
        for rtt_s in (0.06, 0.15, 0.3)
    ]
    return {
        "29, no timestamps: goodput": constants.geometric(goodput),
        "29: p95": constants.geometric(p95),
        "29: longer path": min(longer) / 20,
    }


def slow(edits: Edits) -> Cells:
    """Steady and slow: goodput over stock's, and the mean RTT over the base"""
    got = []
    for own in (1.25, None):
        outcome = model.run(Link(0.3), [Flow(0.1, own)], 60, edits=edits)
        got.append(float(outcome.goodput_mbps[0]))
    rtt_s = model.run(Link(2), [Flow(0.02)], 60, 20, edits=edits).rtt_s(20).mean()
    return {"2, 0.3 Mb/s: goodput": got[0] / got[1], "2, 2 Mb/s: RTT": float(rtt_s) / 0.02}


def handover(edits: Edits) -> Cells:
    """Ten seconds after one, beside a stream of 0.5 Mb/s: the least goodput over that without"""
    parts = []
    stream = Flow(0.03, app_mbps=0.5)
    for mbps in (10, 20, 40):
        for offset_s in np.arange(0, 4.2, 0.42):
            at_s = 20 + float(offset_s)
            link = Link(mbps, buffer_bytes=3_000_000, changes=(Change(at_s, base_rtt_s=0.15),))
            got = [
                float(model.run(link, flows, at_s + 10, at_s, edits=edits).goodput_mbps[0])
                for flows in ([Flow(0.03), stream], [Flow(0.03)])
            ]
            parts.append(got[0] / got[1])
    return {"31, handover: goodput": min(parts), "31: mean": float(np.mean(parts))}


def price(edits: Edits) -> Cells:
    cells = constants.variable(edits)
    return {name: cells[name] for name in ("40 ms: goodput", "40 ms: p95")}


CAMPAIGN: tuple[Callable[[Edits], Cells], ...] = (
    price,
    constants.rivals,
    drives,
    many,
    blind,
    slow,
    handover,
)


def row(edits: Edits) -> Cells:
    cells: Cells = {}
    for part in CAMPAIGN:
        cells |= part(edits)
    return cells


WHAT_IS_RUN = [
    "Its likes in the model, for targets of kernel/README.md that the model misses, too. First",
    "their price: the goodput and the p95 of variable links, as in ablation.md. Then rivals, as",
    "there; 5G drives at 40 and 80 ms, the least goodput over a BBR sender's; 100 connections at",
    "5 Mb/s and 60 ms, p95 over stock's; the variable links, without timestamps, goodput over",
    "stock's and p95 over that with them, and from 30 to 60, 150 and 300 ms at 20 Mb/s, the least",
    "goodput over the rate; 0.3 Mb/s at 100 ms over stock's, and 2 Mb/s at 20 ms, RTT over the",
    "base; and the ten seconds after a handover beside a stream of 0.5 Mb/s over those without it,",
    "the least and the mean of 30 moments.",
]
