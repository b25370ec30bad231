# SPDX-License-Identifier: GPL-2.0-only
"""What the phone's applications do with the link, in real guests."""

from typing import Any

import pytest

from conftest import Run

pytestmark = pytest.mark.guest

LINK: dict[str, Any] = {"rate": "10mbit", "base_rtt": "40ms", "duration": "10s"}


def test_flows_start_one_after_another(run: Run) -> None:
    result = run("stock", **LINK, flows=3, flow_gap="2s")
    series = result["series"]["flow_goodput_mbps"]
    first = [next(i for i, mbps in enumerate(flow) if mbps) / 10 for flow in series]
    starts = [f["start_s"] for f in result["flows"]]
    assert starts == [0, 2, 4]
    # The set-up crosses a queue that grows.
    for start, data in zip(starts, first, strict=True):
        assert start <= data < start + 1
    # Late flows meet a queue that the first one has filled.
    assert result["flows"][0]["goodput_mbps"] > 2 * result["flows"][2]["goodput_mbps"]
    assert result["jain"] < 0.95
    assert run("stock", **LINK, flows=3, buffer="100kB")["jain"] > result["jain"]


def test_poisson_objects(run: Run) -> None:
    """Requests do not wait for one another, each has a connection, and a queue delays them all."""
    web: dict[str, Any] = {"object": ["8kB", "64kB"], "arrival": "poisson", "think": "100ms"}
    idle = run("stock", **LINK, flows=0, **web)["objects"]
    assert idle["count"] + idle["unfinished"] == pytest.approx(100, rel=0.25)
    small, large = idle["by_size"]
    assert small["count"] + large["count"] == idle["count"]
    # A connection, a request and 8 kB in the first window: two round trips and the transmission.
    assert 80 < small["mean_fct_ms"] < 110 < large["mean_fct_ms"]
    overlap = sum(
        start + ms / 1e3 > later
        for start, ms, later in zip(
            idle["start_s"], idle["fct_ms"], idle["start_s"][1:], strict=False
        )
    )
    assert overlap > 20
    busy = run("stock", **LINK, **web)
    assert busy["objects"]["mean_fct_ms"] > 2 * idle["mean_fct_ms"]
    assert busy["objects"]["unfinished"] > 0
    assert len(busy["flows"]) == 1
