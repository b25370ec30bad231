# SPDX-License-Identifier: GPL-2.0-only
"""The judge of `lab campaign`, on made-up results, and what the command does with them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import Lab
from drwalab import campaign, cases, guest, kernels, pool, results, spec, targets
from drwalab.kernels import Kernel
from drwalab.spec import RunSpec
from drwalab.targets import TARGETS, Group, Target
from synthetic import run

Result = dict[str, Any]


def result(scheme: str, goodput: float = 10.0, p95: float = 100.0, **config: Any) -> Result:
    r = run(scheme, scheme, lam=2.0, duration_s=60, **config)
    r["goodput_mbps"] = goodput
    r["rtt_ms"]["p95"] = p95
    for name in ("goodput_mbps", "rwnd_bytes"):
        r["series"][name] = [goodput] * 600
    r["series"]["flow_goodput_mbps"] = [[goodput] * 600]
    return r


def group(*results: Result) -> Group:
    (one,) = targets.groups(results)
    return one


def at(*parts: tuple[float, float]) -> list[float]:
    """A series of a minute from (until_s, value)."""
    return [next(value for until, value in parts if i / 10 < until) for i in range(600)]


def test_groups_join_seeds_and_part_links() -> None:
    seeds = [result("drwa", goodput, seed=seed) for seed, goodput in ((1, 9.0), (2, 11.0))]
    near = [result("stock"), *seeds]
    far = [result("stock", base_ms=200), result("drwa", base_ms=200)]
    first, second = targets.groups([*near, *far])
    assert first.mean("drwa", targets.goodput) == 10.0
    assert len(second.runs("drwa")) == 1
    assert second.config["base_rtt_ms"] == 200
    # Switching λ does not make it another link.
    switched = result("drwa", events=["20s lambda=0"])
    assert len(targets.groups([result("stock"), switched])) == 1


def test_players() -> None:
    bbr, codel = result("stock", cc="bbr"), result("stock")
    codel["aqm"] = "codel"
    older = result("drwa")
    older["limits"] = "stock-2mib"
    runs = (result("stock"), bbr, codel, result("android-lte"), result("drwa"), older)
    names = [targets.player(r) for r in runs]
    assert names == ["stock", "bbr", "codel", "android-lte", "drwa", "drwa, limits stock-2mib"]


def test_worst_link_decides() -> None:
    target = Target("2", "b02-constant", "goodput", targets.goodput_of("stock"), 0.99)
    good = [result("stock", 10), result("drwa", 9.95)]
    bad = [result("stock", 10, base_ms=200), result("drwa", 9.8, base_ms=200)]
    assert campaign.judge(target, targets.groups(good)).met
    verdict = campaign.judge(target, targets.groups([*good, *bad]))
    assert (verdict.met, verdict.worst, verdict.links_met, verdict.links) == (False, 0.98, 1, 2)
    assert verdict.where is not None and "base RTT 200 ms" in verdict.where
    assert "missed" in verdict.cells()[-1]
    # The least delay is the best.
    delay = Target("1", "b01-traces", "p95", targets.p95_of("stock"), at_most=0.25)
    runs = [result("stock", p95=400), result("drwa", p95=80)]
    runs += [result("stock", p95=400, base_ms=9), result("drwa", p95=120, base_ms=9)]
    verdict = campaign.judge(delay, targets.groups(runs))
    assert (verdict.met, verdict.worst) == (False, 0.3)


def test_a_link_without_the_peer_is_no_link() -> None:
    target = Target("1", "b01-traces", "BBR", targets.goodput_of("bbr"), 1.0)
    verdict = campaign.judge(target, targets.groups([result("stock"), result("drwa")]))
    assert (verdict.met, verdict.worst, verdict.links) == (False, None, 0)
    assert verdict.cells()[-1] == "not run"


def stepped(what: str, p95_after: float) -> tuple[Result, Result]:
    events = [f"20s {what}=100ms" if what == "base-rtt" else f"20s {what}=1mbit"]
    stock, law = result("stock", events=events), result("drwa", events=events)
    sent_s = law["series"]["rtt"]["t_s"]
    # A step is followed by twenty seconds of something else.
    law["series"]["rtt"]["ms"] = [p95_after if t >= 40 else 1000.0 for t in sent_s]
    return stock, law


def test_steps() -> None:
    stock, law = stepped("base-rtt", 130)
    assert targets.rtt_after_rtt_steps(group(stock, law)) == pytest.approx(1.3)
    law["series"]["flow_goodput_mbps"] = [at((25, 0.0), (60, 9.0))]
    assert targets.goodput_after_rtt_steps(group(stock, law)) == pytest.approx(0.9)
    stock, law = stepped("rate", 150)
    assert targets.p95_after_rate_steps(group(stock, law)) == pytest.approx(1000 / 50)
    law["config"]["events"] = stock["config"]["events"] = ["30s rate=1mbit"]
    assert targets.p95_after_rate_steps(group(stock, law)) == pytest.approx(3)


def test_settled_rtt() -> None:
    law = result("drwa")
    times = law["series"]["rtt"]["t_s"]
    law["series"]["rtt"]["ms"] = [65.0 if t >= 30 else 500.0 for t in times]
    assert targets.settled_rtt_of_base(group(law)) == pytest.approx(1.3)


def test_objects() -> None:
    stock, law = result("stock"), result("drwa")
    for r, times in ((stock, (100.0, 400.0)), (law, (90.0, 420.0))):
        r["objects"]["by_size"] = [
            {"size_bytes": size, "mean_fct_ms": ms}
            for size, ms in zip((16000, 64000), times, strict=True)
        ]
    completion = targets.completion_of("stock")
    assert completion(group(stock, law)) == pytest.approx(1.05)
    assert targets.kept_alive(completion)(group(stock, law)) is None
    for r in (stock, law):
        r["config"]["keep_alive"] = True
    assert targets.kept_alive(completion)(group(stock, law)) == pytest.approx(1.05)


def test_fairness_and_late_flows() -> None:
    law = result("drwa", flows=2)
    law["flows"] = [{"start_s": 0.0}, {"start_s": 20.0}]
    law["series"]["flow_goodput_mbps"] = [at((30, 9.0), (60, 6.0)), at((30, 0.0), (60, 3.0))]
    assert targets.fairness(group(law)) == pytest.approx(81 / (2 * 45))
    assert targets.fairness(group(result("drwa"))) is None
    assert targets.p95_shared(group(result("drwa", flows=64))) is None


def test_readers() -> None:
    stock, law = result("stock", reader="slow:2mbit"), result("drwa", reader="slow:2mbit")
    # 2 Mb/s over 50 ms are 12500 bytes.
    law["series"]["rwnd_bytes"] = at((5, 0), (60, 10_000))
    stock["series"]["rwnd_bytes"] = [50_000] * 600
    assert targets.window_of_need(group(stock, law)) == pytest.approx(0.8)
    # Nor does stock give more than its reader's buffer has room for.
    stock["series"]["rwnd_bytes"][300] = 8_000
    assert targets.window_of_need(group(stock, law)) == pytest.approx(1.25)
    law["series"]["flow_goodput_mbps"] = [at((10, 2.0), (13, 0.0), (60, 2.0))]
    assert targets.longer_silence_s(group(stock, law)) == pytest.approx(3)
    assert targets.segments_of("stock")(group(stock, law)) is None
    for r, ms in ((stock, 500.0), (law, 400.0)):
        r["segments"] = {"mean_fct_ms": ms}
    assert targets.segments_of("stock")(group(stock, law)) == pytest.approx(1.25)


def test_switching_off() -> None:
    events = ["0s lambda=0", "20s lambda=1.5", "40s lambda=0"]
    stock, law = result("stock"), result("drwa", events=events)
    # 10 Mb/s bring 125 kB in a round trip.
    law["series"]["rtt"]["ms"] = [100.0] * len(law["series"]["rtt"]["t_s"])
    stock["series"]["rwnd_bytes"] = [10**6] * 600
    law["series"]["rwnd_bytes"] = at((40.2, 100_000), (60, 225_000))
    assert targets.window_after_off(group(stock, law)) == pytest.approx(0.9)
    stock["series"]["rwnd_bytes"] = [150_000] * 600
    assert targets.window_after_off(group(stock, law)) == pytest.approx(1.5)
    law["series"]["rwnd_bytes"] = at((40.5, 15_000), (60, 900_000))
    assert targets.window_after_off(group(stock, law)) == pytest.approx(0.1)
    assert targets.window_after_off(group(stock, result("drwa"))) is None
    assert targets.rtt_after_on(group(stock, law)) == pytest.approx(2)
    assert targets.rtt_after_on(group(stock, result("drwa"))) is None


def test_every_target_has_runs_of_its_players() -> None:
    known = cases.load()
    for target in TARGETS:
        players = {(s.scheme.name, s.cc, s.aqm) for s in known[target.case].specs}
        assert {("stock", "cubic", None), ("drwa", "cubic", None)} <= players
    assert {t.row for t in TARGETS} | set(targets.ELSEWHERE) == {str(n) for n in range(1, 15)}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results without guests, in which the law has 98.5 % of stock's goodput."""

    found_builds: dict[tuple[str, str], Kernel] = {}

    def run_specs(specs: Sequence[RunSpec], reuse: bool, builds: object) -> list[Result]:
        assert reuse
        assert builds is found_builds
        found = []
        for s in specs:
            config: dict[str, Any] = {
                "rate_bps": s.down.rate_bps,
                "buffer_bytes": s.down.buffer_bytes,
            }
            goodput = 9.85 if s.scheme.name == "drwa" else 10.0
            found.append(result(s.scheme.name, goodput, base_ms=s.base_rtt_us / 1e3, **config))
        return found

    def find_kernels(_: Sequence[RunSpec]) -> dict[tuple[str, str], Kernel]:
        return found_builds

    monkeypatch.setattr(pool, "run_specs", run_specs)
    monkeypatch.setattr(pool, "find_kernels", find_kernels)


