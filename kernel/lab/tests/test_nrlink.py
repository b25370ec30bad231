# SPDX-License-Identifier: GPL-2.0-only
import hashlib
from pathlib import Path

import pytest

from conftest import Lab
from drwalab import ltelink, traces
from drwalab.nrlink import NR


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rate(seed: int) -> None:
    rates = ltelink.rates_mbps(seed, 60, NR)
    assert NR.min_mbps <= min(rates) and max(rates) <= NR.max_mbps
    assert sum(rates) / len(rates) == pytest.approx(NR.mean_mbps, rel=0.01)
    assert max(rates) > 500
    # It differs from LTE of that seed in more than the scale.
    scaled = [rate * NR.mean_mbps / ltelink.LTE.mean_mbps for rate in ltelink.rates_mbps(seed, 60)]
    assert rates != pytest.approx(scaled, rel=0.01)


def test_a_trace_that_the_guest_can_hold(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "nr.down"
    assert lab("trace generate --radio nr --duration 20s", str(path)).code == 0
    link = traces.load(path)
    assert link.mean_bps == pytest.approx(300e6, rel=0.01)
    # A minute at 1 Gb/s would fit, too.
    assert 60e9 / 12000 < traces.MAX_OPPORTUNITIES
    assert link.times_ms.nbytes < 3_000_000


def test_same_seed_same_bytes_everywhere(tmp_path: Path) -> None:
    ltelink.write_trace(tmp_path / "a.down", 1, 5, NR)
    digest = hashlib.sha256((tmp_path / "a.down").read_bytes()).hexdigest()
    assert digest == "53f511ad44d7b21248e1e108e21975b57f1e19e8e770ab1938f0c4fdfead1d48"
