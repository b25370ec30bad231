# SPDX-License-Identifier: GPL-2.0-only
"""What hosts and sockets can differ in, as the wire shows it, in real guests."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dpkt
import pytest

from conftest import Lab, Run, needs_kernels
from drwalab import network, spec
from drwalab.results import goodput_between

pytestmark = pytest.mark.guest

LINK: dict[str, Any] = {"rate": "10mbit", "base_rtt": "40ms", "duration": "6s"}
MPTCP = 30

Wire = Callable[..., list[dpkt.tcp.TCP]]


@pytest.fixture
def wire(lab: Lab, tmp_path: Path) -> Wire:
    """Runs a download and gives the segments that passed the phone's rmnet0, in their order."""

    def boot(words: str) -> list[dpkt.tcp.TCP]:
        needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
        given = "--rate 10mbit --base-rtt 40ms --duration 2s"
        done = lab(f"run --scheme stock {given} {words} --pcap {tmp_path}")
        assert done.code == 0, done.err
        with (tmp_path / "phone.pcap").open("rb") as file:
            packets = [dpkt.ethernet.Ethernet(f).data.data for _, f in dpkt.pcap.Reader(file)]
        return [p for p in packets if isinstance(p, dpkt.tcp.TCP)]

    return boot


def options(segment: dpkt.tcp.TCP) -> dict[int, bytes]:
    return dict(dpkt.tcp.parse_opts(segment.opts))


def lengths(segments: list[dpkt.tcp.TCP]) -> set[int]:
    """Of the data to the phone; by the sequence numbers, since captures hold headers alone."""
    numbers = [s.seq for s in segments if s.sport == 5001 and not s.flags & dpkt.tcp.TH_SYN]
    return {later - before for before, later in pairwise(numbers) if later > before}


def test_default(wire: Wire) -> None:
    segments = wire("")
    syn = options(segments[0])
    assert segments[0].flags == dpkt.tcp.TH_SYN
    assert segments[0].dport == 5001
    assert dpkt.tcp.TCP_OPT_TIMESTAMP in syn
    assert dpkt.tcp.TCP_OPT_WSCALE in syn
    assert MPTCP not in syn
    assert lengths(segments) == {1448}


def test_no_timestamps(wire: Wire) -> None:
    segments = wire("--no-timestamps")
    assert not any(dpkt.tcp.TCP_OPT_TIMESTAMP in options(s) for s in segments)
    assert lengths(segments) == {1460}


def test_no_timestamps_are_governed(run: Run) -> None:
    """RTTs stand in for one-way delays, from the handshake on."""
    given = LINK | {"duration": "12s"}
    stock, governed = (run(scheme, **given, no_timestamps=True) for scheme in ("stock", "drwa"))
    assert governed["counters"]["sockets"] == 1
    assert governed["counters"]["rounds"] > 50
    assert governed["rtt_ms"]["p95"] < stock["rtt_ms"]["p95"] / 2
    assert governed["goodput_mbps"] > 0.97 * stock["goodput_mbps"]


# λ on another interface, which keeps the hooks on: User Mode Linux takes them away at once.
HOOKED = """
ip -n phone link add dummy0 type dummy
put phone /proc/sys/net/ipv4/conf/dummy0/tcp_drwa_lambda 150
"""


@pytest.mark.parametrize("limits", ["android-lte", "static:110208"])
def test_off_in_mid_connection_gives_the_limits_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, limits: str
) -> None:
    """The path holds 2 MB, more than either's limit."""
    given: dict[str, Any] = {"rate": "80mbit", "base_rtt": "200ms", "duration": "12s"}
    stock = run(limits, **given)
    original = network.setup_script
    monkeypatch.setattr(network, "setup_script", lambda spec: original(spec) + HOOKED)
    switched = run("drwa", **given, limits=limits, event=["6s lambda=0"])
    windows = switched["series"]["rwnd_bytes"]
    limit = max(stock["series"]["rwnd_bytes"])
    assert max(windows[:60]) > 2 * limit
    # A scale of 9 rounds up, and ratios of memory to data are measured.
    assert max(windows[90:]) <= 1.05 * limit
    later = sum(goodput_between(switched, 9, 12))
    assert later == pytest.approx(sum(goodput_between(stock, 9, 12)), rel=0.05)