@pytest.mark.usefixtures("made_up")
def test_command(lab: Lab, tmp_path: Path) -> None:
    out, page = tmp_path / "new" / "c.json", tmp_path / "c.md"
    done = lab(f"campaign --row 14 --json {out} --document {page}")
    assert done.code == 0, done.err
    text = page.read_text()
    assert "1 of 1 targets are met" in text
    assert "| 14 | goodput of stock's | ≥ 0.98 | 0.985 |" in text
    assert "| drwa | 4 | 0.985 |" in text
    (row,) = json.loads(out.read_text())
    assert len(row["runs"]) == 8
    assert "series" not in row["runs"][0]
    assert row["verdicts"][0]["links_met"] == 4


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--row 15", "--row: '15' is unknown: choose from 1, 2"),
        ("--row 13", "--row: 13 is a hostile sender"),
        ("--row 14 --document /nowhere/x", "/nowhere is no folder"),
    ],
)
def test_wrong_input(lab: Lab, tmp_path: Path, words: str, message: str) -> None:
    done = lab(f"campaign --json {tmp_path}/c.json {words}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err


def test_traces_of_cases(tmp_path: Path) -> None:
    """Generated links always; recorded ones from the folder, or the reason why not."""

    def links(folder: Path | None) -> tuple[set[str], list[str]]:
        case = cases.load(folder)["b01-traces"]
        found = {s.down.trace.path.name for s in case.specs if s.down.trace}
        return found, case.skipped

    generated = {"lte-seed1-120s.down", "lte-seed2-120s.down"}
    assert links(None)[0] == generated
    assert "no folder of traces is given" in links(None)[1][0]
    assert "has no *.down" in links(tmp_path)[1][0]
    (tmp_path / "ride.down").write_text("5\n")
    assert links(tmp_path) == (generated | {"ride.down"}, [])


def test_results_are_reused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run that was made before is not made again, unless something that decides it changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[str] = []
    (tmp_path / "run").mkdir()

    class FakeKernel:
        key = "one"

    def guest_run(one: RunSpec, *_: object) -> Path:
        made.append(one.name)
        folder = tmp_path / "run" / str(len(made))
        folder.mkdir()
        return folder

    def read(_folder: Path, one: RunSpec, _kernel: object) -> Result:
        return {"name": one.name, "seed": one.seed, "rtt_ms": dict.fromkeys(("mean", "p50", "p95"))}

    kernel = FakeKernel()
    monkeypatch.setattr(pool, "find_kernels", lambda specs: {("6.12", "drwa"): kernel})
    monkeypatch.setattr(kernels, "agent", lambda: tmp_path / "agent-key" / "agent")
    monkeypatch.setattr(guest, "run", guest_run)
    monkeypatch.setattr(results, "read", read)
    one, two = (spec.parse("stock", {"rate": "1mbit", "seed": seed}) for seed in (1, 2))
    first = pool.run_specs([one, two], progress=False, reuse=True)
    assert pool.run_specs([two, one], progress=False, reuse=True) == first[::-1]
    # They share an idle link.
    assert sorted(made) == ["idle link", "stock", "stock"]
    pool.run_specs([one], progress=False)
    assert made[3:] == ["stock"]
    kernel.key = "two"
    pool.run_specs([one], progress=False, reuse=True)
    assert sorted(made[4:]) == ["idle link", "stock"]


def test_the_record_is_of_these_targets() -> None:
    """A bound that moves wants the campaign anew; what it found was judged by these bounds."""
    recorded = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in campaign.DOCUMENT.read_text().splitlines()
        if line.startswith("| ") and line.count("|") == len(campaign.HEADS) + 1
    ]
    rows = [row for row in recorded if row[0].isdigit() and row[0] not in targets.ELSEWHERE]
    assert [row[:3] for row in rows] == [[t.row, t.what, t.bound] for t in TARGETS]
    for row, target in zip(rows, TARGETS, strict=True):
        # It has three digits.
        if abs(target.margin(float(row[3]))) > 0.0005:
            word = "met" if target.met(float(row[3])) else "missed"
            assert row[6] == (f"{word} (to reach for)" if target.reach else word)


