# SPDX-License-Identifier: GPL-2.0-only
"""What the phone's applications do with the link, in real guests."""

from typing import Any

import pytest

from conftest import Run
from drwalab.results import goodput_between

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


@pytest.mark.parametrize(("interval", "count"), [(None, 100), ("500ms", 10)])
def test_probes_are_as_many_as_asked_for(run: Run, interval: str | None, count: int) -> None:
    result = run("drwa", rate="10mbit", duration="5s", probe_interval=interval)
    assert result["rtt_ms"]["count"] == pytest.approx(count, abs=1)


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


def between(result: dict[str, Any], from_s: float, to_s: float) -> float:
    return sum(goodput_between(result, from_s, to_s))


@pytest.mark.parametrize("flows", [1, 3])
def test_slow_reader(run: Run, flows: int) -> None:
    """It reads at its own rate, the window closes no further than to that, nothing stalls."""
    result = run("stock", **LINK, flows=flows, reader="slow:1mbit")
    for mbps in goodput_between(result, 1, 10):
        assert mbps == pytest.approx(1, rel=0.01)
    assert result["rtt_ms"]["p50"] < 60


def test_pausing_reader(run: Run) -> None:
    result = run("stock", **LINK, reader="pause:4s/3s")
    assert between(result, 2, 4) > 9
    assert between(result, 4, 7) == 0
    assert result["zero_windows"] > 0
    # What the buffer held comes at once.
    assert between(result, 7, 7.1) > 20
    assert between(result, 8, 10) > 9


def test_late_flow_of_a_pausing_reader(run: Run) -> None:
    result = run("stock", **LINK, flows=2, flow_gap="5s", reader="pause:4s/3s")
    assert goodput_between(result, 4, 7) == [0, 0]
    assert all(mbps > 0.5 for mbps in goodput_between(result, 8, 10))


def test_video_segments(run: Run) -> None:
    """A segment in each period, fetched as fast as the link can; late ones follow at once."""
    result = run("stock", **LINK, reader="burst:2s/500kB")
    assert result["segments"]["start_s"] == [0, 2, 4, 6, 8]
    # 500 kB take 415 ms on the link. The first one has a connection to set up, and slow start.
    assert all(415 < ms < 900 for ms in result["segments"]["fct_ms"])
    assert result["goodput_mbps"] == pytest.approx(2.0)
    late = run("stock", **LINK, reader="burst:100ms/500kB")["segments"]
    ends = [s + ms / 1e3 for s, ms in zip(late["start_s"], late["fct_ms"], strict=True)]
    assert late["count"] > 15
    assert late["start_s"][1:] == pytest.approx(ends[:-1], abs=1e-6)


def test_small_reads(run: Run) -> None:
    fast, small = (run("stock", **LINK, reader=r)["flows"][0] for r in ("fast", "small:100B"))
    # Segments of 1448 bytes.
    assert small["reads"] > 12 * fast["reads"]
    assert small["goodput_mbps"] == pytest.approx(fast["goodput_mbps"], rel=0.01)


def test_a_reader_that_is_seldom_there(run: Run) -> None:
    """It reads all there is, and between its visits nothing."""
    result = run("android-13plus", **LINK, reader="every:500ms")
    got = result["series"]["goodput_mbps"]
    # What is there at a visit is in the sample that ends with it.
    assert [i for i, mbps in enumerate(got) if mbps] == list(range(4, 100, 5))
    assert all(mbps == pytest.approx(5 * 9.6, rel=0.05) for mbps in got[24::5])
    assert result["flows"][0]["reads"] > 2 * 15


def test_a_reader_that_sleeps_for_much(run: Run) -> None:
    """It is woken for that much and no less, and has it all: 300 kB are 0.25 s at 10 Mb/s."""
    fast, lowat = (
        run("android-13plus", **LINK, reader=reader) for reader in ("fast", "lowat:300kB")
    )
    visits = [i for i, mbps in enumerate(lowat["series"]["goodput_mbps"]) if mbps]
    assert len(visits) == pytest.approx(9.6 * 1e6 / 8 / 300e3 * 10, abs=4)
    assert lowat["goodput_mbps"] == pytest.approx(fast["goodput_mbps"], rel=0.05)
    assert lowat["flows"][0]["reads"] < 4 * len(visits)


def test_shaped_server(run: Run) -> None:
    """Its downloads and objects leave at that rate, whatever the link could carry."""
    shaped = run("stock", rate="10mbit", duration="5s", shape="2mbit")
    assert 1.7 <= shaped["goodput_mbps"] <= 2.0
    assert shaped["rtt_ms"]["p95"] < 60


def test_initial_window(run: Run) -> None:
    """64 kB are 45 segments: three round trips from 10 on, one more from 3 on."""
    load = {"rate": "100mbit", "base_rtt": "100ms", "flows": "0", "object": ["64kB"]}
    ten, three = (
        run("stock", duration="5s", **load, **more)["objects"]["mean_fct_ms"]
        for more in ({}, {"initcwnd": "3"})
    )
    assert 90 < three - ten < 130
