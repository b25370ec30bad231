# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path

import numpy as np
import pytest

from drwalab import output, results, spec
from drwalab.kernels import Kernel

KERNEL = Kernel("6.12", "drwa", Path("linux"), "key", "6.12.1", "6.12.1-1", ["a" * 40])

# Two downloads of half a second. Two probes were overtaken, one was given up on at the end, after
# more than the 100 ms of the last answer, and one may still have had its answer.
RAW = """\
b 50100
b 50001
t 2000000
f 0 40000
f 1 40001
s 100000 0 0 65000 10
s 100000 1 0 65000 10
q 100000 0
p 0 51000 0
y 0 26000
x 100000 0 12500
s 200000 0 10000 70000 10
s 200000 1 0 65000 10
s 300000 0 30000 70000 10
s 300000 1 10000 65000 10
p 150000 90000 3
y 3 61000
x 200000 0 12500
x 300000 0 50000
o 10000 250000 32000
s 400000 0 50000 70000 10
s 400000 1 10000 65000 10
s 500000 0 60000 70000 10
s 500000 1 20000 65000 10
p 200000 100000 4
y 4 71000
x 400000 0 50000
x 500000 0 62500
l 50000 1
l 100000 2
l 350000 5
l 450000 6
r 0 3 7
r 1 1 2
u 0 62500 7
w 1
d 60 85000 4
end
"""

NETSTAT = """\
TcpExt: SyncookiesSent TCPToZeroWindowAdv
TcpExt: 0 2
IpExt: InNoRoutes
IpExt: 0
"""

TCP_DRWA = """\
rmnet0 lambda=125 queue=7 sockets=2 rounds=17 capped=300 delay_us=9,8 rtt_us=0,17
wlan0 lambda=0 queue=0 sockets=1 rounds=3 capped=4 delay_us=3,0 rtt_us=3,0
"""

ROUND = (
    "  agent-1   [000] ..s..     {at}: tcp_drwa_round: family=AF_INET saddr=10.0.2.2 "
    "daddr=10.0.1.1 sport={port} dport=5001 rtt_us=51000 path_us=50000 cwnd=14480 "
    "rwnd=43440 lambda=300\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").write_text(RAW)
    (tmp_path / "netstat").write_text(NETSTAT)
    (tmp_path / "tcp_drwa").write_text(TCP_DRWA)
    return tmp_path


def options(**changed: object) -> dict[str, object]:
    given: dict[str, object] = {"rate": "2mbit", "duration": "500ms", "flows": 2, "upload": True}
    given["object"] = ["32kB", "64kB"]
    return given | {key.replace("_", "-"): value for key, value in changed.items()}


def test_numbers(folder: Path) -> None:
    result = results.read(folder, spec.parse("drwa-classic", options()), KERNEL)
    assert result["flows"] == [
        {"goodput_mbps": 0.96, "retransmits": 3, "reads": 7, "start_s": 0.0, "end": "phone"},
        {"goodput_mbps": 0.32, "retransmits": 1, "reads": 2, "start_s": 0.0, "end": "phone"},
    ]
    assert result["goodput_mbps"] == 1.28
    assert result["jain"] == pytest.approx(1.28**2 / (2 * (0.96**2 + 0.32**2)), abs=1e-6)
    assert result["rtt_ms"] == {
        "base": 50.001,
        # Of 51, 90, 100, 140, 150 and 190.
        "mean": 120.167,
        "p50": 120.0,
        "p95": 180.0,
        "p99": 188.0,
        "count": 3,
        "lost": 3,
    }
    assert result["objects"] == {
        "count": 1,
        "unfinished": 1,
        "mean_fct_ms": 250.0,
        "p95_fct_ms": 250.0,
        "by_size": [
            {"size_bytes": 32000, "count": 1, "mean_fct_ms": 250.0, "p95_fct_ms": 250.0},
            {"size_bytes": 64000, "count": 0, "mean_fct_ms": None, "p95_fct_ms": None},
        ],
        "fct_ms": [250.0],
        "size_bytes": [32000],
        "start_s": [0.01],
    }
    # 2 Mb/s for 0.5 s are 125 kB.
    assert result["utilisation"] == 0.68
    assert result["upload_goodput_mbps"] == 1.0
    assert result["uploads"] == [{"goodput_mbps": 1.0, "retransmits": 7}]
    # Of 26, 61 and 71, the answered ones.
    assert result["up_ms"] == {"mean": 52.667, "p50": 61.0, "p95": 70.0, "p99": 70.8}
    assert result["firmware"] is None
    assert (result["retransmits"], result["zero_windows"], result["queue_drops"]) == (4, 2, 4)
    assert result["counters"] == {"sockets": 3, "rounds": 20, "capped": 304}
    assert result["lambda"] == 3.0
    assert result["drwa"] is None


