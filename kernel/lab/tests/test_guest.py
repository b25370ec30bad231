# SPDX-License-Identifier: GPL-2.0-only
"""Real guests. Durations are of virtual time, and short."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

from conftest import Lab, Run, Script, needs_kernels
from drwalab import guest, kernels, network, pool, results, spec
from drwalab.guest import GuestError
from drwalab.kernels import Kernel
from drwalab.sources import cache_dir
from drwalab.spec import RunSpec
from test_traces import replay

pytestmark = pytest.mark.guest

SHORT = {"rate": "10mbit", "base-rtt": "20ms", "duration": "1s"}
NOBODY = 65534


def mean(result: dict[str, Any], what: str, start_s: float, end_s: float) -> float:
    """The mean of a series, or of the RTT, over a part of the run."""
    series = result["series"]
    if what == "rtt":
        pairs = zip(series["rtt"]["t_s"], series["rtt"]["ms"], strict=True)
    else:
        pairs = zip(series["t_s"], series[what], strict=True)
    return float(np.mean([value for t, value in pairs if start_s < t <= end_s]))


def packets(path: Path) -> list[tuple[float, bytes]]:
    with path.open("rb") as file:
        return [(float(at), frame) for at, frame in dpkt.pcap.Reader(file)]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache elsewhere with the same builds."""
    old, new = cache_dir(), tmp_path / "some where" / "drwa"
    new.mkdir(parents=True)
    for name in ("kernels", "sources", "agent"):
        (new / name).symlink_to(old / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(new.parent))
    return new


def test_same_command_gives_the_same_bytes(
    lab: Lab, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "run --scheme stock --rate 20mbit --flows 3 --loss 1% --object 32kB --duration 2s --json -"
    )
    needs_kernels([spec.parse("stock", SHORT)])
    first = lab(words)
    assert first.code == 0, first.err
    # Another place, another environment.
    request.getfixturevalue("own_cache")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.chdir(tmp_path)
    assert lab(words).out == first.out
    other_seed = lab(words + " --seed 2").out
    assert other_seed != first.out
    assert json.loads(other_seed)["retransmits"] > 0


def test_results_do_not_depend_on_neighbours() -> None:
    runs = [spec.parse(name, SHORT) for name in ("stock", "paper-hspap", "static:64KiB")]
    needs_kernels(runs)
    together = pool.run_specs(runs, progress=False)
    assert [r["name"] for r in together] == [r.name for r in runs]
    assert results.dump(together[1:2]) == results.dump(pool.run_specs(runs[1:2]))


def test_replay_is_mahimahis(lab: Lab, tmp_path: Path) -> None:
    """Every delivery is at an instant of the trace, and none is missed while packets wait."""
    times = [3, 3, 3, 40, 41, 250, 250, 600]
    path = tmp_path / "link.down"
    path.write_text("".join(f"{t}\n" for t in times))
    words = f"run --scheme stock --trace {path} --base-rtt 10ms --duration 12s --buffer 30kB"
    needs_kernels([spec.parse("stock", SHORT)])
    done = lab(words + f" --json {tmp_path}/x.json --pcap {tmp_path}/pcap")
    assert done.code == 0, done.err
    result = json.loads((tmp_path / "x.json").read_text())

    phone = bytes.fromhex("020000000202")
    down = [(t, f) for t, f in packets(tmp_path / "pcap" / "phone.pcap") if f[:6] == phone]
    # The flows start on a whole second.
    first = down[0][0]
    start = np.floor(first)
    instants = np.array(list(islice(replay(times), 25 * len(times)))) / 1e3
    arrivals = np.array([t - start for t, _ in down])
    late = arrivals - instants[np.searchsorted(instants, arrivals + 1e-4) - 1]
    assert late.max() < 1e-4

    # From the second turn on there is always something to send, so not a byte is lost.
    link = spec.parse("stock", {"trace": path}).down.trace
    assert link is not None
    begin, end = 1200, 11400
    bits = sum(
        dpkt.ethernet.Ethernet(f).data.len * 8
        for t, f in down
        if begin / 1e3 <= t - start + 1e-4 < end / 1e3
    )
    assert abs(bits / 8 - link.capacity_bytes(begin, end)) <= 1500
    assert 0.9 < result["utilisation"] <= 1


