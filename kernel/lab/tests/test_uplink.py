# SPDX-License-Identifier: GPL-2.0-only
"""The phone's modem, and what stands in front of it, in real guests."""

from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import network, spec
from test_clocks import stamps

pytestmark = pytest.mark.guest

PROBE, UPLOAD = 5004, 5003
PROBE_BYTES = 56

# 2 Mb/s, of which 250 bytes are a ms.
LINK: dict[str, Any] = {
    "rate": "20mbit",
    "uplink_rate": "2mbit",
    "base_rtt": "40ms",
    "duration": "5s",
    "flows": 0,
}
LOADED = LINK | {"upload": True, "firmware": "100kB", "grant": "8ms"}


def datagrams(folder: Path, host: str) -> tuple[list[bytes], list[bytes]]:
    """Payloads of the probes that a host's interface passes, and of their answers."""
    probes, answers = [], []
    with (folder / f"{host}.pcap").open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            datagram = dpkt.ethernet.Ethernet(frame).data.data
            if isinstance(datagram, dpkt.udp.UDP) and datagram.dport == PROBE:
                probes.append(bytes(datagram.data))
            elif isinstance(datagram, dpkt.udp.UDP) and datagram.sport == PROBE:
                answers.append(bytes(datagram.data))
    return probes, answers


def captured(lab: Lab, folder: Path, words: str) -> None:
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    given = "--rate 20mbit --uplink-rate 2mbit --base-rtt 40ms --duration 3s --flows 0"
    done = lab(f"run --scheme stock {given} {words} --pcap {folder}")
    assert done.code == 0, done.err


def test_modem_stops_the_host_and_goes_on_an_eighth_later(run: Run) -> None:
    result = run("stock", **LOADED)
    firmware = result["firmware"]
    # It takes the packet that overflows it.
    assert 100_000 <= firmware["max_bytes"] < 100_000 + spec.PACKET_BYTES
    # A saw between 87.5 and 100 kB, once it is full; TCP small queues do not see it.
    full = np.array(result["series"]["firmware_bytes"][-20:])
    assert 91_000 < full.mean() < 96_500
    assert full.min() > 87_500 - 2 * spec.PACKET_BYTES
    # What is in it is what a probe waits for: 0.4 s.
    late = np.array(result["series"]["up"]["ms"][-20:])
    assert 360 < late.mean() < 460
    smaller = run("stock", **LOADED | {"firmware": "25kB"})
    assert smaller["firmware"]["max_bytes"] < 25_000 + spec.PACKET_BYTES
    assert smaller["upload_goodput_mbps"] > 1.8


def test_a_packet_that_finds_the_modem_empty_waits_for_a_grant(run: Run) -> None:
    """Half the base RTT up, 84 bytes at 2 Mb/s, and the grant."""
    for grant_ms in (0, 8, 25):
        result = run("idle", **LINK, firmware="100kB", grant=f"{grant_ms}ms")
        assert result["up_ms"]["p95"] == pytest.approx(20 + 0.34 + grant_ms, abs=0.1)
        assert result["rtt_ms"]["p95"] - result["up_ms"]["p95"] == pytest.approx(20, abs=0.2)
    # While it has something, it needs none.
    busy = run("stock", **LOADED | {"grant": "25ms"})
    assert busy["upload_goodput_mbps"] == pytest.approx(
        run("stock", **LOADED)["upload_goodput_mbps"], rel=0.02
    )


def test_grants_for_what_was_reported(run: Run) -> None:
    """12.5 kB in the modem are 10 ms at 10 Mb/s; reports and grants take longer."""
    given = LINK | {"uplink_rate": "10mbit", "upload": True, "uplink_scheme": "qcut-b"}
    lasting = run("stock", **given)["upload_goodput_mbps"]
    reported = run("stock", **given, grant_report="10ms")["upload_goodput_mbps"]
    assert lasting > 9
    # At most what is there once in a grant, at least once in a report and a grant.
    assert 12_500 * 8 / 18e3 * 0.8 < reported < 12_500 * 8 / 8e3 * 0.8
    deep = run("stock", **given | {"uplink_scheme": "pfifo"}, grant_report="10ms")
    assert deep["upload_goodput_mbps"] > 9


def test_an_outage_does_not_stop_the_modem_from_taking(run: Run) -> None:
    result = run("idle", **LINK, firmware="100kB", event=["1s outage=3s"])
    held = np.array(result["series"]["firmware_bytes"])
    # Two probes of 84 bytes each 100 ms, and nothing of them before and after.
    assert set(np.diff(held[11:39])) == {168}
    assert max(held[:9].max(), held[42:].max()) < 84


