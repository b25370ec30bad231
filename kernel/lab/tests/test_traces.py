# SPDX-License-Identifier: GPL-2.0-only
import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drwalab import traces
from drwalab.traces import Trace, TraceError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str) -> Path:
        path = tmp_path / "link.down"
        path.write_text(text)
        return path

    return make


def test_reads_times(write: Write) -> None:
    trace = traces.load(write("0\n5\n5\n20\n"))
    assert trace.times_ms.tolist() == [0, 5, 5, 20]
    assert trace.period_ms == 20
    assert trace.mean_bps == pytest.approx(4 * 1500 * 8 / 0.020)
    assert trace.sha256 == hashlib.sha256(b"0\n5\n5\n20\n").hexdigest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("0\n0\n", "every time is 0"),
        ("5\n4\n", "line 2 goes back in time, 5 to 4 ms"),
        ("5\nsix\n", "line 2 is no time in ms: 'six'"),
        ("5\n-6\n", "line 2 is no time"),
        ("5\n6.5\n", "line 2 is no time"),
        ("5\n\n6\n", "line 2 is no time"),
        ("4294967296\n", "too long"),
    ],
)
def test_wrong_content(write: Write, text: str, message: str) -> None:
    path = write(text)
    with pytest.raises(TraceError, match=message) as error:
        traces.load(path)
    assert str(path) in str(error.value)


def test_wrong_files(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TraceError):
            traces.load(path)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(TraceError, match="line 1"):
        traces.load(binary)


def test_as_many_as_lablink_takes(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_OPPORTUNITIES", 3)
    assert len(traces.load(write("1\n2\n3\n")).times_ms) == 3
    traces.load.cache_clear()
    with pytest.raises(TraceError, match="too long"):
        traces.load(write("1\n2\n3\n4\n"))


def replay(times: list[int]) -> Iterator[int]:
    """The instants of mahimahi's replay, one after another."""
    base = 0
    while True:
        for time in times:
            yield base + time
        base += times[-1]


TIMES = st.lists(st.integers(0, 300), min_size=1, max_size=30).map(sorted).filter(lambda t: t[-1])


@given(TIMES, st.integers(0, 2000), st.integers(0, 500))
def test_capacity_counts_the_replay(times: list[int], start: int, length: int) -> None:
    trace = Trace(Path("x"), "", np.array(times, dtype=np.uint32))
    end = start + length
    # A turn has at least one instant and takes at least 1 ms.
    instants = islice(replay(times), (end + 1) * len(times))
    count = sum(start <= at < end for at in instants)
    assert trace.capacity_bytes(start, end) == count * 1500


def test_capacity_of_each_interval(write: Write) -> None:
    trace = traces.load(write("50\n100\n100\n"))
    edges = np.array([0, 100, 200, 300], dtype=np.int64)
    # 50 | 100 100 150 | 200 200 250, and the last line ends a turn without being in it.
    assert trace.opportunities(edges).tolist() == [1, 3, 3]


def test_native_file(write: Write, tmp_path: Path) -> None:
    traces.load(write("1\n258\n")).write_native(tmp_path / "native")
    native = np.fromfile(tmp_path / "native", dtype=np.uint32)
    assert native.tolist() == [1, 258]
