# SPDX-License-Identifier: GPL-2.0-only
"""What the uplink's gate makes of many uplinks, in the model: figures for each kind of them."""

import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import constants
import up_model as model
from builds import Edits
from constants import Cells
from drwalab import burstlink, ltelink
from up_model import PROBES, Event, Flow

# Probes until an upload has settled
SETTLED = 100
SECONDS = 60
GENERATED = (1, 2, 3, 4)
WINDOWS = 2
OPAQUE_PROBES = Flow(model.QUERY, model.SILENT, start_us=0)
QUIC = Flow(server=model.SILENT)
# A QUIC connection that downloads as well, whose every eighth packet is a short one
DUPLEX = Flow(server=model.SILENT, short_each=8)
DOWNLOAD = Flow(model.DOWNLOAD, start_us=500_000)
FETCHES = Flow(model.FETCH, start_us=5_000_000, interval_us=500_000)
# As from Qualcomm's modems: asked each 5 ms, and said 2 ms before it is heard.
TOLD: dict[str, object] = {"told_us": 5_000, "told_late_us": 2_000}
# What reads the modem's queue; its target is that of the lab's.
QCUT_D: dict[str, object] = {"gate": model.OCCUPANCY, "target_us": 20_000}
LIARS = (
    model.NO_CLOCK,
    model.DEAD,
    model.EARLY_CLOCK,
    model.LATE_CLOCK,
    model.EARLY,
    model.LATE,
)

WHAT_IS_RUN = [
    "upload of QCUT-D's and p95 RTT over its, geometric means (steady links; recorded and",
    "generated ones at a base of 50 and, far, of 150 ms; stories of rates that change, and of",
    "paths; a link that becomes slower; beside a download, and with queries that are understood;",
    "an upload over QUIC beside queries, and a download; the same told by the modem's driver, who",
    "may be wrong); fetches of 100 kB beside an upload, over those alone; radios of bursts (the",
    "least upload of pfifo's, told or not, and the p95 of pfifo's); outages (what waits in the",
    "modem at most, of pfifo's); servers that lie (the least of what who is beside them has of",
    "pfifo's, and the p95 over 50 ms), and nobody who answers (the least upload of pfifo's).",
]

Options = Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """Flows over an uplink, and what the gate is told beyond that."""

    flows: Sequence[Flow]
    link: Options
    told: Options = field(default_factory=dict)

    def run(self, edits: Edits = ()) -> model.Result:
        return model.run(self.flows, edits=edits, **{**self.link, **self.told})  # type: ignore[arg-type]

    def of(self, gate: Options) -> model.Result:
        return model.run(self.flows, edits=(), **{**self.link, **gate})  # type: ignore[arg-type]


def p95_ms(run: model.Result) -> float:
    return run.rtt_ms(0.95, SETTLED)


def _steady(mbps: float, base_ms: int) -> Options:
    return {"rate_bps": int(mbps * 1e6), "base_rtt_us": base_ms * 1000, "seconds": SECONDS}


def _windows(times: Sequence[int]) -> Iterator[list[int]]:
    """Of a recorded link, some that do not overlap; each ends with its period."""
    span = SECONDS * 1000
    for number in range(WINDOWS):
        part = [time - number * span for time in times if 0 < time - number * span <= span]
        yield [*part, span]


@functools.cache
def _varying(base_ms: int) -> list[Options]:
    """Recorded uplinks, where they lie beside the project, and generated ones."""
    found = [ltelink.opportunities(seed, SECONDS) for seed in GENERATED]
    for path in sorted(constants.TRACES.glob("*.up")):
        found += _windows([int(line) for line in path.read_text().split()])
    base_us = base_ms * 1000
    return [{"opportunities": times, "base_rtt_us": base_us, "seconds": SECONDS} for times in found]


@functools.cache
def _bursts() -> list[Options]:
    return [
        {
            "opportunities": burstlink.opportunities(word, SECONDS),
            "base_rtt_us": int(base_s * 1e6),
            "seconds": SECONDS,
        }
        for word, base_s in constants.BURSTS
    ]