@pytest.mark.parametrize(
    ("target", "bound", "below", "above"),
    [
        (Target("1", "c", "w", targets.fetch_of_static, at_least=0.97), "≥ 0.97", False, True),
        (Target("1", "c", "w", targets.fetch_of_static, at_most=0.97), "≤ 0.97", True, False),
        # None is no bound, and 0 is one.
        (Target("1", "c", "w", targets.fetch_of_static, at_least=0.0), "≥ 0", False, True),
    ],
)
def test_bounds(target: Target, bound: str, below: bool, above: bool) -> None:
    limit = float(bound[2:])
    assert target.bound == bound
    assert [target.met(limit - 0.01), target.met(limit), target.met(limit + 0.01)] == [
        below,
        True,
        above,
    ]
    assert (target.margin(limit - 0.01) > 0, target.margin(limit + 0.01) > 0) == (below, above)


# Each player's own goodput in Mb/s, p95 RTT, time of a fetch and of a video's segment in ms, so
# that every ratio tells whose it is.
PLAYERS = {
    "drwa": (10.0, 60.0, 100.0, 400.0),
    "stock": (12.5, 400.0, 500.0, 500.0),
    "android-lte": (8.0, 240.0, 250.0, 250.0),
    "paper-lte": (20.0, 480.0, 800.0, 800.0),
    "bbr": (16.0, 120.0, 125.0, 1000.0),
    "codel": (40.0, 96.0, 200.0, 640.0),
}
OF_STOCK = 10 / 12.5
BASE_MS, SETTLED_MS = 50.0, 65.0
WANTED = {
    "goodput of the best of stock and static": 10 / 20,
    "p95 RTT of the static limit's": 60 / 240,
    "goodput of a BBR sender's": 10 / 16,
    "p95 RTT of a BBR sender's": 60 / 120,
    "goodput/p95 RTT of CoDel's in the router": (10 / 60) / (40 / 96),
    "goodput of stock's": OF_STOCK,
    "total goodput of stock's": OF_STOCK,
    "mean RTT of the base RTT": SETTLED_MS / BASE_MS,
    "completion time of stock's": 100 / 500,
    "completion time of CoDel's in the router, kept alive": 100 / 200,
    "goodput of stock's, 5 s after": OF_STOCK,
    "mean RTT of the base RTT, 20 s after": SETTLED_MS / 100,
    "p95 RTT of the base RTT, 10 s after": SETTLED_MS / BASE_MS,
    "p95 RTT of the base RTT, to 20 flows": SETTLED_MS / BASE_MS,
    "Jain's index": 0.5,
    "mean fetch time of the static limit's": 100 / 250,
    "speed of a video's segments of stock's": 500 / 400,
    "speed of a video's segments of CoDel's in the router": 640 / 400,
    "longer silence than stock's, s": 0.0,
    "window of what a slow reader drains": 10_000 / 12_500,
    "window of stock's, 2 RTT after off": 10_000 / 20_000,
    "goodput of stock's in the last 10 s": OF_STOCK,
    "mean RTT of the base RTT, 15 s after on": SETTLED_MS / BASE_MS,
}


