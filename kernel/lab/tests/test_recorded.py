# SPDX-License-Identifier: GPL-2.0-only
"""Recorded links, where they lie beside the project: ../shared/traces/*.down, mahimahi's format."""

from pathlib import Path
from typing import Any

import pytest

from conftest import needs_kernels
from drwalab import pool, spec

pytestmark = pytest.mark.guest

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "traces"
TRACES = sorted(FOLDER.glob("*.down"))


@pytest.mark.skipif(not TRACES, reason="no recorded links in ../shared/traces")
@pytest.mark.parametrize("base_rtt", ["40ms", "150ms"])
@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_full_link_and_short_queue(trace: Path, base_rtt: str) -> None:
    """Near the goodput of a deep queue, or of a BBR sender, at less delay than either."""
    link: dict[str, Any] = {"trace": trace, "base-rtt": base_rtt, "duration": "120s"}
    names = ("stock", "android-lte", "drwa")
    specs = [spec.parse(name, link) for name in names]
    specs.append(spec.parse("stock", link | {"cc": "bbr"}))
    needs_kernels(specs)
    stock, static, drwa, bbr = pool.run_specs(specs, progress=False)
    deep = max(stock["goodput_mbps"], static["goodput_mbps"])
    assert drwa["goodput_mbps"] >= 0.9 * deep
    assert drwa["goodput_mbps"] >= 0.95 * bbr["goodput_mbps"]
    assert drwa["rtt_ms"]["p95"] <= 0.5 * static["rtt_ms"]["p95"]
    assert drwa["rtt_ms"]["mean"] < bbr["rtt_ms"]["mean"]
