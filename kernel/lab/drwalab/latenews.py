# SPDX-License-Identifier: GPL-2.0-only
"""`lab late-news`: what anybody can make of an uplink who learns late what has left.

QCUT-D reads the modem's queue as it is. Whoever has to be told by the answers to what was sent
knows what left a round trip ago. How much that costs depends on the link alone; here it is looked
for without any kernel: a gate is told exactly, to the packet, what has left, and when the modem
had something to send, only late. It hands over what would leave until the news of it came and the
target passed, at the rate of the modem's last busy time, and some deviations of that rate:

    released - crossed <= rate * (age + target) + deviations * dev * age

Of all spans of the rate, targets and deviations, those count that turn out best on that very link.
That is no proof that nothing is better; it is what the law's window (net/sched/drwa_up_core.c)
could have if its answers, clocks and guesses were perfect, and its constants made for each link.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress

from drwalab import cases, errors, network, output
from drwalab.traces import OPPORTUNITY_BYTES, Trace
from drwalab.uplink_targets import P95_BEYOND_BOUND_MS, UPLOAD_OF_BOUND

CASE = "u08-told"
AGES_MS = (50, 100, 150)
SPANS_MS = (32, 64, 128, 256)
TARGETS_MS = (5, 10, 20, 40)
DEVIATIONS = (-1, 0, 1, 2)
# As the law has them
DEV_SHIFT = 4
FIRST_PACKETS = 10
LEAST_PACKETS = 2
# Labgate's: the rate of its bound, over so long
BOUND_SPAN_MS = 100
# Probes until then, and those that the run's end leaves unanswered, do not count.
SETTLED_MS, UNANSWERED_MS = 5_000, 8_000
PROBE_MS = 10

Packets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Packets that crossed, and the p95 RTT of probes in ms, of each gate."""

    crossed: npt.NDArray[np.int64]
    p95_ms: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """Of QCUT-D's upload and beyond its p95 RTT, the best of all gates."""

    link: str
    age_ms: int
    bound_p95_ms: float
    part_within: float
    beyond_ms: float | None


def opportunities(trace: Trace, duration_ms: int) -> Packets:
    """Packets that can cross in each ms."""
    return trace.opportunities(np.arange(duration_ms + 1, dtype=np.int64))


def bound(packets: Packets, age_ms: int, grant_ms: int) -> Outcome:
    """Whoever reads the modem's queue, and keeps what drains within QCUT-D's target."""
    total = np.concatenate([[0], np.cumsum(packets)])
    target_ms = network.QCUT_TARGET_US / 1000
    released, crossed = np.zeros((2, len(packets)), dtype=np.int64)
    out = left = 0
    for now, room in enumerate(packets.tolist()):
        since = max(0, now - BOUND_SPAN_MS)
        rate = (total[now] - total[since]) / max(1, now - since)
        out = max(out, left + max(LEAST_PACKETS, int(rate * target_ms)))
        released[now] = out
        if now >= grant_ms:
            left = min(max(left, int(released[now - grant_ms])), left + room)
        crossed[now] = left
    return _outcome(released[:, None], crossed[:, None], age_ms, grant_ms)


def late(packets: Packets, age_ms: int, grant_ms: int) -> Outcome:
    """All gates at a time, in the order of product(SPANS_MS, TARGETS_MS, DEVIATIONS)."""
    choices = np.array(list(product(SPANS_MS, TARGETS_MS, DEVIATIONS)))
    span, target, deviations = choices.T
    gates, length = np.arange(len(choices)), len(packets)
    released, crossed, busy, served = np.zeros((4, length, len(choices)), dtype=np.int64)
    # Where a rate's span, and an age, began
    start, before = np.zeros((2, len(choices)), dtype=np.int64)
    dev, last = np.zeros((2, len(choices)))
    out = np.full(len(choices), FIRST_PACKETS)
    left = np.zeros(len(choices), dtype=np.int64)
    for now in range(length):
        known = now - age_ms
        if known > grant_ms:
            gone = crossed[known] - crossed[known - 1]
            busy[known] = busy[known - 1]
            busy[known] += (released[known - 1 - grant_ms] > crossed[known - 1]) | (gone > 0)
            served[known] = served[known - 1] + gone
            ahead = busy[known] - span
            while (step := busy[np.minimum(start + 1, known), gates] <= ahead).any():
                start += step
            passed = np.maximum(1, busy[known] - busy[start, gates])
            rate = (served[known] - served[start, gates]) / passed
            if now % age_ms == 0:
                newest = (crossed[known] - crossed[before, gates]) / age_ms
                change = np.maximum(0, np.abs(newest - last) - 1 / age_ms)
                dev = np.minimum(dev + (change - dev) / (1 << DEV_SHIFT), 2 * newest)
                last, before = newest, np.full(len(choices), known)
            window = rate * (age_ms + target) + deviations * dev * age_ms
            first = 2 * crossed[known] + FIRST_PACKETS
            window = np.where(busy[known] >= span, np.maximum(window, LEAST_PACKETS), first)
            out = np.maximum(out, crossed[known] + window.astype(np.int64))
        released[now] = out
        if now >= grant_ms:
            left = np.minimum(np.maximum(left, released[now - grant_ms]), left + packets[now])
        crossed[now] = left
    return _outcome(released, crossed, age_ms, grant_ms)


