# SPDX-License-Identifier: GPL-2.0-only
"""What half and twice of each of the law's constants do over the model's campaign."""

import functools
import random
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import builds
import model
from builds import Edits
from drwalab import burstlink, ltelink
from model import BBR, CUBIC, Change, Flow, Link, Push

RESULT = builds.TESTS / "results" / "constants.md"
TRACES = builds.TOP.parent / "shared" / "traces"

GENERATED = (1, 2, 5, 6)
DURATION_S = 60
# What Android 13 lets a socket have, on the fastest networks
LARGE_WINDOW_BYTES = 6 << 20
# A row is flat if no cell differs by more than this part.
FLAT = 0.01

# The most that struct drwa has bits for
ROOM = {"DRWA_HIDDEN_MAX": 7}

# Radios that serve in bursts, and their base RTT
BURSTS = (
    ("bursts:2/5ms/21ms/20mbit", 0.01),
    ("bursts:1/5ms-15ms/30ms-60ms/20mbit", 0.02),
    ("bursts:3/10ms/80ms/20mbit", 0.02),
    ("bursts:3/8ms-30ms/40ms-90ms/40mbit", 0.025),
    ("bursts:6/10ms-30ms/60ms-120ms/10mbit", 0.06),
)

Cells = dict[str, float]


