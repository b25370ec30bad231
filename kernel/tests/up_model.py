# SPDX-License-Identifier: GPL-2.0-only
"""A modem's queue in this process, with the gate's law, net/sched/drwa_up_core.c."""

import ctypes
import functools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import builds
from builds import Edits

LAW, OCCUPANCY, NONE = 0, 1, 2
UPLOAD, QUERY, DOWNLOAD, FETCH = range(4)
HONEST, NO_CLOCK, SILENT, DEAD, EARLY_CLOCK, LATE_CLOCK, EARLY, LATE, SAME = range(9)
START, HOLD, DRAIN, OPEN = range(4)
U32 = 1 << 32
TARGET_US = 10_000
GRANT_US = 8_000
FIRMWARE_BYTES = 600_000


class _FlowConfig(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "start_us",
            "stop_us",
            "interval_us",
            "drift_ppm",
            "tick_us",
            "base_us",
            "claim_us",
            "short_each",
        )
    ] + [(name, ctypes.c_int32) for name in ("kind", "server")]


class _Event(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("at_us", "rate_bps", "base_rtt_us")]


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("duration_us", "target_us", "rate_bps")),
        ("opportunity_ms", ctypes.POINTER(ctypes.c_uint32)),
        *(
            (name, ctypes.c_int64)
            for name in (
                "opportunities",
                "base_rtt_us",
                "grant_us",
                "firmware_bytes",
                "loss_ppm",
                "fade_us",
                "burst_us",
                "down_bps",
                "down_queue_us",
                "clock_us",
                "bytes",
                "seed",
                "told_us",
                "told_late_us",
                "told_from_us",
                "told_until_us",
                "told_more_bytes",
                "told_more_us",
            )
        ),
        *((name, ctypes.c_int32) for name in ("gate", "flows", "events")),
    ]


class XStats(ctypes.Structure):
    """struct tc_drwa_up_xstats"""

    _fields_ = [("rate", ctypes.c_uint64)] + [
        (name, ctypes.c_uint32)
        for name in (
            "window_bytes",
            "in_flight_bytes",
            "delay_us",
            "age_us",
            "phase",
            "marks",
            "answers",
            "drains",
            "jumps",
            "opened",
            "shorts",
            "told",
        )
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                "crossed_bytes",
                "capacity_bytes",
                "max_queue_bytes",
                "mean_queue_us",
                "asides",
                "fetch_us",
            )
        ),
        ("law", XStats),
    ]


@dataclass(frozen=True)
class Flow:
    """An upload that always has something to send, queries at intervals, who sends what comes at
    down_bps, or fetches of 100 kB with interval_us between them; times in us."""

    kind: int = UPLOAD
    server: int = HONEST
    start_us: int = 1_000_000
    stop_us: int = 0
    interval_us: int = 50_000
    drift_ppm: int = 0
    tick_us: int = 1000
    base_us: int = 0
    claim_us: int = 500_000
    short_each: int = 0


PROBES = Flow(QUERY, start_us=0)


@dataclass(frozen=True)
class Event:
    """From at_us on, another rate or base RTT; -1 leaves it."""

    at_us: int
    rate_bps: int = -1
    base_rtt_us: int = -1


@dataclass(frozen=True)
class Result:
    """What came of a run; flow_bytes are those that crossed, rtt_us the probes' in turn."""

    use: float
    max_queue_bytes: int
    mean_queue_us: int
    asides: int
    fetch_us: int
    law: XStats
    flow_bytes: list[int]
    rtt_us: list[int]

    def rtt_ms(self, part: float, after: int = 0) -> float:
        """A quantile of the probes' RTT, those that were answered after so many others."""
        rtts = sorted(self.rtt_us[after:])
        return rtts[min(len(rtts) - 1, int(len(rtts) * part))] / 1000


def law_source(edits: Edits) -> str:
    """The law with each old text replaced; raises ValueError unless that is there once."""
    return builds.edited(builds.UP_CORE, edits)


