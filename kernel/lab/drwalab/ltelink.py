# SPDX-License-Identifier: GPL-2.0-only
"""A generated LTE-like downlink, as a list of delivery opportunities in mahimahi's format.

So that the demo needs no download, and so that anybody can draw a fresh link by changing a seed.

The rate is drawn once per radio frame of 10 ms, about as often as a phone reports its channel:

    rate = scale * exp(slow + fast) * dip, limited to min_mbps..max_mbps

slow  Gauss-Markov process, slow_sigma = 0.7, slow_tau_s = 5: shadowing and changing cell load.
      Received power is log-normal around its path loss and forgets itself over tens of metres.
fast  Gauss-Markov process, fast_sigma = 0.3, fast_tau_s = 0.1: what link adaptation and HARQ
      leave of multipath fading.
dip   every DIP_EVERY_S = 12 s on average (exponential), for 0.4 to 1.2 s, the rate falls to 15
      to 40 %, with ramps of 0.1 s: a corner, a hand over the antenna. It never falls to zero,
      because an outage measures TCP's retransmission timers rather than the queue.

The sigmas and time constants follow a recorded LTE drive (Verizon-LTE-short of Winstein et al.,
NSDI 2013). In windows of 1 s, the logarithm of the rate has

                    standard deviation   correlation after 1, 2, 5 s
    recorded        0.73                 0.76, 0.60, 0.33
    generated       0.64                 0.78, 0.62, 0.32   (mean of seeds 1 to 30, 140 s)

The mean is scaled to mean_mbps over the whole duration, so links of different seeds compare.

In each millisecond (one TTI) the cell serves this phone with probability served = 0.4; the bytes
that it was due since it was last served then leave at once. This gives the bursts of a few
packets and the gaps of a few milliseconds that recorded links show.

The same seed and duration give the same list on every machine: Random.random() is specified
exactly, and the rest uses only operations that IEEE 754 rounds correctly (no exp, log or gauss,
which differ between C libraries; no sum(), which differs between Python versions).
"""

from dataclasses import dataclass
from math import fsum, sqrt
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Radio:
    """What a generation of links is like; the letters stand in the formula above."""

    name: str
    mean_mbps: float
    min_mbps: float
    max_mbps: float
    slow_sigma: float
    slow_tau_s: float
    fast_sigma: float
    fast_tau_s: float
    served: float


LTE = Radio(
    name="lte",
    mean_mbps=10.0,
    min_mbps=1.0,
    max_mbps=30.0,
    slow_sigma=0.7,
    slow_tau_s=5.0,
    fast_sigma=0.3,
    fast_tau_s=0.1,
    served=0.4,
)

DIP_EVERY_S = 12.0
DIP_RAMP_S = 0.1
FRAME_MS = 10
PACKET_BYTES = 1500


def exp(x: float) -> float:
    """e**x to about 1e-3 for |x| < 5, from additions and multiplications alone."""
    power = 1.0 + x / 4096.0
    for _ in range(12):
        power *= power
    return power


def normal(rng: Random) -> float:
    """A standard normal deviate as the sum of twelve uniform ones (Irwin-Hall)."""
    return fsum(rng.random() for _ in range(12)) - 6.0


def _gauss_markov(rng: Random, n: int, sigma: float, tau_s: float) -> list[float]:
    keep = 1.0 - FRAME_MS / 1000.0 / tau_s
    kick = sigma * sqrt(1.0 - keep * keep)
    x = sigma * normal(rng)
    path = []
    for _ in range(n):
        path.append(x)
        x = keep * x + kick * normal(rng)
    return path


def _exponential(rng: Random, mean: float) -> float:
    """An exponential deviate without log(): geometric with a step of 1/64 of the mean."""
    steps = 0
    while rng.random() >= 1.0 / 64.0:
        steps += 1
    return mean * steps / 64.0


def _dips(rng: Random, n: int) -> list[float]:
    factor = [1.0] * n
    frame_s = FRAME_MS / 1000.0
    start = _exponential(rng, DIP_EVERY_S)
    while start < n * frame_s:
        length = 0.4 + 0.8 * rng.random()
        depth = 0.15 + 0.25 * rng.random()
        for i in range(int(start / frame_s), min(n, int((start + length) / frame_s))):
            edge = min(i * frame_s - start, start + length - i * frame_s)
            ramp = min(1.0, max(0.0, edge / DIP_RAMP_S))
            factor[i] = 1.0 - ramp * (1.0 - depth)
        start += length + _exponential(rng, DIP_EVERY_S)
    return factor


def rates_mbps(seed: int, duration_s: int, radio: Radio = LTE) -> list[float]:
    """The link's rate in each frame of 10 ms."""
    n = duration_s * 1000 // FRAME_MS
    # Each part has a generator of its own: changing one of them leaves the others as they were.
    slow = _gauss_markov(Random(4 * seed), n, radio.slow_sigma, radio.slow_tau_s)
    fast = _gauss_markov(Random(4 * seed + 1), n, radio.fast_sigma, radio.fast_tau_s)
    dip = _dips(Random(4 * seed + 2), n)
    raw = [exp(s + f) * d for s, f, d in zip(slow, fast, dip, strict=True)]
    scale = radio.mean_mbps * n / fsum(raw)
    limited = raw
    # The limits move the mean; a few rounds of scaling bring it back.
    for _ in range(8):
        limited = [min(radio.max_mbps, max(radio.min_mbps, scale * r)) for r in raw]
        scale *= radio.mean_mbps * n / fsum(limited)
    return limited


def opportunities(seed: int, duration_s: int, radio: Radio = LTE) -> list[int]:
    """Times in ms, one per 1500-byte packet that can cross, ending with the period of the link."""
    if seed < 0 or duration_s < 1:
        raise ValueError("a link needs a seed of at least 0 and a duration of at least 1 s")
    rng = Random(4 * seed + 3)
    times: list[int] = []
    due = 0.0
    for frame, rate in enumerate(rates_mbps(seed, duration_s, radio)):
        for tti in range(FRAME_MS):
            due += rate * 1e6 / 8.0 / 1000.0
            if rng.random() < radio.served:
                packets = int(due // PACKET_BYTES)
                due -= packets * PACKET_BYTES
                times.extend([frame * FRAME_MS + tti + 1] * packets)
    # A replay wraps around at the last line, so the last line has to be the duration.
    times.append(duration_s * 1000)
    return times


def write_trace(path: Path, seed: int, duration_s: int, radio: Radio = LTE) -> None:
    """Write the link as a mahimahi trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{t}\n" for t in opportunities(seed, duration_s, radio)), encoding="ascii"
    )