def test_no_window_scaling(wire: Wire, run: Run) -> None:
    syn, syn_ack = wire("--no-window-scaling")[:2]
    assert dpkt.tcp.TCP_OPT_WSCALE not in options(syn)
    assert dpkt.tcp.TCP_OPT_WSCALE not in options(syn_ack)
    windows = run("stock", **LINK, no_window_scaling=True)["series"]["rwnd_bytes"]
    assert 60_000 < max(windows) <= 65535


@pytest.mark.parametrize("version", ["", "--ipv6"])
@pytest.mark.parametrize("mss", [88, 536, 8960])
def test_mss(wire: Wire, mss: int, version: str) -> None:
    # Of an MSS, timestamps take 12 bytes.
    assert lengths(wire(f"--mss {mss} {version}")) == {mss - 12}


def test_receive_buffer(run: Run) -> None:
    result = run("stock", **LINK, rcvbuf="40kB")
    windows = result["series"]["rwnd_bytes"]
    assert 20_000 < max(windows) <= 80_000
    assert result["goodput_mbps"] > 4


def test_window_clamp(run: Run) -> None:
    """It holds at the start; stock auto-tuning raises it later."""
    given = LINK | {"duration": "100ms"}
    clamped, free = (run("stock", **given, window_clamp=size) for size in ("30kB", None))
    assert clamped["series"]["rwnd_bytes"][0] <= 30_000 < free["series"]["rwnd_bytes"][0]


def test_fast_open(wire: Wire, run: Run) -> None:
    syn, syn_ack = wire("--fastopen")[:2]
    assert len(syn.data) == 1
    assert syn_ack.ack == syn.seq + 2
    web: dict[str, Any] = LINK | {"flows": 0, "object": ["8kB"], "think": "100ms"}
    slow, fast = (run("stock", **web, fastopen=f)["objects"]["mean_fct_ms"] for f in (False, True))
    # One round trip less.
    assert fast == pytest.approx(slow - 40, abs=2)


def test_accepted(wire: Wire, run: Run) -> None:
    syn = wire("--accepted --flows 2")[0]
    assert (syn.flags, syn.dport) == (dpkt.tcp.TH_SYN, 5001)
    result = run("drwa", **LINK, accepted=True, flows=2, rcvbuf="40kB")
    assert len(result["flows"]) == 2
    assert result["goodput_mbps"] > 4
    assert max(result["series"]["rwnd_bytes"]) <= 2 * 80_000
    governed = run("drwa", **LINK, accepted=True, flows=2)["drwa"]
    assert set(governed["flow"]) == {0, 1}


@pytest.mark.parametrize("ipv6", [False, True])
def test_mptcp(run: Run, ipv6: bool) -> None:
    """Two subflows carry more than the one link can."""
    result = run("stock", **LINK, mptcp=True, ipv6=ipv6)
    assert sum(goodput_between(result, 3, 6)) > 15


def test_mptcp_on_the_wire(wire: Wire) -> None:
    syn, syn_ack = wire("--mptcp")[:2]
    assert MPTCP in options(syn)
    assert MPTCP in options(syn_ack)


@pytest.mark.parametrize("ipv6", [False, True])
def test_interface_down_and_up(run: Run, ipv6: bool) -> None:
    """Nothing passes while it is down; the same connection goes on afterwards."""
    events = ["2s interface=down", "3s interface=up"]
    result = run("stock", **LINK, ipv6=ipv6, event=events)
    assert sum(goodput_between(result, 1, 2)) > 9
    assert sum(goodput_between(result, 2.1, 3)) == 0
    assert sum(goodput_between(result, 4.5, 6)) > 8
    rtt = result["series"]["rtt"]["t_s"]
    assert not any(2.1 <= t < 3 for t in rtt)
    assert any(4 <= t for t in rtt)


@pytest.mark.parametrize("ipv6", [False, True])
def test_move_to_another_interface(run: Run, ipv6: bool) -> None:
    """Connections go on, and the first link has nothing more to carry, until they come back."""
    events = ["2s move=wlan0", "4s move=rmnet0"]
    plain = run("stock", **LINK, ipv6=ipv6)
    moved = run("stock", **LINK, ipv6=ipv6, event=events)
    assert sum(goodput_between(moved, 2.5, 4)) > 8
    assert sum(goodput_between(moved, 4.5, 6)) > 8
    assert plain["utilisation"] > 0.9
    assert moved["utilisation"] < 0.8
