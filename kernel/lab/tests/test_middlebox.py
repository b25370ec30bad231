# SPDX-License-Identifier: GPL-2.0-only
"""What a middlebox makes of SYNs, in real guests."""

from pathlib import Path

import dpkt
import pytest

from conftest import Lab, needs_kernels
from drwalab import spec

pytestmark = pytest.mark.guest

BULK = 5001
Segment = tuple[dpkt.tcp.TCP, dict[int, bytes]]
NOP, SCALE, STAMPS = dpkt.tcp.TCP_OPT_NOP, dpkt.tcp.TCP_OPT_WSCALE, dpkt.tcp.TCP_OPT_TIMESTAMP


def segments(lab: Lab, folder: Path, words: str) -> dict[str, list[Segment]]:
    """The downloads' segments with their options as each host sees them."""
    needs_kernels([spec.parse("stock", {"rate": "1mbit"})])
    link = "--scheme android-13plus --rate 20mbit --base-rtt 40ms --duration 4s"
    done = lab(f"run {link} {words} --pcap {folder}")
    assert done.code == 0, done.err
    found: dict[str, list[Segment]] = {}
    for host in ("phone", "server"):
        found[host] = []
        with (folder / f"{host}.pcap").open("rb") as file:
            for _, frame in dpkt.pcap.Reader(file):
                segment = dpkt.ethernet.Ethernet(frame).data.data
                if isinstance(segment, dpkt.tcp.TCP) and BULK in (segment.sport, segment.dport):
                    found[host].append((segment, dict(dpkt.tcp.parse_opts(segment.opts))))
    return found


def syn(seen: list[Segment], answer: bool = False) -> Segment:
    """The first one, or the first that answers one."""
    return next(
        (segment, options)
        for segment, options in seen
        if segment.flags & dpkt.tcp.TH_SYN and bool(segment.flags & dpkt.tcp.TH_ACK) == answer
    )


@pytest.mark.parametrize("words", ["", "--ipv6"])
def test_another_scale(lab: Lab, tmp_path: Path, words: str) -> None:
    """The server takes the phone's windows for less than they are."""
    plain = segments(lab, tmp_path / "plain", words)
    lowered = segments(lab, tmp_path / "lowered", f"--syn-scale 3 {words}")
    there, here = (syn(seen["server"]) for seen in (plain, lowered))
    assert (there[1][SCALE], here[1][SCALE]) == (b"\x09", b"\x03")
    assert len(there[0].opts) == len(here[0].opts)
    # The server's own scale is nobody's business.
    there, here = (syn(seen["phone"], answer=True) for seen in (plain, lowered))
    assert there[1][SCALE] == here[1][SCALE]
    assert len(lowered["phone"]) < 0.75 * len(plain["phone"])


@pytest.mark.parametrize("words", ["", "--ipv6", "--accepted"])
def test_stripped_timestamps(lab: Lab, tmp_path: Path, words: str) -> None:
    """Neither end uses any then, and all else of the SYN is what it was."""
    plain = segments(lab, tmp_path / "plain", words)
    stripped = segments(lab, tmp_path / "stripped", f"--strip-timestamps {words}")
    taker = "phone" if words == "--accepted" else "server"
    there, here = (syn(seen[taker]) for seen in (plain, stripped))
    assert STAMPS in there[1]
    assert STAMPS not in here[1]
    assert here[1][SCALE] == there[1][SCALE]
    assert len(here[0].opts) == len(there[0].opts)
    assert bytes([NOP]) * 10 in here[0].opts
    for seen in (plain, stripped):
        stamped = [STAMPS in options for segment, options in seen["phone"] if len(segment.data)]
        assert len(stamped) > 1000
        assert set(stamped) == {seen is plain}
