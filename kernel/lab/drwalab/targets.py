# SPDX-License-Identifier: GPL-2.0-only
"""What `lab campaign` asks of the default law: each target as data, and how it is measured.

A measure looks at the runs over one link (a Group) and gives a number, or None where the target
does not concern that link. A target holds on all links that it concerns, so the worst decides; or
it is about the links together, of which it takes the geometric mean.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from drwalab import compare, schemes, spec, units, windows
from drwalab.output import number
from drwalab.results import Result, goodput_between, jain, of_idle, rtt_between
from drwalab.traces import Trace

LAW = "drwa"
# The law where it governs a hotspot's clients, too
INTERFACE = "drwa-tc"
STOCK = "stock"
STATIC = "android-lte"
# Stock under the law's own limits
LIMITS = schemes.DEFAULT_LIMITS[LAW]

# What queues may make of the base RTT: row 2, and row 4 after a step.
RTT_OF_BASE = 1.3
# A queue is short where its link's RTT is below so many base RTTs.
SHORT_OF_BASE = 2.0
# Steady links below it hold a few segments at most.
SLOW_BPS = 2_000_000
# The values of λ that row 15 tries.
DIAL = (1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0)
# What the law of before had of a fair share, by the link's label.
SECOND_EDITION: dict[str, float] = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "second-edition.toml").read_text()
)["share"]


class Missing(Exception):
    """A run that the measure needs is not among the results."""


def dialled(lambda_: float) -> str:
    """The law with this λ."""
    default = schemes.DEFAULT_LAMBDA_HUNDREDTHS[LAW] / 100
    return LAW if lambda_ == default else f"{LAW} λ={lambda_:.2f}"


def player(result: Result) -> str:
    """Who a run is about: the sender or the router where one is chosen, else the receiver."""
    if result["cc"] != spec.DEFAULTS["cc"]:
        return str(result["cc"])
    name = str(result["aqm"] or result["scheme"])
    if name == LAW:
        name = dialled(result["lambda"])
    limits = result["limits"]
    usual = limits == schemes.DEFAULT_LIMITS.get(result["scheme"])
    return name if usual else f"{name}, limits {limits}"


class Group:
    """The runs over one link, by player; several for each when several seeds were run."""

    def __init__(
        self,
        runs: dict[str, list[Result]],
        case: dict[str, "Group"],
        uplinks: Mapping[str, Trace],
    ) -> None:
        self._runs = runs
        self._case = case
        self._uplinks = uplinks
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

    def shown(self, who: str, of: Callable[[Result], Any], decimals: int = 0) -> str:
        """The mean over the runs that know it, as a document has it."""
        known = [float(value) for result in self.runs(who) if (value := of(result)) is not None]
        return number(float(np.mean(known)) if known else None, decimals)

    def uplinks(self, who: str) -> list[Trace]:
        """What a player's runs went up."""
        known = [
            self._uplinks.get(r["provenance"].get("uplink_trace_sha256")) for r in self.runs(who)
        ]
        if not all(known):
            raise Missing("uplink")
        return [trace for trace in known if trace]

    def ratio(self, of: Callable[[Result], float], to: str = STOCK, who: str = LAW) -> float:
        """The law's part of what another one has."""
        other = self.mean(to, of)
        return self.mean(who, of) / other if other else float("inf")

    def standing_in(self, who: str, other: str) -> "Group":
        """The same link with another player's runs in this one's place."""
        return Group(self._runs | {who: self.runs(other)}, self._case, self._uplinks)

    @property
    def config(self) -> dict[str, Any]:
        config = self.any["config"]
        assert isinstance(config, dict)
        return config

    @property
    def label(self) -> str:
        return compare.link_label(self.any)

    def but(self, **config: Any) -> "Group":
        """The case's runs that differ from these in nothing but this."""
        key = _key(self.config | config)
        if key not in self._case:
            raise Missing(str(config))
        return self._case[key]


def _key(config: dict[str, Any]) -> str:
    """A link and its load, from any instant, whatever becomes of λ, which stock has not."""
    known: dict[str, Any] = {name: config.get(name) for name in compare.LINK_KEYS}
    known["events"] = [event for event in config["events"] if "lambda=" not in event]
    for name in ("trace", "uplink_trace"):
        known[name] = known[name] and windows.whole(known[name])
    return str(known)