@functools.cache
def library(edits: Edits | None = None) -> ctypes.CDLL:
    """The model with the law, whose undefined behaviour is trapped; with edits it is not."""
    with tempfile.TemporaryDirectory() as name:
        core, output = Path(name) / "core.c", Path(name) / "up_model.so"
        core.write_text(law_source(edits or ()))
        flags = ["-O2", "-g", *builds.WARNINGS, *builds.INCLUDES, "-shared", "-fPIC"]
        flags += ["-Wno-unused-parameter", "-Wno-sign-compare"]
        if edits is None:
            flags += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
        builds.run(["gcc", *flags, core, builds.TESTS / "up_model.c", "-o", output])
        loaded = ctypes.CDLL(str(output))
    loaded.up_model.restype = ctypes.c_int64
    return loaded


def run(
    flows: Sequence[Flow] = (PROBES, Flow()),
    rate_bps: int = 5_000_000,
    opportunities: Sequence[int] = (),
    seconds: float = 30,
    base_rtt_us: int = 50_000,
    events: Sequence[Event] = (),
    target_us: int = TARGET_US,
    gate: int = LAW,
    loss_ppm: int = 0,
    fade_us: int = 0,
    burst_us: int = 0,
    down_bps: int = 0,
    down_queue_us: int = 0,
    firmware_bytes: int = FIRMWARE_BYTES,
    clock_us: int = U32 - 5_000_000,
    released: int = U32 - 1_000_000,
    seed: int = 1,
    told_us: int = 0,
    told_late_us: int = 0,
    told_from_us: int = 0,
    told_until_us: int = 0,
    told_more_bytes: int = 0,
    told_more_us: int = 0,
    edits: Edits | None = None,
) -> Result:
    """Runs the model; use is what crossed as a part of what could have."""
    duration_us = int(seconds * 1_000_000)
    instants = (ctypes.c_uint32 * max(1, len(opportunities)))(*opportunities)
    config = _Config(
        duration_us=duration_us,
        target_us=target_us,
        rate_bps=rate_bps,
        opportunity_ms=instants,
        opportunities=len(opportunities),
        base_rtt_us=base_rtt_us,
        grant_us=GRANT_US,
        firmware_bytes=firmware_bytes,
        loss_ppm=loss_ppm,
        fade_us=fade_us,
        burst_us=burst_us,
        down_bps=down_bps,
        down_queue_us=down_queue_us,
        clock_us=clock_us,
        bytes=released,
        seed=seed,
        told_us=told_us,
        told_late_us=told_late_us,
        told_from_us=told_from_us,
        told_until_us=told_until_us,
        told_more_bytes=told_more_bytes,
        told_more_us=told_more_us,
        gate=gate,
        flows=len(flows),
        events=len(events),
    )
    names = [field[0] for field in _FlowConfig._fields_]
    flow_configs = (_FlowConfig * len(flows))(
        *(_FlowConfig(**{name: getattr(flow, name) for name in names}) for flow in flows)
    )
    event_configs = (_Event * max(1, len(events)))(
        *(_Event(event.at_us, event.rate_bps, event.base_rtt_us) for event in events)
    )
    result = _Result()
    flow_bytes = (ctypes.c_int64 * len(flows))()
    queries = sum(duration_us // flow.interval_us + 2 for flow in flows if flow.kind == QUERY)
    rtt_us = (ctypes.c_int64 * max(1, queries))()
    count = library(edits).up_model(
        ctypes.byref(config),
        flow_configs,
        event_configs,
        ctypes.byref(result),
        flow_bytes,
        rtt_us,
    )
    return Result(
        use=result.crossed_bytes / max(1, result.capacity_bytes),
        max_queue_bytes=result.max_queue_bytes,
        mean_queue_us=result.mean_queue_us,
        asides=result.asides,
        fetch_us=result.fetch_us,
        law=result.law,
        flow_bytes=list(flow_bytes),
        rtt_us=list(rtt_us[:count]),
    )
