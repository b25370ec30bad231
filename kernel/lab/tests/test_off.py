# SPDX-License-Identifier: GPL-2.0-only
"""λ = 0 means absent: a patched kernel sends what an unpatched one sends, at the same instants.

So it is of what the programs do with UDP, unless that is asked for.
"""

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import dpkt
import pytest

from conftest import LINES, Lab, needs_kernels
from drwalab import kernels, spec
from drwalab.sources import KERNEL_DIR

pytestmark = pytest.mark.guest

LINK = "--rate 10mbit --base-rtt 50ms --buffer 300kB --duration 12s"
RUNS = {
    "one bulk flow": "--scheme stock",
    # Where DRWA would lift the limit.
    "static limit": "--scheme static:110208",
    "five flows": "--scheme stock --flows 5",
    "loss": "--scheme stock --loss 1%",
    "IPv6": "--scheme stock --ipv6",
    "objects and upload": "--scheme stock --object 100kB --upload --uplink-rate 2mbit",
    # Where the law would take the RTT for a clock, and let go of its window.
    "no clock": "--scheme stock --clock-tick 10ms",
    "upload without timestamps": "--scheme stock --no-timestamps --upload --uplink-rate 2mbit",
}

Packet = tuple[Any, ...]


class Wire:
    """Packets without what a kernel draws at random: ports, sequence numbers, clock offsets."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.first: dict[tuple[int, int, str], int] = {}

    def port(self, number: int) -> int:
        return number if number < 10000 else self.ports.setdefault(number, -len(self.ports) - 1)

    def since_first(self, flow: tuple[int, int], what: str, value: int) -> int:
        return (value - self.first.setdefault((*flow, what), value)) % 2**32

    def tcp(self, segment: dpkt.tcp.TCP, length: int) -> Packet:
        there = (segment.sport, segment.dport)
        back = (segment.dport, segment.sport)
        ack = segment.flags & dpkt.tcp.TH_ACK
        options: list[Any] = []
        for kind, data in dpkt.tcp.parse_opts(segment.opts):
            words = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
            if kind == dpkt.tcp.TCP_OPT_TIMESTAMP:
                echo = self.since_first(back, "clock", words[1]) if ack else 0
                options.append((kind, self.since_first(there, "clock", words[0]), echo))
            elif kind == dpkt.tcp.TCP_OPT_SACK:
                options.append((kind, [self.since_first(back, "seq", w) for w in words]))
            else:
                options.append((kind, data))
        return (
            *map(self.port, there),
            length,
            segment.flags,
            segment.win,
            self.since_first(there, "seq", segment.seq),
            self.since_first(back, "seq", segment.ack) if ack else 0,
            options,
        )

    def packet(self, frame: bytes) -> Packet:
        ip = dpkt.ethernet.Ethernet(frame).data
        six = isinstance(ip, dpkt.ip6.IP6)
        length = ip.plen if six else ip.len
        ends = socket.inet_ntop(socket.AF_INET6 if six else socket.AF_INET, ip.src)
        if isinstance(ip.data, dpkt.tcp.TCP):
            return (ends, *self.tcp(ip.data, length))
        if isinstance(ip.data, dpkt.udp.UDP):
            ports = (self.port(ip.data.sport), self.port(ip.data.dport))
            return (ends, *ports, length, bytes(ip.data.data))
        return (ends, type(ip.data).__name__, length)


def read(folder: Path) -> list[tuple[str, str, Packet]]:
    """Host, time to the nanosecond and packet, in the order of capture.

    Without what hosts say of themselves when their interfaces come up, at random instants.
    """
    found = []
    for host in ("server", "phone"):
        wire = Wire()
        with (folder / f"{host}.pcap").open("rb") as file:
            for at, frame in dpkt.pcap.Reader(file):
                packet = wire.packet(frame)
                if "ICMP6" not in packet:
                    found.append((host, str(at), packet))
    return found


def assert_same(one: Path, other: Path) -> None:
    """Both folders' captures have the same packets at the same instants."""
    assert_alike(read(one), read(other))


