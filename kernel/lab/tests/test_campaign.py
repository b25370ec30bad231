# SPDX-License-Identifier: GPL-2.0-only
"""The judge of `lab campaign`, on made-up results, and what the command does with them."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import Lab, without_guests
from drwalab import (
    campaign,
    cases,
    compare,
    documents,
    guest,
    kernels,
    pool,
    results,
    spec,
    targets,
)
from drwalab.kernels import Kernel, programs_id
from drwalab.spec import RunSpec
from drwalab.targets import TARGETS, Group, Target
from synthetic import run

Result = dict[str, Any]


@cache
def minute(scheme: str, seed: int) -> Result:
    return run(scheme, scheme, lam=1.25, duration_s=60, seed=seed)


def result(
    scheme: str, goodput: float = 10.0, p95: float = 100.0, seed: int = 1, **config: Any
) -> Result:
    r = deepcopy(minute(scheme, seed))
    r["rtt_ms"]["base"] = config.pop("base_ms", 50.0)
    r["config"] |= LOAD | {"base_rtt_ms": r["rtt_ms"]["base"]} | config
    r["goodput_mbps"] = goodput
    r["rtt_ms"]["p95"] = p95
    for name in ("goodput_mbps", "rwnd_bytes"):
        r["series"][name] = [goodput] * 600
    r["series"]["flow_goodput_mbps"] = [[goodput] * 600]
    return r


# What a result of the lab says of a plain load.
LOAD: dict[str, Any] = {
    "neighbours": [],
    "client": None,
    "client_rtt_ms": None,
    "client_jitter_ms": None,
    "client_nat": None,
    "second": None,
    "clock_ppm": 0,
    "clock_tick_ms": 1,
    "gro_ms": None,
    "tso": False,
    "sockets": "",
    "arrival": "think",
    "think_s": 2.0,
}


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
    bbr, codel = result("stock"), result("stock")
    bbr["cc"], codel["aqm"] = "bbr", "codel"
    older = result("drwa")
    older["limits"] = "android-lte"
    runs = (result("stock"), bbr, codel, result("android-lte"), result("drwa"), older)
    names = [targets.player(r) for r in runs]
    assert names == ["stock", "bbr", "codel", "android-lte", "drwa", "drwa, limits android-lte"]


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


def test_another_form_of_the_law() -> None:
    """Alike within 1 % of goodput and 5 % of the p95 RTT; the others are told one by one."""
    law = result("drwa", 10.0, 100.0)

    def pair(goodput: float, p95: float, own: Sequence[tuple[float, float]] = ()) -> campaign.Pair:
        """The form's, and the law's over almost the same paths."""
        form, *others = (
            campaign._difference(law, result("drwa-tc", *numbers))
            for numbers in ((goodput, p95), *own)
        )
        return campaign.Pair("b02-constant", "a link", form, tuple(others))

    pairs = [pair(10.09, 104.9), pair(9.91, 95.1), pair(10.11, 100.0), pair(10.0, 94.0)]
    assert [each.alike for each in pairs] == [True, True, False, False]
    # The law's own runs span 0.98 to 1.03 of the goodput, and 0.9 to 1.1 of the p95 RTT.
    own = [(9.8, 90.0), (10.3, 110.0), (10.0, 100.0)]
    pairs += [pair(10.39, 100.0, own), pair(10.41, 100.0, own), pair(10.0, 86.0, own)]
    pairs += [pair(9.8, 84.0, own)]
    assert [each.as_itself for each in pairs[4:]] == [True, False, True, False]
    known = [
        campaign.Cause(["b02-constant"], "another", "Never.", "nothing."),
        campaign.Cause(["b02-constant"], "^a link$", "Rounds.", "`a command`."),
    ]
    kernel = "6.1.9, patches 0123456789ab"
    text = campaign.forms_document(pairs, "drwa-tc", "6.1", known=known, kernels=[kernel])
    programs = f"BPF programs {programs_id()}"
    assert f"Kernel: {kernel}, where `drwa` runs. {programs}. Repeat it" in text
    assert "2 of 8 runs" in text
    assert "2 more are no further from it" in text
    links = [line for line in text.splitlines() if line.startswith("| b02-constant | a link")]
    assert [line.split(" | ")[-1] for line in links] == ["2 |"] * 4 + ["as itself |"] * 2
    assert "| 1.041 | 0.980 to 1.030 | 1.000 | 0.900 to 1.100 | – | 2 |" in text
    assert "\n2. Rounds. Shown by `a command`.\n" in text
    assert "0 have none that is known" in text
    assert "Never." not in text
    text = campaign.forms_document(pairs, "drwa-tc", "6.1", known=known[:1])
    assert "4 have none that is known" in text
    assert "| 1.041 | 0.980 to 1.030 | 1.000 | 0.900 to 1.100 | – | unknown |" in text
    # Where the run does not tell, the mean of several does.
    mean = campaign._mean([campaign.Difference(0.98, None), campaign.Difference(1.02, 1.06)])
    assert mean.goodput == pytest.approx(0.9998, abs=1e-6)
    assert mean.p95 == 1.06
    alike, other = campaign.Difference(0.995, 1.04), campaign.Difference(0.995, 1.06)
    pairs = [replace(pairs[2], mean=each) for each in (alike, other)]
    assert [campaign.cause_of(each, known) for each in pairs] == ["in the mean", "2"]
    text = campaign.forms_document(pairs, "drwa-tc", "6.1", known=known)
    assert "| 0.995, 1.040 | in the mean |" in text
    assert "| 0.995, 1.060 | 2 |" in text
    assert "is chance." in text
    assert "| 1.009 | – |" not in text
    # No downloads, so no goodput.
    idle = campaign._difference(result("drwa", flows=0), result("drwa-tc", 5.0, flows=0))
    assert (idle.goodput, idle.p95) == (None, 1.0)


@pytest.mark.parametrize("line", ["6.12", "6.1"])
def test_recorded_deviations_have_the_causes_that_are_known(line: str) -> None:
    """A cause that is new, or gone, is written beside its runs: record them again."""
    known = campaign.causes("drwa-module")
    name = campaign.document_path(line, "drwa-module").stem
    assert documents.table(name)
    for row in documents.table(name, 1):
        pair = campaign.Pair(row["Case"], row["Link"], campaign.Difference(None, None))
        told = ("as itself", "in the mean", campaign.cause_of(pair, known))
        assert row["Cause"] in told, row["Link"]


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
    alive = targets.where(targets.kept_alive, completion)
    fresh = targets.where(targets.new_connections, completion)
    assert alive(group(stock, law)) is None
    assert fresh(group(stock, law)) == pytest.approx(1.05)
    for r in (stock, law):
        r["config"]["keep_alive"] = True
    assert alive(group(stock, law)) == pytest.approx(1.05)
    assert fresh(group(stock, law)) is None


def test_fairness_and_late_flows() -> None:
    law = result("drwa", flows=2)
    law["flows"] = [{"start_s": 0.0}, {"start_s": 20.0}]
    law["series"]["flow_goodput_mbps"] = [at((30, 9.0), (60, 6.0)), at((30, 0.0), (60, 3.0))]
    assert targets.fairness(group(law)) == pytest.approx(81 / (2 * 45))


def test_readers() -> None:
    stock, law = result("stock", reader="slow:2mbit"), result("drwa", reader="slow:2mbit")
    # 2 Mb/s over 50 ms are 12500 bytes.
    law["series"]["rwnd_bytes"] = at((5, 0), (60, 10_000))
    stock["series"]["rwnd_bytes"] = [50_000] * 600
    assert targets.window_of_need("stock")(group(stock, law)) == pytest.approx(0.8)
    # Nor does stock give more than its reader's buffer has room for.
    stock["series"]["rwnd_bytes"][300] = 8_000
    assert targets.window_of_need("stock")(group(stock, law)) == pytest.approx(1.25)
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


# What the law in the kernel has no part in
ALL_TARGETS = (*TARGETS, *targets.PROGRAMS)


def test_every_target_has_runs_of_its_players() -> None:
    known = cases.load()
    for target in ALL_TARGETS:
        players = {(s.scheme.name, s.cc, s.aqm) for s in known[target.case].specs}
        law = targets.INTERFACE if target in targets.PROGRAMS else "drwa"
        assert {("stock", "cubic", None), (law, "cubic", None)} <= players
    rows = {t.row for t in ALL_TARGETS}
    assert rows | set(targets.ELSEWHERE) == {str(n) for n in range(1, 37)}
    # A target is known by its row, its name and its bound.
    assert len({(t.row, t.what, t.bound) for t in ALL_TARGETS}) == len(ALL_TARGETS)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results without guests, in which the law has 98.5 % of stock's goodput."""

    found_builds: dict[tuple[str, str], Kernel] = {}

    def run_specs(
        specs: Sequence[RunSpec], reuse: bool, builds: object, beside_idle: bool
    ) -> list[Result]:
        assert reuse
        assert beside_idle
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
    assert "`kernel/lab/lab campaign --row 14`" in text
    (row,) = json.loads(out.read_text())
    assert len(row["runs"]) == 8
    assert "series" not in row["runs"][0]
    assert row["verdicts"][0]["links_met"] == 4


