# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of the lab, shortened, on a kernel that looks for mistakes in memory, locks and RCU.

The lab ends a run whose kernel complains, so these fail on a report of KASAN, UBSAN, lockdep,
DEBUG_ATOMIC_SLEEP or kmemleak.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import needs_kernels
from drwalab import guest, pool, spec
from drwalab.spec import RunSpec

pytestmark = pytest.mark.guest

LINK: dict[str, Any] = {"rate": "10mbit", "base-rtt": "50ms", "buffer": "300kB", "duration": "8s"}
SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    "handover": ("drwa", {"event": ["2s base-rtt=250ms", "5s base-rtt=50ms"]}),
    "rate steps": ("drwa", {"event": ["2s rate=1mbit", "5s rate=10mbit"]}),
    "upload": ("drwa", {"upload": True, "uplink-rate": "1mbit"}),
    "modem": (
        "drwa",
        {
            "uploads": 2,
            "upload-tso": True,
            "uplink-rate": "2mbit",
            "uplink-scheme": "qcut-d",
            "grant-report": "5ms",
            "downlink-ack-thin": 4,
            "event": ["3s outage=500ms", "5s interface=down", "6s interface=up"],
        },
    ),
    "full modem": ("drwa", {"upload": True, "uplink-rate": "2mbit", "firmware": "50kB"}),
    "shaper": (
        "drwa",
        {
            "uploads": 2,
            "upload-kind": "quic",
            "uplink-rate": "2mbit",
            "uplink-scheme": "autorate",
            "ack-thin": 4,
        },
    ),
    "twenty flows": ("drwa", {"flows": 20}),
    "knob during flows": (
        "drwa",
        {"flows": 5, "event": [f"{i}s lambda={0 if i % 2 else 1.5}" for i in range(1, 8)]},
    ),
    "interface": ("drwa", {"event": ["2s interface=down", "3s interface=up"]}),
    "move": ("drwa", {"event": ["2s move=wlan0", "5s move=rmnet0"]}),
    "objects": ("drwa", {"flows": 1, "object": ["100kB"], "think": "100ms"}),
    "loss": ("drwa", {"loss": "1%", "reorder": "5%", "duplicate": "1%"}),
    "IPv6": ("drwa", {"ipv6": True}),
    "accepted": ("drwa", {"accepted": True}),
    "MPTCP": ("drwa", {"mptcp": True}),
    "slow reader": ("drwa", {"reader": "slow:2mbit"}),
    "classic": ("drwa-classic", {"event": ["4s base-rtt=150ms"]}),
    "off": ("stock", {}),
}


def debug(scheme: str, kernel: str, options: dict[str, Any]) -> RunSpec:
    return replace(spec.parse(scheme, LINK | {"kernel": kernel} | options), flavour="debug")


@pytest.mark.lines
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_scenarios_leave_the_log_empty(kernel: str) -> None:
    specs = [debug(scheme, kernel, options) for scheme, options in SCENARIOS.values()]
    needs_kernels(specs)
    for name, result in zip(SCENARIOS, pool.run_specs(specs), strict=True):
        assert result["goodput_mbps"] > 0.2, name
        assert (result["counters"]["rounds"] > 10) == (name not in ("off", "MPTCP")), name


REPORTS = {
    "KASAN": "<3>BUG: KASAN: slab-use-after-free in tcp_drwa_sk_lambda+0x91/0xd0",
    "UBSAN": "<3>UBSAN: shift-out-of-bounds in net/ipv4/tcp_drwa_core.c:164:35",
    "lockdep": "<4>WARNING: possible circular locking dependency detected",
    "sleep": "<3>BUG: sleeping function called from invalid context at mm/slab.h:330",
    "RCU": "<4>WARNING: suspicious RCU usage\n<4>6.1 #1\n<4>--\n<4>tcp_drwa.c:49 suspicious",
    "warning": "<4>WARNING: CPU: 0 PID: 1 at net/ipv4/tcp_drwa_sysctl.c:198",
}


@pytest.mark.parametrize("name", list(REPORTS))
def test_reports_are_seen(name: str, tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(f"<5>Linux version 6.1\n{REPORTS[name]}\n<6>after\n")
    assert len(guest.kernel_complaints(tmp_path)) == 1


def test_leaks_are_seen(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text("<5>Linux version 6.1\n")
    (tmp_path / "kmemleak").write_text("")
    assert guest.kernel_complaints(tmp_path) == []
    (tmp_path / "kmemleak").write_text("unreferenced object 0x61a3b400 (size 256):\n")
    assert len(guest.kernel_complaints(tmp_path)) == 1