def test_series(folder: Path) -> None:
    series = results.read(folder, spec.parse("stock", options()), KERNEL)["series"]
    assert series == {
        "interval_s": 0.1,
        "t_s": [0.1, 0.2, 0.3, 0.4, 0.5],
        "goodput_mbps": [0.0, 0.8, 2.4, 1.6, 1.6],
        "flow_goodput_mbps": [[0.0, 0.8, 1.6, 1.6, 0.8], [0.0, 0.0, 0.8, 0.0, 0.8]],
        "neighbour_goodput_mbps": [],
        "rwnd_bytes": [130000, 135000, 135000, 135000, 135000],
        "link_mbps": [2.0] * 5,
        "uplink_mbps": None,
        "upload_goodput_mbps": [[1.0, 0.0, 3.0, 0.0, 1.0]],
        "firmware_bytes": None,
        "up": {"t_s": [0.0, 0.15, 0.2], "ms": [26.0, 61.0, 71.0]},
        "rtt": {
            "t_s": [0.0, 0.05, 0.1, 0.15, 0.2, 0.35],
            "ms": [51.0, 190.0, 140.0, 90.0, 100.0, 150.0],
            "lost_t_s": [0.05, 0.1, 0.35],
        },
    }


def test_firmware(folder: Path) -> None:
    """The mean of each interval, from the sums that the modem keeps."""
    sums = [1_000_000_000, 1_000_000_000, 301_000_000_000, 601_000_000_000, 601_000_000_000]
    rows = [f"m {at * 100_000} {total} 4500" for at, total in enumerate([*sums, 901_000_000_000])]
    (folder / "raw").write_text("".join(f"{row}\n" for row in rows) + RAW)
    result = results.read(
        folder, spec.parse("stock", options(uplink_rate="1mbit", firmware="100kB")), KERNEL
    )
    assert result["series"]["firmware_bytes"] == [0, 3000, 3000, 0, 3000]
    assert result["series"]["uplink_mbps"] == [1.0] * 5
    assert result["firmware"] == {"mean_bytes": 1800.0, "max_bytes": 4500}
    config = result["config"]
    assert (config["uplink_scheme"], config["uplink_target_ms"]) == ("pfifo", None)
    assert (config["firmware_bytes"], config["grant_ms"]) == (100_000, 8.0)
    assert (config["grant_report_ms"], config["uplink_buffer_bytes"]) == (None, None)


def test_settled_part(folder: Path) -> None:
    result = results.read(folder, spec.parse("stock", options()), KERNEL)
    goodput, rtt = results.settled(result, 0.2)
    assert goodput == pytest.approx((2.4 + 1.6 + 1.6) / 3)
    assert rtt == 125.0
    # The end belongs to what follows.
    assert list(results.rtt_between(result, 0.0, 0.2)) == [51.0, 190.0, 140.0, 90.0]
    assert results.goodput_between(result, 5, 6) == [0.0, 0.0]


def delays(answered: list[list[int]], lost: list[list[int]]) -> list[list[int]]:
    """Of a run of a second: (sent_us, rtt_us, number), and (sent_us, number)."""
    records = {
        "p": np.array(answered, dtype=np.int64).reshape(-1, 3),
        "l": np.array(lost, dtype=np.int64).reshape(-1, 2),
    }
    return [[int(x) for x in row] for row in results.delays(records, 1_000_000)]


def test_lost_probes_are_late() -> None:
    """As late as the first answer that could have told; nothing is known of what is on its way."""
    last = [[0, 50_000, 0], [150_000, 60_000, 3]]
    assert delays(last, [[50_000, 1], [100_000, 2]]) == [
        [0, 50_000, 1],
        [50_000, 160_000, 0],
        [100_000, 110_000, 0],
        [150_000, 60_000, 1],
    ]
    # Of two that are unanswered at the end, the one that is overdue.
    assert delays(last, [[939_999, 4], [940_000, 5]])[2:] == [[939_999, 60_001, 0]]
    # Answers in another order than that of sending.
    assert delays([last[1], last[0]], [[50_000, 1]])[1] == [50_000, 160_000, 0]
    # A link that is dead all the time.
    assert delays([], [[0, 0], [50_000, 1]]) == [[0, 1_000_000, 0], [50_000, 950_000, 0]]
    assert delays([], []) == []


