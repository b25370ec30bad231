# SPDX-License-Identifier: GPL-2.0-only
"""`lab literature`: what papers published (published.toml) beside what the lab measures."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from drwalab import cases, errors, output, pool, units
from drwalab.campaign import on_line
from drwalab.cases import Case
from drwalab.results import Result
from drwalab.spec import DEFAULTS, PACKET_BYTES, SpecError

PUBLISHED = cases.LAB / "published.toml"
RECORD = cases.LAB / "results" / "literature.json"

# This project's law and the uplink's gate, as runs are named.
LAW = "drwa λ=1.25"
GATE = "uplink drwa"
_UPLINK = re.compile(r"uplink [^,]+(, upload \w+)?")

# A queue counts as full from here on, until it has fallen below the second: parts of its delay.
FULL, AGAIN = 0.97, 0.92
PINGS = 10


@dataclass(frozen=True)
class Measure:
    """A number of a run, for people."""

    title: str
    unit: str
    decimals: int
    of: Callable[[Result], float | None]
    # Whether more of it is better, or less; None where neither is.
    more: bool | None = None


def _answered(result: Result) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Instants (s) and RTTs (ms) of the probes that got an answer."""
    rtt = result["series"]["rtt"]
    sent_s, ms = np.array(rtt["t_s"]), np.array(rtt["ms"])
    there = ~np.isin(sent_s, rtt.get("lost_t_s", []))
    return sent_s[there], ms[there]


def _rtt_max(result: Result) -> float | None:
    _, ms = _answered(result)
    return float(ms.max()) if len(ms) else None


def _in_flight_bytes(result: Result) -> float | None:
    """The most that was in flight on a steady link that is kept busy: its rate times the RTT."""
    rate, most_ms = result["config"]["rate_bps"], _rtt_max(result)
    return None if rate is None or most_ms is None else rate / 8 * most_ms / 1e3


def _in_flight(divisor: float) -> Callable[[Result], float | None]:
    def measure(result: Result) -> float | None:
        found = _in_flight_bytes(result)
        return None if found is None else found / divisor

    return measure


def overshoots(result: Result) -> float | None:
    """How often the queue of a steady link filled up."""
    config = result["config"]
    if config["rate_bps"] is None:
        return None
    base_ms = result["rtt_ms"]["base"]
    queue_ms = config["buffer_bytes"] * 8e3 / config["rate_bps"]
    count, full = 0, False
    for ms in _answered(result)[1]:
        part = (ms - base_ms) / queue_ms
        if part >= FULL and not full:
            count, full = count + 1, True
        elif part < AGAIN:
            full = False
    return float(count)


def _received_bytes(result: Result) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Instants (s), and what the downloads had received by then."""
    series = result["series"]
    got = np.cumsum(series["goodput_mbps"]) * series["interval_s"] * 1e6 / 8
    return np.array(series["t_s"]), got


def _instant_s(result: Result, amount_bytes: float) -> float | None:
    """When so much had been received; none if it never was."""
    at_s, got = _received_bytes(result)
    reached = np.flatnonzero(got >= amount_bytes)
    return float(at_s[reached[0]]) if len(reached) else None


def pings(part: float, size_bytes: float = 40e6) -> Callable[[Result], float | None]:
    """Mean RTT of ten pings, one a second, from when a part of a download had come."""

    def measure(result: Result) -> float | None:
        start_s = _instant_s(result, part * size_bytes)
        sent_s, ms = _answered(result)
        if start_s is None or not len(sent_s) or sent_s[-1] < start_s + PINGS - 1:
            return None
        return float(np.mean([ms[np.searchsorted(sent_s, start_s + n)] for n in range(PINGS)]))

    return measure


def _growth(result: Result) -> float | None:
    early, late = pings(0.2)(result), pings(0.8)(result)
    return None if early is None or late is None else late / early


def unevenness(result: Result) -> float | None:
    """Mean change of the goodput from second to second, as a part of its mean."""
    series = result["series"]
    per_s = round(1 / series["interval_s"])
    rate = np.array(series["goodput_mbps"])
    seconds = rate[: len(rate) // per_s * per_s].reshape(-1, per_s).mean(axis=1)
    return float(np.abs(np.diff(seconds)).mean() / seconds.mean()) if seconds.mean() else None


def _goodput(result: Result) -> float | None:
    return float(result["goodput_mbps"]) if result["config"]["flows"] else None


def _rtt(key: str) -> Callable[[Result], float | None]:
    return lambda result: result["rtt_ms"][key]


def _fetch(key: str) -> Callable[[Result], float | None]:
    return lambda result: result["objects"][key]


def _page(result: Result) -> float | None:
    """Median time of the pages that came, which are the run's objects."""
    taken = result["objects"]["fct_ms"]
    return float(np.median(taken)) if taken else None


def _modem_ms(result: Result) -> float | None:
    """What stood in the modem, in the mean, as time at a steady uplink's rate."""
    rate, modem = result["config"]["uplink_rate_bps"], result["firmware"]
    return float(modem["mean_bytes"] * 8e3 / rate) if rate and modem else None