def assert_alike(
    ours: list[tuple[str, str, Packet]], theirs: list[tuple[str, str, Packet]]
) -> None:
    assert len(ours) > 5000
    for mine, yours in zip(ours, theirs, strict=False):
        assert mine == yours
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("kernel", LINES)
@pytest.mark.parametrize("name", list(RUNS))
def test_off_is_absent(lab: Lab, tmp_path: Path, name: str, kernel: str) -> None:
    given: dict[str, Any] = {"rate": "1mbit", "kernel": kernel}
    needs_kernels([spec.parse("stock", given), spec.parse("stock", given | {"unpatched": True})])
    words = f"run --kernel {kernel} {LINK} {RUNS[name]} --pcap"
    for folder, flag in (("patched", ""), ("unpatched", "--unpatched")):
        done = lab(words, str(tmp_path / folder), *flag.split())
        assert done.code == 0, done.err
    assert_same(tmp_path / "patched", tmp_path / "unpatched")


@pytest.mark.parametrize("socket_options", ["--rcvbuf 100kB", "--mptcp", "--rcvbuf 1MB --flows 5"])
def test_who_stands_aside_is_stock(lab: Lab, tmp_path: Path, socket_options: str) -> None:
    """On an interface with λ, too: the window scale, the buffer and the window are stock's."""
    needs_kernels([spec.parse("drwa", {"rate": "1mbit"})])
    for scheme in ("stock", "drwa --limits stock"):
        folder = tmp_path / scheme.split()[0]
        done = lab(f"run --scheme {scheme} {LINK} {socket_options} --pcap", str(folder))
        assert done.code == 0, done.err
    assert_same(tmp_path / "stock", tmp_path / "drwa")


def test_on_is_not(lab: Lab, tmp_path: Path) -> None:
    """The comparison sees a governed connection, so it would see a leak."""
    needs_kernels([spec.parse("drwa", {"rate": "1mbit"})])
    for scheme in ("stock", "drwa"):
        assert lab(f"run --scheme {scheme} {LINK} --pcap", str(tmp_path / scheme)).code == 0
    assert read(tmp_path / "stock") != read(tmp_path / "drwa")


UDP = {
    "alone": "--flows 0 --neighbour quic --neighbour call",
    "beside a client's download": "--flows 2 --client half --neighbour quic:2s --neighbour game "
    "--ipv6",
}


@pytest.fixture(scope="module")
def without_aqm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of sources in which no interface has AQM, so that the compiler leaves it out."""
    kernel = tmp_path_factory.mktemp("without")
    shutil.copytree(KERNEL_DIR / "bpf", kernel / "bpf")
    for name in ("src", "tests"):
        (kernel / name).symlink_to(KERNEL_DIR / name)
    source = kernel / "bpf" / "drwa.bpf.c"
    text = source.read_text()
    for field in ("p.dev->aqm", "dev->aqm"):
        assert field in text
        text = text.replace(field, "0")
    source.write_text(text)
    made = kernel / "made"
    subprocess.run(["make", "-C", kernel / "bpf", f"OUT={made}"], check=True, capture_output=True)
    whole = (kernels.bpf() / "drwa.bpf.o").stat().st_size
    assert (made / "drwa.bpf.o").stat().st_size < 0.9 * whole
    return made


def headers(folder: Path) -> list[tuple[str, str, Packet]]:
    """Without what UDP carries: a call has what its buffer had, which the programs move."""

    def bare(packet: Packet) -> Packet:
        return tuple(each for each in packet if not isinstance(each, bytes))

    return [(host, at, bare(packet)) for host, at, packet in read(folder)]


@pytest.mark.parametrize("load", list(UDP))
def test_aqm_off_is_absent(
    lab: Lab, tmp_path: Path, load: str, without_aqm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With UDP on its own, packets are stock's, too."""
    needs_kernels([spec.parse("drwa-tc", {"rate": "1mbit"})])
    words = f"run --scheme drwa-tc {LINK} {UDP[load]} --pcap"
    assert lab(words, str(tmp_path / "off")).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "bpf", lambda: without_aqm)
        assert lab(words, str(tmp_path / "without")).code == 0
    assert_same(tmp_path / "off", tmp_path / "without")
    if load == "alone":
        words = words.replace("drwa-tc", "stock")
        assert lab(words, str(tmp_path / "stock")).code == 0
        assert_alike(headers(tmp_path / "off"), headers(tmp_path / "stock"))
        words = words.replace("stock", "drwa-aqm")
        assert lab(words, str(tmp_path / "on")).code == 0
        assert read(tmp_path / "off") != read(tmp_path / "on")
