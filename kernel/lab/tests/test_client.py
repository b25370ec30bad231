# SPDX-License-Identifier: GPL-2.0-only
"""A client of the phone's hotspot, in real guests: where downloads end, and its hop."""

import socket
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import network, spec

LINK: dict[str, Any] = {"rate": "10mbit", "base_rtt": "40ms", "duration": "10s"}
PHONE, CLIENT = ("10.0.2.2", "fd00:2::2"), ("10.0.5.2", "fd00:5::2")
BULK = 5001
FORMS = [("drwa-tc", "6.12")]


class Wire:
    """The segments of the downloads as the server sees them."""

    def __init__(self, lab: Lab, folder: Path, words: str) -> None:
        link = "--base-rtt 40ms --duration 5s --buffer 3MB"
        done = lab(f"run {link} {words} --pcap {folder}")
        assert done.code == 0, done.err
        with (folder / "server.pcap").open("rb") as file:
            packets = [
                (at, dpkt.ethernet.Ethernet(frame).data) for at, frame in dpkt.pcap.Reader(file)
            ]
        tcp = [(float(at), ip, ip.data) for at, ip in packets if isinstance(ip.data, dpkt.tcp.TCP)]
        self.came = [each for each in tcp if each[2].dport == BULK]
        self.left = [each for each in tcp if each[2].sport == BULK]

    @property
    def addresses(self) -> set[str]:
        return {
            socket.inet_ntop(socket.AF_INET6 if len(ip.src) == 16 else socket.AF_INET, ip.src)
            for _, ip, _ in self.came
        }

    def rtts_ms(self) -> list[float]:
        """From a segment's leaving until an ACK of just that comes."""
        acked: dict[int, float] = {}
        for at, _, tcp in self.came:
            acked.setdefault(tcp.ack, at)
        # The captures have no more than headers.
        ends = {end: at for at, ip, tcp in self.left if (end := _end(ip, tcp)) != tcp.seq}
        return [(acked[end] - at) * 1e3 for end, at in ends.items() if end in acked]

    def in_order(self) -> bool:
        acks = [tcp.ack for _, _, tcp in self.came if not tcp.flags & dpkt.tcp.TH_SYN]
        return acks == sorted(acks)


def _end(ip: Any, tcp: Any) -> int:
    """The sequence number behind an IPv4 segment's data."""
    return int(tcp.seq + ip.len - ip.hl * 4 - tcp.off * 4) % 2**32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    needs_kernels([spec.parse("stock", {"rate": "1mbit", "unpatched": True})])
    return tmp_path


@pytest.mark.guest
@pytest.mark.parametrize("ipv6", [False, True])
def test_a_download_ends_on_the_client(run: Run, lab: Lab, folder: Path, ipv6: bool) -> None:
    family = "--ipv6" if ipv6 else ""
    wire = Wire(lab, folder, f"--scheme stock --unpatched --rate 10mbit --client all {family}")
    assert wire.addresses == {CLIENT[ipv6]}
    result = run("stock", unpatched=True, **LINK, client="all", ipv6=ipv6)
    assert [flow["end"] for flow in result["flows"]] == ["client"]
    assert 9 < result["goodput_mbps"] < 10
    assert result["retransmits"] == 0


@pytest.mark.guest
def test_every_second_one_does(run: Run, lab: Lab, folder: Path) -> None:
    result = run(
        "stock", unpatched=True, **LINK, flows=4, client="half", object=["8kB"], think="1s"
    )
    assert [flow["end"] for flow in result["flows"]] == ["phone", "client"] * 2
    assert all(flow["goodput_mbps"] > 0.5 for flow in result["flows"])
    # What else there is stays on the phone.
    assert result["objects"]["count"] > 3
    wire = Wire(lab, folder, "--scheme stock --unpatched --rate 10mbit --flows 2 --client half")
    assert wire.addresses == {PHONE[0], CLIENT[0]}


@pytest.mark.guest
def test_fetches_are_the_clients(run: Run) -> None:
    """The hop is theirs, too: a handshake and a round trip of 40 + 60 ms each."""
    load: dict[str, Any] = LINK | {"flows": 0, "object": ["1kB"], "think": "1s"}
    near, far = (
        run("stock", unpatched=True, **load, client="all", client_rtt=rtt)
        for rtt in ("0ms", "60ms")
    )
    assert near["objects"]["mean_fct_ms"] == pytest.approx(80, abs=4)
    assert far["objects"]["mean_fct_ms"] == pytest.approx(200, abs=4)


