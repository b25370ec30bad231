# SPDX-License-Identifier: GPL-2.0-only
"""What `lab campaign --uplink` asks of the uplink's gate; see targets.py."""

import functools
from typing import Any

import numpy as np

from drwalab import lategates, spec
from drwalab.network import QCUT_TARGET_US
from drwalab.results import Result
from drwalab.targets import LAW, Group, Measure, Target, by_link, end_s, goodput, p95, where

# Today's phone, and the bound of what a gate can do that need not guess.
PFIFO = "pfifo"
BOUND = "qcut-d"

# What rows 1 and 2 ask of the gate beside the bound.
UPLOAD_OF_BOUND = 0.95
P95_BEYOND_BOUND_MS = 20
# ... where the modem tells
TOLD_P95_BEYOND_BOUND_MS = 15

# Beside an upload, of what there is without one; and what of the bound's will do
FETCH_OF_ALONE, FETCH_OF_BOUND = 1.2, 1.05
P95_OF_ALONE = 1.5

# The same link and load without an upload.
ALONE = {"upload": False, "uploads": 0, "upload_kind": None, "upload_lie_ms": None}

# A rate is reached where a second has so much of what pfifo has in the mean.
REACHED = 0.9


def player(result: Result) -> str:
    """The phone's sender where one is chosen, else what stands in front of the modem."""
    config = result["config"]
    if config["upload_cc"] not in (None, spec.DEFAULTS["upload-cc"]):
        return str(config["upload_cc"])
    name = str(config["uplink_scheme"])
    target_ms = config["uplink_target_ms"]
    return name if target_ms is None else f"{name} {target_ms:g} ms"


# --- What a run has


def upload(result: Result) -> float:
    return float(result["upload_goodput_mbps"])


def median_fetch(result: Result) -> float:
    """Of the objects, in ms; those that never came in the run have taken to its end."""
    objects = result["objects"]
    return float(np.median(objects["fct_ms"])) if objects["count"] else end_s(result) * 1e3


def reached_s(result: Result, mbps: float) -> float:
    """When the first second begins in which the uploads have so much; the run's end if none."""
    sent = np.array(result["series"]["upload_goodput_mbps"]).sum(axis=0)
    seconds = np.convolve(sent, np.full(10, 0.1), "valid")
    found = np.flatnonzero(seconds >= mbps)
    return float(found[0]) / 10 if len(found) else end_s(result)


# --- Measures


def upload_of(other: str) -> Measure:
    return lambda g: g.ratio(upload, other)


of_fq_codel = upload_of("fq_codel")


def p95_of_pfifo(most: float) -> Measure:
    """Where the idle link itself leaves room for it."""

    def measure(g: Group) -> float | None:
        idle = g.mean(LAW, lambda r: float(r["rtt_ms"]["idle"]["p95"]))
        return g.ratio(p95, PFIFO) if idle < most * g.mean(PFIFO, p95) else None

    return measure


def p95_beyond_bound_ms(g: Group) -> float:
    return g.mean(LAW, p95) - g.mean(BOUND, p95)


def p95_beyond_late_bound_ms(g: Group) -> float:
    """The same, but what the bound has when told as late counts as what is allowed, if more."""
    late = f"{BOUND} {QCUT_TARGET_US / 1000 + g.config['modem_tells_ms']:g} ms"
    bound = max(g.mean(BOUND, p95), g.mean(late, p95) - TOLD_P95_BEYOND_BOUND_MS)
    return g.mean(LAW, p95) - bound


def p95_of_best_late(g: Group) -> float:
    """Of the best gate's that is told exactly, as late as answers are, and uploads as much.

    Uploads and RTTs are in those of the bound, here and in the model, which has no TCP. The gate
    that uploads most stands for all where none uploads as much.
    """
    told, late = [], []
    for trace in g.uplinks(LAW):
        ms = [round(g.config[name]) for name in ("base_rtt_ms", "grant_ms")]
        outcome = lategates.outcomes(trace, *ms, round(g.config["duration_s"] * 1000))
        told.append(outcome[0])
        late.append(outcome[1])
    crossed, known = (np.sum([each.crossed for each in of], axis=0) for of in (late, told))
    p95_ms, bound_ms = (np.mean([each.p95_ms for each in of], axis=0) for of in (late, told))
    part, delay = crossed / known, p95_ms / bound_ms
    enough = part >= min(g.ratio(upload, BOUND), part.max())
    return g.ratio(p95, BOUND) / float(delay[enough].min())


def fetch_of_alone(g: Group) -> float:
    return g.mean(LAW, median_fetch) / g.but(**ALONE).mean(PFIFO, median_fetch)


