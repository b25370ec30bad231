# SPDX-License-Identifier: GPL-2.0-only
import inspect
import json
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import synthetic
from conftest import Lab
from drwalab import cases, cli, kernels, network, pool, schemes, spec
from drwalab.sources import KERNEL_DIR
from drwalab.spec import RunSpec, SpecError
from drwalab.uplink import SCHEMES
from drwatool.version import VERSION, this_version

MINIMAL = {"rate": "10mbit"}


def test_defaults() -> None:
    run = spec.parse("stock", MINIMAL)
    assert (run.kernel, run.flavour, run.cc, run.aqm) == ("6.12", "drwa", "cubic", None)
    assert (run.base_rtt_us, run.duration_us, run.flows) == (50_000, 60_000_000, 1)
    assert (run.down.rate_bps, run.down.buffer_bytes, run.up) == (10**7, 1_500_000, None)
    assert run.name == "stock"


@pytest.mark.parametrize(
    ("scheme", "options", "name"),
    [
        ("static:262144", {}, "static 262144"),
        ("static:64KiB", {}, "static 65536"),
        ("android-lte", {}, "static android-lte"),
        ("drwa", {}, "drwa λ=1.25"),
        ("drwa-classic", {}, "drwa-classic λ=3.00"),
        ("drwa", {"lambda": "2"}, "drwa λ=2.00"),
        ("drwa-tc", {"lambda": "0"}, "drwa-tc λ=0.00"),
        ("stock", {"lambda": "2"}, "stock"),
        ("stock", {"cc": "bbr", "aqm": "codel"}, "stock, bbr, codel"),
        ("stock", {"unpatched": True}, "stock, unpatched"),
        ("idle", {"cc": "bbr", "aqm": "codel"}, "idle link"),
    ],
)
def test_names(scheme: str, options: dict[str, object], name: str) -> None:
    assert spec.parse(scheme, MINIMAL | options).name == name


def test_shipped_limits() -> None:
    assert schemes.find("android-lte").rmem == (524288, 1048576, 2097152)
    assert schemes.find("android-lte").wmem == (262144, 524288, 1048576)
    assert schemes.find("android-13plus").rmem[2] == 16777216
    assert schemes.find("paper-hspap").rmem[2] == 262144
    assert schemes.find("static:10000").rmem == (4096, 10000, 10000)
    assert schemes.find("static:1MB").rmem == (4096, 87380, 1000000)
    for name in schemes.names()[:-1]:
        low, default, high = schemes.find(name).rmem
        assert low <= default <= high


def test_limits_of_the_governed_phone() -> None:
    """Those of today's phones, unless others are asked for; other schemes have their own."""
    today = schemes.find("android-13plus")
    assert today.rmem == (2097152, 6291456, 16777216)
    plain = spec.parse("drwa", MINIMAL).scheme
    assert (plain.rmem, plain.wmem, plain.limits) == (today.rmem, today.wmem, "android-13plus")
    assert schemes.find("drwa-classic").rmem == (4096, 131072, 16777216)
    script = network.setup_script(spec.parse("drwa", MINIMAL))
    assert "put phone /proc/sys/net/ipv4/tcp_rmem '2097152 6291456 16777216'" in script
    older = spec.parse("drwa", MINIMAL | {"limits": "android-lte"})
    lte = schemes.find("android-lte")
    assert (older.scheme.rmem, older.scheme.wmem) == (lte.rmem, lte.wmem)
    assert older.name == "drwa λ=1.25, limits android-lte"
    assert spec.parse("drwa", MINIMAL | {"limits": "android-13plus"}).scheme == plain
    assert spec.parse("stock", MINIMAL | {"limits": "android-lte"}) == spec.parse("stock", MINIMAL)


def test_events_come_in_order_and_keep_the_rest() -> None:
    run = spec.parse("stock", MINIMAL | {"event": ["3s loss=1%", "2s base-rtt=80ms", "4s loss=0%"]})
    assert [str(e) for e in run.events] == ["2s base-rtt=80ms", "3s loss=1%", "4s loss=0%"]
    events = [line for line in network.agent_spec(run).splitlines() if line.startswith("event")]
    # netem takes its whole state at once, so the change of one must not undo the other.
    assert "delay 40000us &&" in events[0]
    assert "delay 40000us loss 1% &&" in events[1]
    assert "delay 40000us &&" in events[2]