def of_player(who: str, **config: Any) -> Result:
    goodput, p95, fetch_ms, segment_ms = PLAYERS[who]
    r = result("drwa" if who == "drwa" else "stock", goodput, p95, flows=2, **config)
    if who in ("android-lte", "paper-lte"):
        r["scheme"] = who
    r["cc"] = "bbr" if who == "bbr" else "cubic"
    r["aqm"] = "codel" if who == "codel" else None
    r["rtt_ms"]["base"] = BASE_MS
    r["series"]["rtt"]["ms"] = [SETTLED_MS] * len(r["series"]["rtt"]["t_s"])
    # The second one has nothing, so that Jain's index is a half.
    r["flows"] = [{"start_s": 0.0}, {"start_s": 5.0}]
    r["series"]["flow_goodput_mbps"] = [[goodput] * 600, [0.0] * 600]
    r["series"]["rwnd_bytes"] = [10_000 if who == "drwa" else 20_000] * 600
    r["objects"] |= {"mean_fct_ms": fetch_ms, "count": 1}
    r["objects"]["by_size"] = [{"size_bytes": 16000, "mean_fct_ms": fetch_ms}]
    r["segments"] = {"mean_fct_ms": segment_ms}
    r["config"]["keep_alive"] = True
    return r


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.row}: {t.what}")
def test_each_target_measures_what_it_says(target: Target) -> None:
    events = {"4": ["10s base-rtt=100ms"], "5": ["10s rate=1mbit"], "11": ["10s lambda=1.5"]}
    config: dict[str, Any] = {"events": events.get(target.row, [])}
    if "slow reader" in target.what:
        config["reader"] = "slow:2mbit"
    if "after off" in target.what:
        config["events"] = ["30s lambda=0"]
    runs = [of_player(who, **config) for who in PLAYERS]
    (links,) = targets.groups(runs)
    assert target.measure(links) == pytest.approx(WANTED[target.what])