def by_link(
    cells: Callable[[Group, str], tuple[str, ...]],
) -> Callable[[Sequence[Group]], list[tuple[str, ...]]]:
    """Rows of each player over each link, whose name stands once."""

    def players(groups: Sequence[Group]) -> list[tuple[str, ...]]:
        return [
            (group.label if index == 0 else "", *cells(group, name))
            for group in groups
            for index, name in enumerate(group.players)
        ]

    return players


def groups(
    results: Sequence[Result],
    who: Callable[[Result], str] = player,
    uplinks: Iterable[Trace] = (),
) -> list[Group]:
    """Results by link, whatever the seed, and from whatever instant a trace begins."""
    found: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        # λ is switched on some of these links, so stock alone stands for several runs of the law.
        runs = found.setdefault(_key(result["config"]), {})
        runs.setdefault(who(result), []).append(result)
    traces = {trace.sha256: trace for trace in uplinks}
    case: dict[str, Group] = {}
    for key, runs in found.items():
        case[key] = Group(runs, case, traces)
    return list(case.values())


Measure = Callable[[Group], float | None]


@dataclass(frozen=True)
class Target:
    """A bound on a measure, at each link or of all together.

    reach is for what the project would like but does not require.
    """

    row: str
    case: str
    what: str
    measure: Measure
    at_least: float | None = None
    at_most: float | None = None
    reach: bool = False
    together: bool = False

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


def mean_rtt(result: Result) -> float:
    return float(result["rtt_ms"]["mean"])


def own_share(result: Result) -> float:
    return float(result["fair_share"] or 0.0)


def retransmits(result: Result) -> float:
    return float(result["retransmits"])


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


def clients_goodput(g: Group) -> float | None:
    """Of stock's on the same client."""
    return g.ratio(goodput, who=INTERFACE) if g.config["client"] else None


def p95_of(other: str) -> Measure:
    return lambda g: g.ratio(p95, other)


def power_of(other: str) -> Measure:
    return lambda g: g.ratio(power, other)


def p95_of_idle(g: Group) -> float | None:
    ratios = [ratio for r in g.runs(LAW) if (ratio := of_idle(r, "p95"))]
    return float(np.mean(ratios)) if ratios else None


def at_interface(measure: Measure) -> Measure:
    """That measure of the law, of the programs at the interface."""
    return lambda g: measure(g.standing_in(LAW, INTERFACE))


def retransmits_of_stock(g: Group) -> float:
    """One that has none has none of anybody's."""
    law = g.mean(LAW, retransmits)
    return g.ratio(retransmits) if law else 0.0


def step_of(of: Callable[[Result], float], lambda_: float, before: float) -> Measure:
    """What another λ makes of it."""
    return lambda g: g.mean(dialled(lambda_), of) / g.mean(dialled(before), of)


def where(holds: Callable[[dict[str, Any]], object], measure: Measure) -> Measure:
    """That measure, on links and loads of which this holds."""
    return lambda g: measure(g) if holds(g.config) else None


def base_rtt(ms: float) -> Callable[[dict[str, Any]], bool]:
    return lambda config: config["base_rtt_ms"] == ms


def slow(config: dict[str, Any]) -> bool:
    return bool(config["rate_bps"] and config["rate_bps"] < SLOW_BPS)


def brisk(config: dict[str, Any]) -> bool:
    return bool(config["rate_bps"] and config["rate_bps"] >= SLOW_BPS)


def p95_of_slow(g: Group) -> float | None:
    """p95 RTT of two base RTTs and the transmission of four segments, up to 2 Mb/s."""
    rate_bps = g.config["rate_bps"]
    if not rate_bps or rate_bps > SLOW_BPS:
        return None
    segments_ms = 4 * spec.PACKET_BYTES * 8 / rate_bps * 1e3
    return g.mean(LAW, lambda r: p95(r) / (2 * base_ms(r) + segments_ms))


def short_after_s(result: Result, at_s: float) -> float:
    """How long after an instant the first second begins in which every RTT is short.

    What is left of the run where none is.
    """
    sent_s = np.array(result["series"]["rtt"]["t_s"])
    rtt_ms = np.array(result["series"]["rtt"]["ms"])
    long_s = sent_s[(sent_s >= at_s) & (rtt_ms >= SHORT_OF_BASE * base_ms(result))]
    end = end_s(result)
    # From the instant, or from a long RTT on, until the next long one.
    for begins, until in pairwise([at_s, *long_s, end]):
        if until - begins >= 1 and ((sent_s > begins) & (sent_s < begins + 1)).any():
            return float(begins - at_s)
    return end - at_s


