# SPDX-License-Identifier: GPL-2.0-only
"""What half and twice of each of the law's constants do over the model's campaign."""

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import builds
import model
from drwalab import ltelink
from model import BBR, CUBIC, Change, Flow, Link

RESULT = builds.TESTS / "results" / "constants.md"
TRACES = builds.TOP.parent / "shared" / "traces"

GENERATED = (1, 2, 5, 6)
DURATION_S = 60
# A row is flat if no cell differs by more than this part.
FLAT = 0.01

Constants = Mapping[str, str]
Cells = dict[str, float]


def constants() -> dict[str, int]:
    """The law's constants and their values; units and scales of the arithmetic are none."""
    found = re.findall(r"^#define (DELAY_\w+)\s+(\d+)u?$", builds.CORE.read_text(), re.MULTILINE)
    return {name: int(value) for name, value in found if name != "DELAY_RATE_SHIFT"}


def half_and_twice(name: str, value: int) -> tuple[str, str]:
    """Of a shift, what it stands for is halved and doubled."""
    if name.endswith("_SHIFT") or name.endswith("_SHIFT_MAX"):
        return str(value - 1), str(value + 1)
    return str(max(value // 2, 1)), str(2 * value)


@functools.cache
def variable_links() -> dict[str, NDArray[np.uint32]]:
    """Recorded links, where they lie beside the project, and generated ones."""
    links = {path.stem: np.loadtxt(path, dtype=np.uint32) for path in sorted(TRACES.glob("*.down"))}
    for seed in GENERATED:
        links[f"generated {seed}"] = np.array(ltelink.opportunities(seed, DURATION_S), np.uint32)
    return links


def _geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


@functools.cache
def _idle(name: str, base_s: float) -> float:
    link = Link(opportunities_ms=variable_links()[name])
    return model.run(link, [], DURATION_S, probe_rtt_s=base_s).p95_s()


@functools.cache
def _stock(name: str, base_s: float) -> float:
    link = Link(opportunities_ms=variable_links()[name])
    return float(model.run(link, [Flow(base_s, None)], DURATION_S).goodput_mbps[0])


def _variable(base_s: float, changed: Constants) -> tuple[float, float]:
    """Goodput over stock's, and p95 over the idle link's."""
    goodput, p95 = [], []
    for name, times in variable_links().items():
        outcome = model.run(
            Link(opportunities_ms=times), [Flow(base_s)], DURATION_S, constants=changed
        )
        goodput.append(float(outcome.goodput_mbps[0]) / _stock(name, base_s))
        p95.append(outcome.p95_s() / _idle(name, base_s))
    return _geometric(goodput), _geometric(p95)


def variable(changed: Constants) -> Cells:
    near, far = _variable(0.04, changed), _variable(0.1, changed)
    return {
        "40 ms: goodput": near[0],
        "40 ms: p95": near[1],
        "100 ms: goodput": far[0],
        "100 ms: p95": far[1],
    }


def steady(changed: Constants) -> Cells:
    goodput, rtt = [], []
    for mbps, base_s in ((1, 0.1), (2, 0.05), (10, 0.05), (20, 0.1), (50, 0.03)):
        outcome = model.run(Link(mbps), [Flow(base_s)], 40, 20, constants=changed)
        goodput.append(float(outcome.goodput_mbps[0]) * 1500 / model.MSS_BYTES / mbps)
        rtt.append(float(outcome.rtt_s(20).mean()) / base_s)
    return {"steady: goodput": min(goodput), "steady: RTT": _geometric(rtt)}


def flows(changed: Constants) -> Cells:
    p95, fair = [], []
    for count, apart_s in ((5, 0), (20, 0), (5, 2), (20, 2)):
        since_s = count * apart_s + 10
        late = [Flow(0.05, start_s=apart_s * i) for i in range(count)]
        outcome = model.run(Link(10), late, since_s + 40, since_s, constants=changed)
        got = outcome.goodput_mbps
        p95.append(outcome.p95_s(since_s) / 0.05)
        fair.append(float(got.sum() ** 2 / (count * (got**2).sum())))
    return {"5, 20 flows: p95": max(p95), "Jain": min(fair)}


def steps(changed: Constants) -> Cells:
    """Goodput in the ten seconds after a handover; the worst RTT of a slower link's later ones."""
    after, late = [], []
    for offset_s in np.arange(0, 4.2, 0.7):
        at_s = 20 + float(offset_s)
        link = Link(20, changes=(Change(at_s, base_rtt_s=0.15),))
        outcome = model.run(
            link, [Flow(0.03)], at_s + 10, at_s, probe_rtt_s=0.03, constants=changed
        )
        after.append(float(outcome.goodput_mbps[0]) / (20 * model.MSS_BYTES / 1500))
        link = Link(10, changes=(Change(at_s, rate_mbps=2),))
        outcome = model.run(link, [Flow(0.05)], at_s + 20, constants=changed)
        late.append(outcome.p95_s(at_s, at_s + 20) / 0.05)
    return {"handover: goodput": float(np.mean(after)), "10 to 2 Mb/s: p95": max(late)}


def objects(changed: Constants) -> Cells:
    worst = []
    for mbps, base_s in ((4, 0.1), (20, 0.03), (50, 0.1)):
        for size in (64_000, 1_000_000, 4_000_000):
            ours, stock = (
                float(
                    model.run(
                        Link(mbps), [Flow(base_s, own, size_bytes=size)], 60, constants=changed
                    ).fetch_s[0]
                )
                for own in (1.25, None)
            )
            worst.append(ours / stock)
    return {"objects": max(worst)}


def rivals(changed: Constants) -> Cells:
    shares = []
    for cc in (CUBIC, BBR):
        for mbps, buffer_bytes in ((10, 150_000), (10, 750_000)):
            link = Link(mbps, buffer_bytes=buffer_bytes)
            parts = []
            # Which of two has more is chance for some part.
            for start_s in (5, 5.3, 5.7, 6.1, 6.6):
                both = [Flow(0.05), Flow(0.05, None, cc=cc, start_s=start_s)]
                got = model.run(link, both, 65, 15, constants=changed).goodput_mbps
                parts.append(float(2 * got[0] / got.sum()))
            shares.append(float(np.mean(parts)))
    paced = Flow(0.05, None, app_mbps=4)
    outcome = model.run(Link(10), [Flow(0.05), paced], 60, 10, constants=changed)
    return {"rivals: least share": min(shares), "paced: p95": outcome.p95_s(10) / 0.05}


CAMPAIGN: tuple[Callable[[Constants], Cells], ...] = (
    variable,
    steady,
    flows,
    steps,
    objects,
    rivals,
)


def row(changed: Constants) -> Cells:
    cells: Cells = {}
    for part in CAMPAIGN:
        cells |= part(changed)
    return cells


def report(rows: Mapping[tuple[str, str], Cells], present: Cells) -> str:
    law = hashlib.sha256(builds.CORE.read_bytes()).hexdigest()[:12]
    names = list(present)
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# constants",
        "The law with half and twice of each of its constants, over the model's campaign:",
        f"{len(variable_links())} variable links at a base of 40 and of 100 ms (goodput over",
        "stock's, p95 over the idle link's, geometric means), steady links (the least goodput),",
        "connections that share a queue (the worst), steps, objects (worst over stock's), rivals.",
        "",
        f"| constant | value | {' | '.join(names)} | |",
        f"| --- | --: |{' --: |' * len(names)} --- |",
        f"| as it is | | {' | '.join(f'{present[name]:.3f}' for name in names)} | |",
    ]
    for constant in dict.fromkeys(name for name, _ in rows):
        both = {value: cells for (name, value), cells in rows.items() if name == constant}
        flat = all(
            abs(cells[name] / present[name] - 1) < FLAT for cells in both.values() for name in names
        )
        for value, cells in both.items():
            shown = " | ".join(f"{cells[name]:.3f}" for name in names)
            lines.append(f"| {constant} | {value} | {shown} | {'flat' if flat else ''} |")
    lines += [
        "",
        f"tcp_drwa_core.c: sha256 {law}. Repeat it with `kernel/tests/constants --record`.",
        "",
    ]
    return "\n".join(lines)


def main(
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    record: Annotated[bool, typer.Option("--record", help="Write results/constants.md.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the table here as well.")] = None,
) -> None:
    """Run the model's campaign with half and twice of every constant of the law."""
    variants = [
        (name, value)
        for name, own in constants().items()
        for value in half_and_twice(name, own)
        if value != str(own)
    ]
    bar = Progress(BarColumn(), TextColumn("{task.completed} of {task.total}"), TimeElapsedColumn())
    with bar, ProcessPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=len(variants) + 1)
        first = pool.submit(row, {})
        waiting = {pool.submit(row, {name: value}): (name, value) for name, value in variants}
        for _ in as_completed([first, *waiting]):
            bar.advance(task)
        rows = {variant: done.result() for done, variant in waiting.items()}
    table = report(rows, first.result())
    print(table)
    if output:
        output.write_text(table)
    if record:
        RESULT.write_text(table)


if __name__ == "__main__":
    typer.run(main)
