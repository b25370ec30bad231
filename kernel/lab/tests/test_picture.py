# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner

from drwalab import picture
from drwalab.compare import ResultError
from synthetic import demo_runs, run


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_same_results_same_bytes(tmp_path: Path, ending: str) -> None:
    a, b = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    picture.write_picture(demo_runs(20), a)
    picture.write_picture(demo_runs(20), b)
    assert a.read_bytes() == b.read_bytes()


def test_svg_is_small_and_dateless(tmp_path: Path) -> None:
    picture.write_picture(demo_runs(), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "<dc:description>Kernel: " in text
    ElementTree.fromstring(text)
    assert "dc:date" not in text
    assert len(text) < 200_000


def test_means_leave_gaps() -> None:
    t, v = picture._windowed([0.1, 0.2, 1.6], [10, 20, 30])
    assert t == [0.25, 0.75, 1.25, 1.75]
    assert v[0] == 15 and v[3] == 30 and v[1] != v[1] and v[2] != v[2]


def test_one_link_only(tmp_path: Path) -> None:
    mixed = [run("a", "stock", duration_s=10), run("b", "stock", duration_s=10, seed=2)]
    with pytest.raises(ResultError, match="one link"):
        picture.write_picture(mixed, tmp_path / "a.svg")


def test_run_without_probes(tmp_path: Path) -> None:
    runs = demo_runs(10)
    runs[1]["rtt_ms"]["p95"] = None
    runs[1]["series"]["rtt"] = {"t_s": [], "ms": []}
    picture.write_picture(runs, tmp_path / "a.svg")


def test_command(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(picture.picture)
    source = tmp_path / "a.json"
    source.write_text(json.dumps(demo_runs(10)))
    assert CliRunner().invoke(app, [str(source), "-o", str(tmp_path / "a.svg")]).exit_code == 0
    assert (tmp_path / "a.svg").exists()
    refused = CliRunner().invoke(app, [str(source), "-o", str(tmp_path / "a.gif")])
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
