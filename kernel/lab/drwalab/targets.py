# SPDX-License-Identifier: GPL-2.0-only
"""What `lab campaign` asks of the default law: each target as data, and how it is measured.

A measure looks at the runs over one link (a Group) and gives a number, or None where the target
does not concern that link. Each target holds on all links that it concerns, so the worst decides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from drwalab import compare, schemes, spec, units
from drwalab.results import Result, goodput_between, jain, rtt_between

LAW = "drwa"
STOCK = "stock"
STATIC = "android-lte"
STATICS = (STATIC, "paper-lte")

# The part of the law's delay target that row 2 asks for, and row 4 after a step.
RTT_OF_BASE = 1.3


class Missing(Exception):
    """A run that the measure needs is not among the results."""


def player(result: Result) -> str:
    """Who a run is about: the sender or the router where one is chosen, else the receiver."""
    if result["cc"] != spec.DEFAULTS["cc"]:
        return str(result["cc"])
    name = str(result["aqm"] or result["scheme"])
    limits = result["limits"]
    usual = limits == schemes.DEFAULT_LIMITS.get(result["scheme"])
    return name if usual else f"{name}, limits {limits}"


class Group:
    """The runs over one link, by player; several for each when several seeds were run."""

    def __init__(self, runs: dict[str, list[Result]]) -> None:
        self._runs = runs
        self.any = next(iter(runs.values()))[0]

    def has(self, who: str) -> bool:
        return who in self._runs

    @property
    def players(self) -> list[str]:
        return list(self._runs)

    def runs(self, who: str) -> list[Result]:
        if who not in self._runs:
            raise Missing(who)
        return self._runs[who]

    def mean(self, who: str, of: Callable[[Result], float]) -> float:
        return float(np.mean([of(result) for result in self.runs(who)]))

    def ratio(self, of: Callable[[Result], float], to: str = STOCK) -> float:
        """The law's part of what another one has."""
        other = self.mean(to, of)
        return self.mean(LAW, of) / other if other else float("inf")

    @property
    def config(self) -> dict[str, Any]:
        config = self.any["config"]
        assert isinstance(config, dict)
        return config

    @property
    def label(self) -> str:
        return compare.link_label(self.any)


def groups(results: Sequence[Result]) -> list[Group]:
    """Results by link, whatever the seed, and whatever becomes of λ, which stock has not."""
    found: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        config = dict(result["config"])
        config["events"] = [e for e in config["events"] if "lambda=" not in e]
        key = str([config.get(name) for name in compare.LINK_KEYS])
        # λ is switched on some of these links, so stock alone stands for several runs of the law.
        found.setdefault(key, {}).setdefault(player(result), []).append(result)
    return [Group(runs) for runs in found.values()]


Measure = Callable[[Group], float | None]