def story(seed: int, paths: bool) -> dict[str, object]:
    """A link whose rate, and path if asked, change at any time, with outages, below several
    uploads."""
    draw = random.Random(seed)
    mbps = draw.choice((0.5, 1, 2, 5, 10, 20, 50))
    events: list[Event] = []
    at_s = 5.0
    while (at_s := at_s + draw.choice((0.3, 1, 3, 6)) * (0.5 + draw.random())) < 40:
        if paths and draw.random() < 0.3:
            path_us = draw.choice((20, 50, 100, 150, 200)) * 1000
            events.append(Event(int(at_s * 1e6), base_rtt_us=path_us))
            continue
        if draw.random() < 0.35:
            events.append(Event(int(at_s * 1e6), rate_bps=0))
            at_s += draw.choice((0.3, 1, 3, 8)) * (0.5 + draw.random())
        then_mbps = draw.choice((0.5, 1, 2, 5, 10, 20, 50, mbps, mbps))
        events.append(Event(int(at_s * 1e6), rate_bps=int(then_mbps * 1e6)))
    flows = [PROBES] * draw.choice((0, 1, 1))
    for number in range(draw.choice((1, 1, 2, 4))):
        far_us = draw.choice((0, 20_000, 80_000)) if number else 0
        start_us = int(draw.random() * 5e6 * number)
        flows.append(Flow(start_us=start_us, base_us=far_us))
    return {
        "flows": flows,
        "rate_bps": int(mbps * 1e6),
        "base_rtt_us": draw.choice((20, 50, 100, 150)) * 1000,
        "events": events,
        "seconds": 40,
    }


def _stories(paths: bool) -> list[Case]:
    cases = []
    for seed in range(20):
        link = story(seed, paths)
        flows = link.pop("flows")
        # Who is timed is asked by nobody: probes of the campaign's own would be marks.
        cases.append(Case([OPAQUE_PROBES, *flows], link))  # type: ignore[misc]
    return cases


def _download(link: Options, queue_ms: int) -> Options:
    return {**link, "down_bps": 10_000_000, "down_queue_us": queue_ms * 1000}


def _slower() -> list[Case]:
    """At any time of a DRAIN's period"""
    links = ((10, 2, 50), (20, 2, 150), (10, 1, 80), (5, 1, 150))
    return [
        Case(
            [PROBES, Flow()],
            {**_steady(mbps, base_ms), "events": [Event(at_us, then_mbps * 1_000_000)]},
        )
        for mbps, then_mbps, base_ms in links
        for at_us in range(14_000_000, 18_000_000, 800_000)
    ]


def _few() -> list[Options]:
    return [_steady(1, 50), _steady(5, 50), _steady(20, 80), *_varying(50)]


def _told_wrong() -> list[Case]:
    link = _steady(5, 50)
    wrong: list[Options] = [
        {"told_more_bytes": more, "told_more_us": 20_000_000} for more in (-64_000, 8_000, 64_000)
    ]
    wrong += [{"told_until_us": 20_000_000}, {"told_from_us": 8_000_000}]
    return [
        Case([OPAQUE_PROBES, flow], link, {**TOLD, **each})
        for flow in (Flow(), QUIC)
        for each in wrong
    ]


@functools.cache
def cases() -> dict[str, list[Case]]:
    """By what they are judged together."""
    handovers = ((50, 150), (150, 50), (30, 300))
    rates = product((1, 2, 5, 20, 50), (50, 150))
    return {
        "steady": [Case([PROBES, Flow()], _steady(*each)) for each in rates],
        "varying": [Case([OPAQUE_PROBES, Flow()], link) for link in _varying(50)],
        "far": [Case([OPAQUE_PROBES, Flow()], link) for link in _varying(150)],
        "stories": _stories(False),
        "paths": [
            *_stories(True),
            *(
                Case(
                    [OPAQUE_PROBES, Flow()],
                    {**_steady(5, one), "events": [Event(20_000_000, base_rtt_us=other * 1000)]},
                )
                for one, other in handovers
            ),
        ],
        "slower": _slower(),
        "download": [
            Case([OPAQUE_PROBES, Flow(), DOWNLOAD], _download(link, 200)) for link in _few()
        ],
        "download, queries": [
            Case([PROBES, Flow(), Flow(base_us=20_000)], _download(_steady(5, 50), queue_ms))
            for queue_ms in (100, 300, 1000, 1900)
        ],
        "queries": [Case([PROBES, DUPLEX], link) for link in _few()],
        "queries, download": [
            Case([PROBES, QUIC, DOWNLOAD], _download(link, 50)) for link in _few()
        ],
        "told": [Case([OPAQUE_PROBES, QUIC], link, TOLD) for link in _few()],
        "told, download": [
            Case([OPAQUE_PROBES, Flow(), DOWNLOAD], _download(link, 100), TOLD) for link in _few()
        ],
        "told wrong": _told_wrong(),
    }


@functools.cache
def _bounds(kind: str) -> list[model.Result]:
    return [case.of(QCUT_D) for case in cases()[kind]]


def _judged(kind: str, edits: Edits) -> Cells:
    """Of QCUT-D's upload and times its p95 RTT, geometric means."""
    both = [
        (case.run(edits), bound) for case, bound in zip(cases()[kind], _bounds(kind), strict=True)
    ]
    return {
        f"{kind}: upload": constants.geometric([run.use / bound.use for run, bound in both]),
        f"{kind}: p95": constants.geometric([p95_ms(run) / p95_ms(bound) for run, bound in both]),
    }


