# SPDX-License-Identifier: GPL-2.0-only
"""Connections over one queue, with the law in them: model.c as a library, and what it tells."""

import ctypes
import functools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import builds
from builds import Edits

CUBIC, BBR = 0, 1
ANDROID_13_WINDOW_BYTES = 3 << 20
PROBE_EVERY_S = 0.05
MSS_BYTES = 1448
Floats = NDArray[np.float64]


class _Flow(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "start_us",
            "stop_us",
            "base_rtt_us",
            "bytes",
            "think_us",
            "app_bps",
            "wnd_bytes",
            "drift_ppm",
            "tick_us",
            "pause_at_us",
            "pause_us",
            "lag_us",
            "on_us",
        )
    ] + [
        (name, ctypes.c_int32)
        for name in ("lambda_", "queue", "counted", "cc", "forged", "blind", "lowered")
    ]


class _Change(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("at_us", "rate_bps", "base_rtt_us")]


class _Forgery(ctypes.Structure):
    _fields_ = [
        ("at_us", ctypes.c_int64),
        ("flow", ctypes.c_int32),
        ("packets", ctypes.c_int32),
        ("rtt_us", ctypes.c_uint32),
        ("owd_us", ctypes.c_uint32),
        ("reset", ctypes.c_int32),
    ]


class _Push(ctypes.Structure):
    _fields_ = [
        ("at_us", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("flow", ctypes.c_int32),
    ]


class _Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("bytes", "done_us", "fetched_us", "lost")]


@dataclass(frozen=True)
class Flow:
    """One connection; no lambda_: the kernel's own window, and no law."""

    base_rtt_s: float
    lambda_: float | None = 1.25
    start_s: float = 0.0
    stop_s: float = 0.0
    size_bytes: int = 0
    # From one object's end to the next one's request; 0: there is one
    think_s: float = 0.0
    app_mbps: float = 0.0
    window_bytes: int = ANDROID_13_WINDOW_BYTES
    cc: int = CUBIC
    queue: int = 0
    # Where its bytes are counted, if that is another queue than the one it speaks of
    counted: int | None = None
    drift_ppm: int = 0
    # What a count of the server's timestamps is; the law takes each for 1 ms.
    tick_s: float = 0.001
    pause_at_s: float = 0.0
    pause_s: float = 0.0
    # What the server's clock loses at pause_at_s, whether it stands still or not
    lag_s: float = 0.0
    # λ is set in mid-download.
    on_s: float = 0.0
    forged: bool = False
    # No TCP timestamps
    blind: bool = False
    # Bits that a middlebox took off the window's scale
    lowered: int = 0

    def native(self) -> _Flow:
        return _Flow(
            us(self.start_s),
            us(self.stop_s),
            us(self.base_rtt_s),
            self.size_bytes,
            us(self.think_s),
            int(self.app_mbps * 1e6),
            self.window_bytes,
            self.drift_ppm,
            us(self.tick_s),
            us(self.pause_at_s),
            us(self.pause_s),
            us(self.lag_s),
            us(self.on_s),
            round(100 * (self.lambda_ or 0)),
            self.queue,
            self.queue if self.counted is None else self.counted,
            self.cc,
            self.forged,
            self.blind,
            self.lowered,
        )


@dataclass(frozen=True)
class Change:
    """A link's new rate, or every connection's new base RTT."""

    at_s: float
    rate_mbps: float = 0.0
    base_rtt_s: float = 0.0


@dataclass(frozen=True)
class Forgery:
    """What a lying server makes of one of the phone's connections at one moment."""

    at_s: float
    flow: int
    packets: int
    rtt_us: int
    owd_us: int
    reset: bool = False


@dataclass(frozen=True)
class Push:
    """More to send for a flow that has a size, which the server was not asked for."""

    at_s: float
    size_bytes: int
    flow: int = 0


@dataclass(frozen=True)
class Link:
    """A queue before a rate in Mb/s, or before opportunities in ms for one packet each."""

    rate_mbps: float = 0.0
    opportunities_ms: NDArray[np.uint32] | None = None
    buffer_bytes: int = 1_500_000
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Outcome:
    """Goodputs in Mb/s and times in s, by flow; probes that were lost have the next one's delay."""

    goodput_mbps: Floats
    # When the last one was complete, and what all together took
    fetch_s: Floats
    fetches_s: Floats
    lost: NDArray[np.int64]
    probe_sent_s: Floats = field(repr=False)
    probe_rtt_s: Floats = field(repr=False)

    def rtt_s(self, since_s: float = 0.0, until_s: float = np.inf) -> Floats:
        inside = (self.probe_sent_s >= since_s) & (self.probe_sent_s < until_s)
        return self.probe_rtt_s[inside]

    def p95_s(self, since_s: float = 0.0, until_s: float = np.inf) -> float:
        return float(np.percentile(self.rtt_s(since_s, until_s), 95))