def _qdisc_ms(result: Result) -> float | None:
    """Mean wait of the probes in front of the modem: the rest of their way up."""
    modem_ms, up_ms = _modem_ms(result), result["up_ms"]["mean"]
    if modem_ms is None or up_ms is None:
        return None
    return max(0.0, float(up_ms) - float(result["config"]["base_rtt_ms"]) / 2 - modem_ms)


MEASURES = {
    "goodput": Measure("Goodput", "Mb/s", 2, _goodput, True),
    "rtt_mean": Measure("RTT mean", "ms", 0, _rtt("mean"), False),
    "rtt_p95": Measure("RTT p95", "ms", 0, _rtt("p95"), False),
    "rtt_max": Measure("RTT most", "ms", 0, _rtt_max, False),
    "in_flight_kb": Measure("In flight, most", "kB", 0, _in_flight(1e3), False),
    "in_flight_segments": Measure(
        "In flight, most", "segments", 0, _in_flight(PACKET_BYTES), False
    ),
    "window_kb": Measure(
        "Window, most", "kB", 0, lambda r: max(r["series"]["rwnd_bytes"]) / 1e3, None
    ),
    "overshoots": Measure("Queue filled", "times", 0, overshoots, False),
    "fetch_mean": Measure("Fetch mean", "ms", 0, _fetch("mean_fct_ms"), False),
    "fetch_p95": Measure("Fetch p95", "ms", 0, _fetch("p95_fct_ms"), False),
    "ping_20": Measure("Ping at 20 %", "ms", 0, pings(0.2), False),
    "ping_80": Measure("Ping at 80 %", "ms", 0, pings(0.8), False),
    "ping_growth": Measure("Pings at 80 % of those at 20 %", "", 2, _growth, False),
    "time_20mb": Measure("20 MB after", "s", 1, lambda r: _instant_s(r, 20e6), False),
    "page": Measure("Page load, median", "ms", 0, _page, False),
    "upload": Measure("Upload", "Mb/s", 2, lambda r: r["upload_goodput_mbps"], True),
    "qdisc_ms": Measure("Wait in the qdisc", "ms", 0, _qdisc_ms, False),
    "modem_ms": Measure("Wait in the modem", "ms", 0, _modem_ms, False),
    "unevenness": Measure("Change from second to second", "of the mean", 2, unevenness, False),
}


@dataclass(frozen=True)
class Source:
    text: str
    setup: str
    spread: float
    spread_why: str


@dataclass(frozen=True)
class Claim:
    """A published number, or a bound that published words give; with of, on a ratio."""

    link: str
    player: str
    measure: str
    of: str | None = None
    # Where that other one is, if on another link.
    of_link: str | None = None
    value: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    # The link was chosen for it.
    set: bool = False

    @property
    def what(self) -> str:
        title = MEASURES[self.measure].title
        of = f" of {self.of}’s" if self.of else ""
        of += f" ({self.of_link})" if self.of_link else ""
        return f"{title}{of}, {self.player}"

    def show(self, number: float | None) -> str:
        """A number of this claim's kind with its unit."""
        if number is None:
            return "–"
        measure = MEASURES[self.measure]
        if self.of:
            return f"{number:.2f}"
        return f"{number:.{measure.decimals}f} {measure.unit}".strip()

    @property
    def published(self) -> str:
        if self.value is not None:
            return self.show(self.value)
        if self.at_least is not None and self.at_most is not None:
            return f"{self.show(self.at_least)} to {self.show(self.at_most)}"
        if self.at_least is not None:
            return f"≥ {self.show(self.at_least)}"
        return f"≤ {self.show(self.at_most)}"

    @property
    def ours(self) -> str:
        """Who of this project stands beside it: the gate in front of the same, or the law."""
        named = _UPLINK.search(self.player)
        return self.player.replace(named[0], GATE) if named else LAW

    def within(self, low: float, high: float, spread: float) -> bool:
        """Whether what was measured, from low to high over the seeds, is what was published."""
        if self.value is not None:
            return high >= self.value * (1 - spread) and low <= self.value * (1 + spread)
        least = -np.inf if self.at_least is None else self.at_least
        most = np.inf if self.at_most is None else self.at_most
        return bool(high >= least and low <= most)


@dataclass(frozen=True)
class Figure:
    """What a paper shows in one place, by the case that repeats it."""

    case: str
    source: Source
    figure: str
    title: str
    published: str
    link: str
    measures: tuple[str, ...]
    why: str
    claims: tuple[Claim, ...]

    @property
    def command(self) -> str:
        return f"lab literature {self.case}"


@cache
def published() -> dict[str, Figure]:
    """All of published.toml, by case."""
    table = tomllib.loads(PUBLISHED.read_text())
    sources = {name: Source(**entry) for name, entry in table["sources"].items()}
    return {
        case: Figure(
            case=case,
            source=sources[entry["source"]],
            figure=entry["figure"],
            title=entry["title"],
            published=entry["published"],
            link=entry["link"],
            measures=tuple(entry["measures"]),
            why=entry.get("why", ""),
            claims=tuple(Claim(**claim) for claim in entry["claims"]),
        )
        for case, entry in table["figures"].items()
    }


