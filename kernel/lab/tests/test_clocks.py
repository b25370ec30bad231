# SPDX-License-Identifier: GPL-2.0-only
"""The server's clock as the phone sees it, in real guests."""

from pathlib import Path

import dpkt
import numpy as np
import numpy.typing as npt
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import spec

pytestmark = pytest.mark.guest

BULK, NEIGHBOUR = 5001, 5100

Stamps = npt.NDArray[np.float64]


def stamps(folder: Path, host: str, port: int = BULK) -> Stamps:
    """Time in s, TSval and TSecr of each segment from the server's port that passes this host.

    Without timestamps, both are -1.
    """
    rows = []
    with (folder / f"{host}.pcap").open("rb") as file:
        for at, frame in dpkt.pcap.Reader(file):
            segment = dpkt.ethernet.Ethernet(frame).data.data
            if not isinstance(segment, dpkt.tcp.TCP) or port not in (segment.sport, segment.dport):
                continue
            options = dict(dpkt.tcp.parse_opts(segment.opts))
            words = options.get(dpkt.tcp.TCP_OPT_TIMESTAMP)
            pair = (int.from_bytes(words[i : i + 4], "big") for i in (0, 4)) if words else (-1, -1)
            rows.append((float(at), *pair, segment.sport == port))
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


@pytest.fixture
def wire(lab: Lab, tmp_path: Path) -> Path:
    """The folder of the captures that the test below fills."""
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    return tmp_path


def captured(lab: Lab, folder: Path, words: str) -> tuple[Stamps, Stamps]:
    """What the phone gets from the server, and what the server gets from the phone."""
    link = "--scheme stock --rate 5mbit --base-rtt 40ms --buffer 50kB --duration 6s"
    done = lab(f"run {link} {words} --pcap {folder}")
    assert done.code == 0, done.err
    phone, server = stamps(folder, "phone"), stamps(folder, "server")
    return phone[phone[:, 3] == 1], server


def slope(down: Stamps) -> float:
    """Counts of the server's clock in a second."""
    return float(np.polyfit(down[:, 0] - down[0, 0], down[:, 1] - down[0, 1], 1)[0])


def assert_server_sees_itself(server: Stamps, within: int) -> None:
    """What comes back in TSecr is what the server's own clock said, a round trip ago or more."""
    own, echoed = server[server[:, 3] == 1], server[server[:, 3] == 0]
    echoed = echoed[echoed[:, 2] > 0]
    assert len(echoed) > 100
    sent = np.sort(own[:, 1])
    place = np.clip(np.searchsorted(sent, echoed[:, 2] + within, side="right") - 1, 0, None)
    assert np.abs(sent[place] - echoed[:, 2]).max() <= within
    latest = np.interp(echoed[:, 0], own[:, 0], own[:, 1])
    assert np.all(echoed[:, 2] <= latest)


@pytest.mark.parametrize(
    ("words", "per_s", "within"),
    [
        ("", 1000, 0),
        ("--clock-drift 10000ppm", 1010, 2),
        ("--clock-drift -10000ppm", 990, 2),
        ("--clock-tick 10ms", 100, 10),
        ("--clock-tick 1us", 1_000_000, 0),
    ],
)
def test_drift_and_ticks(lab: Lab, wire: Path, words: str, per_s: int, within: int) -> None:
    down, server = captured(lab, wire, words)
    assert np.all(np.diff(down[:, 1]) >= 0)
    assert slope(down[down[:, 0] > down[0, 0] + 1]) == pytest.approx(per_s, rel=0.003)
    assert slope(server[server[:, 3] == 1]) == pytest.approx(1000, rel=0.003)
    assert_server_sees_itself(server, within)


def test_microseconds(lab: Lab, wire: Path) -> None:
    """The phone sees the instants of sending, of which the server's own clock tells the ms."""
    down, server = captured(lab, wire, "--clock-tick 1us --event '3s base-rtt=60ms' --buffer 5MB")
    # Nothing is lost, and some are under way at the end.
    sent = server[server[:, 3] == 1][: len(down)]
    at_s = sent[:, 0] - sent[0, 0]
    late_us = at_s * 1e6 - (down[:, 1] - down[0, 1])
    # Once the soonest one has come, which the first few are likely to be.
    assert np.ptp(late_us[(at_s > 1) & (at_s < 2.5)]) < 2
    # Half of the longer way lies before the capture; within it, the us are lost.
    longer_us = late_us[at_s > 3.5] - late_us[at_s < 2.5].mean()
    assert 9_000 < longer_us.min() < longer_us.max() < 10_010
    assert_server_sees_itself(server, 0)


def test_steps(lab: Lab, wire: Path) -> None:
    """It stands still and is late from then on, or jumps; it never goes back."""
    down, server = captured(
        lab, wire, "--event '2s clock=-300ms' --event '4s clock=1s' --event '5s base-rtt=50ms'"
    )
    # The flow starts on a whole second.
    at = down[:, 0] - np.floor(down[0, 0])
    late = (down[:, 1] - down[0, 1]) / 1e3 - (at - at[0])
    assert np.all(np.diff(down[:, 1]) >= 0)
    waits = 0.1
    for from_s, to_s, wanted in ((0.2, 2, 0), (2.5, 3.9, -0.3), (4.2, 6, 0.7)):
        part = late[(at > from_s) & (at < to_s)]
        assert np.all(np.abs(part - wanted) < waits), wanted
    still = down[(at > 2.12) & (at < 2.25), 1]
    assert len(still) > 20
    assert np.ptp(still) <= 1
    assert server[:, 1].min() >= 0


def test_timestamps_vanish_and_come_back(lab: Lab, wire: Path) -> None:
    down, server = captured(
        lab, wire, "--event '2s timestamps=off' --event '4s timestamps=on' --flows 2"
    )
    for seen, from_server in ((down, True), (server[server[:, 3] == 0], False)):
        at = seen[:, 0] - np.floor(down[0, 0])
        for from_s, to_s, there in ((0, 1.9, True), (2.2, 3.9, False), (4.3, 6, True)):
            part = seen[(at > from_s) & (at < to_s), 1]
            assert len(part) > 100, from_server
            assert np.all((part >= 0) == there)
    # Segments of the connection still arrive.
    assert np.diff(down[:, 0]).max() < 0.3


def test_a_liar(lab: Lab, wire: Path) -> None:
    """Its words are late by all of the base RTT but 1 ms, but for a moment in four seconds."""
    captured(lab, wire, "--neighbour liar --flows 0 --duration 10s")
    sides = [stamps(wire, host, NEIGHBOUR) for host in ("server", "phone")]
    said, heard = (side[side[:, 3] == 1] for side in sides)
    assert len(said) == len(heard)
    assert len(said) == pytest.approx(10 / 0.04, rel=0.05)
    lies = said[:, 1] - heard[:, 1]
    assert set(np.unique(lies)) >= {0, 39}
    assert np.mean(lies > 30) > 0.9
    assert np.all(np.diff(heard[:, 1]) >= 0)


def test_a_liar_is_governed_and_alone_on_its_clock(run: Run) -> None:
    link = {"rate": "10mbit", "base_rtt": "40ms", "duration": "6s"}
    result = run("drwa", **link, neighbour=["liar"])
    assert set(result["drwa"]["flow"]) == {0, -1}
    assert 0 < result["neighbours"][0]["goodput_mbps"] < 0.021
    assert result["fair_share"] is None
