# SPDX-License-Identifier: GPL-2.0-only
"""UDP that is held to a short queue, alone and beside a governed download: scheme drwa-aqm."""

import statistics
from typing import Any

import pytest

from conftest import Run
from drwalab import network

pytestmark = pytest.mark.guest

STEADY: dict[str, Any] = {"rate": "10mbit", "base_rtt": "50ms", "buffer": "3MB", "duration": "40s"}
BESIDE = STEADY | {"flows": 1, "neighbour": ["quic:5s"]}
ALONE = STEADY | {"flows": 0, "neighbour": ["quic"]}


def total_mbps(result: dict[str, Any], from_s: float = 0) -> float:
    series = result["series"]
    both = zip(series["goodput_mbps"], series["neighbour_goodput_mbps"][0], strict=True)
    rates = [ours + theirs for ours, theirs in both]
    return float(statistics.mean(rates[round(from_s / series["interval_s"]) :]))


def test_beside_a_download(run: Run) -> None:
    """The queue is CoDel's, and both have their share; without it, it is the buffer's."""
    held, left = run("drwa-aqm", **BESIDE), run("drwa-tc", **BESIDE)
    assert left["rtt_ms"]["p95"] > 1000
    assert held["rtt_ms"]["p95"] < 150
    assert 0.8 < held["fair_share"] < 1.25
    assert total_mbps(held, 6) > 0.97 * total_mbps(run("stock", **BESIDE), 6)
    counters = held["counters"]
    assert counters["udp_flows"] == 1
    assert 20 < counters["udp_dropped"] < 100
    assert counters["udp_deaf"] == counters["udp_tunnels"] == 0
    assert held["queue_drops"] == 0


@pytest.mark.parametrize("ipv6", [False, True])
def test_alone(run: Run, ipv6: bool) -> None:
    """Echoes tell the delay."""
    held, left = (run(scheme, **ALONE, ipv6=ipv6) for scheme in ("drwa-aqm", "stock"))
    assert total_mbps(held) > 0.95 * total_mbps(left)
    assert held["rtt_ms"]["p95"] < 0.25 * left["rtt_ms"]["p95"]
    assert held["counters"]["udp_dropped"] > 10


@pytest.mark.parametrize("flows", [0, 1])
@pytest.mark.parametrize("at_s", [15, 16])
def test_a_longer_path(run: Run, at_s: int, flows: int) -> None:
    """Its RTT does not pass for a queue for long: both have a part of the last half minute."""
    handover = {"rate": "20mbit", "base_rtt": "30ms", "event": [f"{at_s}s base-rtt=150ms"]}
    result = run("drwa-aqm", **ALONE | handover | {"flows": flows, "duration": "60s"})
    (theirs,) = result["series"]["neighbour_goodput_mbps"]
    last = theirs[-len(theirs) // 2 :]
    assert sum(last) / len(last) > (19 if not flows else 6)


def test_downloads_over_tcp_are_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no UDP comes but probes. Who watches wakes up, and moves a packet by a microsecond."""
    plain, watched = (run(each, **STEADY, flows=2) for each in ("drwa-tc", "drwa-aqm"))
    attach = network._attach
    monkeypatch.setattr(
        network, "_attach", lambda spec: [line for line in attach(spec) if " watch " not in line]
    )
    alone = run("drwa-aqm", **STEADY, flows=2)
    assert alone["series"] == plain["series"]
    assert watched["goodput_mbps"] == plain["goodput_mbps"]
    probes = [result["series"]["rtt"]["ms"] for result in (watched, plain)]
    assert probes[0] == pytest.approx(probes[1], abs=0.002)
    assert alone["counters"]["udp_flows"] == watched["counters"]["udp_flows"] == 0


def test_real_stacks_that_react_are_held_and_others_left(run: Run) -> None:
    """ngtcp2 with CUBIC and with BBR, beside a download."""
    beside = STEADY | {"duration": "60s", "flows": 1}
    held, left = (
        run("drwa-aqm", **beside, neighbour=[f"{kind}:5s"])["counters"]
        for kind in ("ngtcp2", "ngtcp2-bbr")
    )
    assert (held["udp_deaf"], left["udp_deaf"]) == (0, 1)
    assert 0 < held["udp_dropped"] < left["udp_dropped"]


@pytest.mark.parametrize("ipv6", [False, True])
def test_calls_and_games_lose_nothing(run: Run, ipv6: bool) -> None:
    """Beside QUIC that is dropped from. They do where the base station's queue overflows."""
    loads = ["quic:5s", "call:2s/36s", "game:2s/36s"]
    beside = {"flows": 1, "neighbour": loads, "ipv6": ipv6}
    for scheme, buffer, loses in ("drwa-aqm", "3MB", False), ("stock", "300kB", True):
        bulk, *paced = run(scheme, **STEADY | beside | {"buffer": buffer})["neighbours"]
        assert (bulk["lost"], bulk["dropped"]) == (None, None)
        assert (sum(each["lost"] for each in paced) > 0) == loses
        # The base station drops, the phone does not.
        assert [each["dropped"] for each in paced] == [0, 0]