def test_constant_rate_is_exact(run: Run) -> None:
    result = run("static:64KiB", rate="8mbit", base_rtt="20ms", duration="3s")
    assert result["rtt_ms"]["base"] == 20
    # Segments of 1448 bytes in packets of 1500; probes take the rest.
    best = 8 * 1448 / 1500
    assert 0.98 * best < mean(result, "goodput_mbps", 1, 3) < best


def test_idle_link(run: Run, tmp_path: Path) -> None:
    """The base RTT and a probe's time on the link; on a trace, also the wait for an opportunity."""
    given: dict[str, Any] = {"base_rtt": "20ms", "duration": "2s"}
    idle = run("idle", rate="1mbit", **given, idle=True)
    # 84 bytes take 672 us.
    assert idle["rtt_ms"]["mean"] == pytest.approx(20.672, abs=1e-3)
    assert (idle["rtt_ms"]["count"], idle["rtt_ms"]["lost"]) == (40, 0)
    assert idle["rtt_ms"]["idle"] == {key: idle["rtt_ms"][key] for key in ("mean", "p50", "p95")}
    busy = run("stock", rate="1mbit", **given, cc="bbr", flows=2, seed=3, idle=True)
    assert busy["rtt_ms"]["idle"] == idle["rtt_ms"]["idle"]
    path = tmp_path / "slow.down"
    path.write_text("200\n")
    waits = run("idle", trace=path, **given)
    # Half of the base RTT lies behind the link. Four probes share each opportunity.
    assert waits["rtt_ms"]["mean"] == pytest.approx(20 + 75 + (200 - 160), abs=20)
    assert 150 < waits["rtt_ms"]["p95"] < 225


def test_events_change_the_link(run: Run) -> None:
    events = ["2s rate=2mbit", "4s rate=0mbit", "5s rate=8mbit", "7s base-rtt=120ms"]
    result = run("static:64KiB", rate="8mbit", base_rtt="20ms", duration="9s", event=events)
    assert mean(result, "goodput_mbps", 1, 2) > 7
    assert 1.5 < mean(result, "goodput_mbps", 3, 4) < 2
    assert mean(result, "goodput_mbps", 4.2, 5) == 0
    assert mean(result, "goodput_mbps", 6, 7) > 7
    assert mean(result, "rtt", 6, 7) < 60
    assert 115 < mean(result, "rtt", 8, 9) < 150
    link = result["series"]["link_mbps"]
    assert [link[i] for i in (5, 25, 45, 55)] == [8, 2, 0, 8]


def test_loss(run: Run) -> None:
    given: dict[str, Any] = {"rate": "20mbit", "base_rtt": "20ms", "duration": "4s"}
    clean = run("static:64KiB", **given)
    lossy = run("static:64KiB", **given, event=["2s loss=2%"])
    assert clean["retransmits"] == clean["rtt_ms"]["lost"] == 0
    assert lossy["retransmits"] > 5
    assert mean(lossy, "goodput_mbps", 1, 2) == mean(clean, "goodput_mbps", 1, 2)
    assert run("static:64KiB", **given, loss="2%")["retransmits"] > lossy["retransmits"]


def test_lambda_changes_on_the_fly(run: Run) -> None:
    result = run(
        "drwa-classic",
        rate="10mbit",
        base_rtt="50ms",
        duration="10s",
        **{"lambda": "2"},
        event=["5s lambda=4"],
    )
    assert mean(result, "rtt", 4, 5) == pytest.approx(100, rel=0.15)
    assert mean(result, "rtt", 8, 10) == pytest.approx(200, rel=0.15)
    assert len(result["drwa"]["t_s"]) > 20
    assert set(result["drwa"]["flow"]) == {0}