def fetch_of_bound(g: Group) -> float:
    return g.ratio(median_fetch, BOUND)


def fetch_of_alone_or_bound(g: Group) -> float:
    """Where the bound has more than FETCH_OF_ALONE, FETCH_OF_BOUND of its own counts as that."""
    law, bound = g.mean(LAW, median_fetch), g.mean(BOUND, median_fetch)
    alone = g.but(**ALONE).mean(PFIFO, median_fetch)
    allowed = FETCH_OF_ALONE * alone
    return FETCH_OF_ALONE * law / (allowed if bound <= allowed else FETCH_OF_BOUND * bound)


def download_of_alone(g: Group) -> float:
    return g.mean(LAW, goodput) / g.but(**ALONE).mean(PFIFO, goodput)


def p95_of_alone(g: Group) -> float:
    return g.mean(LAW, p95) / g.but(**ALONE).mean(PFIFO, p95)


def p95_of_alone_or_bound(g: Group) -> float:
    """Where the bound has more than P95_OF_ALONE, what it has counts as that."""
    allowed = max(P95_OF_ALONE * g.but(**ALONE).mean(PFIFO, p95), g.mean(BOUND, p95))
    return P95_OF_ALONE * g.mean(LAW, p95) / allowed


def opens_later_s(g: Group) -> float:
    """How much later than pfifo's the upload has the rate."""
    rate = REACHED * g.mean(PFIFO, upload)
    return g.mean(LAW, lambda r: reached_s(r, rate)) - g.mean(PFIFO, lambda r: reached_s(r, rate))


def uploads(config: dict[str, Any]) -> bool:
    return bool(config["upload"])


def fetches(config: dict[str, Any]) -> bool:
    return bool(config["upload"] and config["objects"])


def no_download(config: dict[str, Any]) -> bool:
    return not config["flows"]


def download(config: dict[str, Any]) -> bool:
    return bool(config["upload"] and config["flows"])


def no_marks(config: dict[str, Any]) -> bool:
    return bool(config["upload"] and config["probe_kind"] == "opaque")


def steady(config: dict[str, Any]) -> bool:
    return bool(config["uplink_rate_bps"])


def varies(config: dict[str, Any]) -> bool:
    return not steady(config)


def beside_a_download(
    row: str, case: str, upload: float, download: float, reach: bool = False
) -> tuple[Target, ...]:
    """What an upload has beside a download, and leaves of it; reach is about the delay."""
    whole, delay = "download of that without an upload", "p95 RTT of that without an upload"
    return (
        Target(row, case, "upload of qcut-d's", where(uploads, upload_of(BOUND)), upload),
        Target(row, case, whole, where(uploads, download_of_alone), download),
        Target(row, case, delay, where(uploads, p95_of_alone), at_most=P95_OF_ALONE, reach=reach),
    )