@pytest.mark.guest
def test_the_way_to_the_client(lab: Lab, folder: Path) -> None:
    """Paced, so that no queue adds to it; and its jitter, which overtakes nothing.

    What leaves the server is captured behind its half of the base RTT.
    """
    load = "--scheme stock --unpatched --rate 50mbit --shape 2mbit --client all"
    for number, (hop, low, high) in enumerate(
        [
            ("--client-rtt 0ms", 20, 20),
            ("--client-rtt 60ms", 80, 80),
            ("--client-rtt 16ms --client-jitter 12ms", 24, 48),
        ]
    ):
        into = folder / str(number)
        into.mkdir()
        wire = Wire(lab, into, f"{load} {hop}")
        rtts = wire.rtts_ms()
        assert len(rtts) > 100
        assert low <= min(rtts) < low + 5
        assert wire.in_order()
        # A delayed ACK is told by its neighbours.
        assert np.percentile(rtts, 50) == pytest.approx((low + high) / 2, abs=6)
        spread = float(np.percentile(rtts, 90) - np.percentile(rtts, 10))
        assert spread > 8 if high > low else spread < 6


@pytest.mark.guest
@pytest.mark.lines
def test_nat(lab: Lab, tmp_path: Path) -> None:
    """One address for phone and client, on the kernel that has netfilter."""
    words = {"rate": "1mbit", "client": "all", "client-nat": True}
    needs_kernels([spec.parse("stock", words)])
    wire = Wire(
        lab,
        tmp_path,
        "--scheme stock --unpatched --rate 10mbit --flows 2 --client half --client-nat",
    )
    assert wire.addresses == {PHONE[0]}
    assert len({tcp.sport for _, _, tcp in wire.came}) == 2


@pytest.mark.guest
@pytest.mark.lines
@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_the_pair_governs_clients(run: Run, form: str, kernel: str) -> None:
    """As the same download on the phone, whatever the way to them is; and both at once."""
    link: dict[str, Any] = LINK | {"kernel": kernel, "duration": "20s", "buffer": "3MB"}
    phone = run(form, **link)
    assert phone["rtt_ms"]["p95"] < 70
    for hop in ({}, {"client_nat": True}, {"ipv6": True}):
        client = run(form, **link, client="all", **hop)
        assert client["goodput_mbps"] > 0.98 * phone["goodput_mbps"]
        assert client["rtt_ms"]["p95"] < 1.1 * phone["rtt_ms"]["p95"]
        assert client["counters"]["sockets"] == 1
        assert client["counters"]["capped"] > 1000
    far = run(form, **link, client="all", client_rtt="60ms", client_jitter="12ms")
    stock = run(
        "stock", unpatched=True, **link, client="all", client_rtt="60ms", client_jitter="12ms"
    )
    assert far["goodput_mbps"] > 0.97 * stock["goodput_mbps"]
    assert far["rtt_ms"]["p95"] < 0.2 * stock["rtt_ms"]["p95"]
    both = run(form, **link, flows=2, client="half")
    assert both["counters"]["sockets"] == 2
    assert both["rtt_ms"]["p95"] < 1.2 * phone["rtt_ms"]["p95"]
    assert both["jain"] > 0.9


@pytest.mark.guest
@pytest.mark.lines
@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_a_hole_ends_no_government(run: Run, form: str, kernel: str) -> None:
    """From then on, what comes for the client is ahead of what it acknowledged."""
    link: dict[str, Any] = LINK | {"kernel": kernel, "duration": "20s", "buffer": "3MB"}
    result = run(form, **link, client="all", client_rtt="20ms", reorder="1%")
    assert result["rtt_ms"]["p95"] < 70


def test_the_kernel_for_nat() -> None:
    """Where the law has no part in a run, one with netfilter; else it has it, or there is none."""
    options = {"rate": "1mbit", "client": "all", "client-nat": True}
    assert spec.parse("stock", options).flavour == "bpf"
    assert spec.parse("stock", options | {"unpatched": True}).flavour == "bpf"
    assert spec.parse("drwa-tc", options).flavour == "bpf"
    assert spec.parse("stock", options | {"client-nat": False}).flavour == "drwa"


def test_nothing_of_the_client_without_one() -> None:
    """The results of all other runs stay as they are."""
    run = spec.parse("stock", {"rate": "1mbit"})
    words = network.setup_script(run) + network.agent_spec(run) + run.command()
    assert "client" not in words
    assert "10.0.5" not in words
