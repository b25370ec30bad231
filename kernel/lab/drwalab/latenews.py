# SPDX-License-Identifier: GPL-2.0-only
"""`lab late-news`: the best that lategates.py finds, over the uplinks of the campaign that vary."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.progress import Progress

from drwalab import cases, errors, lategates, output
from drwalab.traces import OPPORTUNITY_BYTES, Trace
from drwalab.uplink_targets import P95_BEYOND_BOUND_MS, UPLOAD_OF_BOUND

CASE = "u08-told"
AGES_MS = (50, 100, 150)


@dataclass(frozen=True)
class Row:
    """Of QCUT-D's upload and beyond its p95 RTT, the best of all gates."""

    link: str
    age_ms: int
    bound_p95_ms: float
    part_within: float
    beyond_ms: float | None


def best(trace: Trace, age_ms: int, grant_ms: int, duration_ms: int) -> Row:
    """What the best of all gates has on this link."""
    known, told = lategates.outcomes(trace, age_ms, grant_ms, duration_ms)
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
The best of {lategates.COUNT} gates that are told exactly, to the
packet, what has left, only late; QCUT-D is told at once. Which one, was chosen for each link when
all was known. Row 2 of [uplink.md](uplink.md) asks for {UPLOAD_OF_BOUND} of QCUT-D's upload within
{P95_BEYOND_BOUND_MS} ms of its p95 RTT: on {len(missed)} of {len(found)} lines none has both.
The lab's modem, packets of {OPPORTUNITY_BYTES} bytes, no TCP, no losses, nobody else: a model, not
the kernel.

{_table(found)}

Repeat it with `kernel/lab/lab late-news --traces FOLDER --record kernel/lab/results`.
"""