def test_the_idle_link_is_that_of_the_link_alone() -> None:
    events = ["1s rate=2mbit", "2s outage=1s"]
    link: dict[str, object] = {
        "rate": "10mbit",
        "uplink-rate": "2mbit",
        "base-rtt": "35ms",
        "loss": "1%",
        "duration": "20s",
        "event": events,
    }
    idle = spec.parse("idle", link)
    assert (idle.flows, idle.events[0].what, idle.duration_us) == (0, "rate", 20_000_000)
    loads: list[dict[str, object]] = [
        {"shape": "4mbit", "initcwnd": "3"},
        {"flows": "5", "flow-gap": "1s", "reader": "small:100B", "rcvbuf": "64kB", "seed": "7"},
        {"flows": "0", "object": ["8kB"], "think": "1s", "keep-alive": True, "upload": True},
        {"cc": "bbr", "aqm": "codel", "promotion": "500ms/7s", "no-timestamps": True},
        {"drx": "160ms/10ms/100ms"},
        {"syn-scale": "0", "strip-timestamps": True},
        {"client": "all", "client-rtt": "30ms", "client-jitter": "12ms"},
        {"neighbour": ["quic"], "second": "clat", "flows": "2", "clock-drift": "500ppm"},
        {"uploads": "3", "upload-cc": "bbr", "upload-lie": "-20ms", "probe-kind": "opaque"},
    ]
    for load in loads:
        assert spec.parse("stock", link | load).idle() == idle
        assert spec.parse("idle", link | load | {"seed": None}) == idle
    event = [*events, "3s lambda=2", "4s clock=1s", "5s timestamps=off"]
    assert spec.parse("drwa", link | {"lambda": "2", "event": event}).idle() == idle
    assert idle.idle() == idle
    modem = {"firmware": "200kB", "grant": "5ms", "grant-report": "10ms"}
    with_modem = spec.parse("idle", link | modem)
    for scheme in SCHEMES:
        assert spec.parse("stock", link | modem | {"uplink-scheme": scheme}).idle() == with_modem
    for other in ({"base-rtt": "36ms"}, {"duration": "21s"}, {"loss": "2%"}, {"ipv6": True}, modem):
        assert spec.parse("stock", link | other).idle() != idle


def requests(**options: object) -> list[tuple[int, int]]:
    given = MINIMAL | {"arrival": "poisson", "think": "100ms", "duration": "200s"}
    run = spec.parse("stock", given | {"object": ["8kB", "16kB", "32kB"]} | options)
    lines = [line.split() for line in network.agent_spec(run).splitlines()]
    return [(int(line[1]), int(line[2])) for line in lines if line[0] == "request"]


def test_poisson_arrivals() -> None:
    """Gaps are exponential with the mean asked for, sizes uniform; all from the run's seed."""
    drawn = requests()
    at_us = np.array([at for at, _ in drawn])
    gaps = np.diff(at_us)
    assert len(drawn) == pytest.approx(2000, rel=0.1)
    assert gaps.mean() == pytest.approx(100_000, rel=0.1)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)
    assert 0 <= at_us.min() <= at_us.max() < 200_000_000
    for size in (8_000, 16_000, 32_000):
        assert sum(s == size for _, s in drawn) == pytest.approx(len(drawn) / 3, rel=0.15)
    assert requests() == drawn
    assert requests(seed=2) != drawn