def test_links_that_a_measure_does_not_concern() -> None:
    """Each side of what decides it."""
    assert targets.p95_shared(group(result("drwa", flows=20))) is not None
    assert targets.p95_shared(group(result("drwa", flows=21))) is None
    assert targets.fairness(group(result("drwa", flows=2))) is not None
    assert targets.fairness(group(result("drwa", flows=1))) is None
    for reader in ("fast", "small:500B", "burst:4s/2MB"):
        pair = [result(who, reader=reader) for who in ("stock", "drwa")]
        assert targets.window_of_need(group(*pair)) is None
    # λ that is off from the start was never switched off, and a change while on is no switch.
    for events in (["0s lambda=0"], ["20s lambda=2"], []):
        pair = [result("stock"), result("drwa", events=events)]
        assert targets.window_after_off(group(*pair)) is None
    for events in (["20s lambda=0"], ["50s lambda=1.5"]):
        pair = [result("stock"), result("drwa", events=events)]
        assert targets.rtt_after_on(group(*pair)) is None


def test_objects_that_never_came_decide_nothing() -> None:
    runs = [result(who) for who in ("stock", "drwa")]
    for r, times in zip(runs, [(100.0, None, 300.0), (90.0, 500.0, None)], strict=True):
        r["objects"]["by_size"] = [
            {"size_bytes": size, "mean_fct_ms": ms}
            for size, ms in zip((1, 2, 3), times, strict=True)
        ]
    assert targets.completion_of("stock")(group(*runs)) == pytest.approx(0.9)