@dataclass(frozen=True)
class Target:
    """A bound on a measure; reach is for what the project would like but does not require."""

    row: str
    case: str
    what: str
    measure: Measure
    at_least: float | None = None
    at_most: float | None = None
    reach: bool = False

    def met(self, value: float) -> bool:
        if self.at_least is not None:
            return value >= self.at_least
        assert self.at_most is not None
        return value <= self.at_most

    def margin(self, value: float) -> float:
        """How far on the right side of the bound; the worst link has the least."""
        if self.at_least is not None:
            return value - self.at_least
        assert self.at_most is not None
        return self.at_most - value

    @property
    def bound(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


# --- What a run has


def goodput(result: Result) -> float:
    return float(result["goodput_mbps"])


def p95(result: Result) -> float:
    return float(result["rtt_ms"]["p95"])


def power(result: Result) -> float:
    """Goodput for each ms of p95 RTT."""
    return goodput(result) / p95(result)


def end_s(result: Result) -> float:
    return float(result["config"]["duration_s"])


def between(from_s: float, to_s: float) -> Callable[[Result], float]:
    return lambda result: sum(goodput_between(result, from_s, to_s))


def base_ms(result: Result) -> float:
    return float(result["rtt_ms"]["base"])


def changes(result: Result, what: str) -> list[tuple[float, int]]:
    """Instants in s and values of an event's occurrences."""
    events = [spec.parse_event(text) for text in result["config"]["events"]]
    return [(event.at_us / 1e6, event.value) for event in events if event.what == what]


def plateaus(result: Result, what: str, after_s: float) -> Iterator[tuple[float, float, int]]:
    """From some seconds after each change until the next one: start, end and the value set."""
    steps = [*changes(result, what), (end_s(result), 0)]
    for (at, value), (until, _) in pairwise(steps):
        if at + after_s < until:
            yield at + after_s, until, value


# --- Measures


def goodput_of(other: str) -> Measure:
    return lambda g: g.ratio(goodput, other)


def p95_of(other: str) -> Measure:
    return lambda g: g.ratio(p95, other)


def power_of(other: str) -> Measure:
    return lambda g: g.ratio(power, other)


def goodput_of_deepest(g: Group) -> float:
    return g.mean(LAW, goodput) / max(g.mean(who, goodput) for who in (STOCK, *STATICS))


def settled_rtt_of_base(g: Group) -> float:
    """Mean RTT of the second half, in base RTTs."""

    def rtt(result: Result) -> float:
        probes = rtt_between(result, end_s(result) / 2, end_s(result))
        return float(probes.mean()) / base_ms(result)

    return g.mean(LAW, rtt)


def completion_of(other: str) -> Measure:
    """Mean time to fetch an object, of the size that fares worst."""

    def times(g: Group, who: str) -> dict[int, float]:
        (result,) = g.runs(who)
        return {e["size_bytes"]: e["mean_fct_ms"] for e in result["objects"]["by_size"]}

    def measure(g: Group) -> float:
        to = times(g, other)
        return max(ms / to[size] for size, ms in times(g, LAW).items() if ms and to[size])

    return measure


def kept_alive(of: Measure) -> Measure:
    """That measure, where objects come over one connection."""
    return lambda g: of(g) if g.config.get("keep_alive") else None


def goodput_after_rtt_steps(g: Group) -> float:
    parts = plateaus(g.runs(LAW)[0], "base-rtt", 5)
    return min(g.ratio(between(start, end)) for start, end, _ in parts)


def rtt_after_rtt_steps(g: Group) -> float:
    """Mean RTT from 20 s after a step on, in base RTTs of that time."""
    (law,) = g.runs(LAW)
    return max(
        float(rtt_between(law, start, end).mean()) / (base_us / 1e3)
        for start, end, base_us in plateaus(law, "base-rtt", 20)
    )


def p95_after_rate_steps(g: Group) -> float:
    """p95 RTT from 10 s after a change that lasts, in base RTTs."""
    (law,) = g.runs(LAW)
    return max(
        float(np.percentile(rtt_between(law, start, end), 95)) / base_ms(law)
        for start, end, _ in plateaus(law, "rate", 10)
    )


def shared_from_s(result: Result) -> float:
    """When all downloads have had ten seconds."""
    return float(result["flows"][-1]["start_s"]) + 10


def p95_shared(g: Group) -> float | None:
    """p95 RTT with up to 20 downloads, once all have started, in base RTTs."""
    if g.config["flows"] > 20:
        return None
    return g.mean(
        LAW,
        lambda r: float(np.percentile(rtt_between(r, shared_from_s(r), end_s(r)), 95)) / base_ms(r),
    )


def fairness(g: Group) -> float | None:
    if g.config["flows"] < 2:
        return None
    return g.mean(LAW, lambda r: jain(goodput_between(r, shared_from_s(r), end_s(r))) or 0.0)


def fetch_of_static(g: Group) -> float:
    return g.ratio(lambda r: float(r["objects"]["mean_fct_ms"]), STATIC)


def segments_of(other: str) -> Measure:
    """The speed at which a video's segments come."""

    def measure(g: Group) -> float | None:
        if not g.any["segments"]:
            return None
        return 1 / g.ratio(lambda r: float(r["segments"]["mean_fct_ms"]), other)

    return measure


def silence_s(result: Result) -> float:
    """The longest time without a byte of a download."""
    longest = 0
    for flow in result["series"]["flow_goodput_mbps"]:
        current = 0
        for mbps in flow:
            current = 0 if mbps else current + 1
            longest = max(longest, current)
    return longest * float(result["series"]["interval_s"])


def longer_silence_s(g: Group) -> float:
    return g.mean(LAW, silence_s) - g.mean(STOCK, silence_s)


def window_of_need(g: Group) -> float | None:
    """Least window after 5 s, of what a slow reader drains in a base RTT, or of stock's least."""
    kind, _, rate = g.config["reader"].partition(":")
    if kind != "slow":
        return None
    (law,), (stock,) = g.runs(LAW), g.runs(STOCK)
    drained = units.parse_rate_bps(rate) / 8 * base_ms(law) / 1e3
    least = [float(min(r["series"]["rwnd_bytes"][50:])) for r in (law, stock)]
    return least[0] / min(drained, least[1])


def window_after_off(g: Group) -> float | None:
    """The window two round trips after λ became 0, of what stock would give.

    That is twice what a round trip brings, as receive auto-tuning has it, or a stock run's window
    at that time where that is less.
    """
    (stock,) = g.runs(STOCK)
    found = []
    for law in g.runs(LAW):
        for off_s, value in changes(law, "lambda"):
            if value or not off_s:
                continue
            rtt_s = float(rtt_between(law, off_s - 1, off_s).mean()) / 1e3
            brings = between(off_s - 1, off_s)(law) * 1e6 / 8 * rtt_s
            index = int(np.searchsorted(law["series"]["t_s"], off_s + 2 * rtt_s))
            windows = [float(r["series"]["rwnd_bytes"][index]) for r in (law, stock)]
            found.append(windows[0] / min(2 * brings, windows[1]))
    return min(found, default=None)


def rtt_after_on(g: Group) -> float | None:
    """Mean RTT from 15 s after λ came on, in base RTTs."""
    found = [
        float(rtt_between(law, start, end).mean()) / base_ms(law)
        for law in g.runs(LAW)
        for start, end, value in plateaus(law, "lambda", 15)
        if value
    ]
    return max(found, default=None)


def end_of_stock(g: Group) -> float:
    """Goodput of the last ten seconds, some of which stock may have received before."""
    return g.ratio(between(end_s(g.any) - 10, end_s(g.any)))


TARGETS = (
    Target("1", "b01-traces", "goodput of the best of stock and static", goodput_of_deepest, 0.97),
    Target("1", "b01-traces", "p95 RTT of the static limit's", p95_of(STATIC), at_most=0.25),
    Target("1", "b01-traces", "goodput of a BBR sender's", goodput_of("bbr"), 1.0),
    Target("1", "b01-traces", "p95 RTT of a BBR sender's", p95_of("bbr"), at_most=1.0),
    Target(
        "1",
        "b01-traces",
        "goodput/p95 RTT of CoDel's in the router",
        power_of("codel"),
        1.0,
        reach=True,
    ),
    Target("2", "b02-constant", "goodput of stock's", goodput_of(STOCK), 0.99),
    Target(
        "2", "b02-constant", "mean RTT of the base RTT", settled_rtt_of_base, at_most=RTT_OF_BASE
    ),
    Target("3", "b03-start", "completion time of stock's", completion_of(STOCK), at_most=1.02),
    Target(
        "3",
        "b03-start",
        "completion time of CoDel's in the router, kept alive",
        kept_alive(completion_of("codel")),
        at_most=1.02,
        reach=True,
    ),
    Target("4", "b04-rtt-steps", "goodput of stock's, 5 s after", goodput_after_rtt_steps, 0.9),
    Target(
        "4",
        "b04-rtt-steps",
        "mean RTT of the base RTT, 20 s after",
        rtt_after_rtt_steps,
        at_most=RTT_OF_BASE,
    ),
    Target(
        "5",
        "b05-rate-steps",
        "p95 RTT of the base RTT, 10 s after",
        p95_after_rate_steps,
        at_most=3.0,
    ),
    Target("5", "b05-rate-steps", "goodput of stock's", goodput_of(STOCK), 0.97),
    Target("6", "b06-upload", "goodput of stock's", goodput_of(STOCK), 0.95),
    Target("7", "b07-flows", "total goodput of stock's", goodput_of(STOCK), 0.98),
    Target("7", "b07-flows", "p95 RTT of the base RTT, to 20 flows", p95_shared, at_most=2.5),
    Target("7", "b07-flows", "Jain's index", fairness, 0.9),
    Target("8", "b08-web", "mean fetch time of the static limit's", fetch_of_static, at_most=0.3),
    Target("9", "b09-impairments", "goodput of stock's", goodput_of(STOCK), 0.97),
    Target(
        "9", "b09-impairments", "speed of a video's segments of stock's", segments_of(STOCK), 0.97
    ),
    Target("10", "b10-readers", "goodput of stock's", goodput_of(STOCK), 0.99),
    Target("10", "b10-readers", "speed of a video's segments of stock's", segments_of(STOCK), 0.99),
    Target(
        "10",
        "b10-readers",
        "speed of a video's segments of CoDel's in the router",
        segments_of("codel"),
        0.99,
        reach=True,
    ),
    Target("10", "b10-readers", "longer silence than stock's, s", longer_silence_s, at_most=0.2),
    Target("10", "b10-readers", "window of what a slow reader drains", window_of_need, 1.0),
    Target("11", "b11-switches", "window of stock's, 2 RTT after off", window_after_off, 1.0),
    Target("11", "b11-switches", "goodput of stock's in the last 10 s", end_of_stock, 0.9),
    Target(
        "11",
        "b11-switches",
        "mean RTT of the base RTT, 15 s after on",
        rtt_after_on,
        at_most=RTT_OF_BASE,
        reach=True,
    ),
    Target("12", "b12-sockets", "goodput of stock's", goodput_of(STOCK), 0.97),
    Target("14", "b14-wifi", "goodput of stock's", goodput_of(STOCK), 0.98),
)

# Rows that no run of the lab can show.
ELSEWHERE = {"13": "a hostile sender: the kernel's unit tests and the fuzzing of the law"}
