# SPDX-License-Identifier: GPL-2.0-only
"""Results as flent's data files."""

import gzip
import json
from pathlib import Path

import pytest

from conftest import Lab
from drwalab import flentfile
from synthetic import demo_runs, run


def test_series_are_those_of_the_run() -> None:
    result = run("stock", "stock", duration_s=10)
    result["series"]["flow_goodput_mbps"] = [[1.0] * 100, [3.0] * 100]
    result["config"]["flows"] = 2
    found = flentfile.content(result)
    assert found["x_values"][0] == 0.2 and len(found["x_values"]) == 50
    assert all(len(values) == 50 for values in found["results"].values())
    assert set(found["results"]["TCP download::2"]) == {3.0}
    assert set(found["results"]["TCP download sum"]) == {4.0}
    assert set(found["results"]["TCP download avg"]) == {2.0}
    pings = [each["val"] for each in found["raw_values"]["Ping (ms) ICMP"]]
    assert pings == result["series"]["rtt"]["ms"]
    assert found["metadata"]["TEST_PARAMETERS"] == {"download_streams": "2"}
    # A ping counts from when it was sent.
    result["series"]["rtt"] = {"t_s": [0.3, 0.5], "ms": [10.0, 20.0]}
    assert flentfile.content(result)["results"]["Ping (ms) ICMP"][:3] == [None, 10.0, 20.0]


@pytest.mark.parametrize(
    ("downs", "ups", "name", "first", "last"),
    [
        (4, 4, "rrul_be", "TCP upload BE", "TCP download BE4"),
        (2, 1, "rrul_be_nflows", "TCP upload BE::1", "TCP download BE::2"),
        (0, 2, "tcp_nup", "TCP upload::1", "TCP upload::2"),
    ],
)
def test_shapes(downs: int, ups: int, name: str, first: str, last: str) -> None:
    """Streams have the names that flent's own test of this shape plots."""
    result = run("stock", "stock", duration_s=10, upload=ups > 0, flows=downs)
    result["series"]["flow_goodput_mbps"] = [[2.0] * 100] * downs
    result["series"]["upload_goodput_mbps"] = [[1.0] * 100] * ups
    found = flentfile.content(result)
    assert found["metadata"]["NAME"] == name
    streams = [key for key in found["results"] if key[-3:] not in ("avg", "sum", "als")]
    assert (streams[0], streams[-2]) == (first, last)
    assert set(found["results"]["TCP upload sum"]) == {float(ups)}
    both = downs > 0
    assert ("TCP totals" in found["results"]) == ("Ping (ms) avg" in found["results"]) == both
    if both:
        assert set(found["results"]["TCP totals"]) == {2.0 * downs + ups}


def test_command(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(demo_runs(10)))
    done = lab(f"flent {tmp_path}/x.json -o {tmp_path}/flent")
    assert done.code == 0, done.err
    names = sorted(path.name for path in (tmp_path / "flent").iterdir())
    assert len(names) == 5 and "5-stock-bbr.flent.gz" in names
    content = json.loads(gzip.decompress((tmp_path / "flent" / names[0]).read_bytes()))
    assert (content["version"], content["metadata"]["TITLE"]) == (4, "stock")
    (tmp_path / "x.json").write_text("[]")
    assert lab(f"flent {tmp_path}/x.json -o {tmp_path}/flent").code == 2