def short_after_step_s(g: Group) -> float:
    return max(short_after_s(r, changes(r, "rate")[0][0]) for r in g.runs(LAW))


def short_after_rivals_s(g: Group) -> float:
    """Seconds after the last neighbour has gone."""
    return max(short_after_s(r, max(n["end_s"] for n in r["neighbours"])) for r in g.runs(LAW))


def share(g: Group) -> float:
    """A download's part of a fair one beside its neighbours."""
    return g.mean(LAW, own_share)


def share_of_stock(g: Group) -> float:
    return g.ratio(own_share)


def share_of_second_edition(g: Group) -> float | None:
    """Of what the law had on this link in its second edition."""
    before = SECOND_EDITION.get(g.label)
    return share(g) / before if before else None


def of_limits(of: Callable[[Result], float], limits: str) -> Measure:
    """What the law under these limits has of what they give without it."""
    law = LAW if limits == LIMITS else f"{LAW}, limits {limits}"
    return lambda g: g.mean(law, of) / g.mean(limits, of)


def of_same(of: Callable[[Result], float], **but: Any) -> Measure:
    """What the law has of what it has where only this is otherwise."""

    def measure(g: Group) -> float | None:
        other = g.but(**but)
        if other is g:
            return None
        alone = other.mean(LAW, of)
        return g.mean(LAW, of) / alone if alone else float("inf")

    return measure


# A run whose downloads end on the phone, one of them, and of one started by itself.
ON_THE_PHONE: dict[str, Any] = dict.fromkeys(
    ("client", "client_rtt_ms", "client_jitter_ms", "client_nat")
)
ONE_ALONE: dict[str, Any] = {"flows": 1, "flow_gap_s": 0.0}


def of_phones(of: Callable[[Result], float]) -> Measure:
    """What a client's download has of the same one on the phone; or of one there, two have."""

    def measure(g: Group) -> float | None:
        if not g.config["client"] or not g.has(INTERFACE):
            return None
        phones = g.but(**ON_THE_PHONE, **ONE_ALONE)
        return g.mean(INTERFACE, of) / phones.mean(INTERFACE, of)

    return measure


def beside_client(g: Group) -> float | None:
    """Jain's index of the phone's and its client's downloads."""
    return fairness(g, INTERFACE) if g.config["client"] == "half" else None


def goodput_after_rtt_step(result: Result) -> float:
    """Of the ten seconds after the first one."""
    at_s, _ = changes(result, "base-rtt")[0]
    return between(at_s, at_s + 10)(result)


def p50_queue(result: Result) -> float:
    """Median queueing delay in ms."""
    return float(result["rtt_ms"]["p50"]) - base_ms(result)


def slower_fetch(g: Group) -> float | None:
    """Time to fetch an object beside a liar, of without, for the size that fares worst."""
    other = g.but(neighbours=[])
    if other is g:
        return None
    return worst_fetch(fetch_by_size(g, LAW), fetch_by_size(other, LAW))


def flows(*counts: int) -> Callable[[dict[str, Any]], bool]:
    return lambda config: config["flows"] in counts


def steady(config: dict[str, Any]) -> bool:
    return not config["trace"]


def variable(config: dict[str, Any]) -> bool:
    return bool(config["trace"])


def drifts(config: dict[str, Any]) -> bool:
    return bool(config["clock_ppm"])


def ticks(config: dict[str, Any]) -> bool:
    """A server's clock that is not a plain one, and does not drift."""
    return bool(config["clock_tick_ms"] != 1 or config["events"])


# A run without offloads.
PLAIN: dict[str, Any] = {"gro_ms": None, "tso": False}


def offloaded(config: dict[str, Any]) -> bool:
    return config["gro_ms"] is not None and bool(config["tso"])


# A load without short connections.
NO_FETCHES: dict[str, Any] = {"objects": [], "arrival": "think", "think_s": 2.0}


def no_timestamps(config: dict[str, Any]) -> bool:
    return "--no-timestamps" in config["sockets"]


def one_queue(config: dict[str, Any]) -> bool:
    return config["second"] in ("clat", "vpn")


def fetches(config: dict[str, Any]) -> bool:
    return bool(config["objects"])


def downloads(config: dict[str, Any]) -> bool:
    return bool(config["flows"])


def settled_rtt_of_base(g: Group) -> float:
    """Mean RTT of the second half, in base RTTs."""

    def rtt(result: Result) -> float:
        probes = rtt_between(result, end_s(result) / 2, end_s(result))
        return float(probes.mean()) / base_ms(result)

    return g.mean(LAW, rtt)


