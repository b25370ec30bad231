# SPDX-License-Identifier: GPL-2.0-only
"""What `lab campaign --quic` asks of UDP that is held to a short queue; see targets.py."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from drwalab import quicstacks, spec
from drwalab.output import number
from drwalab.results import Result, jain, of_idle
from drwalab.targets import (
    INTERFACE,
    STOCK,
    Group,
    Measure,
    Missing,
    Target,
    by_link,
    own_share,
    p95,
    steady,
    variable,
    where,
)

HELD = "drwa-aqm"
# The law without it
OFF = INTERFACE
# A queue manager where the queue is, beside stock phones
CODEL = "codel"
# The lab's own sender, with CUBIC
LABS = "quic"
NO_CLOCK = "--no-timestamps"

Holds = Callable[[dict[str, Any]], bool]


# --- What a run is


def kinds(config: dict[str, Any]) -> list[str]:
    """Of its neighbours."""
    return [str(text).partition(":")[0] for text in config["neighbours"]]


def downloads_over(config: dict[str, Any], cc: str, count: int = 1) -> bool:
    """Whether so many stacks with this congestion control, and nobody else, download in bulk."""
    loads = [quicstacks.LOADS.get(kind) for kind in kinds(config)]
    return len(loads) == count and all(
        load is not None and (load.cc, load.fetches) == (cc, "bulk") for load in loads
    )


def alone(cc: str) -> Holds:
    return lambda config: not config["flows"] and downloads_over(config, cc)


def beside(cc: str) -> Holds:
    return lambda config: bool(config["flows"]) and downloads_over(config, cc)


def fetches(config: dict[str, Any]) -> bool:
    """A video's segments, or objects."""
    loads = [quicstacks.LOADS.get(kind) for kind in kinds(config)]
    return bool(loads) and all(load is not None and load.fetches != "bulk" for load in loads)


def paced(config: dict[str, Any]) -> bool:
    """Calls and games among others."""
    return any(kind in spec.PACED for kind in kinds(config))


def both(*all_of: Holds) -> Holds:
    return lambda config: all(holds(config) for holds in all_of)


# --- What a run has


def shared_from_s(result: Result) -> float:
    """When the last neighbour has begun."""
    return max(float(each["start_s"]) for each in result["neighbours"])


def rates(result: Result, kind: str) -> list[float]:
    """Mean Mb/s of each flow, or neighbour, once all have begun."""
    ends = np.array(result["series"]["t_s"])
    part = ends > shared_from_s(result) + 0.05
    series = np.array(result["series"][f"{kind}_goodput_mbps"]).reshape(-1, len(ends))
    return [float(x) for x in series[:, part].mean(axis=1)]


def total(result: Result) -> float:
    """Of TCP and QUIC."""
    return sum(rates(result, "flow")) + sum(rates(result, "neighbour"))


def fairness(result: Result) -> float:
    """Among the neighbours."""
    return jain(rates(result, "neighbour")) or 0.0


def their_share(result: Result) -> float:
    """What one download over QUIC has of a fair part beside one over TCP."""
    return 2 - own_share(result)


def lost(result: Result) -> float:
    """Packets of calls and games."""
    return float(sum(each["lost"] or 0 for each in result["neighbours"]))


def dropped(result: Result) -> float:
    """Packets of calls and games that came over the radio, and to no application."""
    return float(sum(each["dropped"] or 0 for each in result["neighbours"]))


def p95_of_idle(result: Result) -> float:
    return of_idle(result, "p95") or 0.0


# --- Measures


def held(of: Callable[[Result], float]) -> Measure:
    return lambda g: g.mean(HELD, of)


def to(other: str, of: Callable[[Result], float]) -> Measure:
    return lambda g: g.ratio(of, other, HELD)


def p95_without_a_clock(g: Group) -> float | None:
    """With echoes, of that with TCP's timestamps."""
    if g.config["sockets"]:
        return None
    return g.but(sockets=NO_CLOCK).mean(HELD, p95) / g.mean(HELD, p95)


def two(config: dict[str, Any]) -> bool:
    return not config["flows"] and downloads_over(config, "cubic", 2)


_VARIES_ALONE = both(alone("cubic"), variable)
_BESIDE = beside("cubic")

