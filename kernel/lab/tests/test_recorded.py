# SPDX-License-Identifier: GPL-2.0-only
"""Recorded links, where they lie beside the project: ../shared/traces/*.down, mahimahi's format."""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from conftest import needs_kernels
from drwalab import pool, spec
from drwalab.results import of_idle

pytestmark = pytest.mark.guest

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "traces"
TRACES = sorted(FOLDER.glob("*.down"))

# The campaign bounds the geometric mean of links; a single one may be worse by this. Least goodput
# is that of 3G at 0.4 Mb/s, which holds one segment and a half.
P95_OF_IDLE = {"40ms": 5.0, "100ms": 6.0}
OF_STOCK, OF_BBR = 0.85, 0.93


@pytest.mark.skipif(not TRACES, reason="no recorded links in ../shared/traces")
@pytest.mark.parametrize("base_rtt", P95_OF_IDLE)
@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_full_link_and_short_queue(trace: Path, base_rtt: str) -> None:
    """Near a deep queue's goodput, a few times the idle link's delay, less than a BBR sender's."""
    link: dict[str, Any] = {
        "trace": trace,
        "base-rtt": base_rtt,
        "buffer": "3MB",
        "duration": "120s",
    }
    # The runs of the campaign's first row.
    base = link | {"unpatched": True}
    specs = [
        spec.parse("drwa", link),
        spec.parse("stock", base),
        spec.parse("stock", base | {"cc": "bbr"}),
    ]
    needs_kernels(specs)
    drwa, stock, bbr = pool.run_specs(specs, progress=False, reuse=True)
    delay = of_idle(drwa, "p95")
    assert delay
    ratios = {
        "goodput of stock's": (drwa["goodput_mbps"] / stock["goodput_mbps"], OF_STOCK, inf),
        "goodput of a BBR sender's": (drwa["goodput_mbps"] / bbr["goodput_mbps"], OF_BBR, inf),
        "p95 RTT of the idle link's": (delay, 0, P95_OF_IDLE[base_rtt]),
        "p95 RTT of a BBR sender's": (drwa["rtt_ms"]["p95"] / bbr["rtt_ms"]["p95"], 0, 1),
    }
    assert {what: r for what, (r, least, most) in ratios.items() if not least <= r <= most} == {}