def fetch_by_size(g: Group, who: str) -> dict[int, float | None]:
    """Mean time in ms to fetch an object of each size, none where none came."""
    (result,) = g.runs(who)
    return {e["size_bytes"]: e["mean_fct_ms"] for e in result["objects"]["by_size"]}


def worst_fetch(here: dict[int, float | None], there: dict[int, float | None]) -> float:
    """Of the size that fares worst here; one that never came here is none there either."""
    return max(ms / to for size, ms in here.items() if ms and (to := there[size]))


def completion_of(other: str) -> Measure:
    """Mean time to fetch an object, of the size that fares worst."""
    return lambda g: worst_fetch(fetch_by_size(g, LAW), fetch_by_size(g, other))


def kept_alive(config: dict[str, Any]) -> bool:
    return bool(config.get("keep_alive"))


def new_connections(config: dict[str, Any]) -> bool:
    return not kept_alive(config)


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


def p95_shared(g: Group) -> float:
    """p95 RTT once all downloads have started, in base RTTs."""
    return g.mean(
        LAW,
        lambda r: float(np.percentile(rtt_between(r, shared_from_s(r), end_s(r)), 95)) / base_ms(r),
    )


def fairness(g: Group, who: str = LAW) -> float:
    return g.mean(who, lambda r: jain(goodput_between(r, shared_from_s(r), end_s(r))) or 0.0)


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


def window_of_need(other: str) -> Measure:
    """Least window after 5 s, of what a slow reader drains in a base RTT, or of the other's."""

    def measure(g: Group) -> float | None:
        kind, _, rate = g.config["reader"].partition(":")
        if kind != "slow":
            return None
        (law,), (stock,) = g.runs(LAW), g.runs(other)
        drained = units.parse_rate_bps(rate) / 8 * base_ms(law) / 1e3
        least = [float(min(r["series"]["rwnd_bytes"][50:])) for r in (law, stock)]
        needed = min(drained, least[1])
        return least[0] / needed if needed else 1.0

    return measure


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


def _variable_links() -> Iterator[Target]:
    """What row 1 asks for at each base RTT: goodput, p95 RTT, and the p95 to reach for."""
    for ms, least, most, reach in ((40, 0.99, 3.3, 2.5), (100, 0.975, 4.2, None)):
        here, case = f"base {ms} ms", "b01-traces"
        near = base_rtt(ms)
        yield Target(
            "1",
            case,
            f"goodput of stock's, {here}",
            where(near, goodput_of(STOCK)),
            least,
            together=True,
        )
        what, measure = f"p95 RTT of the idle link's, {here}", where(near, p95_of_idle)
        yield Target("1", case, what, measure, at_most=most, together=True)
        if reach:
            yield Target("1", case, what, measure, at_most=reach, reach=True, together=True)


def _dial() -> Iterator[Target]:
    """Each step of λ has as much of both or more, within what one link's chance is worth."""
    for before, lambda_ in pairwise(DIAL):
        step = f"λ {lambda_:g} of {before:g}"
        for what, of, least in (("p95 RTT", p95, 0.99), ("goodput", goodput, 0.995)):
            measure = step_of(of, lambda_, before)
            yield Target("15", "b15-lambda", f"{what}, {step}", measure, least, together=True)
    measure = step_of(p95, DIAL[-1], DIAL[0])
    what = f"p95 RTT, λ {DIAL[-1]:g} of {DIAL[0]:g}"
    yield Target("15", "b15-lambda", what, measure, 2.5, together=True)


def _ticks() -> Iterator[Target]:
    """A phone that is not governed has what its own limits give, not those of the law."""
    for limits in (LIMITS, STATIC):
        for what, of, least, most in (
            ("mean RTT", mean_rtt, None, 1.02),
            ("goodput", goodput, 0.98, None),
        ):
            name = f"{what} of stock's, limits {limits}"
            measure = of_limits(of, limits)
            yield Target("28", "b28-ticks", name, measure, at_least=least, at_most=most)