def test_aqm_replaces_the_queue(run: Run) -> None:
    given: dict[str, Any] = {"rate": "10mbit", "base_rtt": "20ms", "duration": "4s"}
    fifo = run("stock", **given)
    for aqm in spec.AQMS:
        managed = run("stock", **given, aqm=aqm)
        assert managed["queue_drops"] > 0
        assert managed["rtt_ms"]["mean"] < fifo["rtt_ms"]["mean"] / 3


@pytest.mark.parametrize("cc", spec.CONGESTION_CONTROLS)
def test_congestion_controls(run: Run, cc: str) -> None:
    result = run("stock", **{"rate": "5mbit", "base_rtt": "20ms", "duration": "1s"}, cc=cc)
    assert result["goodput_mbps"] > 2


def test_static_limits_bound_the_window(run: Run) -> None:
    result = run("static:65536", rate="10mbit", base_rtt="50ms", duration="2s")
    assert max(result["series"]["rwnd_bytes"]) <= 65536
    stock = run("stock", rate="10mbit", base_rtt="50ms", duration="2s")
    assert max(stock["series"]["rwnd_bytes"]) > 200_000


# How large an object the agent wants, as 64 bits
REQUEST_BYTES = 8


def test_objects_and_keep_alive(lab: Lab, tmp_path: Path) -> None:
    words = "run --scheme stock --rate 10mbit --base-rtt 40ms --duration 4s --flows 0 --think 500ms"
    words += " --object 10kB --object 60kB"
    needs_kernels([spec.parse("stock", SHORT)])
    connections, requests = {}, {}
    for flag in ("", " --keep-alive", " --keep-alive --push"):
        done = lab(words + flag + f" --json - --pcap {tmp_path}")
        result = json.loads(done.out)
        objects = result["objects"]
        assert objects["size_bytes"][:3] == [10000, 60000, 10000]
        assert objects["count"] >= 5
        gap = objects["start_s"][1] - objects["start_s"][0] - objects["fct_ms"][0] / 1e3
        assert gap == pytest.approx(0.5, abs=1e-3)
        frames = [dpkt.ethernet.Ethernet(f) for _, f in packets(tmp_path / "server.pcap")]
        segments = [f.data.data for f in frames if isinstance(f.data.data, dpkt.tcp.TCP)]
        syn_ack = dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK
        connections[flag] = sum(s.flags & syn_ack == dpkt.tcp.TH_SYN for s in segments)
        requests[flag] = sum(len(s.data) == REQUEST_BYTES for s in segments)
    asked = objects["count"]
    assert connections == {"": asked, " --keep-alive": 1, " --keep-alive --push": 1}
    assert requests == {"": asked, " --keep-alive": asked, " --keep-alive --push": 1}


def test_upload_shares_nothing_but_the_path(run: Run) -> None:
    given: dict[str, Any] = {"rate": "10mbit", "base_rtt": "20ms", "duration": "4s"}
    result = run("stock", **given, upload=True, uplink_rate="2mbit", uplink_buffer="50kB")
    assert 1.5 < result["upload_goodput_mbps"] < 2
    # The uplink's queue of 50 kB is 200 ms at 2 Mb/s.
    alone = run("stock", **given, upload=True, flows=0, uplink_rate="2mbit", uplink_buffer="50kB")
    assert 100 < alone["rtt_ms"]["p95"] < 230
    halved = run(
        "stock",
        **given,
        upload=True,
        flows=0,
        uplink_rate="2mbit",
        uplink_buffer="50kB",
        event=["2s uplink-rate=1mbit"],
    )
    assert halved["upload_goodput_mbps"] < 0.85 * alone["upload_goodput_mbps"]