@dataclass(frozen=True)
class Number:
    """A mean over seeds, or over the generated links of a kind, and what they span."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Number":
        return Number(*(round(float(f(values)), 4) for f in (np.mean, np.min, np.max)))


def player(result: Result) -> str:
    """Who a run is about; on which kernel that was, is no matter of his."""
    return str(result["name"]).replace(", unpatched", "")


@dataclass(frozen=True)
class Judged:
    claim: Claim
    measured: Number | None
    within: bool | None

    @property
    def verdict(self) -> str:
        if self.within is None:
            return "not run"
        if self.claim.set:
            return "set" if self.within else "set, but differs"
        return "within" if self.within else "differs"


class Repeated:
    """A figure and the runs that repeat it."""

    def __init__(self, figure: Figure, case: Case, found: Sequence[Result]) -> None:
        self.figure = figure
        self.case = case
        # By link and player, in the order of the case.
        self.runs: dict[str, dict[str, list[Result]]] = {}
        for run, result in zip(case.specs, found, strict=True):
            link = self.runs.setdefault(case.labels.get(run) or output.link_label(result), {})
            link.setdefault(player(result), []).append(result)

    def number(self, link: str, who: str, measure: str) -> Number | None:
        values = self._values(link, who, measure)
        return Number.of(values) if values else None

    def _values(self, link: str, who: str, measure: str) -> list[float]:
        runs = self.runs.get(link, {}).get(who, [])
        return [value for r in runs if (value := MEASURES[measure].of(r)) is not None]

    def judge(self, claim: Claim) -> Judged:
        values = self._values(claim.link, claim.player, claim.measure)
        if claim.of:
            others = self._values(claim.of_link or claim.link, claim.of, claim.measure)
            # Seed by seed; where one of them never did it, there is no ratio.
            pairs = zip(values, others, strict=True) if len(values) == len(others) else ()
            values = [value / other for value, other in pairs if other]
        if not values:
            return Judged(claim, None, None)
        measured = Number.of(values)
        spread = self.figure.source.spread
        return Judged(claim, measured, claim.within(measured.low, measured.high, spread))

    def results(self) -> Iterator[Result]:
        for players in self.runs.values():
            for each in players.values():
                yield from each

    @property
    def judged(self) -> list[Judged]:
        return [self.judge(claim) for claim in self.figure.claims]

    def record(self) -> dict[str, Any]:
        """Its numbers, for results/literature.json."""
        names = [*self.figure.measures]
        return {
            "figure": self.figure.figure,
            "made_of": cases.made_of(self.results()),
            "claims": [
                {
                    "what": f"{j.claim.link}: {j.claim.what}",
                    "published": j.claim.published,
                    "measured": asdict(j.measured) if j.measured else None,
                    "verdict": j.verdict,
                }
                for j in self.judged
            ],
            "numbers": {
                link: {
                    who: {
                        name: asdict(number)
                        for name in names
                        if (number := self.number(link, who, name))
                    }
                    for who in players
                }
                for link, players in self.runs.items()
            },
        }


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases of these figures, or of all; raises SpecError."""
    known = published()
    for name in names:
        if name not in known:
            raise SpecError(f"figure '{name}' is unknown: {units.instead_of(name, known)}")
    return [on_line(case, DEFAULTS["kernel"]) for case in cases.choose(names or list(known))]


def repeat(case: Case, builds: pool.Builds) -> Repeated:
    """Runs the case, or takes what was run before."""
    found = pool.run_specs(case.specs, reuse=True, builds=builds)
    return Repeated(published()[case.name], case, found)


def write_record(path: Path, repeated: Mapping[str, dict[str, Any]]) -> None:
    """Puts figures into the record; the others in it stay."""
    before = json.loads(path.read_text()) if path.exists() else {}
    content = before | dict(repeated)
    ordered = {name: content[name] for name in published() if name in content}
    output.write_whole(path, json.dumps(ordered, ensure_ascii=False, indent=1) + "\n")


def literature(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="Such as paper-fig18. Default: all."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write kernel/lab/results/literature.json, too.")
    ] = False,
) -> None:
    """Repeat figures of papers, and print what was published beside what was measured.

    Runs that were made before are reused.
    """
    done: dict[str, dict[str, Any]] = {}
    with errors.reported():
        found = chosen(names or [])
        builds = pool.find_kernels([each for case in found for each in case.specs])
        for case in found:
            repeated = repeat(case, builds)
            done[case.name] = repeated.record()
            print(f"{case.name}: {repeated.figure.title}", flush=True)
            for j in repeated.judged:
                measured = j.claim.show(j.measured.mean) if j.measured else "–"
                print(
                    f"  {j.verdict:10}  published {j.claim.published:>16}, measured {measured:>12}"
                    f"  {j.claim.what} ({j.claim.link})",
                    flush=True,
                )
    if record:
        write_record(RECORD, done)
        print(f"\nRecorded: {RECORD}")
