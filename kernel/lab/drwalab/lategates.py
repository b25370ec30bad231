# SPDX-License-Identifier: GPL-2.0-only
"""What anybody can make of an uplink who learns late what has left its modem.

QCUT-D reads the modem's queue as it is. Whoever has to be told by the answers to what was sent
knows what left a round trip ago. How much that costs depends on the link alone; here it is looked
for without any kernel: a gate is told exactly, to the packet, what has left, and when the modem
had something to send, only late. It hands over what would leave until the news of it came and the
target passed, at the rate of the modem's last busy time, and some deviations of that rate:

    released - crossed <= rate * (age + target) + deviations * dev * age

Of all spans of the rate, targets and deviations, those count that turn out best on that very link.
That is no proof that nothing is better; it is what the law's window (net/sched/drwa_up_core.c)
could have if its answers, clocks and guesses were perfect, and its constants made for each link.

The modem is the lab's (guest/net/sched/lab_modem.h): a packet that finds it empty makes it ask, and
what is in it crosses as long as something is. Time goes in ms, in which what the radio takes comes
before what the gate hands over; who reads the modem refills it within them.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from drwalab import network
from drwalab.traces import Trace

SPANS_MS = (32, 64, 128, 256)
TARGETS_MS = (5, 10, 20, 40)
DEVIATIONS = (-1, 0, 1, 2)
COUNT = len(SPANS_MS) * len(TARGETS_MS) * len(DEVIATIONS)
# As the law has them
DEV_SHIFT = 4
FIRST_PACKETS = 10
LEAST_PACKETS = 2
# Labgate's: the rate of its bound, over so long
BOUND_SPAN_MS = 100
# Probes until then, and those that the run's end leaves unanswered, do not count.
SETTLED_MS, UNANSWERED_MS = 5_000, 8_000
PROBE_MS = 10

Packets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Packets that crossed, and the p95 RTT of probes in ms, of each gate."""

    crossed: npt.NDArray[np.int64]
    p95_ms: npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def outcomes(trace: Trace, age_ms: int, grant_ms: int, duration_ms: int) -> tuple[Outcome, Outcome]:
    """QCUT-D's, and those of all gates that learn it so late."""
    packets = trace.opportunities(np.arange(duration_ms + 1, dtype=np.int64))
    return bound(packets, age_ms, grant_ms), late(packets, age_ms, grant_ms)


def bound(packets: Packets, age_ms: int, grant_ms: int) -> Outcome:
    """Whoever reads the modem's queue, and keeps what drains within QCUT-D's target."""
    total = np.concatenate([[0], np.cumsum(packets)])
    target_ms = network.QCUT_TARGET_US / 1000
    released, crossed = np.zeros((2, len(packets)), dtype=np.int64)
    out = left = 0
    for now, room in enumerate(packets.tolist()):
        # It never empties the modem, so that one grant is enough.
        left += room if now >= grant_ms else 0
        since = max(0, now - BOUND_SPAN_MS)
        rate = (total[now] - total[since]) / max(1, now - since)
        out = max(out, left + max(LEAST_PACKETS, int(rate * target_ms)))
        released[now], crossed[now] = out, left
    return _outcome(packets, released[:, None], crossed[:, None], age_ms, grant_ms)


def late(packets: Packets, age_ms: int, grant_ms: int) -> Outcome:
    """All gates at a time, in the order of product(SPANS_MS, TARGETS_MS, DEVIATIONS)."""
    choices = np.array(list(product(SPANS_MS, TARGETS_MS, DEVIATIONS)))
    span, target, deviations = choices.T
    gates, length = np.arange(len(choices)), len(packets)
    # Busy is for how long the modem could send.
    released, crossed, busy = np.zeros((3, length, len(choices)), dtype=np.int64)
    # Where a rate's span, and an age, began
    start, before = np.zeros((2, len(choices)), dtype=np.int64)
    dev, last = np.zeros((2, len(choices)))
    out, left, granted_ms, sends = np.zeros((4, len(choices)), dtype=np.int64)
    for now in range(length):
        able = (out > left) & (now >= granted_ms)
        sends += able
        left = np.where(able, np.minimum(out, left + packets[now]), left)
        crossed[now], busy[now] = left, sends
        handed = out
        known = now - age_ms
        if known <= 0:
            out = np.maximum(out, FIRST_PACKETS)
        else:
            ahead = busy[known] - span
            while (step := busy[np.minimum(start + 1, known), gates] <= ahead).any():
                start += step
            passed = np.maximum(1, busy[known] - busy[start, gates])
            rate = (crossed[known] - crossed[start, gates]) / passed
            if now % age_ms == 0:
                newest = (crossed[known] - crossed[before, gates]) / age_ms
                change = np.maximum(0, np.abs(newest - last) - 1 / age_ms)
                dev = np.minimum(dev + (change - dev) / (1 << DEV_SHIFT), 2 * newest)
                last, before = newest, np.full(len(choices), known)
            window = rate * (age_ms + target) + deviations * dev * age_ms
            first = 2 * crossed[known] + FIRST_PACKETS
            window = np.where(busy[known] >= span, np.maximum(window, LEAST_PACKETS), first)
            out = np.maximum(out, crossed[known] + window.astype(np.int64))
        granted_ms = np.where((handed == left) & (out > handed), now + grant_ms, granted_ms)
        released[now] = out
    return _outcome(packets, released, crossed, age_ms, grant_ms)


def _outcome(
    packets: Packets, released: Packets, crossed: Packets, age_ms: int, grant_ms: int
) -> Outcome:
    sent = np.arange(SETTLED_MS, len(released) - UNANSWERED_MS, PROBE_MS)
    # Who finds the modem empty waits for a grant, and for whatever crosses after it.
    open_ms = np.append(np.flatnonzero(packets), len(packets))
    asked = open_ms[np.searchsorted(open_ms, sent + grant_ms)]
    p95 = []
    for gate in range(released.shape[1]):
        gone = np.searchsorted(crossed[:, gate], released[sent, gate])
        gone = np.where(released[sent, gate] > crossed[sent, gate], gone, asked)
        p95.append(age_ms + np.percentile(gone - sent, 95))
    return Outcome(crossed[-1], np.array(p95))