def test_fairness_is_of_several_that_got_something() -> None:
    assert results.jain([3.0, 3.0, 0.0]) == pytest.approx(2 / 3, abs=1e-6)
    for goodput in ([], [3.0], [0.0, 0.0]):
        assert results.jain(goodput) is None


def test_late_flows(folder: Path) -> None:
    """A flow's goodput counts from its start, Jain's index from the last start."""
    result = results.read(folder, spec.parse("stock", options(flow_gap="200ms")), KERNEL)
    assert result["goodput_mbps"] == 1.28
    goodput = [0.96, 20000 * 8 / 300_000]
    assert [f["goodput_mbps"] for f in result["flows"]] == pytest.approx(goodput, abs=1e-6)
    assert [f["start_s"] for f in result["flows"]] == [0.0, 0.2]
    assert result["jain"] == pytest.approx(70**2 / (2 * (50**2 + 20**2)), abs=1e-6)
    assert results.goodput_between(result, 0.2, 0.4) == pytest.approx([1.6, 0.4])


def test_link_capacity_follows_events(folder: Path) -> None:
    events = ["150ms rate=4mbit", "300ms rate=0bit", "350ms base-rtt=1s", "400ms rate=1mbit"]
    result = results.read(folder, spec.parse("stock", options(event=events)), KERNEL)
    assert result["series"]["link_mbps"] == [2.0, 3.0, 4.0, 0.0, 1.0]
    assert result["utilisation"] == pytest.approx(85000 * 8 / 1e6, abs=1e-6)
    assert result["config"]["events"] == events


def test_link_capacity_without_outages(folder: Path) -> None:
    path = folder / "link.down"
    path.write_text("".join(f"{t}\n" for t in range(50, 501, 50)))
    event = ["150ms outage=200ms"]
    result = results.read(folder, spec.parse("stock", options(event=event)), KERNEL)
    assert result["series"]["link_mbps"] == [2.0, 1.0, 0.0, 1.0, 2.0]
    given = options(rate=None, trace=path, event=event)
    result = results.read(folder, spec.parse("stock", given), KERNEL)
    # An opportunity belongs to the interval that begins with it.
    assert result["series"]["link_mbps"] == [0.12, 0.12, 0.0, 0.12, 0.24]


def test_link_capacity_of_a_trace(folder: Path) -> None:
    path = folder / "link.down"
    path.write_text("50\n100\n100\n")
    given = options(rate=None, trace=path)
    result = results.read(folder, spec.parse("stock", given), KERNEL)
    assert result["series"]["link_mbps"] == [0.12, 0.36, 0.36, 0.36, 0.36]
    assert result["config"]["trace"] == "link.down"
    assert len(result["provenance"]["trace_sha256"]) == 64


def test_rounds_of_the_tracepoint(folder: Path) -> None:
    rounds = ROUND.format(at="2.150000", port=40001) + ROUND.format(at="2.200001", port=999)
    (folder / "trace").write_text("# tracer: nop\n#\n" + rounds)
    result = results.read(folder, spec.parse("drwa", options()), KERNEL)
    assert result["drwa"] == {
        "t_s": [0.15, 0.200001],
        "flow": [1, -1],
        "rtt_ms": [51.0, 51.0],
        "path_ms": [50.0, 50.0],
        "cwnd_bytes": [14480, 14480],
        "rwnd_bytes": [43440, 43440],
    }
    (folder / "trace").write_text("# tracer: nop\n")
    assert results.read(folder, spec.parse("stock", options()), KERNEL)["drwa"] is None


def beside(folder: Path, neighbour: list[str], **changed: object) -> results.Result:
    """The result with neighbours that got so many bytes by the end of each tenth of a second."""
    got = (0, 10_000, 30_000, 40_000, 40_000)
    lines = [
        f"n {100_000 * (i + 1)} {number} {(number + 1) * count}\n"
        for i, count in enumerate(got)
        for number in range(len(neighbour))
    ]
    (folder / "raw").write_text("".join(lines) + RAW)
    return results.read(
        folder, spec.parse("stock", options(neighbour=neighbour, **changed)), KERNEL
    )


