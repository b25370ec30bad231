# SPDX-License-Identifier: GPL-2.0-only
"""Delivery traces in mahimahi's format (Netravali et al., USENIX ATC 2015).

Each line is a time in ms at which 1500 bytes can cross the link. A time repeats when more can
cross. After the last line the trace starts again, and that line's time is then zero.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

OPPORTUNITY_BYTES = 1500
# What lablink takes: 64 MiB of 32-bit times.
MAX_OPPORTUNITIES = 1 << 24


class TraceError(Exception):
    """A file that is no trace."""


@dataclass(frozen=True)
class Trace:
    """A trace: times in ms, never falling, of which the last one is not zero."""

    path: Path
    sha256: str
    times_ms: npt.NDArray[np.uint32] = field(compare=False)

    @property
    def period_ms(self) -> int:
        return int(self.times_ms[-1])

    @property
    def mean_bps(self) -> float:
        return len(self.times_ms) * OPPORTUNITY_BYTES * 8 * 1000 / self.period_ms

    def _before(self, ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Opportunities strictly before these instants."""
        # The last line of a turn and a line at 0 of the next one are the same instant.
        turns = np.maximum(ms - 1, 0) // self.period_ms
        rest = ms - turns * self.period_ms
        within: npt.NDArray[np.int64] = np.searchsorted(self.times_ms, rest, side="left")
        return turns * len(self.times_ms) + within

    def opportunities(self, edges_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Opportunities in each interval between edges; the first edge of an interval is in it."""
        return np.diff(self._before(edges_ms))

    def capacity_bytes(self, start_ms: int, end_ms: int) -> int:
        """Bytes that can cross from start_ms on and before end_ms."""
        edges = np.array([start_ms, end_ms], dtype=np.int64)
        return int(self.opportunities(edges)[0]) * OPPORTUNITY_BYTES

    def write_native(self, path: Path) -> None:
        """Write what the guest kernel reads: 32-bit times in the machine's byte order."""
        path.write_bytes(self.times_ms.tobytes())


@lru_cache(maxsize=64)
def load(path: Path) -> Trace:
    """Read a trace; raises TraceError with one line that names the file."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise TraceError(f"trace {path}: {e.strerror}") from e
    return Trace(path, hashlib.sha256(content).hexdigest(), _parse(content, path))


def _parse(content: bytes, path: Path) -> npt.NDArray[np.uint32]:
    times: list[int] = []
    last = 0
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.strip()
        if not text.isdigit():
            shown = text[:20].decode("utf-8", "replace")
            raise TraceError(f"trace {path}: line {number} is no time in ms: '{shown}'")
        time = int(text)
        if time < last:
            raise TraceError(f"trace {path}: line {number} goes back in time, {last} to {time} ms")
        times.append(time)
        last = time
    if not times:
        raise TraceError(f"trace {path}: empty")
    if last == 0:
        raise TraceError(f"trace {path}: every time is 0, so it has no length")
    if last >= 1 << 32 or len(times) > MAX_OPPORTUNITIES:
        raise TraceError(f"trace {path}: too long")
    return np.array(times, dtype=np.uint32)
