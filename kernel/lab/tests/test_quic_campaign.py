# SPDX-License-Identifier: GPL-2.0-only
"""The targets of `lab campaign --quic`, on made-up results."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import Lab, without_guests
from drwalab import cases, kernels, quic_targets, quicstacks, schemes, targets
from drwalab.quic_targets import TARGETS
from drwalab.spec import PACED, RunSpec
from drwalab.targets import Group, Target
from synthetic import run

Result = dict[str, Any]

# Of each player: TCP and QUIC in Mb/s, p95 RTT in ms, TCP's share.
PLAYERS = {
    "stock": (3.0, 5.0, 1000.0, 0.75),
    "drwa-tc": (1.0, 7.0, 900.0, 0.25),
    "drwa-aqm": (4.4, 3.2, 120.0, 1.1),
    "codel": (4.2, 3.5, 90.0, 1.05),
}
IDLE_MS = 60.0
ALONE: dict[str, Any] = {"flows": 0, "neighbours": ["ngtcp2"]}
BESIDE: dict[str, Any] = {"flows": 1, "neighbours": ["aioquic:10s"]}
BBR: dict[str, Any] = {"neighbours": ["ngtcp2-bbr:10s"]}
LOADS: dict[str, dict[str, Any]] = {
    "CUBIC alone": ALONE,
    "CUBIC beside": BESIDE,
    "BBR alone": ALONE | BBR,
    "BBR beside": BESIDE | BBR,
    "call and game": BESIDE | {"neighbours": ["ngtcp2:5s", "call:1s/50s", "game:2s/50s"]},
    "two with CUBIC": ALONE | {"neighbours": ["ngtcp2", "aioquic:10s"]},
    "four echoes": ALONE | {"neighbours": ["stream", "ngtcp2:5s"]},
    "a video": BESIDE | {"neighbours": ["aioquic-video:5s"]},
}
WANTED = {
    "CUBIC alone, variable links: goodput of stock's": 3.2 / 5,
    "CUBIC alone, variable links: p95 RTT of stock's": 0.12,
    "CUBIC beside a governed download: p95 RTT of the idle link's": 2.0,
    "CUBIC beside it: TCP's part of a fair share, variable links": 1.1,
    "CUBIC beside it: TCP's part of a fair share, steady links": 1.1,
    "CUBIC beside it: QUIC's part of a fair share": 0.9,
    "CUBIC beside it: goodput of both, of stock's": 7.6 / 8,
    "BBR alone: goodput of stock's": 3.2 / 5,
    "BBR beside a governed download: TCP's share, of that without `--aqm`": 4.4,
    "call and game beside QUIC and a governed download: packets dropped": 2.0,
    "call and game beside them: p95 RTT of the idle link's": 2.0,
    # 3.2 and 1.6
    "two with CUBIC, 10 s apart: Jain's index": 0.9,
    "four echoes a second: p95 RTT of that with TCP's timestamps": 1.5,
    "a video, or objects, beside a governed download: p95 RTT of the idle link's": 2.0,
}


@cache
def minute() -> Result:
    return run("drwa-aqm", "drwa-aqm", lam=1.25, duration_s=60)


def made(scheme: str, **config: Any) -> Result:
    """A run whose neighbours have ten times of that in the first 10 s; the second has half."""
    r = deepcopy(minute())
    tcp, quic, p95, share = PLAYERS[scheme]
    r |= {"scheme": scheme, "name": scheme, "limits": schemes.DEFAULT_LIMITS.get(scheme)}
    if scheme == quic_targets.CODEL:
        r |= {"scheme": "stock", "aqm": scheme}
    r["config"] |= config
    r["rtt_ms"] |= {"p95": p95, "idle": {"p95": IDLE_MS}}
    r["provenance"] |= {"patch_ids": [], "stacks": ["ngtcp2 0.12"]}
    flows, kinds = config["flows"], quic_targets.kinds(config)
    r["flows"] = r["flows"][:flows]
    r["fair_share"] = share if flows else None
    r["counters"] = {"udp_dropped": 30, "udp_deaf": 0} if scheme == "drwa-aqm" else {}
    r["neighbours"] = [
        {"start_s": 10.0 if ":10s" in text else 0.0}
        | dict(zip(("lost", "dropped"), (2, 1) if kind in PACED else (None, None), strict=True))
        for text, kind in zip(config["neighbours"], kinds, strict=True)
    ]
    r["series"]["flow_goodput_mbps"] = [[tcp] * 600] * flows
    r["series"]["neighbour_goodput_mbps"] = [
        [10 * rate] * 100 + [rate] * 500 for rate in (quic / (1 + i) for i in range(len(kinds)))
    ]
    return r


def groups(load: str, **config: Any) -> list[Group]:
    with_load = LOADS[load] | config
    runs = [made(who, **with_load) for who in PLAYERS]
    echoes = made("drwa-aqm", **with_load | {"sockets": "--no-timestamps"})
    echoes["rtt_ms"]["p95"] *= 1.5
    labs = [made(who, **with_load | {"neighbours": ["quic:10s"]}) for who in PLAYERS]
    return targets.groups([*runs, echoes, *labs])


def load_of(target: Target) -> str:
    return next(load for load in LOADS if target.what.startswith(load))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.row}: {t.what}")
def test_each_target_measures_what_it_says(target: Target) -> None:
    """From the last neighbour's start on, and of the load that it names alone."""
    link = {"trace": None, "rate_bps": 10_000_000} if "steady" in target.what else {}
    load = load_of(target)
    # A start of 10 s for rates, which 0 s would not show
    late = {"neighbours": ["ngtcp2:10s"]} if load == "CUBIC alone" else {}
    mine, echoes, labs = groups(load, **link, **late)
    assert target.measure(mine) == pytest.approx(WANTED[target.what])
    if load == "four echoes":
        assert target.measure(echoes) is None
        with pytest.raises(targets.Missing):
            target.measure(labs)
        return
    assert target.measure(labs) is None
    for other in LOADS.keys() - {load}:
        assert target.measure(alike(other)) is None, other