def test_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "SHARED_AFTER_US", 100_000)
    result = beside(folder, ["cubic:100ms/300ms", "quic"])
    unpaced = {"lost": None, "dropped": None}
    assert result["neighbours"] == [
        {"kind": "cubic", "start_s": 0.1, "end_s": 0.4, "goodput_mbps": 1.066667, **unpaced},
        {"kind": "quic", "start_s": 0.0, "end_s": 0.5, "goodput_mbps": 1.28, **unpaced},
    ]
    series = result["series"]
    assert series["neighbour_goodput_mbps"] == [
        [0.0, 0.8, 1.6, 0.8, 0.0],
        [0.0, 1.6, 3.2, 1.6, 0.0],
    ]
    # From 0.2 to 0.4 s: 50 kB of the two downloads, 30 and 60 kB of the neighbours.
    assert result["fair_share"] == pytest.approx((50 / 2) / (140 / 4), abs=1e-6)
    # A liar and a stream have no share, and nobody has one of a time that is too short.
    assert beside(folder, ["quic:200ms", "liar"])["fair_share"] == pytest.approx(
        (40 / 2) / (50 / 3), abs=1e-6
    )
    assert beside(folder, ["quic:200ms", "stream"])["fair_share"] == pytest.approx(
        (40 / 2) / (50 / 3), abs=1e-6
    )
    assert beside(folder, ["liar"])["fair_share"] is None
    assert beside(folder, ["quic:0s/100ms"])["fair_share"] is None
    assert beside(folder, ["quic"], flow_gap="400ms")["fair_share"] is None


def test_no_downloads(folder: Path) -> None:
    raw = [line for line in RAW.splitlines() if line[0] not in "fsrpl"]
    (folder / "raw").write_text("\n".join(raw) + "\n")
    result = results.read(folder, spec.parse("stock", options(flows=0)), KERNEL)
    assert (result["flows"], result["jain"], result["goodput_mbps"]) == ([], None, 0.0)
    assert result["series"]["goodput_mbps"] == [0.0] * 5
    assert result["rtt_ms"]["mean"] is None


def test_json_names_no_folder_and_has_no_order_by_chance(folder: Path) -> None:
    path = folder / "link.down"
    path.write_text("1\n")
    run = spec.parse("stock", options(rate=None, trace=path))
    result = results.read(folder, run, KERNEL)
    text = results.dump([result])
    assert str(folder) not in text
    assert text == results.dump([results.read(folder, run, KERNEL)])
    assert json.loads(text) == result
    assert json.loads(results.dump([result, result])) == [result, result]


def test_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = results.read(folder, spec.parse("stock", options()), KERNEL)
    other = results.read(folder, spec.parse("drwa", options(rate="1mbit")), KERNEL)
    for each in (plain, other):
        results.add_idle(each, {"rtt_ms": {"mean": 50.5, "p50": 50.5, "p95": 60.0}})
    output.print_table([plain, other], 0.2)
    out = capsys.readouterr().out
    # 120.167 and 180 ms.
    assert "2.38" in out
    assert "3.00" in out
    assert "2 Mb/s, 50 ms" in out
    assert "drwa λ=1.25" in out
    assert "1.28" in out
    assert "from 0.2 s" in out


def test_multiples_of_the_idle_link() -> None:
    loaded = {"rtt_ms": {"mean": 90.0, "p50": 80.0, "p95": 300.0}}
    results.add_idle(loaded, {"rtt_ms": {"mean": 60.0, "p50": 50.0, "p95": 100.0, "p99": 1.0}})
    assert [results.of_idle(loaded, key) for key in ("mean", "p50", "p95")] == [1.5, 1.6, 3.0]
    loaded["rtt_ms"]["mean"] = None  # type: ignore[assignment]
    assert results.of_idle(loaded, "mean") is None
    results.add_idle(loaded, {"rtt_ms": {"mean": None, "p50": None, "p95": None}})
    assert results.of_idle(loaded, "p95") is None
    assert results.geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert results.geometric_mean([]) is None


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert output.check_writable(path) is None
    output.write_whole(path, "one")
    output.write_whole(path, "two")
    assert path.read_text() == "two"
    assert list(tmp_path.iterdir()) == [path]
    assert output.check_writable(tmp_path / "none" / "x") is not None
    assert output.check_writable(tmp_path) is not None