def test_command_repeats_the_run(lab: Lab, asked: list[RunSpec], tmp_path: Path) -> None:
    trace = tmp_path / "a link.down"
    trace.write_text("1\n2\n")
    given = {
        "trace": trace,
        "uplink-rate": "2mbit",
        "base-rtt": "35ms",
        "loss": "0.5%",
        "reorder": "5%",
        "duplicate": "0.1%",
        "ack-thin": "8",
        "promotion": "500ms/7s",
        "drx": "80ms/10ms/20ms",
        "reader": "burst:4s/2MB",
        "flows": "3",
        "flow-gap": "1.5s",
        "duration": "12.5s",
        "cc": "bbr",
        "aqm": "pie",
        "event": [
            "1s base-rtt=150ms",
            "2s uplink-rate=0mbit",
            "3s loss=1%",
            "4s lambda=2",
            "5s outage=2s",
        ],
        "object": ["320kB", "64KiB"],
        "think": "1s",
        "keep-alive": True,
        "push": True,
        "upload": True,
        "ipv6": True,
        "shape": "800kbit",
        "initcwnd": "3",
        "lambda": "2.5",
        "limits": "static:100kB",
        "seed": "7",
    }
    changes = ["1s interface=down", "2s interface=up", "3s move=wlan0", "4s move=rmnet0"]
    company: list[dict[str, object]] = [
        {"neighbour": ["cubic", "bbr:2s", "quic:0s/3s", "liar:1s/500ms", "stream"], "flows": "3"},
        {"second": "vpn", "flows": "2", "clock-drift": "-500ppm", "clock-tick": "4ms"},
        {"gro": "1ms", "tso": True},
        {"syn-scale": "7"},
        {"clock-tick": "1us"},
        {"syn-scale": "0", "strip-timestamps": True},
        {"event": ["1s clock=-200ms", "2s clock=1.5s", "3s timestamps=off", "4s timestamps=on"]},
    ]
    uplinks: list[dict[str, object]] = [
        {"uplink-scheme": "drwa", "uplink-target": "10ms", "firmware": "1.5MB", "grant": "20ms"},
        {"uplink-scheme": "qcut-d", "grant-report": "5ms", "uplink-loss": "1%"},
        {"uplink-scheme": "drwa", "modem-tells": "4ms", "modem-hides": "64kB"},
        {"uplink-scheme": "drwa", "modem-tells": "4ms", "modem-bearers": "2"},
        {"grant": "0ms", "upload": True, "upload-tso": True},
        {"firmware": "300kB", "uploads": "3", "upload-kind": "quic", "probe-kind": "opaque"},
        {"upload": True, "upload-cc": "bbr", "upload-lie": "-50ms", "downlink-ack-thin": "8"},
    ]
    sockets: list[dict[str, object]] = [
        {"rcvbuf": "64kB", "window-clamp": "30kB", "mss": "536B", "fastopen": True},
        {"no-timestamps": True, "no-window-scaling": True, "accepted": True},
        {"mptcp": True, "rcvbuf": "1MB"},
        {"event": changes},
    ]
    readers = ("slow:2mbit", "pause:20s/10s", "small:100B", "every:500ms", "lowat:300kB")
    wanted = [
        *(spec.parse("stock", MINIMAL | each) for each in (*company, *sockets)),
        *(spec.parse("stock", MINIMAL | {"uplink-rate": "5mbit"} | each) for each in uplinks),
        *(spec.parse("stock", MINIMAL | {"reader": reader}) for reader in readers),
        spec.parse("drwa-classic", given),
        spec.parse("idle", given),
        spec.parse("static:100kB", MINIMAL | {"unpatched": True}),
        spec.parse("stock", MINIMAL | {"object": ["8kB"], "arrival": "poisson", "think": "100ms"}),
        *(run for case in cases.load().values() for run in case.specs),
    ]
    for run in wanted:
        _, *words = shlex.split(run.command())
        for option, link in (("--trace", run.down), ("--uplink-trace", run.up)):
            if link and link.trace:
                words[words.index(option) + 1] = str(link.trace.path)
        asked.clear()
        assert lab("", *words, "--json", "-").code == 0
        assert asked == [run]


def test_cases_have_the_runs_they_promise() -> None:
    known = cases.load()
    law = known["paper-law"].specs
    assert len(law) == 6 * (1 + 3)
    assert {r.lambda_hundredths for r in law} == {None, 200, 300, 400}
    assert {(r.down.rate_bps, r.base_rtt_us) for r in law} == {
        (rate, base) for rate in (2 * 10**6, 4 * 10**6, 2 * 10**7) for base in (100_000, 200_000)
    }
    assert len({r.scheme.name for r in known["paper-fig9"].specs}) == 8
    steps = known["b04-rtt-steps"].specs
    assert {str(run.events[0]) for run in steps} == {
        f"20s base-rtt={ms}ms" for ms in (60, 150, 300)
    }
    assert {run.sockets.mss_bytes for run in known["b12-sockets"].specs} == {0, 88, 536, 8960}
    assert {run.keep_alive for run in known["b03-start"].specs} == {False, True}
    for case in known.values():
        assert len(set(case.specs)) == len(case.specs)
    with pytest.raises(SpecError, match="'x' is unknown"):
        cases.choose(["paper-law", "x"])


