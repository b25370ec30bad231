# SPDX-License-Identifier: GPL-2.0-only
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from drwalab import compare, demo, ltelink, pool
from drwalab.kernels import KernelMissing
from drwalab.spec import RunSpec
from synthetic import demo_runs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunSpec]:
    """What the demo asks the pool for, which here answers with made-up results."""
    seen: list[RunSpec] = []

    def run_specs(specs: Sequence[RunSpec], reuse: bool) -> list[dict[str, Any]]:
        assert reuse
        seen.extend(specs)
        return demo_runs(10)

    monkeypatch.setattr(pool, "run_specs", run_specs)
    return seen


def run_demo(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(demo.demo)
    return CliRunner().invoke(app, arguments)


def test_schemes_on_the_generated_link(asked: list[RunSpec], tmp_path: Path) -> None:
    out = tmp_path / "new" / "demo.html"
    done = run_demo("--out", str(out), "--duration", "10s", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert [s.name for s in asked] == [
        "stock",
        "static android-lte",
        "drwa-classic λ=3.00",
        "drwa λ=1.25",
        "stock, bbr",
    ]
    assert len({(s.down, s.base_rtt_us, s.seed, s.duration_us) for s in asked}) == 1
    trace = asked[0].down.trace
    assert trace is not None
    assert trace.times_ms.tolist() == ltelink.opportunities(3, 10)
    assert asked[0].base_rtt_us == 50_000
    results = json.loads(out.with_suffix(".json").read_text())
    assert results == demo_runs(10)
    verdict = compare.verdict(compare.compare(results)[0])
    assert verdict in done.output
    assert verdict.replace(" %", "\u00a0%")[:30] in out.read_text()
    assert str(out) in done.output


def test_real_runs_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command twice: the same page and the same results, byte for byte.

    As they are run afresh, and as they are kept.
    """
    link = tmp_path / "link.down"
    ltelink.write_trace(link, 1, 2)
    try:
        pool.find_kernels(demo.specs(link, "2s", 1, None))
    except KernelMissing as e:
        pytest.skip(str(e))
    outs = [tmp_path / name / "demo.html" for name in ("a", "b", "c")]
    for out, kept in zip(outs, ("one", "two", "two"), strict=True):
        monkeypatch.setattr(pool, "results_dir", lambda kept=kept: tmp_path / kept)
        done = run_demo("--out", str(out), "--duration", "3s")
        assert done.exit_code == 0, done.output
    for ending in (".html", ".json"):
        first, second, third = (out.with_suffix(ending).read_bytes() for out in outs)
        assert first == second == third


def test_lambda_concerns_the_drwa_run(asked: list[RunSpec], tmp_path: Path) -> None:
    run_demo("--out", str(tmp_path / "demo.html"), "--duration", "10s", "--lambda", "2")
    assert [s.lambda_hundredths for s in asked] == [None, None, 300, 200, None]


def test_given_trace(asked: list[RunSpec], tmp_path: Path) -> None:
    trace = tmp_path / "my.down"
    trace.write_text("1\n5\n")
    done = run_demo("--out", str(tmp_path / "demo.html"), "--trace", str(trace))
    assert done.exit_code == 0, done.output
    assert {s.down.trace.path.name for s in asked if s.down.trace} == {"my.down"}
    assert "the recorded link my.down" in (tmp_path / "demo.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--duration", "ten"], "--duration"),
        (["--duration", "0s"], "--duration"),
        (["--trace", "absent.down"], "absent.down"),
        (["--lambda", "11"], "out of 1.00 to 10.00"),
    ],
)
def test_refuses_in_one_line(
    asked: list[RunSpec], tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run_demo("--out", str(tmp_path / "demo.html"), *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not asked


def test_folder_that_cannot_be(asked: list[RunSpec], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_demo("--out", str(tmp_path / "file" / "demo.html"))
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert not asked
