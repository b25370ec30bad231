# SPDX-License-Identifier: GPL-2.0-only
"""Results as tables, read back with pandas."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from conftest import Lab
from drwalab import evidence, parquet
from synthetic import demo_runs, run

ROUNDS = {
    "t_s": [0.1, 0.2, 0.3],
    "flow": [0, -1, 0],
    "rtt_ms": [51.0, 60.0, 53.0],
    "path_ms": [50.0, 50.0, 50.0],
    "cwnd_bytes": [1, 2, 3],
    "rwnd_bytes": [4, 5, 6],
}


def test_tables_have_what_the_results_have(lab: Lab, tmp_path: Path) -> None:
    results = demo_runs(10)
    for number, result in enumerate(results):
        result["provenance"]["command"] += f" --number {number}"
    results[3]["drwa"] = ROUNDS
    (tmp_path / "x.json").write_text(json.dumps(results))
    # A run in two files is one run.
    (tmp_path / "y.json").write_text(json.dumps(results[0]))
    done = lab(f"parquet {tmp_path}/x.json {tmp_path}/y.json -o {tmp_path}/tables")
    assert done.code == 0, done.err
    runs = pd.read_parquet(tmp_path / "tables" / "runs.parquet")
    series = pd.read_parquet(tmp_path / "tables" / "series.parquet")
    assert list(runs["command"]) == [r["provenance"]["command"] for r in results]
    assert runs["run"].is_unique
    assert list(runs["rtt_p95_ms"]) == [r["rtt_ms"]["p95"] for r in results]
    assert list(runs["rpm"]) == [evidence.rpm(r) for r in results]
    assert runs["uplink_rate_bps"].isna().all() and str(runs["flows"].dtype) == "int64"
    assert set(series["run"]) == set(runs["run"])
    joined = series.merge(runs[["run", "name"]], on="run", validate="many_to_one")
    for result in results:
        own = joined[joined["name"] == result["name"]]
        probes = own[own["quantity"] == "rtt_ms"]
        assert list(probes["t_s"]) == result["series"]["rtt"]["t_s"]
        assert list(probes["value"]) == result["series"]["rtt"]["ms"]
        flow = own[(own["quantity"] == "goodput_mbps") & (own["stream"] == 0)]
        assert list(flow["value"]) == result["series"]["flow_goodput_mbps"][0]
    rounds = joined[joined["quantity"] == "drwa_rtt_ms"]
    assert set(rounds["name"]) == {results[3]["name"]}
    assert list(rounds[rounds["stream"] == 0]["value"]) == [51.0, 53.0]
    assert list(rounds[rounds["stream"].isna()]["value"]) == [60.0]


def test_columns_tell_what_they_are(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(run("stock", "stock", duration_s=10)))
    assert lab(f"parquet {tmp_path}/x.json -o {tmp_path}").code == 0
    told = lab("parquet --columns").out
    for name in ("runs", "series"):
        schema = pq.read_schema(tmp_path / f"{name}.parquet")
        assert schema.metadata[b"schema"] == parquet.SCHEMA.encode()
        for field in schema:
            about = field.metadata[b"about"].decode()
            assert about and f"{name}.{field.name} " in told and about in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("parquet", "no file: give results"),
        ("parquet {0}/none.json", "No such file"),
        ("parquet {0}/x.json -o {0}/x.json/y", "Not a directory"),
    ],
)
def test_wrong_input(lab: Lab, tmp_path: Path, words: str, message: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps(run("stock", "stock", duration_s=10)))
    done = lab(words.format(tmp_path))
    assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1), done.err