def _outcome(released: Packets, crossed: Packets, age_ms: int, grant_ms: int) -> Outcome:
    sent = np.arange(SETTLED_MS, len(released) - UNANSWERED_MS, PROBE_MS)
    p95 = []
    for gate in range(released.shape[1]):
        gone = np.searchsorted(crossed[:, gate], released[sent, gate])
        p95.append(age_ms + np.percentile(np.maximum(gone - sent, grant_ms), 95))
    return Outcome(crossed[-1], np.array(p95))


def best(trace: Trace, age_ms: int, grant_ms: int, duration_ms: int) -> Row:
    """What the best of all gates has on this link."""
    packets = opportunities(trace, duration_ms)
    known, told = bound(packets, age_ms, grant_ms), late(packets, age_ms, grant_ms)
    part = told.crossed / known.crossed[0]
    beyond = told.p95_ms - known.p95_ms[0]
    within = part[beyond <= P95_BEYOND_BOUND_MS]
    enough = beyond[part >= UPLOAD_OF_BOUND]
    return Row(
        trace.path.stem,
        age_ms,
        float(known.p95_ms[0]),
        float(within.max(initial=0.0)),
        float(enough.min()) if len(enough) else None,
    )


def links(traces: Path | None) -> Iterator[tuple[Trace, int, int]]:
    """Uplinks of the campaign's case that vary, how late grants are, and how long runs are, ms."""
    found = {}
    for spec in cases.choose([CASE], traces)[0].specs:
        if spec.uplink and spec.up and spec.up.trace:
            found[spec.up.trace.path] = (
                spec.up.trace,
                spec.uplink.grant_us // 1000,
                spec.duration_us // 1000,
            )
    yield from found.values()


def late_news(
    traces: Annotated[Path | None, cases.TRACES_OPTION] = None,
    record: Annotated[Path | None, output.record_option("late-news.md")] = None,
) -> None:
    """Look for what anybody can make of uplinks who learns 50 to 150 ms late what has left."""
    console = Console(stderr=True)
    with errors.reported():
        jobs = list(product(links(traces), AGES_MS))
        with Progress(console=console, transient=True) as progress:
            found = [
                best(trace, age_ms, grant_ms, duration_ms)
                for (trace, grant_ms, duration_ms), age_ms in progress.track(
                    jobs, description="links"
                )
            ]
        print(_table(found))
        if record:
            output.write_whole(record / "late-news.md", _document(found))


def _table(found: list[Row]) -> str:
    heads = (
        "Uplink",
        "News are late, ms",
        "QCUT-D's p95 RTT, ms",
        f"Upload of QCUT-D's at {P95_BEYOND_BOUND_MS} ms beyond",
        f"p95 RTT beyond, ms, at {UPLOAD_OF_BOUND} of its upload",
    )
    rows = [
        (
            row.link,
            f"{row.age_ms}",
            f"{row.bound_p95_ms:.0f}",
            f"{row.part_within:.3f}",
            output.number(row.beyond_ms, 0),
        )
        for row in found
    ]
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _document(found: list[Row]) -> str:
    missed = [row for row in found if row.beyond_ms is None or row.beyond_ms > P95_BEYOND_BOUND_MS]
    return f"""\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# late-news
The best of {len(SPANS_MS) * len(TARGETS_MS) * len(DEVIATIONS)} gates that are told exactly, to the
packet, what has left, only late; QCUT-D is told at once. Which one, was chosen for each link when
all was known. Row 2 of [uplink.md](uplink.md) asks for {UPLOAD_OF_BOUND} of QCUT-D's upload within
{P95_BEYOND_BOUND_MS} ms of its p95 RTT: on {len(missed)} of {len(found)} lines none has both.
Packets of {OPPORTUNITY_BYTES} bytes, no TCP, no losses, nobody else: a model, not the kernel.

{_table(found)}

Repeat it with `kernel/lab/lab late-news --traces FOLDER --record kernel/lab/results`.
"""
