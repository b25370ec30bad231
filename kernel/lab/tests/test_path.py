# SPDX-License-Identifier: GPL-2.0-only
"""What the path does to packets besides making them wait, in real guests."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import dpkt
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import spec
from drwalab.results import goodput_between

pytestmark = pytest.mark.guest

LINK: dict[str, Any] = {"rate": "10mbit", "base_rtt": "40ms", "duration": "8s"}
BULK = 5001


def segments(
    lab: Lab, folder: Path, words: str, host: str = "phone", scheme: str = "stock"
) -> list[tuple[float, dpkt.tcp.TCP, int]]:
    """Time, segment and IP id of the downloads' packets that arrive at this host."""
    needs_kernels([spec.parse(scheme, {"rate": "1mbit"})])
    done = lab(f"run --scheme {scheme} --duration 8s {words} --pcap {folder}")
    assert done.code == 0, done.err
    found = []
    with (folder / f"{host}.pcap").open("rb") as file:
        for at, frame in dpkt.pcap.Reader(file):
            packet = dpkt.ethernet.Ethernet(frame)
            segment = packet.data.data
            end = "sport" if host == "phone" else "dport"
            if isinstance(segment, dpkt.tcp.TCP) and getattr(segment, end) == BULK:
                found.append((float(at), segment, packet.data.id))
    return found


def overtaken(numbers: Sequence[int]) -> list[int]:
    """For each late packet, the number of packets that were sent after it and came before it."""
    late = []
    for i, number in enumerate(numbers):
        before = sum(other > number for other in numbers[max(0, i - 50) : i])
        if before:
            late.append(before)
    return late


@pytest.mark.parametrize("rate", ["1mbit", "10mbit"])
@pytest.mark.parametrize("base_rtt", ["20ms", "300ms"])
def test_reorder(lab: Lab, tmp_path: Path, base_rtt: str, rate: str) -> None:
    """A packet in twenty is overtaken by a few others, at any RTT."""
    words = f"--rate {rate} --base-rtt {base_rtt} --reorder 5%"
    # The server numbers the packets of a connection in the order of sending.
    ids = [number for _, _, number in segments(lab, tmp_path, words)][2:]
    late = overtaken(ids)
    # Not those whose 50 ms were over first, on a slow link or at a pause of slow start.
    assert 0.03 * len(ids) < len(late) < 0.07 * len(ids)
    assert max(late) <= 5
    if rate == "10mbit":
        assert max(late) == 5
        assert set(late) == {1, 2, 3, 4, 5}
    straight = segments(lab, tmp_path, words.replace("5%", "0%"))
    assert not overtaken([number for _, _, number in straight][2:])


