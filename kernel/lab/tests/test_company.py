# SPDX-License-Identifier: GPL-2.0-only
"""Who shares the phone and its queue with a download, in real guests."""

from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import spec
from drwalab.results import goodput_between

pytestmark = pytest.mark.guest

LINK: dict[str, Any] = {"rate": "10mbit", "base_rtt": "40ms", "duration": "10s"}
PHONE = bytes.fromhex("020000000202")


def between(series: list[float], from_s: float, to_s: float) -> float:
    return float(np.mean(series[round(from_s * 10) : round(to_s * 10)]))


@pytest.mark.parametrize("kind", ["cubic", "bbr", "quic"])
def test_a_neighbour_comes_and_goes(run: Run, kind: str) -> None:
    result = run("stock", **LINK, buffer="150kB", neighbour=[f"{kind}:2s/5s"])
    (theirs,) = result["series"]["neighbour_goodput_mbps"]
    assert between(theirs, 0, 2) == 0
    assert between(theirs, 3, 7) > 0.5
    assert between(theirs, 7.2, 10) == 0
    assert 9 < between(theirs, 4, 7) + sum(goodput_between(result, 4, 7)) < 10
    assert sum(goodput_between(result, 8.5, 10)) > 9
    (total,) = result["neighbours"]
    assert total["goodput_mbps"] == pytest.approx(between(theirs, 2, 7), rel=0.01)
    assert (total["kind"], total["start_s"], total["end_s"]) == (kind, 2, 7)


def test_nothing_governs_a_neighbour(run: Run) -> None:
    result = run("drwa", **LINK, buffer="3MB", neighbour=["cubic"])
    assert set(result["drwa"]["flow"]) == {0}
    # Its queue is as deep as stock's.
    assert result["rtt_ms"]["p95"] > 200


def test_a_stream_is_governed_and_paced(run: Run) -> None:
    """It alone: the download beside it has what is left."""
    result = run("drwa", **LINK, neighbour=["stream:2s"])
    assert set(result["drwa"]["flow"]) == {0, -1}
    (theirs,) = result["series"]["neighbour_goodput_mbps"]
    assert between(theirs, 3, 10) == pytest.approx(0.48, abs=0.03)
    assert sum(goodput_between(result, 3, 10)) == pytest.approx(9.1, abs=0.2)


def test_quic_fills_a_link_and_shares_a_short_queue(run: Run) -> None:
    """Its own control finds the rate, backs off at a loss, and recovers from an outage."""
    alone = LINK | {"flows": 0, "neighbour": ["quic"], "duration": "30s"}
    short = run("stock", **alone, buffer="75kB")
    (mbps,) = (n["goodput_mbps"] for n in short["neighbours"])
    # Packets of 1378 bytes carry 1350.
    assert 0.93 * 9.8 < mbps < 9.8
    assert 0 < short["queue_drops"] < 0.02 * 30e6 * 10 / 8 / 1378
    assert short["rtt_ms"]["p95"] < 40 + 62
    cut = run("stock", **alone, buffer="75kB", event=["10s outage=3s"])
    assert between(cut["series"]["neighbour_goodput_mbps"][0], 10.2, 13) == 0
    assert between(cut["series"]["neighbour_goodput_mbps"][0], 16, 30) > 8


@pytest.mark.parametrize("second", ["clat", "vpn"])
def test_two_interfaces_share_a_queue(run: Run, second: str) -> None:
    result = run("drwa", **LINK, flows=2, second=second, buffer="3MB")
    assert 9 < result["goodput_mbps"] < 10
    assert all(flow["goodput_mbps"] > 0.5 for flow in result["flows"])
    # Both interfaces are governed.
    assert set(result["drwa"]["flow"]) == {0, 1}
    stock = run("stock", **LINK, flows=2, second=second, buffer="3MB")
    assert stock["rtt_ms"]["p95"] > 300
    off = run("drwa", **LINK, flows=2, second=second, buffer="3MB", event=["1s lambda=0"])
    assert max(off["drwa"]["t_s"]) < 2
    limited = run("stock", **LINK, flows=2, second=second, uplink_rate="100kbit")
    assert limited["goodput_mbps"] < 0.95 * stock["goodput_mbps"]


def test_two_networks_have_queues_of_their_own(run: Run) -> None:
    result = run("drwa", **LINK, flows=2, second="network")
    assert result["goodput_mbps"] > 18
    assert result["jain"] > 0.99
    assert set(result["drwa"]["flow"]) == {0, 1}


def lengths(lab: Lab, folder: Path, words: str) -> dict[str, list[int]]:
    """Of the packets with data that pass each host's device, as its kernel sees them."""
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    done = lab(f"run --scheme stock --base-rtt 40ms --duration 4s {words} --pcap {folder}")
    assert done.code == 0, done.err
    found = {}
    for host in ("server", "phone"):
        with (folder / f"{host}.pcap").open("rb") as file:
            packets = [dpkt.ethernet.Ethernet(frame) for _, frame in dpkt.pcap.Reader(file)]
        sizes = [p.data.len for p in packets if (p.dst == PHONE) == (host == "phone")]
        found[host] = [size for size in sizes if size > 1000]
    return found


def test_offloads(lab: Lab, tmp_path: Path) -> None:
    """Large segments leave the server with TSO and reach the phone's TCP with GRO, else neither."""
    trace = tmp_path / "burst.down"
    trace.write_text("2\n" * 8)
    for link in ("--rate 60mbit", f"--trace {trace}"):
        plain = lengths(lab, tmp_path, link)
        assert {max(sizes) for sizes in plain.values()} == {1500}
        split = lengths(lab, tmp_path, f"{link} --tso")
        assert np.mean(split["server"]) > 3000
        assert max(split["phone"]) == 1500
        for tso in ("", "--tso"):
            merged = lengths(lab, tmp_path, f"{link} --gro 2ms {tso}")["phone"]
            # Eight or ten packets cross in the interval, once the link is full.
            assert np.mean(merged) > 3000
            assert sum(merged) > 0.9 * sum(plain["phone"])


def test_a_modem_hands_over_at_whole_intervals(run: Run) -> None:
    """Later by half of an interval in the mean, and no packet is lost or slowed."""
    plain, late = (run("idle", **LINK, gro=gro) for gro in (None, "10ms"))
    # The last one is on its way at the end.
    late_ms, plain_ms = (np.array(result["series"]["rtt"]["ms"][:199]) for result in (late, plain))
    delays = late_ms - plain_ms
    assert 0 <= delays.min() <= delays.max() <= 10
    full = [run("stock", **LINK, gro=gro) for gro in (None, "5ms")]
    assert full[1]["goodput_mbps"] == pytest.approx(full[0]["goodput_mbps"], rel=0.01)
    assert full[1]["utilisation"] == pytest.approx(full[0]["utilisation"], rel=0.01)