def test_peers(run: Run) -> None:
    """What is only in the host does not help; what bounds the modem does."""
    found = {
        scheme: run("stock", **LOADED, uplink_scheme=scheme)
        for scheme in ("pfifo", "rmnet", "fq_codel", "qcut-b", "qcut-d", "autorate")
    }
    p95 = {scheme: result["rtt_ms"]["p95"] for scheme, result in found.items()}
    for scheme in ("rmnet", "fq_codel"):
        assert p95[scheme] == pytest.approx(p95["pfifo"], rel=0.05)
    # 20 ms are 5 kB at 2 Mb/s; 12.5 kB are 50 ms.
    assert 5_000 < found["qcut-d"]["firmware"]["max_bytes"] < 8_000
    assert found["qcut-d"]["rtt_ms"]["p50"] < 40 + 20 + 7
    assert 12_500 <= found["qcut-b"]["firmware"]["max_bytes"] < 12_500 + 2 * spec.PACKET_BYTES
    assert found["qcut-d"]["rtt_ms"]["p95"] < found["qcut-b"]["rtt_ms"]["p95"] < 40 + 50 + 20
    for scheme in ("qcut-b", "qcut-d"):
        goodput = found[scheme]["upload_goodput_mbps"]
        assert goodput > 0.97 * found["pfifo"]["upload_goodput_mbps"]
    assert p95["autorate"] < 0.7 * p95["pfifo"]
    assert found["autorate"]["upload_goodput_mbps"] > 1


def test_target_of_qcut_d(run: Run) -> None:
    wider = run("stock", **LOADED, uplink_scheme="qcut-d", uplink_target="60ms")
    assert 40 + 50 < wider["rtt_ms"]["p50"] < 40 + 70


def test_autorate_follows_the_link(run: Run) -> None:
    """Down to a quarter of the rate, and back."""
    given = LOADED | {"firmware": "600kB", "duration": "24s", "uplink_scheme": "autorate"}
    result = run("stock", **given, event=["6s uplink-rate=500kbit", "14s uplink-rate=2mbit"])
    sent = np.array(result["series"]["upload_goodput_mbps"][0])
    assert sent[110:140].mean() < 0.5
    assert sent[210:].mean() > 1.3
    in_modem = np.array(result["series"]["firmware_bytes"])
    assert in_modem[200:].mean() < 20_000


def test_a_modem_that_tells(run: Run) -> None:
    """Nobody's answer is understood, but its driver knows; pfifo waits for its grants, too."""
    link = LOADED | {"uplink_rate": "5mbit", "duration": "15s"}
    link |= {"upload_kind": "quic", "probe_kind": "opaque", "modem_tells": "4ms"}
    pfifo, bound, gate, hides = (
        run("stock", **link | {"uplink_scheme": "pfifo"}),
        run("stock", **link | {"uplink_scheme": "qcut-d"}),
        run("stock", **link | {"uplink_scheme": "drwa"}),
        run("stock", **link | {"uplink_scheme": "drwa", "modem_hides": "15kB"}),
    )
    assert pfifo["upload_goodput_mbps"] > 4.7
    assert pfifo["firmware"]["max_bytes"] > 95_000
    assert gate["upload_goodput_mbps"] > 0.97 * bound["upload_goodput_mbps"]
    assert gate["rtt_ms"]["p95"] < bound["rtt_ms"]["p95"] + 15
    assert gate["firmware"]["max_bytes"] < 40_000
    # 24 ms of the link wait unseen.
    more_ms = hides["rtt_ms"]["p95"] - gate["rtt_ms"]["p95"]
    assert 10 < more_ms < 35


def test_a_modem_that_tells_late(run: Run) -> None:
    """Queries go out each 5 ms, four of them at a time: each answer is as old as its own."""
    link = LOADED | {"uplink_rate": "20mbit", "duration": "15s"}
    link |= {"upload_kind": "quic", "probe_kind": "opaque", "modem_tells": "20ms"}
    bound = run("stock", **link | {"uplink_scheme": "qcut-d"})
    gate = run("stock", **link | {"uplink_scheme": "drwa"})
    assert gate["upload_goodput_mbps"] > 0.96 * bound["upload_goodput_mbps"]
    assert gate["rtt_ms"]["p95"] < bound["rtt_ms"]["p95"] + 15