TARGETS = (
    Target(
        "1",
        "quic-stacks",
        "CUBIC alone, variable links: goodput of stock's",
        where(_VARIES_ALONE, to(STOCK, total)),
        0.95,
    ),
    Target(
        "1",
        "quic-stacks",
        "CUBIC alone, variable links: p95 RTT of stock's",
        where(_VARIES_ALONE, to(STOCK, p95)),
        at_most=0.25,
    ),
    Target(
        "2",
        "quic-stacks",
        "CUBIC beside a governed download: p95 RTT of the idle link's",
        where(_BESIDE, held(p95_of_idle)),
        at_most=6,
    ),
    Target(
        "3",
        "quic-stacks",
        "CUBIC beside it: TCP's part of a fair share, variable links",
        where(both(_BESIDE, variable), held(own_share)),
        0.7,
    ),
    Target(
        "3",
        "quic-stacks",
        "CUBIC beside it: TCP's part of a fair share, steady links",
        where(both(_BESIDE, steady), held(own_share)),
        0.9,
    ),
    Target(
        "3",
        "quic-stacks",
        "CUBIC beside it: QUIC's part of a fair share",
        where(_BESIDE, held(their_share)),
        0.7,
    ),
    Target(
        "4",
        "quic-stacks",
        "CUBIC beside it: goodput of both, of stock's",
        where(_BESIDE, to(STOCK, total)),
        0.95,
    ),
    Target(
        "5",
        "quic-stacks",
        "BBR alone: goodput of stock's",
        where(alone("bbr"), to(STOCK, total)),
        0.98,
    ),
    Target(
        "5",
        "quic-stacks",
        "BBR beside a governed download: TCP's share, of that without `--aqm`",
        where(beside("bbr"), to(OFF, own_share)),
        1.0,
    ),
    Target(
        "6",
        "quic-loads",
        "call and game beside QUIC and a governed download: packets dropped",
        where(paced, held(dropped)),
        at_most=0,
    ),
    Target(
        "6",
        "quic-loads",
        "call and game beside them: p95 RTT of the idle link's",
        where(paced, held(p95_of_idle)),
        at_most=6,
    ),
    Target(
        "7",
        "quic-loads",
        "two with CUBIC, 10 s apart: Jain's index",
        where(two, held(fairness)),
        0.8,
    ),
    Target(
        "8",
        "quic-loads",
        "four echoes a second: p95 RTT of that with TCP's timestamps",
        p95_without_a_clock,
        at_most=1.5,
    ),
    Target(
        "9",
        "quic-loads",
        "a video, or objects, beside a governed download: p95 RTT of the idle link's",
        where(fetches, held(p95_of_idle)),
        at_most=6,
    ),
)

# Rows that no run of the lab can show.
ELSEWHERE = {
    "10": "at most 400 instructions more for a datagram that comes: `lab cost`",
    "11": "off, packets equal to the byte: test_off.py",
}

HEADS = (
    "Link and load",
    "Player",
    "TCP, Mb/s",
    "QUIC and other UDP, Mb/s",
    "RTT p50, ms",
    "p95",
    "p95 of idle",
    "TCP's share",
    "Jain of neighbours",
    "Lost of calls, games",
    "dropped by the phone",
    "Dropped by AQM",
    "Left alone",
    "QUIC of the lab's sender's",
    "p95 of the lab's sender's",
)


def _with_labs(group: Group, who: str) -> Group | None:
    """The same with the lab's sender in place of the stacks, where that has their CUBIC."""
    config = group.config
    if not downloads_over(config, "cubic", len(kinds(config))):
        return None
    instead = [LABS + str(text).removeprefix(kind) for text, kind in _named(config)]
    try:
        labs = group.but(neighbours=instead)
    except Missing:
        return None
    return labs if labs.has(who) else None


def _named(config: dict[str, Any]) -> list[tuple[str, str]]:
    return list(zip(config["neighbours"], kinds(config), strict=True))


def _cells(group: Group, name: str) -> tuple[str, ...]:
    mean = functools.partial(group.shown, name)

    def theirs(result: Result) -> float:
        return sum(rates(result, "neighbour"))

    several = len(kinds(group.config)) > 1
    labs = _with_labs(group, name)
    return (
        name,
        mean(lambda r: sum(rates(r, "flow")) if r["flows"] else None, 2),
        " ".join(
            number(each, 2)
            for each in np.mean([rates(r, "neighbour") for r in group.runs(name)], 0)
        ),
        mean(lambda r: r["rtt_ms"]["p50"]),
        mean(p95),
        mean(lambda r: of_idle(r, "p95"), 2),
        mean(lambda r: r["fair_share"], 2),
        mean(fairness, 3) if several and not paced(group.config) else "–",
        mean(lost) if paced(group.config) else "–",
        mean(dropped) if paced(group.config) else "–",
        mean(lambda r: r["counters"].get("udp_dropped")),
        mean(lambda r: r["counters"].get("udp_deaf")),
        number(group.mean(name, theirs) / labs.mean(name, theirs), 2) if labs else "–",
        number(group.mean(name, p95) / labs.mean(name, p95), 2) if labs else "–",
    )


players = by_link(_cells)
