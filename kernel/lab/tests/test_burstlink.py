# SPDX-License-Identifier: GPL-2.0-only
import hashlib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from conftest import Lab
from drwalab import burstlink, traces


def mean_mbps(times: list[int], seconds: int) -> float:
    return len(times) * 1500 * 8 / seconds / 1e6


WORDS = (
    "bursts:1/5ms-15ms/30ms-60ms/20mbit",
    "bursts:2/30ms/120ms/5mbit",
    "tdd:DDDSU/100mbit",
    "tdd:LTE1/5mbit",
    "tdd-up:LTE2/10mbit",
    "drive:1",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_replayable_trace_of_that_rate(word: str) -> None:
    times = burstlink.opportunities(word, 20)
    assert all(before <= after for before, after in pairwise(times))
    assert times[0] >= 1
    assert times[-1] == 20_000
    rate = word.rpartition("/")[2]
    if rate.endswith("mbit"):
        assert mean_mbps(times, 20) == pytest.approx(float(rate[:-4]), rel=0.02)


def silences(times: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(times) if after - before > 2]


def test_bursts_and_gaps_are_as_long_as_asked_for() -> None:
    even = burstlink.opportunities("bursts:1/5ms/20ms/48mbit", 10)
    # 100 packets in a burst, and 25 ms from one to the next.
    assert Counter(Counter(even).values()) == {20: 5 * 400, 1: 1}
    assert {time % 25 for time in even[:-1]} == {1, 2, 3, 4, 5}
    random = burstlink.opportunities("bursts:1/5ms-15ms/30ms-60ms/100mbit", 60)
    gaps = [silence - 1 for silence in silences(random[:-1])]
    assert (min(gaps), max(gaps)) == (30, 60)
    assert np.mean(gaps) == pytest.approx(45, abs=1)
    starts = [after for before, after in pairwise(random) if after - before > 2]
    ends = [before for before, after in pairwise(random) if after - before > 2]
    lengths = [end - start + 1 for start, end in zip(starts, ends[1:], strict=False)]
    assert (min(lengths), max(lengths)) == (5, 15)
    assert burstlink.opportunities("bursts:2/5ms-15ms/30ms-60ms/100mbit", 60) != random


def test_slots_of_lte_and_nr() -> None:
    """A special slot carries 10 symbols of 14 down, an uplink slot nothing; and the other way."""
    count = Counter(burstlink.opportunities("tdd:LTE1/43.7mbit", 100)[:-1])
    by_subframe = [sum(n for ms, n in count.items() if (ms - 1) % 5 == i) for i in range(5)]
    assert by_subframe[2:4] == [0, 0]
    assert by_subframe[1] / by_subframe[0] == pytest.approx(10 / 14, rel=0.01)
    assert by_subframe[4] == pytest.approx(by_subframe[0], rel=0.01)
    up = burstlink.opportunities("tdd-up:LTE2/12mbit", 10)
    assert {(ms - 1) % 5 for ms in up[:-1]} == {2}
    # Two patterns of 2.5 ms: D D, D S, U D, D D, S U.
    count = Counter(burstlink.opportunities("tdd:DDDSU/117.3mbit", 100)[:-1])
    by_ms = [sum(n for ms, n in count.items() if (ms - 1) % 5 == i) for i in range(5)]
    symbols = [28, 24, 14, 28, 10]
    assert [each / sum(by_ms) for each in by_ms] == pytest.approx(
        [each / sum(symbols) for each in symbols], rel=0.03
    )
    assert burstlink.opportunities("tdd:DSUUD/44mbit", 1) != burstlink.opportunities(
        "tdd:LTE1/44mbit", 1
    )


def test_a_drive_jumps_from_second_to_second() -> None:
    times = np.array(burstlink.opportunities("drive:3", 300))
    mbps = np.diff(np.searchsorted(times, np.arange(1, 301_000, 1000))) * 0.012
    assert mbps.min() == pytest.approx(10, abs=0.1)
    assert mbps.max() == pytest.approx(250, abs=0.1)
    assert np.median(mbps) == pytest.approx(20, rel=0.15)
    assert abs(np.corrcoef(mbps[:-1], mbps[1:])[0, 1]) < 0.15
    # Its rate holds for the second, and is another one in the next.
    half = np.diff(np.searchsorted(times, np.arange(1, 301_000, 500))) * 0.024
    assert half[:600:2] == pytest.approx(half[1:600:2], rel=0.01)


def test_same_word_same_bytes_everywhere(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "a.down"
    digests = []
    for word in (WORDS[0], WORDS[2], "drive:1"):
        assert lab(f"trace generate --duration 10s --radio {word}", str(path)).code == 0
        digests.append(hashlib.sha256(path.read_bytes()).hexdigest()[:12])
        traces.load(path)
    assert digests == ["945178e8e555", "ca48183e812a", "5628a72abf17"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("bursts:1/5ms/20ms", "is not bursts:SEED/ON/GAP/RATE"),
        ("bursts:x/5ms/20ms/1mbit", "'x' is no seed"),
        ("bursts:1/5ms/20ms/0mbit", "'0mbit' is no rate"),
        ("bursts:1/5us/20ms/1mbit", "'5us' is no time in ms, or no span"),
        ("bursts:1/9ms-5ms/20ms/1mbit", "'9ms-5ms' is no time in ms, or no span"),
        ("bursts:1/0ms/20ms/1mbit", "'0ms' is no time in ms"),
        ("tdd:DXU/1mbit", "'DXU' is no pattern of D, S and U, nor LTE1, LTE2"),
        ("tdd:UU/1mbit", "'UU' has no slot for this way"),
        ("tdd-up:DS/1mbit", "'DS' has no slot for this way"),
        ("hops:1", "is none of bursts:"),
    ],
)
def test_words_that_are_no_link(word: str, message: str) -> None:
    with pytest.raises(burstlink.LinkError, match=f".*{message}"):
        burstlink.opportunities(word, 10)