@dataclass(frozen=True)
class Constant:
    """A number of the law: its value is text with one number in it."""

    line: str
    name: str
    value: str

    def with_number(self, number: int) -> str:
        return re.sub(r"\d+(?=\D*$)", str(number), self.value)

    def edit(self, value: str) -> Edits:
        return ((self.line, self.line.replace(self.value, value)),)

    def half_and_twice(self) -> list[str]:
        """Of a shift, what it stands for is halved and doubled; of a few bits, up to their room."""
        number = int(re.findall(r"\d+(?=\D*$)", self.value)[0])
        if self.name.endswith("_SHIFT"):
            return [self.with_number(number - 1), self.with_number(number + 1)]
        twice = min(2 * number, ROOM.get(self.name, 2 * number))
        both = [self.with_number(max(number // 2, 1)), self.with_number(twice)]
        return [value for value in both if value != self.value]


def constants() -> list[Constant]:
    """The law's own; those of what is shared are units of the arithmetic."""
    found = re.findall(r"^(#define (DRWA_\w+)\s+(\S.*)\n)", builds.CORE.read_text(), re.MULTILINE)
    return [Constant(*each) for each in found]


@functools.cache
def variable_links() -> dict[str, NDArray[np.uint32]]:
    """Recorded links, where they lie beside the project, and generated ones."""
    links = {path.stem: np.loadtxt(path, dtype=np.uint32) for path in sorted(TRACES.glob("*.down"))}
    for seed in GENERATED:
        links[f"generated {seed}"] = np.array(ltelink.opportunities(seed, DURATION_S), np.uint32)
    return links


def geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


@functools.cache
def _idle(name: str, base_s: float) -> float:
    link = Link(opportunities_ms=variable_links()[name])
    return model.run(link, [], DURATION_S, probe_rtt_s=base_s).p95_s()


@functools.cache
def _stock(name: str, base_s: float) -> float:
    link = Link(opportunities_ms=variable_links()[name])
    return float(model.run(link, [Flow(base_s, None)], DURATION_S).goodput_mbps[0])


def _variable(base_s: float, edits: Edits) -> tuple[float, float]:
    """Goodput over stock's, and p95 over the idle link's."""
    goodput, p95 = [], []
    for name, times in variable_links().items():
        outcome = model.run(Link(opportunities_ms=times), [Flow(base_s)], DURATION_S, edits=edits)
        goodput.append(float(outcome.goodput_mbps[0]) / _stock(name, base_s))
        p95.append(outcome.p95_s() / _idle(name, base_s))
    return geometric(goodput), geometric(p95)


def variable(edits: Edits) -> Cells:
    near, far = _variable(0.04, edits), _variable(0.1, edits)
    return {
        "40 ms: goodput": near[0],
        "40 ms: p95": near[1],
        "100 ms: goodput": far[0],
        "100 ms: p95": far[1],
    }


def steady(edits: Edits) -> Cells:
    goodput, rtt = [], []
    for mbps, base_s in ((1, 0.1), (2, 0.05), (10, 0.05), (20, 0.1), (50, 0.03)):
        outcome = model.run(Link(mbps), [Flow(base_s)], 40, 20, edits=edits)
        goodput.append(float(outcome.goodput_mbps[0]) * 1500 / model.MSS_BYTES / mbps)
        rtt.append(float(outcome.rtt_s(20).mean()) / base_s)
    return {"steady: goodput": min(goodput), "steady: RTT": geometric(rtt)}


def flows(edits: Edits) -> Cells:
    p95, fair = [], []
    for count, apart_s in ((5, 0), (20, 0), (5, 2), (20, 2)):
        since_s = count * apart_s + 10
        late = [Flow(0.05, start_s=apart_s * i) for i in range(count)]
        outcome = model.run(Link(10), late, since_s + 40, since_s, edits=edits)
        got = outcome.goodput_mbps
        p95.append(outcome.p95_s(since_s) / 0.05)
        fair.append(float(got.sum() ** 2 / (count * (got**2).sum())))
    return {"5, 20 flows: p95": max(p95), "Jain": min(fair)}


def steps(edits: Edits) -> Cells:
    """Goodput in the ten seconds after a handover; the worst RTT of a slower link's later ones."""
    after, late = [], []
    for offset_s in np.arange(0, 4.2, 0.7):
        at_s = 20 + float(offset_s)
        link = Link(20, changes=(Change(at_s, base_rtt_s=0.15),))
        outcome = model.run(link, [Flow(0.03)], at_s + 10, at_s, probe_rtt_s=0.03, edits=edits)
        after.append(float(outcome.goodput_mbps[0]) / (20 * model.MSS_BYTES / 1500))
        link = Link(10, changes=(Change(at_s, rate_mbps=2),))
        outcome = model.run(link, [Flow(0.05)], at_s + 20, edits=edits)
        late.append(outcome.p95_s(at_s, at_s + 20) / 0.05)
    return {"handover: goodput": float(np.mean(after)), "10 to 2 Mb/s: p95": max(late)}


def objects(edits: Edits) -> Cells:
    worst = []
    for mbps, base_s in ((4, 0.1), (20, 0.03), (50, 0.1)):
        for size in (64_000, 1_000_000, 4_000_000):
            ours, stock = (
                float(
                    model.run(
                        Link(mbps), [Flow(base_s, own, size_bytes=size)], 60, edits=edits
                    ).fetch_s[0]
                )
                for own in (1.25, None)
            )
            worst.append(ours / stock)
    return {"objects": max(worst)}


def rivals(edits: Edits) -> Cells:
    shares = []
    for cc in (CUBIC, BBR):
        for mbps, buffer_bytes in ((10, 150_000), (10, 750_000)):
            link = Link(mbps, buffer_bytes=buffer_bytes)
            parts = []
            # Which of two has more is chance for some part.
            for start_s in (5, 5.3, 5.7, 6.1, 6.6):
                both = [Flow(0.05), Flow(0.05, None, cc=cc, start_s=start_s)]
                got = model.run(link, both, 65, 15, edits=edits).goodput_mbps
                parts.append(float(2 * got[0] / got.sum()))
            shares.append(float(np.mean(parts)))
    paced = Flow(0.05, None, app_mbps=4)
    outcome = model.run(Link(10), [Flow(0.05), paced], 60, 10, edits=edits)
    return {"rivals: least share": min(shares), "paced: p95": outcome.p95_s(10) / 0.05}


@functools.cache
def _bursts(word: str) -> Link:
    times = np.array(burstlink.opportunities(word, DURATION_S), np.uint32)
    return Link(opportunities_ms=times, buffer_bytes=6_000_000)


@functools.cache
def _bursts_of_stock(word: str, base_s: float) -> tuple[float, float]:
    """Goodput, and the idle link's p95."""
    stock = model.run(_bursts(word), [Flow(base_s, None)], DURATION_S)
    idle = model.run(_bursts(word), [], DURATION_S, probe_rtt_s=base_s)
    return float(stock.goodput_mbps[0]), idle.p95_s()


@functools.cache
def burst_fetch_s(
    word: str, base_s: float, size: int, lambda_: float | None, edits: Edits = ()
) -> float:
    """The mean time of so many bytes, wherever in the radio's cycle they are asked for, s."""
    flows = [Flow(base_s, lambda_, size_bytes=size, start_s=0.2 + 0.53 * i) for i in range(11)]
    times = [model.run(_bursts(word), [flow], 40, edits=edits).fetch_s[0] for flow in flows]
    return float(np.mean(times))


def bursts(edits: Edits) -> Cells:
    """The least goodput of stock's, p95 over the idle link's, and objects' time of stock's."""
    goodput, p95, objects_ = [], [], []
    for word, base_s in BURSTS:
        outcome = model.run(_bursts(word), [Flow(base_s)], DURATION_S, edits=edits)
        most, least = _bursts_of_stock(word, base_s)
        goodput.append(float(outcome.goodput_mbps[0]) / most)
        p95.append(outcome.p95_s() / least)
        ours = burst_fetch_s(word, base_s, 300_000, 1.25, edits)
        objects_.append(ours / burst_fetch_s(word, base_s, 300_000, None))
    return {
        "bursts: goodput": min(goodput),
        "bursts: p95": geometric(p95),
        "bursts: objects": max(objects_),
    }


def clocks(edits: Edits) -> Cells:
    """Timestamps of other units, that leap, or none: the least goodput and the worst p95."""
    goodput, p95 = [], []
    for flow in (
        *(Flow(0.03, tick_s=tick_s) for tick_s in (1e-6, 0.004, 0.01)),
        *(Flow(0.03, pause_at_s=25, lag_s=lag_s) for lag_s in (-5, 5)),
        Flow(0.03, blind=True),
    ):
        outcome = model.run(Link(20), [flow], 60, 10, edits=edits)
        goodput.append(float(outcome.goodput_mbps[0]) * 1500 / model.MSS_BYTES / 20)
        p95.append(outcome.p95_s(10) / 0.03)
    return {"clocks: goodput": min(goodput), "clocks: p95": max(p95)}


def many(edits: Edits) -> Cells:
    """Forty connections of a slow link, and objects of a kept-alive one, over stock's."""
    flows = [Flow(0.06, start_s=0.2 * i) for i in range(40)]
    outcome = model.run(Link(5), flows, 60, 20, edits=edits)
    size = int(8 * 10e6 / 8 * 0.1)
    took = []
    for own in (1.25, None):
        flow = Flow(0.1, own, size_bytes=size, think_s=2)
        objects = model.run(Link(10), [flow], 60, edits=edits)
        took.append(float(objects.fetches_s[0] / objects.goodput_mbps[0]))
    return {"40 flows: p95": outcome.p95_s(20) / 0.06, "kept alive": took[0] / took[1]}


@functools.cache
def _lowered_of_stock(bits: int, mbps: float, base_s: float) -> float:
    flow = Flow(base_s, None, lowered=bits, window_bytes=LARGE_WINDOW_BYTES)
    return float(model.run(Link(mbps), [flow], 40).goodput_mbps[0])


def lowered(edits: Edits) -> Cells:
    """A window scale that a middlebox lowered: the least goodput of stock's, and the worst p95."""
    goodput, p95 = [], []
    for bits in (1, 2, 4):
        for mbps, base_s in ((5, 0.1), (20, 0.04), (100, 0.04)):
            flow = Flow(base_s, lowered=bits, window_bytes=LARGE_WINDOW_BYTES)
            outcome = model.run(Link(mbps), [flow], 40, edits=edits)
            goodput.append(float(outcome.goodput_mbps[0]) / _lowered_of_stock(bits, mbps, base_s))
            p95.append(outcome.p95_s() / base_s)
    # Trials are for others, too: for who comes late among them, and for who shares a queue
    shares = []
    for base_s in np.arange(0.0481, 0.0521, 0.0004):
        flows_ = [Flow(float(base_s), start_s=i) for i in range(20)]
        got = model.run(Link(10), flows_, 60, 25, edits=edits).goodput_mbps
        shares.append(float(got.sum() ** 2 / (20 * (got**2).sum())))
    return {
        "lowered scale: goodput": min(goodput),
        "lowered scale: p95": max(p95),
        "20 late flows: Jain": min(shares),
    }


def small_messages(seed: int, alike: bool) -> tuple[Link, Flow, list[Push], float]:
    """A sender that has little to send, and at last much: its link, and when that is, s.

    Messages of one size and gap are a stream's. Before them there is a bulk, or none.
    """
    rng = random.Random(seed)
    mbps = rng.choice((5, 10, 20, 50))
    flow = Flow(rng.choice((0.02, 0.04, 0.08, 0.15)), size_bytes=rng.choice((2000, 4_000_000)))
    most, gap_s = rng.choice((3000, 20_000, 100_000)), rng.choice((0.02, 0.05, 0.1, 0.2))
    at_s = flow.size_bytes * 8e-6 / mbps * 1.3 + 2
    end_s = at_s + rng.uniform(5, 20)
    pushes = []
    while at_s < end_s:
        pushes.append(Push(at_s, most // 3 if alike else rng.randint(1000, most)))
        at_s += gap_s if alike else rng.expovariate(1 / gap_s)
    at_s -= rng.uniform(0, gap_s) if alike else 0
    pushes.append(Push(at_s, 20_000_000))
    return Link(mbps), flow, sorted(pushes, key=lambda push: push.at_s), at_s


def messages(edits: Edits) -> Cells:
    """The first six seconds of much: the mean of p95 over the base, of 48 senders."""
    p95 = []
    for seed in range(48):
        link, flow, pushes, at_s = small_messages(seed, seed % 4 == 0)
        outcome = model.run(link, [flow], at_s + 6, edits=edits, pushes=pushes)
        p95.append(outcome.p95_s(at_s) / flow.base_rtt_s)
    return {"after messages: p95": float(np.mean(p95))}


CAMPAIGN: tuple[Callable[[Edits], Cells], ...] = (
    variable,
    bursts,
    steady,
    flows,
    many,
    steps,
    objects,
    rivals,
    clocks,
    lowered,
    messages,
)


def row(edits: Edits) -> Cells:
    cells: Cells = {}
    for part in CAMPAIGN:
        cells |= part(edits)
    return cells


def is_flat(cells: Cells, present: Cells) -> bool:
    return all(abs(cells[name] / present[name] - 1) < FLAT for name in present)


def what_is_run() -> list[str]:
    return [
        f"{len(variable_links())} variable links at a base of 40 and of 100 ms (goodput over",
        "stock's, p95 over the idle link's, geometric means), radios of bursts (the least",
        "goodput), steady links (the least goodput), connections that share a queue (the worst),",
        "objects of a kept-alive connection (over stock's), steps, objects (worst over stock's),",
        "rivals, servers' clocks that are none (the worst), and middleboxes that lower the",
        "window's scale by 1, 2 and 4 bits (the least goodput over stock's). Then what comes after",
        "small messages, p95 over the base.",
    ]


def shown(cells: Cells) -> str:
    return " | ".join(f"{value:.3f}" for value in cells.values())


def report(rows: Mapping[tuple[str, str], Cells], present: Cells) -> str:
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# constants",
        "The law with half and twice of each of its constants, over the model's campaign:",
        *what_is_run(),
        "",
        f"| constant | value | {' | '.join(present)} | |",
        f"| --- | --: |{' --: |' * len(present)} --- |",
        f"| as it is | | {shown(present)} | |",
    ]
    for constant in dict.fromkeys(name for name, _ in rows):
        both = {value: cells for (name, value), cells in rows.items() if name == constant}
        flat = all(is_flat(cells, present) for cells in both.values())
        for value, cells in both.items():
            lines.append(f"| {constant} | {value} | {shown(cells)} | {'flat' if flat else ''} |")
    repeat = "Repeat it with `kernel/tests/constants --record`."
    lines += ["", f"tcp_drwa_core.c: {builds.law_digest()}. {repeat}", ""]
    return "\n".join(lines)


def main(
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    record: Annotated[bool, typer.Option("--record", help="Write results/constants.md.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the table here as well.")] = None,
) -> None:
    """Run the model's campaign with half and twice of every constant of the law."""
    variants = [(each, value) for each in constants() for value in each.half_and_twice()]
    bar = Progress(BarColumn(), TextColumn("{task.completed} of {task.total}"), TimeElapsedColumn())
    with bar, ProcessPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=len(variants) + 1)
        first = pool.submit(row, ())
        waiting = {
            pool.submit(row, each.edit(value)): (each.name, value) for each, value in variants
        }
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