def test_several_flows_share(run: Run) -> None:
    result = run("stock", rate="10mbit", base_rtt="20ms", duration="4s", flows=5, buffer="100kB")
    assert len(result["flows"]) == 5
    assert 0.5 < result["jain"] <= 1
    total = sum(flow["goodput_mbps"] for flow in result["flows"])
    assert result["goodput_mbps"] == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("version", ["", "--ipv6"])
def test_wire(lab: Lab, tmp_path: Path, version: str) -> None:
    """No packet is larger than the link's, no offload is left, and the family is the one asked."""
    needs_kernels([spec.parse("stock", SHORT)])
    words = f"run --scheme stock --scheme drwa --rate 10mbit --duration 1s --upload {version}"
    done = lab(words, "--pcap", str(tmp_path / "pcap"))
    assert done.code == 0, done.err
    assert sorted(p.name for p in (tmp_path / "pcap").iterdir()) == ["1-stock", "2-drwa-λ-1.25"]
    for path in (tmp_path / "pcap").rglob("*.pcap"):
        frames = [dpkt.ethernet.Ethernet(f) for _, f in packets(path)]
        kinds = {
            type(f.data) for f in frames if not version or f.data.nxt != dpkt.ip.IP_PROTO_ICMP6
        }
        assert kinds == {dpkt.ip6.IP6 if version else dpkt.ip.IP}
        lengths = [f.data.plen + 40 if version else f.data.len for f in frames]
        assert max(lengths) == 1500
        assert len(frames) > 800


