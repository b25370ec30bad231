# SPDX-License-Identifier: GPL-2.0-only
"""Windows of a recorded link: the same opportunities, from other instants on."""

from pathlib import Path

import numpy as np

from drwalab import traces, windows

# 10 ms, with nothing from 3 to 8 ms, and two at once at 9 ms
TIMES = (1, 2, 8, 9, 9, 10)


def counts(path: Path, length_ms: int) -> list[int]:
    """What crosses in each ms after those at its beginning."""
    edges = np.arange(1, length_ms + 2, dtype=np.int64)
    return [int(n) for n in traces.load(path).opportunities(edges)]


def test_a_window_is_the_trace_from_there_on(tmp_path: Path) -> None:
    road = tmp_path / "road.up"
    road.write_text("".join(f"{time}\n" for time in TIMES))
    found = windows.of(road, 5, tmp_path / "made")
    assert found[0] == road
    # Fifths at 2, 4, 6 and 8 ms; the gap has one window for the three of them.
    assert [path.name for path in found[1:]] == ["road-from-2ms.up", "road-from-8ms.up"]
    long = counts(road, 40)
    for path, start in zip(found[1:], (2, 8), strict=True):
        assert counts(path, 25) == long[start : start + 25]
        assert traces.load(path).period_ms == 10
        assert windows.whole(path.name) == "road.up"


def test_traces_of_one_name_have_windows_of_their_own(tmp_path: Path) -> None:
    for times in ("1\n2\n3\n4\n", "1\n2\n4\n"):
        (tmp_path / "road.up").write_text(times)
        traces.load.cache_clear()
        _, window = windows.of(tmp_path / "road.up", 2, tmp_path)
        assert traces.load(window).period_ms == 4
        assert len(traces.load(window).times_ms) == times.count("\n")


def test_other_names_stay() -> None:
    for name in ("road.up", "lte-seed1-60s.down", "away-from-home.up", "road-from-1ms.up.up"):
        assert windows.whole(name) == name