@cache
def alike(load: str) -> Group:
    return groups(load)[0]


def test_variable_and_steady_links_have_their_own_targets() -> None:
    """Shares beside, and all of what is alone."""
    steady, variable = groups("CUBIC beside", trace=None)[0], groups("CUBIC beside")[0]
    measures = {t.what: t.measure for t in TARGETS if "a fair share, " in t.what}
    assert [m(steady) is None for m in measures.values()] == [True, False]
    assert [m(variable) is None for m in measures.values()] == [False, True]
    assert TARGETS[0].measure(groups("CUBIC alone", trace=None)[0]) is None


def test_table() -> None:
    """The last columns are those of the lab's sender, where that has what the stack has."""
    rows = quic_targets.players(groups("CUBIC beside"))
    assert [row[1] for row in rows[: len(PLAYERS)]] == list(PLAYERS)
    assert rows[0][0]
    assert rows[1][0] == ""
    cells = dict(zip(quic_targets.HEADS, rows[2], strict=True))
    assert cells["TCP, Mb/s"] == "4.40"
    assert cells["QUIC and other UDP, Mb/s"] == "3.20"
    assert cells["p95 of idle"] == "2.00"
    assert cells["Dropped by AQM"] == "30"
    assert (rows[0][-4], rows[0][-3]) == ("–", "–")
    assert rows[2][-2:] == ("1.00", "1.00")
    for load in ("BBR beside", "a video", "call and game"):
        assert quic_targets.players(groups(load))[2][-2:] == ("–", "–")
    calls = quic_targets.players(groups("call and game"))[2]
    cells = dict(zip(quic_targets.HEADS, calls, strict=True))
    assert (cells["Lost of calls, games"], cells["dropped by the phone"]) == ("4", "2")


def test_every_target_has_runs_of_its_players() -> None:
    known = cases.load()
    names = {t.case: {s.aqm or s.scheme.name for s in known[t.case].specs} for t in TARGETS}
    assert names["quic-stacks"] == set(PLAYERS)
    assert names["quic-loads"] == {"stock", "drwa-aqm", "codel"}
    stacks = {quicstacks.LOADS[n.kind].stack for n in _neighbours("quic-stacks")}
    assert stacks == {load.stack for load in quicstacks.LOADS.values()}
    assert any(s.ipv6 for s in known["quic-stacks"].specs)
    assert any(s.client for s in known["quic-loads"].specs)
    rows = {t.row for t in TARGETS} | set(quic_targets.ELSEWHERE)
    assert rows == {str(n) for n in range(1, 12)}
    assert len({(t.row, t.what) for t in TARGETS}) == len(TARGETS)
    assert {t.what for t in TARGETS} == set(WANTED)


def _neighbours(case: str) -> list[Any]:
    specs = cases.load()[case].specs
    return [n for s in specs for n in s.neighbours if n.kind in quicstacks.LOADS]


def test_links_by_their_mean_rate(tmp_path: Path) -> None:
    """Those above are left out; without any, that is told."""
    (tmp_path / "slow.down").write_text("1\n2\n")
    (tmp_path / "fast.down").write_text("1\n1\n1\n1\n")
    names = {
        s.down.trace.path.name
        for s in cases.load(tmp_path)["quic-loads"].specs
        if s.down.trace and s.down.trace.path.parent == tmp_path
    }
    assert names == {"slow.down"}
    (tmp_path / "slow.down").unlink()
    (why,) = cases.load(tmp_path)["quic-loads"].skipped
    assert f"{tmp_path} has no *.down of up to 20mbit" in why


def test_command(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of its own, each case once; only the programs need another kernel."""

    def of(one: RunSpec) -> Result:
        return made(
            one.aqm or one.scheme.name,
            flows=one.flows,
            neighbours=[str(n) for n in one.neighbours],
            sockets=" ".join(one.sockets.words()),
            rate_bps=one.down.rate_bps,
            trace=one.down.trace.path.name if one.down.trace else None,
        )

    seen = without_guests(monkeypatch, tmp_path, of)
    done = lab(f"campaign --quic --json {tmp_path}/c.json")
    assert done.code == 0, done.err
    text = (tmp_path / "quic-stacks.md").read_text()
    assert text.splitlines()[2].startswith("11 of 14 targets are met")
    assert "| 1 | CUBIC alone, variable links: goodput of stock's | ≥ 0.95 | 0.640 |" in text
    theirs = [line.split("|")[-3:-1] for line in text.splitlines() if "| CUBIC alone" in line]
    assert theirs[0] == [" 0.700; 0 of 1 ", " missed "]
    assert "| 11 | off, packets equal to the byte" in text
    assert text.count("## quic-stacks\n") == text.count("## quic-loads\n") == 1
    programs = f"BPF programs {kernels.programs_id()}. Stacks: ngtcp2 0.12"
    end = f"Kernel: 6.12.48-drwa; no patches. {programs}. Repeat it with `kernel/lab/lab "
    assert f"{end}campaign --quic`; " in text
    assert len(seen) == len(set(seen))
    assert {(s.scheme.bpf, s.flavour) for s in seen} == {(True, "bpf"), (False, "base")}
    for words, message in (
        ("--row 10", "--row: 10 is at most 400 instructions"),
        ("--uplink", "--quic: not with --uplink"),
        ("--form drwa-tc", "--form: not with --quic"),
    ):
        done = lab(f"campaign --quic --json {tmp_path}/c.json {words}")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert message in done.err