def us(seconds: float) -> int:
    return round(seconds * 1e6)


def law_source(edits: Edits) -> str:
    """The law with each old text replaced; raises ValueError unless that is there once."""
    return builds.edited(builds.CORE, edits)


@functools.cache
def library(edits: Edits = ()) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as name:
        core, output = Path(name) / "core.c", Path(name) / "model.so"
        core.write_text(law_source(edits))
        flags = ["-O2", *builds.WARNINGS, *builds.INCLUDES, "-shared", "-fPIC"]
        builds.run(["gcc", *flags, core, builds.TESTS / "model.c", "-lm", "-o", output])
        return ctypes.CDLL(str(output))


def _late(sent_s: Floats, rtt_s: Floats, end_s: float) -> Floats:
    """A lost probe is as late as the next answered one, which was sent later."""
    late = rtt_s.copy()
    arrival = end_s
    for i in range(len(late) - 1, -1, -1):
        if np.isnan(late[i]):
            late[i] = max(arrival - sent_s[i], 0)
        else:
            arrival = sent_s[i] + late[i]
    return late


def run(
    link: Link,
    flows: Sequence[Flow],
    duration_s: float,
    warm_s: float = 0.0,
    probe_rtt_s: float = 0.0,
    forgeries: Sequence[Forgery] = (),
    edits: Edits = (),
    pushes: Sequence[Push] = (),
) -> Outcome:
    """Runs the link; goodput counts from warm_s on."""
    native = library(edits)
    probes = int(duration_s / PROBE_EVERY_S) + 2
    sent, rtt = np.zeros(probes), np.zeros(probes)
    configs = (_Flow * max(1, len(flows)))(*[flow.native() for flow in flows])
    results = (_Result * max(1, len(flows)))()
    changes = (_Change * max(1, len(link.changes)))(
        *[_Change(us(c.at_s), round(c.rate_mbps * 1e6), us(c.base_rtt_s)) for c in link.changes]
    )
    words = (_Forgery * max(1, len(forgeries)))(
        *[
            _Forgery(us(f.at_s), f.flow, f.packets, f.rtt_us, f.owd_us % (1 << 32), f.reset)
            for f in forgeries
        ]
    )
    more = (_Push * max(1, len(pushes)))(*[_Push(us(p.at_s), p.size_bytes, p.flow) for p in pushes])
    times = link.opportunities_ms
    if times is None:
        times = np.zeros(0, np.uint32)
    double = ctypes.POINTER(ctypes.c_double)
    count = native.model_run(
        ctypes.c_int64(us(duration_s)),
        ctypes.c_int64(us(warm_s)),
        ctypes.c_int64(round(link.rate_mbps * 1e6)),
        times.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)),
        ctypes.c_int64(len(times)),
        ctypes.c_int64(link.buffer_bytes),
        ctypes.c_int64(us(PROBE_EVERY_S)),
        ctypes.c_int64(us(probe_rtt_s or (flows[0].base_rtt_s if flows else 0))),
        sent.ctypes.data_as(double),
        rtt.ctypes.data_as(double),
        configs,
        results,
        ctypes.c_uint32(len(flows)),
        changes,
        ctypes.c_uint32(len(link.changes)),
        words,
        ctypes.c_uint32(len(forgeries)),
        more,
        ctypes.c_uint32(len(pushes)),
    )
    sent, rtt = sent[:count], rtt[:count]
    rtt[rtt == 0] = np.nan
    return Outcome(
        np.array([r.bytes * 8e-6 / (duration_s - warm_s) for r in results][: len(flows)]),
        np.array(
            [
                r.done_us / 1e6 - f.start_s if r.done_us else np.nan
                for r, f in zip(results, flows, strict=False)
            ]
        ),
        np.array([r.fetched_us / 1e6 for r in results][: len(flows)]),
        np.array([r.lost for r in results][: len(flows)]),
        sent,
        _late(sent, rtt, duration_s),
    )