TARGETS = (
    Target("1", "u01-constant", "upload of pfifo's", upload_of(PFIFO), 0.97),
    Target(
        "1",
        "u01-constant",
        "p95 RTT beyond qcut-d's, ms",
        p95_beyond_bound_ms,
        at_most=P95_BEYOND_BOUND_MS,
    ),
    Target("1", "u01-constant", "p95 RTT of pfifo's", p95_of_pfifo(0.1), at_most=0.1),
    Target("2", "u02-recorded", "upload of pfifo's", upload_of(PFIFO), 0.9),
    Target("2", "u02-recorded", "upload of qcut-d's", upload_of(BOUND), UPLOAD_OF_BOUND),
    Target(
        "2",
        "u02-recorded",
        "p95 RTT beyond qcut-d's, ms",
        p95_beyond_bound_ms,
        at_most=P95_BEYOND_BOUND_MS,
    ),
    Target("2", "u02-recorded", "p95 RTT of pfifo's", p95_of_pfifo(0.1), at_most=0.1),
    Target(
        "2",
        "u02-recorded",
        "p95 RTT of the best late gate's with that upload",
        p95_of_best_late,
        at_most=1.25,
    ),
    Target(
        "3",
        "u03-fetch",
        "median fetch of that without an upload",
        where(uploads, fetch_of_alone),
        at_most=FETCH_OF_ALONE,
    ),
    *beside_a_download("4", "u04-download", 0.9, 0.95),
    Target("5", "u05-hardships", "upload of pfifo's", upload_of(PFIFO), 0.9),
    Target("5", "u05-hardships", "p95 RTT of pfifo's", p95_of_pfifo(0.2), at_most=0.2),
    Target("6", "u06-hostile", "upload of pfifo's", where(uploads, upload_of(PFIFO)), 0.95),
    Target(
        "6",
        "u06-hostile",
        "seconds that it opens later than pfifo, without marks",
        where(no_marks, opens_later_s),
        at_most=1.0,
    ),
    Target(
        "6",
        "u06-hostile",
        "median fetch of that without an upload, beside a lie",
        where(fetches, fetch_of_alone),
        at_most=FETCH_OF_ALONE,
    ),
    Target("8", "u08-told", "upload of qcut-d's", upload_of(BOUND), 0.97),
    Target(
        "8",
        "u08-told",
        "p95 RTT beyond qcut-d's, ms",
        p95_beyond_bound_ms,
        at_most=TOLD_P95_BEYOND_BOUND_MS,
        reach=True,
    ),
    Target(
        "8",
        "u08-told",
        "p95 RTT beyond qcut-d's, ms; or qcut-d's, told as late",
        p95_beyond_late_bound_ms,
        at_most=TOLD_P95_BEYOND_BOUND_MS,
    ),
    Target("9", "u09-told-late", "upload of qcut-d's", upload_of(BOUND), UPLOAD_OF_BOUND),
    Target("9", "u09-told-late", "upload of pfifo's", upload_of(PFIFO), 0.95),
    Target(
        "9",
        "u09-told-late",
        "seconds that it opens later than pfifo",
        where(steady, opens_later_s),
        at_most=1.0,
    ),
    Target(
        "10",
        "u10-told-fetch",
        "median fetch of qcut-d's",
        where(uploads, fetch_of_bound),
        at_most=FETCH_OF_BOUND,
        reach=True,
    ),
    Target(
        "10",
        "u10-told-fetch",
        "median fetch of that without an upload; or 1.05 of qcut-d's",
        where(uploads, fetch_of_alone_or_bound),
        at_most=FETCH_OF_ALONE,
    ),
    *beside_a_download("11", "u11-told-download", 0.95, 0.97, reach=True),
    Target(
        "11",
        "u11-told-download",
        "p95 RTT of that without an upload; or qcut-d's",
        where(uploads, p95_of_alone_or_bound),
        at_most=P95_OF_ALONE,
    ),
    Target("12", "u12-duplex", "upload of fq_codel's, steady", where(steady, of_fq_codel), 0.97),
    Target("12", "u12-duplex", "upload of fq_codel's, variable", where(varies, of_fq_codel), 0.9),
    Target("13", "u13-rrul", "upload of pfifo's", upload_of(PFIFO), 0.9),
    Target("14", "u14-many", "upload of qcut-d's", upload_of(BOUND), UPLOAD_OF_BOUND),
    Target(
        "14",
        "u14-many",
        "p95 RTT beyond qcut-d's, ms",
        p95_beyond_bound_ms,
        at_most=P95_BEYOND_BOUND_MS,
    ),
    Target("15", "u15-bearers", "upload of pfifo's", where(no_download, upload_of(PFIFO)), 0.95),
    Target(
        "15",
        "u15-bearers",
        "p95 RTT of pfifo's",
        where(no_download, p95_of_pfifo(0.1)),
        at_most=0.1,
    ),
    Target(
        "15",
        "u15-bearers",
        "download of that without an upload",
        where(download, download_of_alone),
        0.97,
    ),
    Target(
        "15",
        "u15-bearers",
        "p95 RTT of that without an upload",
        where(download, p95_of_alone),
        at_most=P95_OF_ALONE,
    ),
)

# Rows that no run of the lab can show.
ELSEWHERE = {"7": "cost and memory: `lab cost` and the kernel's unit tests"}

HEADS = (
    "Link",
    "Player",
    "Upload, Mb/s",
    "Download, Mb/s",
    "RTT p50, ms",
    "p95",
    "Way up p95",
    "In the modem, kB",
    "Median fetch, ms",
)


def _cells(group: Group, name: str) -> tuple[str, ...]:
    mean = functools.partial(group.shown, name)
    return (
        name if group.config["upload"] else "no upload",
        mean(lambda r: r["upload_goodput_mbps"], 2),
        mean(lambda r: r["goodput_mbps"] if r["flows"] else None, 2),
        mean(lambda r: r["rtt_ms"]["p50"]),
        mean(p95),
        mean(lambda r: r["up_ms"]["p95"]),
        mean(lambda r: r["firmware"]["mean_bytes"] / 1e3, 1),
        mean(lambda r: median_fetch(r) if r["config"]["objects"] else None),
    )


players = by_link(_cells)