def test_duplicates(lab: Lab, tmp_path: Path) -> None:
    words = "--rate 10mbit --base-rtt 40ms --buffer 5MB"
    ids = [number for _, _, number in segments(lab, tmp_path, f"{words} --duplicate 5%")]
    assert len(ids) - len(set(ids)) == pytest.approx(0.05 * len(set(ids)), rel=0.3)
    ids = [number for _, _, number in segments(lab, tmp_path, words)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("uplink", ["", "--uplink-rate 1mbit"])
def test_ack_thinning(lab: Lab, tmp_path: Path, uplink: str) -> None:
    words = f"--rate 20mbit --base-rtt 40ms --flows 2 {uplink}"
    acks = segments(lab, tmp_path / "all", words, "server")
    thin = segments(lab, tmp_path / "thin", f"{words} --ack-thin 4", "server")
    # The phone acknowledges every second segment; two flows share the rate.
    assert len(acks) == pytest.approx(20e6 / 12000 / 2 * 8, rel=0.1)
    # Some runs are ended by the clock.
    assert 0.24 < len(thin) / len(acks) < 0.36


def test_ack_thinning_delays_no_end(run: Run) -> None:
    """The last ACKs of a run wait 10 ms and no longer."""
    given: dict[str, Any] = LINK | {"flows": 0, "object": ["4kB"], "think": "100ms"}
    plain = run("stock", **given, keep_alive=True)["objects"]
    thin = run("stock", **given, keep_alive=True, ack_thin=8)["objects"]
    assert thin["count"] >= plain["count"] - 1
    assert thin["mean_fct_ms"] < plain["mean_fct_ms"] + 11


@pytest.mark.parametrize("trace", [False, True])
def test_outage(run: Run, tmp_path: Path, trace: bool) -> None:
    """Nothing crosses, in either direction, while the queue fills; then it drains."""
    link = dict(LINK)
    if trace:
        path = tmp_path / "even.down"
        path.write_text("1\n2\n3\n4\n5\n6\n")
        link = {"base_rtt": "40ms", "duration": "8s", "trace": path}
    result = run("stock", **link, event=["3s outage=2s"])
    assert sum(goodput_between(result, 3.1, 5)) == 0
    assert sum(goodput_between(result, 6, 8)) > 8
    link_mbps = result["series"]["link_mbps"]
    assert link_mbps[30:50] == [0] * 20
    assert link_mbps[29] > 9
    assert link_mbps[50] > 9
    series = result["series"]["rtt"]
    waited = [ms for t, ms in zip(series["t_s"], series["ms"], strict=True) if 3 <= t < 5]
    assert len(waited) > 30
    assert max(waited) > 1900
    # All come out together in the end, the later ones after less time.
    assert all(later < before + 60 for before, later in pairwise(waited))


def test_probes_that_an_outage_loses_are_late(run: Run) -> None:
    """A short queue is full then; none may look better than one that waited in a deep one."""
    load: dict[str, Any] = {"flows": 0, "object": ["1B"], "think": "10s"}
    result = run("stock", **LINK, **load, buffer="1500B", event=["3s outage=2s"])
    # The queue holds 17 of 40.
    assert result["rtt_ms"]["lost"] == pytest.approx(23, abs=1)
    assert result["rtt_ms"]["count"] + result["rtt_ms"]["lost"] == pytest.approx(160, abs=1)
    series = result["series"]["rtt"]
    delay_ms = dict(zip(series["t_s"], series["ms"], strict=True))
    lost = [t for t in series["lost_t_s"] if 3 <= t < 5]
    assert len(lost) > 20
    assert all(delay_ms[t] > (5 - t) * 1e3 for t in lost)


def test_uplink_stops_too(run: Run) -> None:
    given = LINK | {"flows": 0, "upload": True, "uplink_rate": "5mbit"}
    plain = run("stock", **given)["upload_goodput_mbps"]
    stopped = run("stock", **given, event=["3s outage=4s"])["upload_goodput_mbps"]
    assert stopped < 0.6 * plain


def test_promotion(run: Run) -> None:
    """The first packet after the silence waits, whichever end sends it, and only that one does."""
    given = LINK | {"flows": 0, "object": ["8kB"], "duration": "20s"}
    for think, wakes in (("3s", True), ("1s", False)):
        plain = run("stock", **given, think=think)["objects"]["fct_ms"]
        slept = run("stock", **given, think=think, promotion="500ms/2s")["objects"]["fct_ms"]
        extra = [after - before for before, after in zip(plain, slept, strict=False)]
        assert extra[0] == pytest.approx(0, abs=1)
        assert extra[1:] == pytest.approx([500 if wakes else 0] * (len(extra) - 1), abs=1)


def test_promotion_leaves_a_busy_link_alone(run: Run) -> None:
    plain, slept = run("stock", **LINK), run("stock", **LINK, promotion="500ms/2s")
    assert slept["goodput_mbps"] == pytest.approx(plain["goodput_mbps"], rel=0.01)
    assert slept["rtt_ms"]["count"] > 0.9 * plain["rtt_ms"]["count"]


DRX: dict[str, Any] = {"base_rtt": "40ms", "duration": "8s", "flows": 0, "object": ["1kB"]}


def test_a_sleeping_radio_listens_once_in_a_cycle(run: Run) -> None:
    """What comes down waits for an on-duration, of which there is one in each cycle."""
    result = run("stock", rate="10mbit", **DRX, think="10s", drx="160ms/10ms/20ms")
    series = result["series"]["rtt"]
    # They were sent on whole multiples of 50 ms, and the link has them 40 ms later.
    there_ms = [(t * 1e3 + 40) % 160 for t in series["t_s"]]
    wanted = [40 if there < 10 else 200 - there for there in there_ms]
    late = [ms - least for ms, least in zip(series["ms"], wanted, strict=True)]
    assert len(late) > 150
    # Those of the first second share it with an object.
    assert all(0 <= each < 2 for each in late[20:])


def test_what_goes_up_wakes_the_radio(run: Run) -> None:
    """The request wakes it; the answer comes after the base RTT, before the timer or after it."""
    plain, short, long = (
        run("stock", rate="10mbit", **DRX, think="970ms", keep_alive=True, **more)["objects"]
        for more in ({}, {"drx": "160ms/10ms/20ms"}, {"drx": "160ms/10ms/50ms"})
    )
    assert long["fct_ms"] == pytest.approx(plain["fct_ms"], abs=2)
    ends = [(s * 1e3 + ms) % 160 for s, ms in zip(short["start_s"], short["fct_ms"], strict=True)]
    # The first one is asked for while the link's start keeps the radio awake.
    assert all(end < 12 for end in ends[1:])
    assert max(short["fct_ms"]) > max(plain["fct_ms"]) + 100


def test_drx_leaves_a_busy_radio_alone(run: Run, tmp_path: Path) -> None:
    """Bulk data keeps it awake, at a rate and at a trace; a packet that began is not cut off."""
    path = tmp_path / "even.down"
    path.write_text("1\n2\n3\n4\n5\n6\n")
    for link in ({"rate": "10mbit"}, {"rate": "300kbit"}, {"trace": path}):
        given: dict[str, Any] = {"base_rtt": "40ms", "duration": "8s"} | link
        plain, drx = run("stock", **given), run("stock", **given, drx="160ms/10ms/20ms")
        assert drx["goodput_mbps"] == pytest.approx(plain["goodput_mbps"], rel=0.05)


def test_impairments_repeat(lab: Lab) -> None:
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    words = "run --scheme stock --rate 10mbit --duration 2s --reorder 5% --duplicate 2% --json -"
    first = lab(words).out
    assert lab(words).out == first
    assert lab(words + " --seed 2").out != first