def _bursty() -> list[Case]:
    told: tuple[Options, ...] = ({}, TOLD)
    return [Case([OPAQUE_PROBES, Flow()], link, each) for each in told for link in _bursts()]


def _beside(lie: Flow, mbps: int) -> Case:
    return Case([PROBES, Flow(), lie], _steady(mbps, 50))


def hostile(edits: Edits) -> Cells:
    """What who answers honestly has of what it had beside another one, at worst; the p95 RTT."""
    liars = [Flow(server=server) for server in LIARS]
    liars += [Flow(tick_us=tick_us) for tick_us in (1, 10_000)]
    liars.append(Flow(server=model.LATE_CLOCK, claim_us=40_000))
    parts, p95 = [], []
    for mbps, lie in product((1, 5), liars):
        run, fair = _beside(lie, mbps).run(edits), _beside(Flow(), mbps).of({"gate": model.NONE})
        parts.append(run.flow_bytes[1] / fair.flow_bytes[1])
        p95.append(p95_ms(run) / 50)
    # A clock that ticks in us, beside a download
    case = Case([OPAQUE_PROBES, Flow(tick_us=1)], _download(_steady(5, 50), 100))
    parts.append(case.run(edits).use / case.of({"gate": model.NONE}).use)
    return {"liars: upload": min(parts), "liars: p95": constants.geometric(p95)}


def _open() -> list[Case]:
    """Nobody answers, or now and then, so that there is little to go by."""
    seldom = [[Flow(model.QUERY, start_us=0, interval_us=each * 1000)] for each in (200, 2000)]
    visits = [
        Flow(start_us=at_us, stop_us=at_us + 300_000)
        for at_us in range(10_000_000, 50_000_000, 5_000_000)
    ]
    return [
        Case([OPAQUE_PROBES, QUIC, *others], _steady(mbps, 50))
        for mbps, others in product((1, 5, 20), ([], *seldom, visits))
    ]


@functools.cache
def _pfifo(part: Callable[[], list[Case]]) -> list[model.Result]:
    return [case.of({"gate": model.NONE}) for case in part()]


def _worst(part: Callable[[], list[Case]], edits: Edits) -> tuple[float, list[model.Result]]:
    """The least upload of pfifo's, and the runs."""
    runs = [case.run(edits) for case in part()]
    return min(run.use / free.use for run, free in zip(runs, _pfifo(part), strict=True)), runs


def bursts(edits: Edits) -> Cells:
    """QCUT-D's rate is that of 100 ms, which makes no bound of it here."""
    least, runs = _worst(_bursty, edits)
    p95 = [p95_ms(run) / p95_ms(free) for run, free in zip(runs, _pfifo(_bursty), strict=True)]
    return {"bursts: upload": least, "bursts: p95 of pfifo's": constants.geometric(p95)}


def _outages() -> list[Case]:
    """Of an upload alone, just after the link became slower"""
    cases = []
    for (mbps, then_mbps), outage_us in product(((6, 3), (20, 2)), (6_000_000, 20_000_000)):
        slower = then_mbps * 1_000_000
        over = Event(10_200_000 + outage_us, slower)
        events = [Event(10_000_000, slower), Event(10_200_000, 0), over]
        cases.append(Case([Flow()], {**_steady(mbps, 50), "events": events}))
    return cases


def outages(edits: Edits) -> Cells:
    """A modem is full after some seconds, and a gate that opened meanwhile fills it."""
    most = [
        case.run(edits).max_queue_bytes / free.max_queue_bytes
        for case, free in zip(_outages(), _pfifo(_outages), strict=True)
    ]
    return {"outages: queue of pfifo's": constants.geometric(most)}


def unanswered(edits: Edits) -> Cells:
    return {"open: upload": _worst(_open, edits)[0]}


@functools.cache
def _alone(number: int) -> float:
    return Case([OPAQUE_PROBES, FETCHES], _few()[number]).of({}).fetch_us


def fetches(edits: Edits) -> Cells:
    """Times of what a fetch takes without an upload."""
    cells = {}
    for name, told in (("fetches", {}), ("told: fetches", TOLD)):
        each = [
            Case([OPAQUE_PROBES, Flow(), FETCHES], link, told).run(edits).fetch_us / _alone(number)
            for number, link in enumerate(_few())
        ]
        cells[name] = constants.geometric(each)
    return cells


def row(edits: Edits) -> Cells:
    cells: Cells = {}
    for kind in cases():
        cells |= _judged(kind, edits)
    for part in (fetches, bursts, outages, hostile, unanswered):
        cells |= part(edits)
    return cells