def test_means_of_a_case(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those over links, on the screen and as JSON; a case without them has none."""
    made = [synthetic.run(name, name, duration_s=10) for name in ("stock", "drwa")]
    monkeypatch.setattr(pool, "find_kernels", lambda specs: {})
    monkeypatch.setattr(pool, "run_specs", lambda specs: made)
    path = tmp_path / "means.json"
    done = lab(f"case run b01-traces b21-liar --means {path}")
    assert done.code == 0, done.err
    assert "p95 of idle" in done.out
    written = json.loads(path.read_text())
    assert list(written) == ["b01-traces"]
    assert [(m["name"], m["links"]) for m in written["b01-traces"]] == [("stock", 1), ("drwa", 1)]
    assert written["b01-traces"][0]["goodput_of_baseline"] == pytest.approx(1)
    assert lab(f"case run b21-liar --means {tmp_path}/none/x").code == 2
    case = cases.choose(["b01-traces"])[0]
    assert "| 50 | stock | 1 | 1.000 |" in cases.record(case, made, 1.0)


WRONG = [
    ("", "Missing option '--scheme'"),
    ("--scheme fast --rate 1mbit", "--scheme: 'fast' is unknown: choose from stock, "),
    (
        "--scheme drwatc --rate 1mbit",
        "--scheme: 'drwatc' is unknown: did you mean drwa-tc or drwa?",
    ),
    ("--scheme stock --rate 1mbit --cc cubik", "--cc: 'cubik' is unknown: did you mean cubic?"),
    ("--scheme static:x --rate 1mbit", "--scheme: 'x' is not a number"),
    ("--scheme static:100 --rate 1mbit", "--scheme: 'static:100' is out of 4096 to 67108864 bytes"),
    ("--scheme stock", "--rate or --trace: one of them is needed"),
    ("--scheme stock --rate 1mbit --trace TRACE", "--rate or --trace: not both"),
    ("--scheme stock --rate -1mbit", "--rate: '-1mbit' is negative"),
    ("--scheme stock --rate 0mbit", "--rate: '0mbit' is not more than 0"),
    (
        "--scheme stock --rate 10",
        "--rate: '10' is not a number with a unit (bit, kbit, mbit, gbit)",
    ),
    ("--scheme stock --trace NONE", "No such file or directory"),
    ("--scheme stock --trace EMPTY", "empty"),
    ("--scheme stock --trace BACK", "line 2 goes back in time"),
    ("--scheme stock --trace WORDS", "line 1 is no time in ms: 'word'"),
    ("--scheme stock --trace ZEROS", "every time is 0"),
    ("--scheme drwa --rate 1mbit --lambda 0.99", "--lambda: 0.99 is out of 1.00 to 10.00"),
    ("--scheme drwa --rate 1mbit --lambda 10.01", "--lambda: 10.01 is out of 1.00 to 10.00"),
    ("--scheme drwa --rate 1mbit --lambda -2", "--lambda: '-2' is not a number"),
    ("--scheme drwa --rate 1mbit --lambda three", "--lambda: 'three' is not a number"),
    ("--scheme stock --rate 1mbit --lambda 2", "--lambda: none of the schemes is drwa"),
    ("--scheme drwa --rate 1mbit --limits few", "--limits: 'few' is unknown: choose from stock"),
    ("--scheme drwa --rate 1mbit --limits idle", "--limits: idle has none of its own"),
    ("--scheme stock --rate 1mbit --limits stock", "--limits: none of the schemes is drwa"),
    ("--scheme stock --rate 1mbit --neighbour vegas", "--neighbour: 'vegas' is unknown: choose"),
    ("--scheme stock --rate 1mbit --neighbour quic:1", "--neighbour: '1' is not a number with a"),
    ("--scheme stock --rate 1mbit --neighbour quic:1s/0s", "'quic:1s/0s' has no length"),
    ("--scheme stock --rate 1mbit --neighbour quic:60s", "'quic:60s' is not before the end"),
    ("--scheme stock --rate 1mbit --neighbour liar --neighbour liar", "more than one liar"),
    ("--scheme stock --rate 1mbit --second wifi", "--second: 'wifi' is unknown: choose from clat"),
    ("--scheme stock --rate 1mbit --second clat", "--second: needs two --flows"),
    ("--scheme stock --rate 1mbit --flows 2 --second vpn --ipv6", "--second: not with --ipv6"),
    (
        "--scheme stock --rate 1mbit --flows 2 --second vpn --event '1s move=wlan0'",
        "--second: not with an event interface or move",
    ),
    ("--scheme stock --rate 1mbit --clock-drift 500", "'500' is not a whole number of ppm"),
    ("--scheme stock --rate 1mbit --clock-drift 10001ppm", "10001 is out of ±10000 ppm"),
    ("--scheme stock --rate 1mbit --clock-tick 500us", "has to be 1us, or a whole number of ms to"),
    ("--scheme stock --rate 1mbit --event '1s clock=0ms'", "'0ms' is no whole number of ms, or 0"),
    ("--scheme stock --rate 1mbit --event '1s timestamps=no'", "'no' is neither off nor on"),
    ("--scheme stock --rate 1mbit --syn-scale 15", "'15' is not a whole number from 0 to 14"),
    ("--scheme stock --rate 1mbit --syn-scale -1", "'-1' is not a whole number from 0 to 14"),
    ("--scheme stock --rate 1mbit --gro 1", "--gro: '1' is not a number with a unit"),
    ("--scheme stock --rate 1mbit --kernel 5.10 --gro 1ms", "--gro: the lab's links have none"),
    ("--scheme stock --rate 1mbit --shape 35gbit", "--shape: '35gbit' is out of 8bit to 34gbit"),
    ("--scheme stock --rate 1mbit --initcwnd 0", "--initcwnd: '0' is not a whole number from 1"),
    ("--scheme stock --rate 1mbit --tso --loss 1%", "--tso: not with --loss, --duplicate or"),
    ("--scheme stock --rate 1mbit --cc fast", "--cc: 'fast' is unknown: choose from cubic, bbr"),
    ("--scheme stock --rate 1mbit --aqm red", "--aqm: 'red' is unknown: choose from codel"),
    ("--scheme stock --rate 1mbit --kernel 5.4", "--kernel: '5.4' is unknown: choose from 6.12"),
    ("--scheme stock --rate 1mbit --flows 0", "--flows: 0 leaves nothing to measure"),
    ("--scheme stock --rate 1mbit --flows many", "--flows: 'many' is not a whole number"),
    ("--scheme stock --rate 1mbit --flows 257", "--flows: '257' is not a whole number from 0 to"),
    ("--scheme stock --rate 1mbit --buffer 100", "--buffer: 100 B is out of"),
    ("--scheme stock --rate 1mbit --base-rtt 50", "--base-rtt: '50' is not a number with a unit"),
    ("--scheme stock --rate 1mbit --duration 0s", "--duration: '0s' is not more than 0"),
    ("--scheme stock --rate 1mbit --duration 50ms", "--duration: has to be a multiple of 100ms"),
    ("--scheme stock --rate 1mbit --loss 1", "--loss: '1' is not a number with a unit (%)"),
    ("--scheme stock --rate 1mbit --object 0kB", "--object: '0kB' is not more than 0"),
    ("--scheme stock --rate 1mbit --keep-alive", "--keep-alive: needs --object"),
    ("--scheme stock --rate 1mbit --object 8kB --push", "--push: needs --keep-alive"),
    ("--scheme stock --rate 1mbit --flow-gap 1", "--flow-gap: '1' is not a number with a unit"),
    ("--scheme stock --rate 1mbit --flows 4 --flow-gap 20s", "the last of 4 flows would not start"),
    ("--scheme stock --rate 1mbit --arrival often", "--arrival: 'often' is unknown: choose from"),
    ("--scheme stock --rate 1mbit --arrival poisson", "--arrival: poisson needs --object"),
    (
        "--scheme stock --rate 1mbit --arrival poisson --object 8kB --keep-alive",
        "--arrival: poisson fetches each object on its own connection",
    ),
    (
        "--scheme stock --rate 1mbit --arrival poisson --object 8kB --think 1ms",
        "--think: more than 10000 objects",
    ),
    ("--scheme stock --rate 1mbit --reorder 5", "--reorder: '5' is not a number with a unit (%)"),
    ("--scheme stock --rate 1mbit --duplicate 200%", "--duplicate: '200%' is more than 100%"),
    ("--scheme stock --rate 1mbit --ack-thin 1", "--ack-thin: '1' is not a whole number from 2"),
    ("--scheme stock --rate 1mbit --promotion 1s", "--promotion: '1s' is not TIME/TIME"),
    ("--scheme stock --rate 1mbit --promotion 0s/7s", "--promotion: '0us/7s' has a time"),
    ("--scheme stock --rate 1mbit --promotion 1s/7", "--promotion: '7' is not a number"),
    ("--scheme stock --rate 1mbit --drx 40ms/10ms", "--drx: '40ms/10ms' is not TIME/TIME/TIME"),
    ("--scheme stock --rate 1mbit --drx 40ms/10ms/20", "--drx: '20' is not a number with a unit"),
    ("--scheme stock --rate 1mbit --drx 40ms/40ms/20ms", "listens all the time, or never"),
    ("--scheme stock --rate 1mbit --drx 40ms/0ms/20ms", "listens all the time, or never"),
    ("--scheme stock --rate 1mbit --drx 40ms/10ms/0ms", "listens all the time, or never"),
    ("--scheme stock --rate 1mbit --reader lazy", "--reader: 'lazy' is none of fast, slow:RATE"),
    ("--scheme stock --rate 1mbit --reader slow", "--reader: 'slow' is none of fast, slow:RATE"),
    (
        "--scheme stock --rate 1mbit --reader slow:1bit",
        "--reader: 'slow:1bit' is slower than 8kbit",
    ),
    (
        "--scheme stock --rate 1mbit --reader burst:4s/x",
        "--reader: 'x' is not a number with a unit",
    ),
    ("--scheme stock --rate 1mbit --reader every:0ms", "'every:0ms' has a number that is not"),
    ("--scheme stock --rate 1mbit --reader lowat:9MB", "'lowat:9MB' sleeps for more than half"),
    (
        "--scheme stock --rate 1mbit --reader small:0",
        "--reader: 'small:0' has a number that is not",
    ),
    (
        "--scheme stock --rate 1mbit --flows 0 --upload --reader small:1",
        "--reader: needs bulk downloads",
    ),
    (
        "--scheme stock --rate 1mbit --event '2s outage=3s' --event '4s outage=1s'",
        "--event '4s outage=1s': begins before the end of '2s outage=3s'",
    ),
    (
        "--scheme stock --rate 1mbit --firmware 600kB",
        "--firmware: needs --uplink-rate or --uplink-trace",
    ),
    (
        "--scheme stock --rate 1mbit --uplink-rate 1mbit --uplink-scheme cake",
        "--uplink-scheme: 'cake' is unknown: choose from pfifo, rmnet",
    ),
    (
        "--scheme stock --rate 1mbit --uplink-rate 1mbit --grant 8ms --uplink-buffer 1MB",
        "--uplink-buffer: with a modem, --firmware is its size",
    ),
    (
        "--scheme stock --rate 1mbit --uplink-rate 1mbit --uplink-scheme pfifo --uplink-target 1s",
        "--uplink-target: pfifo has none",
    ),
    (
        "--scheme stock --rate 1mbit --uplink-rate 1mbit --firmware 1kB",
        "--firmware: 1000 B is out of 1500B to 4GiB",
    ),
    (
        "--scheme stock --rate 1mbit --uplink-rate 1mbit --firmware 1MB --flows 2 --second vpn",
        "--second: not with --uplink-scheme",
    ),
    ("--scheme stock --rate 1mbit --client some", "--client: 'some' is unknown: choose from all"),
    ("--scheme stock --rate 1mbit --client-nat", "--client-nat: needs --client"),
    ("--scheme stock --rate 1mbit --client-rtt 1ms", "--client-rtt: needs --client"),
    (
        "--scheme stock --rate 1mbit --client all --client-jitter 5ms",
        "--client-jitter: is more than --client-rtt",
    ),
    ("--scheme stock --rate 1mbit --client half", "--client: half needs two --flows"),
    (
        "--scheme stock --rate 1mbit --client all --flows 0 --upload",
        "--client: needs downloads, --flows or --object",
    ),
    (
        "--scheme stock --rate 1mbit --client all --client-nat --ipv6",
        "--client-nat: not with --ipv6",
    ),
    (
        "--scheme drwa --rate 1mbit --client all --client-nat",
        "--client-nat: the kernel of the scheme drwa has none",
    ),
    (
        "--scheme stock --rate 1mbit --client all --accepted",
        "--client: not with --second, --accepted or --mptcp",
    ),
    (
        "--scheme stock --rate 1mbit --client all --event '1s move=wlan0'",
        "--client: not with an event interface or move",
    ),
    ("--scheme stock --rate 1mbit --upload-cc bbr", "--upload-cc: needs --upload or --uploads"),
    (
        "--scheme stock --rate 1mbit --upload --upload-kind quic --upload-lie 5ms",
        "--upload-lie: concerns TCP",
    ),
    ("--scheme stock --rate 1mbit --uploads 65", "--uploads: '65' is not a whole number from 1"),
    ("--scheme stock --rate 1mbit --probe-kind x", "--probe-kind: 'x' is unknown"),
    ("--scheme stock --rate 1mbit --mss 87", "--mss: 87 B is out of 88 to 8960 bytes"),
    ("--scheme stock --rate 1mbit --mss 9kB", "--mss: 9000 B is out of 88 to 8960 bytes"),
    (
        "--scheme stock --rate 1mbit --mss 8960 --buffer 2kB",
        "--buffer: holds no packet with an MSS",
    ),
    ("--scheme stock --rate 1mbit --rcvbuf 0", "--rcvbuf: 0 B is out of 2304 to 536870912 bytes"),
    ("--scheme stock --rate 1mbit --window-clamp x", "--window-clamp: 'x' is not a number"),
    ("--scheme stock --rate 1mbit --accepted --fastopen", "--accepted: --fastopen concerns"),
    ("--scheme stock --rate 1mbit --accepted --reader small:1", "--accepted: needs bulk downloads"),
    ("--scheme stock --rate 1mbit --mptcp --mss 100", "--mptcp: not with --fastopen, --mss or"),
    (
        "--scheme stock --rate 1mbit --event '1s interface=off'",
        "--event '1s interface=off': 'off' is neither down nor up",
    ),
    ("--scheme stock --rate 1mbit --event '1s move=eth0'", "'eth0' is neither rmnet0 nor wlan0"),
    (
        "--scheme stock --rate 1mbit --object 8kB --event '1s interface=down'",
        "--event '1s interface=down': not with --object",
    ),
    ("--scheme stock --rate 1mbit --seed -1", "--seed: '-1' is not a whole number"),
    ("--scheme stock --rate 1mbit --uplink-buffer 9kB", "--uplink-buffer: needs --uplink-rate"),
    ("--scheme drwa --rate 1mbit --unpatched", "the scheme drwa needs the patched kernel"),
    ("--scheme stock --rate 1mbit --event 10s", "is not 'TIME NAME=VALUE'"),
    ("--scheme stock --rate 1mbit --event '1s x=1'", "is not 'TIME NAME=VALUE'"),
    ("--scheme stock --rate 1mbit --event '1 loss=1%'", "'1' is not a number with a unit"),
    ("--scheme stock --rate 1mbit --event '60s loss=1%'", "is not before the end of the run"),
    ("--scheme stock --trace TRACE --event '1s rate=1mbit'", "needs --rate"),
    ("--scheme stock --rate 1mbit --event '1s uplink-rate=1mbit'", "needs --uplink-rate"),
    ("--scheme stock --rate 1mbit --event '1s lambda=2'", "needs the scheme drwa"),
    ("--scheme drwa --rate 1mbit --event '1s lambda=11'", "11.00 is out of 1.00 to 10.00"),
    ("--scheme stock --rate 1mbit --json NONE/x.json", "is no folder"),
    ("--scheme stock --rate 1mbit --json FOLDER", "is a folder"),
    ("--scheme stock --rate 1mbit --pcap TRACE", "--pcap: "),
    ("--scheme stock --rate 1mbit --nothing", "No such option: --nothing"),
    ("--scheme stock --rate 1mbit extra", "unexpected extra argument"),
    ("--scheme stock --rate", "requires an argument"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
@pytest.mark.usefixtures("no_guest")
def test_wrong_input_is_one_line_and_exit_code_2(
    lab: Lab, tmp_path: Path, words: str, message: str
) -> None:
    contents = {"TRACE": "1\n", "EMPTY": "", "BACK": "2\n1\n", "WORDS": "word\n", "ZEROS": "0\n0\n"}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "FOLDER").mkdir()
    for name in (*contents, "NONE", "FOLDER"):
        words = words.replace(name, str(tmp_path / name))
    done = lab("run " + words)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.startswith("lab: ")
    assert done.err.count("\n") == 1
    assert done.err.endswith("\n")


@pytest.mark.usefixtures("no_guest")
def test_missing_kernel_names_the_command(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = lab("run --scheme stock --rate 1mbit --kernel 6.1 --unpatched")
    assert done.code == 2
    assert done.err == (
        "lab: kernel 6.1 base is not built: "
        "run kernel/lab/lab kernel build --kernel 6.1 --flavour base\n"
    )


@pytest.mark.usefixtures("no_guest")
def test_wrong_commands(lab: Lab, tmp_path: Path) -> None:
    for words in (
        "frob",
        "case run nothing",
        "case run",
        "trace generate x --duration 1ms",
        "trace generate x --radio drives:1",
        "trace generate x --radio drive:one",
    ):
        done = lab(words)
        assert (done.code, done.err.count("\n")) == (2, 1), words
    done = lab("trace info", str(tmp_path / "none"))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert lab("").code == 2


def test_help_explains_every_option(lab: Lab) -> None:
    done = lab("run --help")
    assert done.code == 0
    for option in (*spec.DEFAULTS, "rate", "trace", "loss", "event", "upload", "json", "pcap"):
        assert f"--{option}" in done.out


def test_help_is_in_groups_and_without_types(lab: Lab) -> None:
    grouped = [name for names in cli.RUN_GROUPS.values() for name in names.split()]
    assert sorted(grouped) == sorted(inspect.signature(cli.run).parameters)
    done = lab("run --help")
    heads = re.findall("╭─ (.*?) ─", done.out)
    assert sorted(heads) == sorted(["Options", *cli.RUN_GROUPS])
    for command in ("", "run", "kernel build", "case run", "trace generate", "machine", "evidence"):
        done = lab(f"{command} --help")
        assert done.code == 0
        assert not re.search("<(bool|str|int|path|file|float)>", done.out), command


def test_help_names_every_flavour(lab: Lab) -> None:
    told = " ".join(re.findall(r"[\w-]+", lab("kernel build --help").out))
    assert [name for name in kernels.FLAVOURS if f" {name} " not in f" {told} "] == []


def test_version(lab: Lab) -> None:
    """The other tools'"""
    done = lab("--version")
    assert (done.code, done.out, done.err) == (0, f"lab {this_version()}\n", "")
    loader = (KERNEL_DIR / "bpf/drwa-bpf.c").read_text()
    assert f'#define VERSION\t"{VERSION}"\n' in loader
    drwa = KERNEL_DIR.parent / "device/drwa"
    said = subprocess.run([drwa, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"drwa {this_version()}\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("runn", "Did you mean 'run'"),
        ("run --schem drwa", "Possible options: --scheme"),
        ("run --scheme drwaa --rate 1mbit", "did you mean drwa"),
        ("kernel build --flavour bfp", "did you mean bpf?"),
        ("case run lamda", "did you mean lambda"),
    ],
)
def test_did_you_mean(lab: Lab, words: str, meant: str) -> None:
    done = lab(words)
    assert done.code == 2
    assert meant in done.err


def test_messages_fit(lab: Lab) -> None:
    """Where there are many names, some are told."""
    for words in ("run --scheme 123 --rate 1mbit", "case run 123", "kernel build --flavour 123"):
        done = lab(words)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert len(done.err) <= 200, done.err
    assert "choose from stock, idle, " in lab("run --scheme 123 --rate 1mbit").err


def test_trace_commands(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "made.down"
    assert lab("trace generate --duration 5s --seed 3", str(path)).code == 0
    done = lab("trace info", str(path))
    assert done.code == 0
    assert "length         5 s" in done.out