def test_a_form_beside_the_law(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock and the idle links are nobody's then; what differs is told, written and recorded."""
    seen: list[RunSpec] = []

    def run_specs(specs: Sequence[RunSpec], beside_idle: bool, **_: object) -> list[Result]:
        assert not beside_idle
        seen.extend(specs)
        return [result(s.scheme.name, 9.8 if s.flavour == "module" else 10.0) for s in specs]

    monkeypatch.setattr(pool, "run_specs", run_specs)
    monkeypatch.setattr(pool, "find_kernels", lambda specs: {})
    out, page = tmp_path / "c.json", tmp_path / "c.md"
    done = lab(f"campaign --form drwa-module --row 14 --json {out} --document {page}")
    assert done.code == 0, done.err
    assert {s.scheme.name for s in seen} == {"drwa", "drwa-module"}
    # Each of the four links differs, so the law runs over three other paths for each; that does
    # not tell, so both run over eight more.
    assert len(seen) == 4 + 4 + 4 * 3 + 4 * 2 * (1 + 8)
    assert done.out.count("0.980, 1.000  unknown") == 4
    base_rtts_us = {s.base_rtt_us for s in seen if s.scheme.name == "drwa-module"}
    assert {39_680, 40_000, 40_320} <= base_rtts_us
    text = page.read_text()
    assert "0 of 4 runs of the campaign's rows 14 have" in text
    assert "`kernel/lab/lab campaign --form drwa-module --row 14`" in text
    goodput = [pair["form"]["goodput"] for pair in json.loads(out.read_text())]
    assert goodput == pytest.approx([0.98] * 4)

    # What has a cause that is written down needs no more runs.
    seen.clear()
    chance = campaign.Cause(["b14-wifi"], "buffer", "Chance.", "nothing.")
    monkeypatch.setattr(campaign, "causes", lambda form: [chance])
    assert lab(f"campaign --form drwa-module --row 14 --json {out} --document {page}").code == 0
    assert len(seen) == 4 + 4 + 4 * 3
    assert "0 have none that is known" in page.read_text()


def test_kernel_line(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the law needs the patched kernel; another line has a document of its own."""
    seen = without_guests(
        monkeypatch, tmp_path, lambda one: result(one.scheme.name, base_ms=one.base_rtt_us / 1e3)
    )
    monkeypatch.setattr(campaign, "TARGETS", [t for t in TARGETS if t.row in ("14", "17")])
    assert lab(f"campaign --kernel 6.1 --json {tmp_path}/c.json").code == 0
    assert {(s.kernel, s.flavour, s.scheme.uses_drwa) for s in seen} == {
        ("6.1", "base", False),
        ("6.1", "drwa", True),
    }
    text = (tmp_path / "campaign-6.1.md").read_text()
    assert "`kernel/lab/lab campaign --kernel 6.1`" in text
    assert not (tmp_path / "campaign.md").exists()
    seen.clear()
    done = lab(f"campaign --kernel 5.10 --row 17 --json {tmp_path}/c.json")
    assert "GRO: the lab's links have none in 5.10" in done.err
    assert {s.gro_us for s in seen} == {None}


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--row 99", "--row: '99' is unknown: choose from 1, 2"),
        ("--kernel 4.4", "--kernel: '4.4' is unknown: choose from "),
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

    generated = {f"lte-seed{seed}-120s.down" for seed in range(1, 5)}
    assert links(None)[0] == generated
    assert "no folder of traces is given" in links(None)[1][0]
    assert "has no *.down" in links(tmp_path)[1][0]
    for name in ("ride.down", "a-5g-ride.down"):
        (tmp_path / name).write_text("5\n")
    assert links(tmp_path) == (generated | {"ride.down", "a-5g-ride.down"}, [])
    jumps = cases.load(tmp_path)["b27-jumps"]
    found = {s.down.trace.path.name for s in jumps.specs if s.down.trace}
    assert found == {*(f"drive-{seed}-40s.down" for seed in range(1, 5)), "a-5g-ride.down"}


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
    builds = {("6.12", "drwa"): kernel, ("6.12", "base"): FakeKernel()}
    monkeypatch.setattr(pool, "find_kernels", lambda specs: builds)
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
    # What runs on the other kernel outlives that, and so does the idle link beside it.
    law, base = spec.parse("drwa", {"rate": "1mbit"}), replace(one, flavour="base")
    for key in ("three", "four"):
        kernel.key = key
        made.clear()
        pool.run_specs([law, base], progress=False, reuse=True)
    assert made == ["drwa λ=1.25"]


@pytest.mark.parametrize(
    ("name", "of"), [("campaign", TARGETS), ("programs", targets.PROGRAMS)], ids=["", "programs"]
)
def test_the_records_are_of_these_targets(name: str, of: Sequence[Target]) -> None:
    """A bound that moves wants the campaign anew; what it found was judged by these bounds."""
    recorded = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in campaign.document_path("6.12", name=name).read_text().splitlines()
        if line.startswith("| ") and line.count("|") == len(campaign.HEADS) + 1
    ]
    rows = [row for row in recorded if row[0].isdigit() and row[0] not in targets.ELSEWHERE]
    known = {(t.row, t.what, t.bound): t for t in of}
    assert {tuple(row[:3]) for row in rows} == set(known)
    for row in rows:
        target = known[row[0], row[1], row[2]]
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
    "fq_codel": (41.0, 97.0, 160.0, 650.0),
    "android-13plus": (5.0, 600.0, 900.0, 320.0),
    "drwa, limits android-lte": (9.0, 70.0, 110.0, 410.0),
    "drwa-tc": (11.0, 75.0, 120.0, 420.0),
}
OF_STOCK = 10 / 12.5
BASE_MS, SETTLED_MS, IDLE_MS = 50.0, 65.0, 24.0
WANTED = {
    "goodput of stock's, base 40 ms": OF_STOCK,
    "p95 RTT of the idle link's, base 40 ms": 60 / IDLE_MS,
    "goodput of stock's, base 100 ms": OF_STOCK,
    "p95 RTT of the idle link's, base 100 ms": 60 / IDLE_MS,
    "goodput of a BBR sender's": 10 / 16,
    "p95 RTT of a BBR sender's": 60 / 120,
    "goodput/p95 RTT of CoDel's in the router": (10 / 60) / (40 / 96),
    "goodput of stock's": OF_STOCK,
    "goodput of stock's, same limits": 10 / 5,
    "total goodput of stock's": OF_STOCK,
    "goodput of stock's, from 2 Mb/s on": OF_STOCK,
    "goodput of stock's, below 2 Mb/s": OF_STOCK,
    "mean RTT of the base RTT, from 2 Mb/s on": SETTLED_MS / BASE_MS,
    "mean RTT of the base RTT, below 2 Mb/s": SETTLED_MS / BASE_MS,
    # Four segments take 48 ms at 1 Mb/s.
    "p95 RTT of two base RTTs and four segments, to 2 Mb/s": 60 / (2 * BASE_MS + 48),
    "mean RTT of the base RTT": SETTLED_MS / BASE_MS,
    "completion time of stock's, new connections": 100 / 500,
    "completion time of stock's, kept alive": 100 / 500,
    "completion time of CoDel's in the router, kept alive": 100 / 200,
    "goodput of stock's, 5 s after": OF_STOCK,
    "mean RTT of the base RTT, 20 s after": SETTLED_MS / 100,
    "p95 RTT of the base RTT, 10 s after": SETTLED_MS / BASE_MS,
    "p95 RTT of the base RTT, 5 flows": SETTLED_MS / BASE_MS,
    "p95 RTT of the base RTT, 20 flows": SETTLED_MS / BASE_MS,
    "Jain's index, 5 and 20 flows": 0.5,
    "Jain's index, 64 flows": 0.5,
    "mean fetch time of the static limit's": 100 / 250,
    "speed of a video's segments of stock's": 500 / 400,
    "speed of a video's segments of stock's, same limits": 320 / 400,
    "speed of a video's segments of CoDel's in the router": 640 / 400,
    "longer silence than stock's, s": 0.0,
    "window of what a slow reader drains, or of stock's, same limits": 10_000 / 12_500,
    "window of stock's, 2 RTT after off": 10_000 / 20_000,
    "goodput of stock's in the last 10 s": OF_STOCK,
    "mean RTT of the base RTT, 15 s after on": SETTLED_MS / BASE_MS,
    "p95 RTT of the idle link's": 60 / IDLE_MS,
    "goodput of that without": 10 / 9,
    "p95 RTT of that without": 60 / 50,
    "goodput of stock's, GRO and TSO, variable links": OF_STOCK,
    "p95 RTT of the idle link's, GRO and TSO, variable links": 60 / IDLE_MS,
    "mean RTT of the base RTT, GRO and TSO, steady links": SETTLED_MS / BASE_MS,
    "share of a fair one, steady links": 0.8,
    "share of a fair one, variable links": 0.8,
    "share of stock's beside the same": 0.8 / 0.5,
    "back below 2 base RTTs, s after it has gone": 0.0,
    "median queue of one interface's": (SETTLED_MS - BASE_MS) / 10,
    "goodput of stock's, ±500 ppm": OF_STOCK,
    "goodput of stock's, steps, ticks, pauses, none": OF_STOCK,
    "fetch time of that without the liar": 100 / 80,
    "fetch time of that with fq_codel": 100 / 160,
    "goodput of that without the liar": 10 / 9,
    "back below 2 base RTTs, s after": 0.0,
    "p95 RTT of stock's": 60 / 400,
    "retransmits of stock's": 3 / 4,
    "share of the second edition's": 0.8 / 0.4,
    "mean RTT of stock's, limits android-13plus": 70 / 140,
    "goodput of stock's, limits android-13plus": 10 / 5,
    # Under other limits the law is another player.
    "mean RTT of stock's, limits android-lte": 80 / 140,
    "goodput of stock's, limits android-lte": 9 / 8,
    "p95 RTT of that with timestamps": 60 / 50,
    "goodput of stock's, no timestamps": OF_STOCK,
    "share of that without the fetches": 0.8 / 0.9,
    "goodput of that without the stream, 10 s after": 10 / 9,
    "goodput of that on the phone": 11 / 10,
    "p95 RTT of that on the phone": 75 / 55,
    "goodput of stock's on the client": 11 / 12.5,
    "p95 RTT of one download's": 75 / 55,
    "Jain's index of phone and client": 0.5,
    "goodput of stock's, links that vary": 11 / 12.5,
    "p95 RTT of the idle link's, programs": 75 / IDLE_MS,
    "goodput of stock's, same limits, seldom readers": 11 / 5,
}
# Of which a test of its own knows more.
DIAL_ROW = "15"
HOTSPOT: dict[str, Any] = {"client_rtt_ms": 4.0, "client_jitter_ms": 0.0, "client_nat": False}
# What a link or a load has to be for a target to concern it, where one of 1 Mb/s and one that
# varies will not do.
CONFIGS: dict[str, dict[str, Any]] = {
    "base 40 ms": {"base_ms": 40.0},
    "base 100 ms": {"base_ms": 100.0},
    "from 2 Mb/s on": {"rate_bps": 2_000_000, "trace": None},
    "below 2 Mb/s": {"rate_bps": 1_000_000, "trace": None},
    "to 2 Mb/s": {"rate_bps": 1_000_000, "trace": None},
    "kept alive": {"keep_alive": True},
    "slow reader": {"reader": "slow:2mbit"},
    "2 RTT after off": {"events": ["30s lambda=0"]},
    "20 flows": {"flows": 20},
    "5 flows": {"flows": 5},
    "64 flows": {"flows": 64},
    "steady links": {"trace": None},
    "seldom readers": {"trace": None},
    "GRO": {"gro_ms": 1.0, "tso": True},
    "that without": {"gro_ms": 1.0},
    "gone": {"trace": None},
    "one interface's": {"second": "clat"},
    "±500 ppm": {"clock_ppm": 500},
    "ticks": {"clock_tick_ms": 4},
    "limits android-": {"clock_tick_ms": 4.0},
    "timestamps": {"sockets": "--no-timestamps"},
    "fetches": {"arrival": "poisson", "objects": [1], "think_s": 0.1, "gro_ms": None},
    "stream": {"neighbours": ["stream"], "gro_ms": None},
    "on the phone": HOTSPOT | {"client": "all"},
    "on the client": HOTSPOT | {"client": "all"},
    "of one download's": HOTSPOT | {"client": "half"},
    "phone and client": HOTSPOT | {"client": "half"},
    "liar": {"neighbours": ["liar"], "tso": False, "gro_ms": None, "objects": [16000]},
}
ROW_EVENTS = {
    "4": ["10s base-rtt=100ms"],
    "5": ["10s rate=1mbit"],
    "11": ["10s lambda=1.5"],
    "22": ["10s rate=2mbit"],
    "31": ["10s base-rtt=100ms"],
}


def of_player(who: str, **config: Any) -> Result:
    goodput, p95, fetch_ms, segment_ms = PLAYERS[who]
    law, _, limits = who.partition(", limits ")
    scheme = law if law in ("drwa", "drwa-tc") else "stock"
    r = result(scheme, goodput, p95, **({"flows": 2} | config))
    if limits:
        r["limits"] = limits
    if who in ("android-lte", "paper-lte", "android-13plus"):
        r["scheme"] = who
    r["cc"] = "bbr" if who == "bbr" else "cubic"
    r["aqm"] = who if who in spec.AQMS else None
    r["rtt_ms"] |= {"base": BASE_MS, "p50": SETTLED_MS}
    r["rtt_ms"]["mean"] = {"drwa": 70.0, "drwa, limits android-lte": 80.0}.get(who, 140.0)
    r["rtt_ms"]["idle"]["p95"] = IDLE_MS
    r["fair_share"] = 0.8 if who == "drwa" else 0.5
    r["neighbours"] = [{"end_s": 30.0}]
    r["series"]["rtt"]["ms"] = [SETTLED_MS] * len(r["series"]["rtt"]["t_s"])
    # The second one has nothing, so that Jain's index is a half.
    r["flows"] = [{"start_s": 0.0}, {"start_s": 5.0}]
    r["series"]["flow_goodput_mbps"] = [[goodput] * 600, [0.0] * 600]
    r["series"]["rwnd_bytes"] = [10_000 if who == "drwa" else 20_000] * 600
    r["objects"] |= {"mean_fct_ms": fetch_ms, "count": 1}
    r["objects"]["by_size"] = [{"size_bytes": 16000, "mean_fct_ms": fetch_ms}]
    r["segments"] = {"mean_fct_ms": segment_ms}
    r["retransmits"] = 3 if who == "drwa" else 4
    return r


def plain_one(**config: Any) -> Result:
    """The law on the same link without what a target is about."""
    objects = [] if config.get("arrival") == "poisson" else config.get("objects", [])
    r = of_player("drwa", **(config | LOAD | {"objects": objects}))
    r["goodput_mbps"] = 9.0
    r["rtt_ms"] |= {"p95": 50.0, "p50": BASE_MS + 10}
    r["objects"]["by_size"] = [{"size_bytes": 16000, "mean_fct_ms": 80.0}]
    r["fair_share"] = 0.9
    r["series"]["flow_goodput_mbps"] = [[9.0] * 600, [0.0] * 600]
    return r


def phones_own(**config: Any) -> Result:
    """The same download on the phone, alone."""
    r = of_player("drwa-tc", **(config | LOAD | {"flows": 1, "flow_gap_s": 0.0}))
    r["goodput_mbps"] = 10.0
    r["rtt_ms"]["p95"] = 55.0
    return r


@pytest.mark.parametrize(
    "target", [t for t in ALL_TARGETS if t.row != DIAL_ROW], ids=lambda t: f"{t.row}: {t.what}"
)
def test_each_target_measures_what_it_says(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    config: dict[str, Any] = {"events": ROW_EVENTS.get(target.row, [])}
    for words, needed in CONFIGS.items():
        if words in target.what:
            config |= needed
    runs = [of_player(who, **config) for who in PLAYERS]
    # What some compare with what the law has otherwise.
    others = [] if LOAD.items() <= (LOAD | config).items() else [plain_one(**config)]
    if config.get("client"):
        others = [phones_own(**config)]
    first, *_ = targets.groups([*runs, *others])
    monkeypatch.setattr(targets, "SECOND_EDITION", {first.label: 0.4})
    assert target.measure(first) == pytest.approx(WANTED[target.what])


def test_links_that_a_measure_does_not_concern() -> None:
    """Each side of what decides it."""
    for reader in ("fast", "small:500B", "burst:4s/2MB"):
        pair = [result(who, reader=reader) for who in ("stock", "drwa")]
        assert targets.window_of_need("stock")(group(*pair)) is None
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
    assert targets.window_of_need("stock")(group(*pair)) == pytest.approx(1)


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
    pair = [result("stock"), result("drwa")]
    for theirs, ours, wanted in ((0, 0, 0.0), (0, 1, float("inf")), (5, 0, 0.0)):
        pair[0]["retransmits"], pair[1]["retransmits"] = theirs, ours
        assert targets.retransmits_of_stock(group(*pair)) == wanted
    stock, law = result("stock", goodput=0.0), result("drwa")
    assert targets.goodput_of("stock")(group(stock, law)) == float("inf")


def test_a_peer_stands_beside_the_worst() -> None:
    target = Target("2", "b02-constant", "goodput", targets.goodput_of("stock"), 0.99)
    peer = campaign.Peer("codel", "drwa", "CoDel")
    near, far = result("stock", 9.5), result("stock", 8, base_ms=200)
    near["aqm"] = far["aqm"] = "codel"
    runs = [result("stock", 10), result("drwa", 9.9), near]
    worst = [result("stock", 10, base_ms=200), result("drwa", 9.7, base_ms=200)]
    verdict = campaign.judge(target, targets.groups([*runs, *worst, far]), peer)
    assert (verdict.met, verdict.worst) == (False, 0.97)
    assert sorted(verdict.peers.values()) == [0.8, 0.95]
    assert verdict.cells(peer)[5:] == ("1 of 2", "0.800; 0 of 2", "missed")
    # It need not have run there.
    verdict = campaign.judge(target, targets.groups([*runs, *worst]), peer)
    assert verdict.cells(peer)[5:] == ("1 of 2", "–; 0 of 1", "missed")
    assert verdict.cells()[5:] == ("1 of 2", "missed")


@pytest.mark.parametrize("target", [t for t in TARGETS if t.row == DIAL_ROW], ids=lambda t: t.what)
def test_the_dial(target: Target) -> None:
    """Each step against the one before, by the geometric mean over the links."""
    found = []
    for number, lambda_ in enumerate(targets.DIAL):
        for ms, worse in ((40, 1.0), (50, 1.21)):
            law = result("drwa", 10 + number, (100 + 10 * number) * worse, base_ms=ms)
            law["lambda"] = lambda_
            found.append(law)
    names = {targets.player(r) for r in found}
    assert {"drwa", "drwa λ=1.00", "drwa λ=3.00"} <= names
    assert len(names) == len(targets.DIAL)
    verdict = campaign.judge(target, targets.groups(found))
    what, step = target.what.split(", λ ")
    after, before = (targets.DIAL.index(float(x)) for x in step.split(" of "))
    start, each = (100, 10) if what == "p95 RTT" else (10, 1)
    ratio = (start + each * after) / (start + each * before)
    assert verdict.worst == pytest.approx(ratio, abs=1e-4)
    assert (verdict.links, verdict.links_met) == (2, 2 * target.met(verdict.worst or 0))
    assert verdict.met == (target.at_least != 2.5)


def test_links_together() -> None:
    """By their geometric mean, whatever the worst one is; its values stay."""
    mean = Target("1", "b01-traces", "w", targets.goodput_of("stock"), 0.99, together=True)
    near = [result("stock", 10), result("drwa", 8)]
    far = [result("stock", 10, base_ms=200), result("drwa", 12.5, base_ms=200)]
    verdict = campaign.judge(mean, targets.groups([*near, *far]))
    assert verdict.met
    assert verdict.worst == pytest.approx(1.0)
    assert sorted(verdict.values.values()) == [0.8, 1.25]
    assert verdict.cells()[4:] == ("all 2, geometric mean", "–", "met")
    verdict = campaign.judge(
        mean, targets.groups([*near, *far[:1], result("drwa", 12, base_ms=200)])
    )
    assert not verdict.met
    assert verdict.worst == pytest.approx(0.96**0.5)
    nothing = campaign.judge(mean, targets.groups([result("stock")]))
    assert (nothing.met, nothing.worst, nothing.cells()[-1]) == (False, None, "not run")


def test_what_is_missed_comes_first() -> None:
    rows = [("3", True, False), ("2", False, True), ("12", False, False), ("1", True, False)]
    runs = targets.groups([result("stock"), result("drwa", 9)])
    found = [
        campaign.judge(
            Target(row, "c", "w", targets.goodput_of("stock"), 0.5 if met else 1.5, reach=reach),
            runs,
        )
        for row, met, reach in rows
    ]
    assert [v.row for v in sorted(found, key=lambda v: v.order)] == ["12", "2", "1", "3"]


def test_which_links_a_target_concerns() -> None:
    def concerned(holds: Any, **config: Any) -> bool:
        pair = group(result("stock", **config), result("drwa", **config))
        return targets.where(holds, targets.goodput_of("stock"))(pair) is not None

    constant: dict[str, Any] = {"trace": None, "rate_bps": 2_000_000}
    assert concerned(targets.brisk, **constant)
    assert not concerned(targets.slow, **constant)
    assert concerned(targets.slow, **(constant | {"rate_bps": 1_999_999}))
    assert not concerned(targets.brisk, **(constant | {"rate_bps": 1_999_999}))
    assert not concerned(targets.brisk)
    assert not concerned(targets.slow)
    assert [concerned(targets.steady, **constant), concerned(targets.steady)] == [True, False]
    assert [concerned(targets.variable, **constant), concerned(targets.variable)] == [False, True]
    assert concerned(targets.base_rtt(40), base_ms=40)
    assert not concerned(targets.base_rtt(40), base_ms=100)
    assert [concerned(targets.flows(5, 20), flows=n) for n in (5, 6, 20)] == [True, False, True]
    assert [concerned(targets.drifts, clock_ppm=n) for n in (0, -500)] == [False, True]
    assert [concerned(targets.ticks, clock_tick_ms=n) for n in (1, 4)] == [False, True]
    assert concerned(targets.ticks, events=["20s timestamps=off"])
    assert not concerned(targets.ticks, clock_ppm=500)
    both: list[dict[str, Any]] = [{"gro_ms": 0.0, "tso": True}, {"gro_ms": 0.0}, {"tso": True}]
    assert [concerned(targets.offloaded, **each) for each in both] == [True, False, False]
    seconds = [None, "clat", "vpn", "network"]
    assert [concerned(targets.one_queue, second=each) for each in seconds] == [0, 1, 1, 0]
    assert [concerned(targets.fetches, objects=each) for each in ([], [1])] == [False, True]
    words = ["", "--rcvbuf 1MB --no-timestamps", "--no-window-scaling"]
    assert [concerned(targets.no_timestamps, sockets=each) for each in words] == [0, 1, 0]
    assert [concerned(targets.downloads, flows=each) for each in (0, 1)] == [False, True]


def test_slow_links() -> None:
    """Two base RTTs of 50 ms and the 48,000 bits of four segments; not above 2 Mb/s."""
    for rate_bps, bound_ms in ((300_000, 260.0), (2_000_000, 124.0)):
        law = result("drwa", p95=130.0, rate_bps=rate_bps, trace=None)
        assert targets.p95_of_slow(group(law)) == pytest.approx(130 / bound_ms)
    assert targets.p95_of_slow(group(result("drwa", rate_bps=2_000_001, trace=None))) is None
    assert targets.p95_of_slow(group(result("drwa"))) is None


def rtts(r: Result, *parts: tuple[float, float]) -> Result:
    """With these RTTs in ms until each second; the last one holds to the end."""
    times = r["series"]["rtt"]["t_s"]
    r["series"]["rtt"]["ms"] = [next((ms for until, ms in parts if t < until), 60.0) for t in times]
    return r


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ([(20, 60.0)], 0.0),
        # Twice the base RTT of 50 ms is not below it.
        ([(20, 60.0), (21.5, 100.0)], 1.45),
        ([(20, 60.0), (21.5, 99.9)], 0.0),
        # What was long before the step is not looked at.
        ([(20, 500.0)], 0.0),
        # Short for less than a second, then long again, then short for good.
        ([(20, 60.0), (21, 500.0), (21.9, 60.0), (24, 500.0)], 3.95),
        # What comes after the first short second is not looked at either.
        ([(20, 60.0), (21, 500.0), (23, 60.0), (24, 500.0)], 0.95),
        ([(20, 60.0), (60, 500.0)], 40.0),
    ],
)
def test_back_to_a_short_queue(parts: list[tuple[float, float]], seconds: float) -> None:
    law = rtts(result("drwa", events=["20s rate=2mbit"]), *parts)
    assert targets.short_after_step_s(group(law)) == pytest.approx(seconds, abs=0.01)
    rival = rtts(result("drwa", neighbours=["cubic:5s/15s", "bbr:5s/10s"]), *parts)
    rival["neighbours"] = [{"end_s": 20.0}, {"end_s": 15.0}]
    assert targets.short_after_rivals_s(group(rival)) == pytest.approx(seconds, abs=0.01)


def test_the_slowest_of_several_runs_is_back_last() -> None:
    runs = [
        rtts(result("drwa", seed=seed, events=["20s rate=2mbit"]), (20, 60.0), (until, 500.0))
        for seed, until in ((1, 22.0), (2, 25.0), (3, 21.0))
    ]
    assert targets.short_after_step_s(group(*runs)) == pytest.approx(4.95, abs=0.01)


def test_a_second_without_probes_shows_nothing() -> None:
    law = result("drwa", events=["20s rate=2mbit"])
    law["series"]["rtt"] = {"t_s": [19.0, 23.0, 26.0, 26.5], "ms": [60.0, 500.0, 60.0, 60.0]}
    # Before 23 s nothing was sent; from 23 s on, nothing for a second either.
    assert targets.short_after_step_s(group(law)) == 40.0


def test_the_same_without() -> None:
    """Only what differs in nothing else is compared, and what is plain itself is not."""
    plain, both = result("drwa", 10), result("drwa", 9, gro_ms=1.0, tso=True)
    tso, other = result("drwa", 8, tso=True), result("drwa", 5, base_ms=200)
    links = targets.groups([other, plain, both, tso])
    measure = targets.of_same(targets.goodput, gro_ms=None, tso=False)
    assert [measure(g) for g in links] == [None, None, 0.9, 0.8]
    alone = targets.groups([both, other])
    target = Target("17", "b17-offloads", "w", measure, 0.98)
    assert campaign.judge(target, alone).links == 0
    nothing = targets.groups([result("drwa", 0.0), tso])
    assert measure(nothing[1]) == float("inf")


def test_fetches_beside_a_liar() -> None:
    runs = []
    for liars, times in (([], (100.0, 400.0, 50.0)), (["liar"], (120.0, 440.0, None))):
        r = result("drwa", neighbours=liars, objects=[1, 2, 3], flows=0)
        r["objects"]["by_size"] = [
            {"size_bytes": size, "mean_fct_ms": ms}
            for size, ms in zip((1, 2, 3), times, strict=True)
        ]
        runs.append(r)
    alone, beside = targets.groups(runs)
    assert targets.slower_fetch(alone) is None
    assert targets.slower_fetch(beside) == pytest.approx(1.2)


def test_shares() -> None:
    law, stock = result("drwa"), result("stock")
    law["fair_share"], stock["fair_share"] = 0.6, 0.8
    pair = group(law, stock)
    assert targets.share(pair) == pytest.approx(0.6)
    assert targets.share_of_stock(pair) == pytest.approx(0.75)
    assert targets.share_of_second_edition(pair) is None
    # Nothing at all of what all got.
    law["fair_share"] = None
    assert targets.share(pair) == 0


def test_the_second_edition_was_on_these_links() -> None:
    """Labels are what finds it, so they may not change."""
    specs = cases.choose(["b18-rivals"])[0].specs
    labels = {compare.link_label({"config": results._config(s)}) for s in specs}
    assert len(labels) == 15
    assert labels <= set(targets.SECOND_EDITION)


def test_the_idle_link() -> None:
    law = result("drwa", p95=150.0)
    law["rtt_ms"]["idle"]["p95"] = 60.0
    assert targets.p95_of_idle(group(law)) == pytest.approx(2.5)
    law["rtt_ms"]["idle"]["p95"] = None
    assert targets.p95_of_idle(group(law)) is None


def test_queues_of_several_interfaces() -> None:
    """What stands in the queue counts, not the path."""
    runs = []
    for second, p50_ms in ((None, 62.5), ("clat", 65.0)):
        r = result("drwa", second=second)
        r["rtt_ms"] |= {"base": 50.0, "p50": p50_ms}
        runs.append(r)
    measure = targets.of_same(targets.p50_queue, second=None)
    assert [measure(g) for g in targets.groups(runs)] == [None, pytest.approx(1.2)]