def broken(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Adds a line to what guests run first."""
    original = network.setup_script
    monkeypatch.setattr(network, "setup_script", lambda run: original(run) + line + "\n")


def test_failure_shows_the_console(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_kernels([spec.parse("stock", SHORT)])
    broken(monkeypatch, "ip link frobnicate")
    done = lab("run --scheme stock --scheme drwa --rate 1mbit --duration 1s")
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("lab: ") == 1
    assert '  Command "frobnicate" is unknown' in done.err
    log = Path(done.err.split("(log: ")[1].split(")")[0])
    assert "frobnicate" in log.read_text()
    shutil.rmtree(log.parent)


def test_a_guest_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    one = spec.parse("stock", SHORT)
    needs_kernels([one])
    broken(monkeypatch, "while :; do :; done")
    monkeypatch.setattr(guest, "STALL_S", 2.0)
    with pytest.raises(GuestError, match="has not moved for 2 s"):
        pool.run_specs([one], progress=False)
    assert_no_processes_in(own_cache)


def test_waiting_for_a_cpu_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    times_ns = (0, 0)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(guest.Patience, "_times_ns", lambda _: times_ns)
    patience = guest.Patience(os.getpid(), 60)
    now_s, times_ns = 239.0, (10, 30)
    assert not patience.is_over()
    now_s = 241.0
    assert patience.is_over()
    patience.renew()
    now_s, times_ns = 241.0 + 599, (11, 30 + 1000)
    assert not patience.is_over()
    now_s = 241.0 + 601
    assert patience.is_over()
    patience.renew()
    # It sleeps.
    now_s += 61
    assert patience.is_over()


def test_linux_tells_how_long_a_process_waited_for_a_cpu() -> None:
    before = guest.Patience(os.getpid(), 60)._times_ns()
    while guest.Patience(os.getpid(), 60)._times_ns()[0] <= before[0]:
        pass


# Where people have a clone, a cache or temporary files; the last is on some machines alone
PLACES = [str(cache_dir()), "/tmp", "/var/tmp", f"/run/user/{os.getuid()}"]


@pytest.mark.parametrize("place", [place for place in PLACES if os.access(place, os.W_OK)])
def test_the_hosts_files_are_there_and_read_only(place: str, script: Script) -> None:
    with tempfile.TemporaryDirectory(prefix="a b ", dir=place) as name:
        here = Path(name) / "here"
        here.write_text("I am\n")
        text = f"""
cat '{here}'
refused() {{ "$@" 2>error && exit 1; grep 'Read-only file system' error; }}
refused touch '{name}/canary'
refused rm -f '{here}'
"""
        said = script(text, "6.12", "drwa").console
        assert said.startswith("I am\n")
        assert said.count(": Read-only file system\n") == 2
        assert list(Path(name).iterdir()) == [here]


def test_scratch_is_the_guests_own(script: Script) -> None:
    said = script('file=$(mktemp)\necho mine >"$file"\ncat "$file" && echo "$file"', "6.12", "drwa")
    mine, file = said.console.splitlines()[:2]
    assert mine == "mine"
    assert not Path(file).exists()


def processes_in(folder: Path) -> list[int]:
    """Processes with a working folder under this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def assert_no_processes_in(folder: Path) -> None:
    deadline = time.monotonic() + 10
    # Those that were killed may take a moment to go.
    while processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_in(folder)


def lab_at_work(own_cache: Path, target: Path) -> subprocess.Popen[str]:
    """A command that has guests running, and would for an hour of theirs."""
    needs_kernels([spec.parse("stock", SHORT)])
    words = ["run", "--scheme", "stock", "--scheme", "drwa", "--rate", "10mbit"]
    words += ["--duration", "3600s", "--json", str(target)]
    process = subprocess.Popen(
        # A shell lets what it starts in the background ignore SIGINT.
        ["env", "--default-signal=INT", sys.executable, "-m", "drwalab", *words],
        cwd=Path(kernels.__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list(own_cache.glob("runs/*/raw")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_in(own_cache)
    return process


def test_killing_leaves_no_guest(own_cache: Path, tmp_path: Path) -> None:
    with lab_at_work(own_cache, tmp_path / "result.json") as process:
        process.kill()
    assert_no_processes_in(own_cache)


def test_a_guest_whose_lab_was_killed_does_not_begin(own_cache: Path) -> None:
    """The lab may be killed before its child has asked to be told (prctl(2))."""
    here = Path(kernels.__file__).parents[1]
    command = [sys.executable, "-c", LATE_GUEST, str(own_cache)]
    killed = subprocess.run(command, cwd=here, timeout=20, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert_no_processes_in(own_cache)


# Its setpriv kills the lab before it asks.
LATE_GUEST = r"""
import os, shutil, sys
from pathlib import Path
from drwalab import guest
folder = Path(sys.argv[1])
late = folder / "setpriv"
late.write_text(f'#!/bin/sh\nkill -KILL $PPID\nsleep 0.2\nexec {shutil.which("setpriv")} "$@"\n')
late.chmod(0o755)
os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
with guest.started(["sleep", "3600"], folder, folder / "console", os.environ) as process:
    process.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_leaves_nothing(own_cache: Path, tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "result.json"
    process = lab_at_work(own_cache, target)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    assert not target.exists()
    assert not list((own_cache / "runs").iterdir())
    assert_no_processes_in(own_cache)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def as_nobody(one: RunSpec, kernel: Kernel, agent: Path, cache: Path, answer: Any) -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ.update(XDG_CACHE_HOME=str(cache), HOME="/nonexistent")
    folder = guest.run(one, kernel, agent, threading.Event(), lambda _: None)
    answer.put((os.getuid(), results.dump([results.read(folder, one, kernel)])))


def test_runs_as_an_ordinary_user(open_folder: Path) -> None:
    one = spec.parse("stock", SHORT)
    needs_kernels([one])
    if os.getuid() != 0:
        # Then every test here is one.
        return
    kernel, agent = kernels.find(one.kernel, one.flavour), kernels.agent()
    copies = [shutil.copy2(path, open_folder) for path in (kernel.path, agent)]
    cache = open_folder / "cache"
    cache.mkdir()
    os.chown(cache, NOBODY, NOBODY)
    copied = Kernel(**{**vars(kernel), "path": Path(copies[0])})
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    process = context.Process(target=as_nobody, args=(one, copied, Path(copies[1]), cache, answer))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    (as_root,) = pool.run_specs([one], progress=False, beside_idle=False)
    assert answer.get() == (NOBODY, results.dump([as_root]))
