# SPDX-License-Identifier: GPL-2.0-only
import hashlib
from itertools import pairwise
from pathlib import Path

import pytest

from drwalab import ltelink


def test_same_seed_same_bytes_everywhere(tmp_path: Path) -> None:
    """The demo's numbers in the documents hold for this very link."""
    ltelink.write_trace(tmp_path / "a.down", 1, 60)
    digest = hashlib.sha256((tmp_path / "a.down").read_bytes()).hexdigest()
    assert digest == "db0c155fabdfd0bc18a24d2cc9b2b32872b75a9c80c7c0d044a43a3f02302c5a"


@pytest.mark.parametrize("seed", [0, 1, 7, 12345])
@pytest.mark.parametrize("duration", [10, 60, 140])
def test_rate(seed: int, duration: int) -> None:
    rates = ltelink.rates_mbps(seed, duration)
    assert len(rates) == duration * 100
    assert min(rates) >= ltelink.LTE.min_mbps
    assert max(rates) <= ltelink.LTE.max_mbps
    assert sum(rates) / len(rates) == pytest.approx(10, rel=0.01)
    # A link that hardly varied would not need an algorithm.
    assert max(rates) > 3 * min(rates)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_opportunities_are_a_replayable_trace(seed: int) -> None:
    times = ltelink.opportunities(seed, 60)
    assert all(a <= b for a, b in pairwise(times))
    assert times[0] >= 1 and times[-1] == 60_000
    assert len(times) * 1500 * 8 / 60e6 == pytest.approx(10, rel=0.01)
    # Free of outages: the longest wait is a few packets at the lowest rate.
    assert max(b - a for a, b in pairwise(times)) < 60


def test_seeds_differ() -> None:
    assert ltelink.opportunities(1, 10) != ltelink.opportunities(2, 10)


@pytest.mark.parametrize(("seed", "duration"), [(-1, 60), (1, 0)])
def test_refuses_nonsense(seed: int, duration: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        ltelink.opportunities(seed, duration)


def test_exponential_function() -> None:
    from math import e

    for x in (-3.0, -0.5, 0.0, 0.7, 3.0):
        assert ltelink.exp(x) == pytest.approx(e**x, rel=2e-3)