def test_what_is_looked_at_after_a_start_or_a_step() -> None:
    """The measures begin as late as they say, to the tenth of a second."""
    law, stock = result("drwa", flows=2), result("stock", flows=2)
    for r in (law, stock):
        r["flows"] = [{"start_s": 0.0}, {"start_s": 10.0}]
    times = law["series"]["rtt"]["t_s"]
    law["series"]["rtt"]["ms"] = [1000.0 if t < 20 else 100.0 for t in times]
    assert targets.p95_shared(group(law)) == pytest.approx(2)
    law["series"]["flow_goodput_mbps"] = [at((20, 9.0), (60, 5.0)), at((20, 0.0), (60, 5.0))]
    assert targets.fairness(group(law)) == pytest.approx(1)
    law["series"]["flow_goodput_mbps"] = [at((50, 0.0), (60, 9.0))]
    assert targets.end_of_stock(group(law, stock)) == pytest.approx(0.9)
    for events, measure, after_s in (
        (["10s base-rtt=50ms"], targets.rtt_after_rtt_steps, 20),
        # Of a longer plateau, the p95 would not show a second more.
        (["10s rate=1mbit", "25s rate=2mbit"], targets.p95_after_rate_steps, 10),
        (["10s lambda=1.5"], targets.rtt_after_on, 15),
    ):
        law = result("drwa", events=events)
        law["series"]["rtt"]["ms"] = [1000.0 if t < 10 + after_s else 100.0 for t in times]
        assert measure(group(law)) == pytest.approx(2), events
    pair = [result(who, events=["10s base-rtt=50ms"]) for who in ("stock", "drwa")]
    pair[1]["series"]["flow_goodput_mbps"] = [at((15, 0.0), (60, 9.0))]
    assert targets.goodput_after_rtt_steps(group(*pair)) == pytest.approx(0.9)
    pair = [result(who, reader="slow:2mbit") for who in ("stock", "drwa")]
    for r in pair:
        r["series"]["rwnd_bytes"] = at((5, 1), (60, 12_500))
    assert targets.window_of_need(group(*pair)) == pytest.approx(1)


def test_the_worst_part_counts() -> None:
    """Of two steps, or of two switches."""
    times = result("drwa")["series"]["rtt"]["t_s"]
    for events, measure in (
        (["10s base-rtt=50ms", "35s base-rtt=50ms"], targets.rtt_after_rtt_steps),
        (["10s rate=1mbit", "35s rate=2mbit"], targets.p95_after_rate_steps),
        (["10s lambda=1.5", "30s lambda=0", "35s lambda=1.5"], targets.rtt_after_on),
    ):
        for rtts_ms in ((100.0, 75.0), (75.0, 100.0)):
            law = result("drwa", events=events)
            law["series"]["rtt"]["ms"] = [rtts_ms[t >= 35] for t in times]
            assert measure(group(law)) == pytest.approx(2), events
    for parts in ((9.0, 8.0), (8.0, 9.0)):
        events = ["10s base-rtt=50ms", "35s base-rtt=50ms"]
        pair = [result(who, events=events) for who in ("stock", "drwa")]
        pair[1]["series"]["flow_goodput_mbps"] = [at((35, parts[0]), (60, parts[1]))]
        assert targets.goodput_after_rtt_steps(group(*pair)) == pytest.approx(0.8, rel=0.01)
    for windows in ((4000, 5000), (5000, 4000)):
        law = result("drwa", events=["20s lambda=0", "30s lambda=1.5", "40s lambda=0"])
        stock = result("stock")
        law["series"]["rwnd_bytes"] = at((30, windows[0]), (60, windows[1]))
        stock["series"]["rwnd_bytes"] = [8000] * 600
        assert targets.window_after_off(group(stock, law)) == pytest.approx(0.5)


def test_nothing_of_the_other_one_is_no_division_by_0() -> None:
    stock, law = result("stock", goodput=0.0), result("drwa")
    assert targets.goodput_of("stock")(group(stock, law)) == float("inf")