TARGETS = (
    *_variable_links(),
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
    Target(
        "2",
        "b02-constant",
        "goodput of stock's, from 2 Mb/s on",
        where(brisk, goodput_of(STOCK)),
        0.99,
    ),
    Target(
        "2",
        "b02-constant",
        "goodput of stock's, below 2 Mb/s",
        where(slow, goodput_of(STOCK)),
        0.98,
    ),
    Target(
        "2",
        "b02-constant",
        "mean RTT of the base RTT, from 2 Mb/s on",
        where(brisk, settled_rtt_of_base),
        at_most=RTT_OF_BASE,
    ),
    Target(
        "2",
        "b02-constant",
        "mean RTT of the base RTT, below 2 Mb/s",
        where(slow, settled_rtt_of_base),
        at_most=RTT_OF_BASE,
        reach=True,
    ),
    Target(
        "2",
        "b02-constant",
        "p95 RTT of two base RTTs and four segments, to 2 Mb/s",
        p95_of_slow,
        at_most=1.0,
    ),
    Target(
        "3",
        "b03-start",
        "completion time of stock's, new connections",
        where(new_connections, completion_of(STOCK)),
        at_most=1.01,
    ),
    Target(
        "3",
        "b03-start",
        "completion time of stock's, kept alive",
        where(kept_alive, completion_of(STOCK)),
        at_most=1.02,
    ),
    Target(
        "3",
        "b03-start",
        "completion time of CoDel's in the router, kept alive",
        where(kept_alive, completion_of("codel")),
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
    Target("6", "b06-upload", "goodput of stock's, same limits", goodput_of(LIMITS), 0.95),
    Target("7", "b07-flows", "total goodput of stock's", goodput_of(STOCK), 0.98),
    Target(
        "7",
        "b07-flows",
        "p95 RTT of the base RTT, 5 flows",
        where(flows(5), p95_shared),
        at_most=1.6,
    ),
    Target(
        "7",
        "b07-flows",
        "p95 RTT of the base RTT, 20 flows",
        where(flows(20), p95_shared),
        at_most=2.2,
    ),
    Target("7", "b07-flows", "Jain's index, 5 and 20 flows", where(flows(5, 20), fairness), 0.95),
    Target("7", "b07-flows", "Jain's index, 64 flows", where(flows(64), fairness), 0.9),
    Target("8", "b08-web", "mean fetch time of the static limit's", fetch_of_static, at_most=0.3),
    Target("9", "b09-impairments", "goodput of stock's", goodput_of(STOCK), 0.97),
    Target(
        "9", "b09-impairments", "speed of a video's segments of stock's", segments_of(STOCK), 0.97
    ),
    Target("10", "b10-readers", "goodput of stock's, same limits", goodput_of(LIMITS), 0.99),
    Target(
        "10",
        "b10-readers",
        "speed of a video's segments of stock's, same limits",
        segments_of(LIMITS),
        0.99,
    ),
    Target(
        "10",
        "b10-readers",
        "speed of a video's segments of CoDel's in the router",
        segments_of("codel"),
        0.99,
        reach=True,
    ),
    Target("10", "b10-readers", "longer silence than stock's, s", longer_silence_s, at_most=0.2),
    Target(
        "10",
        "b10-readers",
        "window of what a slow reader drains, or of stock's, same limits",
        window_of_need(LIMITS),
        1.0,
    ),
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
    *_dial(),
    Target("16", "b16-nr", "goodput of stock's", goodput_of(STOCK), 0.98, together=True),
    Target("16", "b16-nr", "p95 RTT of the idle link's", p95_of_idle, at_most=2.5, together=True),
    Target("17", "b17-offloads", "goodput of that without", of_same(goodput, **PLAIN), 0.98),
    Target("17", "b17-offloads", "p95 RTT of that without", of_same(p95, **PLAIN), at_most=1.1),
    Target(
        "17",
        "b17-offloads",
        "goodput of stock's, GRO and TSO, variable links",
        where(offloaded, where(variable, goodput_of(STOCK))),
        0.99,
        together=True,
    ),
    Target(
        "17",
        "b17-offloads",
        "p95 RTT of the idle link's, GRO and TSO, variable links",
        where(offloaded, where(variable, p95_of_idle)),
        at_most=3.3,
        together=True,
    ),
    Target(
        "17",
        "b17-offloads",
        "mean RTT of the base RTT, GRO and TSO, steady links",
        where(offloaded, where(steady, settled_rtt_of_base)),
        at_most=RTT_OF_BASE,
    ),
    Target("18", "b18-rivals", "share of a fair one, steady links", where(steady, share), 0.9),
    Target("18", "b18-rivals", "share of a fair one, variable links", where(variable, share), 0.7),
    Target("18", "b18-rivals", "share of stock's beside the same", share_of_stock, 0.9, reach=True),
    Target("18", "b18-rivals", "share of the second edition's", share_of_second_edition, 0.9),
    Target(
        "18",
        "b18-rivals",
        "back below 2 base RTTs, s after it has gone",
        where(steady, short_after_rivals_s),
        at_most=5.0,
    ),
    Target(
        "19",
        "b19-queues",
        "median queue of one interface's",
        where(one_queue, of_same(p50_queue, second=None)),
        at_most=1.1,
    ),
    Target("19", "b19-queues", "goodput of stock's", goodput_of(STOCK), 0.98, reach=True),
    Target(
        "20", "b20-clocks", "goodput of stock's, ±500 ppm", where(drifts, goodput_of(STOCK)), 0.98
    ),
    Target(
        "20",
        "b20-clocks",
        "goodput of stock's, steps, ticks, pauses, none",
        where(ticks, goodput_of(STOCK)),
        0.98,
    ),
    Target(
        "20",
        "b20-clocks",
        "mean RTT of the base RTT",
        settled_rtt_of_base,
        at_most=RTT_OF_BASE,
        reach=True,
    ),
    Target(
        "21",
        "b21-liar",
        "fetch time of that without the liar",
        where(fetches, slower_fetch),
        at_most=1.25,
    ),
    Target(
        "21",
        "b21-liar",
        "goodput of that without the liar",
        where(downloads, of_same(goodput, neighbours=[])),
        0.9,
    ),
    Target(
        "22",
        "b22-step-down",
        "back below 2 base RTTs, s after",
        short_after_step_s,
        at_most=2.0,
    ),
    Target("23", "b23-bursts", "goodput of stock's", goodput_of(STOCK), 0.95),
    Target(
        "23",
        "b23-bursts",
        "p95 RTT of a BBR sender's",
        p95_of("bbr"),
        at_most=1.2,
        together=True,
    ),
    Target("24", "b24-seldom", "goodput of stock's, same limits", goodput_of(LIMITS), 0.97),
    Target("25", "b25-scale", "goodput of stock's, same limits", goodput_of(LIMITS), 0.95),
    Target("26", "b26-many", "p95 RTT of stock's", p95_of(STOCK), at_most=0.6),
    Target("26", "b26-many", "retransmits of stock's", retransmits_of_stock, at_most=1.0),
    Target("27", "b27-jumps", "goodput of a BBR sender's", goodput_of("bbr"), 0.95),
    *_ticks(),
    Target(
        "29",
        "b29-no-timestamps",
        "p95 RTT of that with timestamps",
        of_same(p95, sockets=""),
        at_most=1.5,
    ),
    Target(
        "29",
        "b29-no-timestamps",
        "goodput of stock's, no timestamps",
        where(no_timestamps, goodput_of(STOCK)),
        0.98,
    ),
    Target(
        "30",
        "b30-fetches",
        "share of that without the fetches",
        of_same(own_share, **NO_FETCHES),
        0.85,
    ),
    Target(
        "31",
        "b31-handover",
        "goodput of that without the stream, 10 s after",
        of_same(goodput_after_rtt_step, neighbours=[]),
        0.95,
    ),
    Target(
        "35",
        "b35-push",
        "fetch time of that with fq_codel",
        completion_of("fq_codel"),
        at_most=1.1,
    ),
)

# Those of `lab campaign --programs`: the law at the interface, which governs clients, too.
PROGRAMS = (
    Target("32", "b32-client", "goodput of that on the phone", of_phones(goodput), 0.98),
    Target("32", "b32-client", "p95 RTT of that on the phone", of_phones(p95), at_most=1.1),
    Target("33", "b33-lan", "goodput of stock's on the client", clients_goodput, 0.97),
    Target("34", "b34-beside", "p95 RTT of one download's", of_phones(p95), at_most=1.15),
    Target("34", "b34-beside", "Jain's index of phone and client", beside_client, 0.95),
    Target(
        "36",
        "b36-programs",
        "goodput of stock's, links that vary",
        where(variable, at_interface(goodput_of(STOCK))),
        0.99,
        together=True,
    ),
    Target(
        "36",
        "b36-programs",
        "p95 RTT of the idle link's, programs",
        where(variable, at_interface(p95_of_idle)),
        at_most=3.0,
        together=True,
    ),
    Target(
        "36",
        "b36-programs",
        "goodput of stock's, same limits, seldom readers",
        where(steady, at_interface(goodput_of(LIMITS))),
        0.97,
    ),
)

# Rows that no run of the lab can show.
ELSEWHERE = {"13": "a hostile sender: the kernel's unit tests and the fuzzing of the law"}