def test_a_modem_that_nobody_can_ask(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells when 4/5 of a grant are used, which a gate that holds never does: answers count."""
    plain = network.setup_script
    none = "put phone /sys/module/lab_dfc/parameters/queries 0\n"
    monkeypatch.setattr(network, "setup_script", lambda spec: plain(spec) + none)
    link = LOADED | {"uplink_rate": "5mbit", "duration": "15s", "uplink_scheme": "drwa"}
    result = run("stock", **link | {"modem_tells": "4ms"})
    assert result["upload_goodput_mbps"] > 4.3
    assert result["firmware"]["mean_bytes"] < 40_000


# Two uploads over a modem of two bearers, with queues of their own in phone and modem.
BEARERS = LOADED | {"duration": "15s", "firmware": "600kB", "modem_bearers": "2", "uploads": "2"}


def test_bearers_have_a_gate_each(run: Run) -> None:
    """Told late, one that took the other's grants for its own would have seven tenths."""
    link = BEARERS | {"rate": "50mbit", "uplink_rate": "10mbit", "probe_kind": "opaque"}
    link |= {"modem_tells": "20ms"}
    pfifo = run("stock", **link | {"uplink_scheme": "pfifo"})
    gates = run("stock", **link | {"uplink_scheme": "drwa"})
    assert pfifo["firmware"]["max_bytes"] > 1_000_000
    assert gates["upload_goodput_mbps"] > 0.96 * pfifo["upload_goodput_mbps"]
    assert gates["rtt_ms"]["p95"] < 100
    assert gates["firmware"]["mean_bytes"] < 50_000
    sent = np.array(gates["series"]["upload_goodput_mbps"])[:, -100:].mean(axis=1)
    assert sent.min() > 0.9 * sent.max()


def test_bearers_that_part_have_a_gate_each(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of two that share a queue come one by one; who has left is soon nobody's."""
    plain = network.setup_script
    shared = "put phone /sys/module/lab_rmnet/parameters/shared_ms 8000\n"
    monkeypatch.setattr(network, "setup_script", lambda spec: plain(spec) + shared)
    link = BEARERS | {"rate": "50mbit", "uplink_rate": "10mbit", "duration": "20s"}
    link |= {"modem_tells": "20ms", "probe_kind": "opaque", "uplink_scheme": "drwa"}
    sent = np.array(run("stock", **link)["series"]["upload_goodput_mbps"])
    # A second is ten samples; 9.6 Mb/s remain beside headers.
    assert sent[:, 20:60].mean(axis=1).sum() > 9.4
    assert sent[:, 60:110].reshape(2, -1, 10).mean(axis=2).min() > 2
    parted = sent[:, 120:].mean(axis=1)
    assert parted.min() > 0.95 * parted.max()


def test_acks_of_a_bearer_are_in_its_grants(run: Run) -> None:
    """They take another transmit queue, with another gate, and fill the same of the modem's."""
    link = BEARERS | {"uplink_rate": "1mbit", "flows": 1, "modem_tells": "4ms"}
    result = run("drwa", **link | {"uplink_scheme": "drwa", "duration": "20s"})
    assert result["goodput_mbps"] > 17
    assert result["up_ms"]["p95"] < 240


def test_acks_pass_a_queue_that_is_stopped(run: Run) -> None:
    """In front of a small modem, the phone's own queue is what an ACK would wait in."""
    link = BEARERS | {"uploads": "1", "flows": 1, "window_clamp": "100kB", "firmware": "20kB"}
    link |= {"modem_tells": "4ms", "uplink_scheme": "pfifo", "upload_kind": "quic"}
    shared, own = run("stock", **link | {"modem_bearers": None}), run("stock", **link)
    # A window in 120 ms
    assert own["goodput_mbps"] > 5
    assert shared["goodput_mbps"] < 0.3 * own["goodput_mbps"]


def test_uploads_over_quic(run: Run) -> None:
    given = LOADED | {"upload_kind": "quic"}
    result = run("stock", **given)
    assert result["upload_goodput_mbps"] > 1.75
    assert result["firmware"]["max_bytes"] > 90_000
    assert result["uploads"][0]["retransmits"] == 0
    lossy = run("stock", **given, uplink_loss="2%")
    assert lossy["uploads"][0]["retransmits"] > 5
    # Its own control backs off, and the queue stays short.
    assert lossy["firmware"]["mean_bytes"] < 0.6 * result["firmware"]["mean_bytes"]
    assert lossy["upload_goodput_mbps"] > 0.8


def test_short_packets_of_an_upload_stay_in_its_order(run: Run) -> None:
    """Each that overtook data would be a loss to its sender."""
    given = LOADED | {"upload_kind": "quic-duplex", "firmware": "600kB"}
    plain = run("stock", **given | {"upload_kind": "quic"})
    result = run("stock", **given)
    # The headers of 200 short ones a second take 45 kb/s.
    less_mbps = plain["upload_goodput_mbps"] - result["upload_goodput_mbps"]
    assert 0.02 < less_mbps < 0.1
    # The gate's first DRAIN, of all that the modem took before, weighs little in a minute.
    given |= {"duration": "60s"}
    result = run("stock", **given)
    gate = run("stock", **given, uplink_scheme="drwa")
    alone = run("stock", **given | {"upload_kind": "quic"}, uplink_scheme="drwa")
    # Of both, CoDel in the gate drops some.
    assert gate["uploads"][0]["retransmits"] < 1.5 * alone["uploads"][0]["retransmits"]
    assert gate["upload_goodput_mbps"] > 0.97 * result["upload_goodput_mbps"]


def test_several_uploads_and_their_sender(run: Run) -> None:
    three = run("stock", **LOADED, uploads=3)
    assert len(three["uploads"]) == 3
    total = sum(upload["goodput_mbps"] for upload in three["uploads"])
    assert three["upload_goodput_mbps"] == pytest.approx(total, abs=1e-5)
    assert all(upload["goodput_mbps"] > 0.2 for upload in three["uploads"])
    series = np.array(three["series"]["upload_goodput_mbps"])
    assert series.mean(axis=1) == pytest.approx(
        [upload["goodput_mbps"] for upload in three["uploads"]], abs=1e-3
    )
    cubic, bbr = (run("stock", **LOADED, upload_cc=cc) for cc in ("cubic", "bbr"))
    assert bbr["firmware"]["mean_bytes"] < 0.5 * cubic["firmware"]["mean_bytes"]


def test_large_segments_are_split_behind_the_host(run: Run) -> None:
    plain = run("stock", **LOADED)
    large = run("stock", **LOADED, upload_tso=True)
    assert large["upload_goodput_mbps"] == pytest.approx(plain["upload_goodput_mbps"], rel=0.02)
    # It takes the large one that overflows it.
    assert 100_000 + spec.PACKET_BYTES < large["firmware"]["max_bytes"] < 170_000
    held = run("stock", **LOADED, upload_tso=True, uplink_scheme="qcut-d")
    assert held["upload_goodput_mbps"] > 0.95 * plain["upload_goodput_mbps"]


def test_everything_together_repeats_bit_for_bit(lab: Lab) -> None:
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    words = (
        "run --scheme drwa --rate 20mbit --uplink-rate 3mbit --flows 2 --uploads 2 --object 32kB "
        "--uplink-scheme autorate --grant-report 5ms --uplink-loss 1% --duration 2s --json -"
    )
    first = lab(words)
    assert first.code == 0, first.err
    assert lab(words).out == first.out


def test_what_an_answer_tells(lab: Lab, tmp_path: Path) -> None:
    """A gate recognises an answered probe by its bytes 8 to 15, unless they are disguised."""
    captured(lab, tmp_path, "--firmware 100kB --upload")
    probes, answers = datagrams(tmp_path, "phone")
    # Captures have what has left the modem.
    assert len(probes) > 50
    marks = [probe[8:16] for probe in probes]
    assert len(set(marks)) == len(marks)
    assert len(answers) >= 20
    assert {len(answer) for answer in answers} == {PROBE_BYTES}
    assert set(answers) <= set(probes)
    captured(lab, tmp_path, "--firmware 100kB --upload --probe-kind opaque")
    probes, answers = datagrams(tmp_path, "phone")
    assert len(answers) >= 20
    assert not {answer[8:16] for answer in answers} & {probe[8:16] for probe in probes}


def test_thinned_acks_of_an_upload(run: Run, lab: Lab, tmp_path: Path) -> None:
    def acks(words: str) -> int:
        captured(lab, tmp_path, f"--uplink-rate 20mbit --firmware 100kB --upload {words}")
        return int(stamps(tmp_path, "phone", UPLOAD)[:, 3].sum())

    assert acks("--downlink-ack-thin 8") < 0.3 * acks("")
    thinned = run("stock", **LOADED, downlink_ack_thin=8)
    assert thinned["upload_goodput_mbps"] > 1.7


@pytest.mark.parametrize("lie_ms", [50, -50])
def test_an_upload_server_that_lies_about_the_time(lab: Lab, tmp_path: Path, lie_ms: int) -> None:
    captured(lab, tmp_path, f"--firmware 100kB --upload --upload-lie {lie_ms}ms")
    phone, server = (stamps(tmp_path, host, UPLOAD) for host in ("phone", "server"))
    ours, theirs = (each[each[:, 3] == 1] for each in (phone, server))
    # The same ACKs, in the same order, half the base RTT apart.
    count = min(len(ours), len(theirs))
    off = theirs[:count, 1] - ours[:count, 1]
    told = off[ours[:count, 0] > ours[0, 0] + 0.3]
    assert set(np.unique(told)) == {lie_ms}
    # Never back, which a receiver would take for an old segment.
    assert (np.diff(ours[:, 1]) >= 0).all()
    # The server sees its own clock come back.
    echoed = server[server[:, 3] == 0][-1]
    assert abs(echoed[2] - theirs[theirs[:, 0] <= echoed[0], 1].max()) < 500
