# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path
from typing import Any

import pytest

from drwalab import compare
from drwalab.compare import ResultError
from synthetic import demo_runs, run


def result(
    name: str, scheme: str, goodput: float, p95: float | None, **config: Any
) -> dict[str, Any]:
    r = run(name, scheme, lam=2.0, duration_s=10, **config)
    r["goodput_mbps"] = goodput
    r["rtt_ms"]["p95"] = p95
    return r


def verdict(*results: dict[str, Any]) -> str:
    (comparison,) = compare.compare(results)
    return compare.verdict(comparison)


STOCK = result("stock", "stock", 9.6, 1800.0)


def test_verdict_in_one_sentence() -> None:
    assert verdict(STOCK, result("drwa λ=1.50", "drwa", 9.41, 212.4)) == (
        "drwa λ=1.50 keeps 98 % of stock’s goodput (9.41 of 9.60 Mb/s) "
        "and cuts the p95 RTT from 1800 to 212 ms (idle link 60 ms)."
    )


def plainly(*results: dict[str, Any]) -> str:
    (comparison,) = compare.compare(results)
    return compare.plainly(comparison)


def test_verdict_for_everybody() -> None:
    assert plainly(STOCK, result("drwa λ=1.50", "drwa", 9.41, 212.4)) == (
        "With drwa λ=1.50, 95 of 100 pings beside the download take at most 0.21 s instead of "
        "1.8 s, at 98 % of stock’s speed."
    )
    assert "at most 64 ms instead of 0.25 s" in plainly(
        result("stock", "stock", 9.6, 250.0), result("drwa", "drwa", 9.5, 64.2)
    )


def test_no_verdict_for_everybody_where_nothing_got_shorter() -> None:
    assert plainly(STOCK) == ""
    assert plainly(STOCK, result("drwa", "drwa", 9.5, 2000.0)) == ""
    assert plainly(STOCK, result("drwa", "drwa", 9.5, None)) == ""


def test_verdict_does_not_flatter() -> None:
    """A loss is called one, 99.9 % is not 100 %, and whoever is better on both counts is named."""
    assert "keeps only 50 %" in verdict(STOCK, result("drwa", "drwa", 4.8, 200.0))
    assert "keeps 99.9 %" in verdict(STOCK, result("drwa", "drwa", 9.59, 200.0))
    assert "raises the p95 RTT from 1800 to 2000 ms" in verdict(
        STOCK, result("drwa", "drwa", 9.5, 2000.0)
    )
    better = verdict(
        STOCK, result("drwa", "drwa", 9.4, 200.0), result("stock, bbr", "stock", 9.5, 150.0)
    )
    assert better.endswith("; stock, bbr does better on both counts (9.50 Mb/s, 150 ms).")


def test_verdict_of_a_gain() -> None:
    assert verdict(STOCK, result("drwa", "drwa", 12.0, 200.0)).startswith(
        "drwa reaches 125 % of stock’s"
    )


def test_verdict_without_probes_or_company() -> None:
    assert "not measured" in verdict(STOCK, result("drwa", "drwa", 9.0, None))
    assert verdict(STOCK) == "stock reaches 9.60 Mb/s at a p95 RTT of 1800 ms (idle link 60 ms)."
    assert "(stock: none)" in verdict(
        result("stock", "stock", 0, 1.0), result("drwa", "drwa", 1, 1.0)
    )


def test_verdict_of_objects() -> None:
    runs = [result("stock", "stock", 0, 300.0), result("drwa", "drwa", 0, 200.0)]
    for r, mean in zip(runs, (710.0, 520.4), strict=True):
        r["flows"] = []
        r["objects"] |= {"count": 5, "mean_fct_ms": mean}
    assert verdict(*runs) == (
        "drwa fetches an object in 520 ms in the mean (stock: 710 ms) "
        "and cuts the p95 RTT from 300 to 200 ms (idle link 60 ms)."
    )


def test_subject_and_baseline() -> None:
    bbr = result("stock, bbr", "stock", 9.0, 100.0, cc="bbr")
    classic = result("classic", "drwa-classic", 9.5, 50.5)
    fast = result("fast", "drwa", 9.2, 200.0)
    short = result("short", "drwa", 9.15, 100.0)
    starved = result("starved", "drwa", 1.0, 60.0)
    (c,) = compare.compare([bbr, classic, starved, fast, short, STOCK])
    assert c.baseline.name == "stock"
    assert c.subject is not None and c.subject.name == "short"
    (c,) = compare.compare([STOCK, classic, bbr])
    assert c.subject is not None and c.subject.name == "classic"


def test_links_are_not_mixed() -> None:
    """Runs compare only over the same link, whatever the scheme, sender or kernel."""
    here, there = demo_runs(10), demo_runs(10, seed=2)
    comparisons = compare.compare([*here, *there])
    assert [len(c.runs) for c in comparisons] == [5, 5]
    far = result("far", "drwa", 9.0, 100.0, base_ms=200)
    other_kernel = result("old", "drwa", 9.0, 100.0, kernel="6.1")
    assert [len(c.runs) for c in compare.compare([STOCK, far, other_kernel])] == [2, 1]
    assert compare.overall_verdict(comparisons).startswith(
        "On 2 links, drwa keeps 98 % of stock’s goodput at "
    )


def test_names_are_unique() -> None:
    new, old = result("drwa", "drwa", 9, 100), result("drwa", "drwa", 9, 100, kernel="6.1")
    (c,) = compare.compare([new, old])
    assert [r.name for r in c.runs] == ["drwa (6.12 drwa)", "drwa (6.1 drwa)"]
    (c,) = compare.compare([new, new])
    assert [r.name for r in c.runs] == ["drwa", "drwa #2"]


@pytest.mark.parametrize(
    ("value", "reference", "text"),
    [
        (9.6, 9.6, "±0 %"),
        (9.41, 9.6, "−2.0 %"),
        (212, 1800, "−88 %"),
        (2, 1, "+100 %"),
        (1, 0, "–"),
        (None, 1, "–"),
    ],
)
def test_change(value: float | None, reference: float | None, text: str) -> None:
    assert compare.change(value, reference) == text


def test_load_one_or_several(tmp_path: Path) -> None:
    one, several = tmp_path / "one.json", tmp_path / "several.json"
    one.write_text(json.dumps(STOCK))
    several.write_text(json.dumps([STOCK, STOCK]))
    assert len(compare.load([one, several])) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("\udc80", "not JSON"),
        ("[]", "holds no result"),
        ("7", "not a result"),
        ('{"schema": "other/1"}', "not a result"),
        ('{"schema": "drwa-lab-run/2", "name": "x"}', "result without scheme"),
    ],
)
def test_load_refuses(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ResultError, match=message) as e:
        compare.load([path])
    assert str(path) in str(e.value)


def test_means_over_links() -> None:
    """Geometric ones of the ratios to stock and to the idle link, for each base RTT."""
    runs = []
    for link, goodput, p95 in (("a", 5.0, 120.0), ("b", 20.0, 480.0)):
        runs.append(result("stock", "stock", 10.0, 600.0, trace=link))
        runs.append(result("drwa", "drwa", goodput, p95, trace=link))
        runs[-1]["rtt_ms"]["mean"] = 104.0
    runs.append(result("drwa", "drwa", 9.0, None, base_ms=100.0))
    means = {(m.base_rtt_ms, m.name): m for m in compare.means(compare.compare(runs))}
    assert list(means) == [(50.0, "stock"), (50.0, "drwa"), (100.0, "drwa")]
    drwa = means[50.0, "drwa"]
    assert drwa.links == 2
    assert drwa.goodput_of_baseline == pytest.approx(1)
    # The idle link has 52 and 60 ms.
    assert drwa.mean_of_idle == pytest.approx(2)
    assert drwa.p95_of_idle == pytest.approx(4)
    assert means[50.0, "stock"].p95_of_idle == pytest.approx(10)
    assert means[100.0, "drwa"].p95_of_idle is None


def test_link_label_of_an_uplink() -> None:
    modem: dict[str, Any] = {
        "uplink_rate_bps": 5_000_000,
        "firmware_bytes": 600_000,
        "grant_ms": 8.0,
    }
    modem["uplink_buffer_bytes"] = None
    quic: dict[str, Any] = {
        "upload": True,
        "uploads": 3,
        "upload_kind": "quic",
        "probe_kind": "opaque",
    }
    r = run("x", "stock", lam=2, duration_s=10, rate_bps=4_000_000, **modem, **quic)
    assert compare.link_label(r) == (
        "4 Mb/s, base RTT 50 ms, buffer of 1500 kB, uplink 5 Mb/s with a modem of 600 kB, grants "
        "after 8 ms, 1 flow, 10 s, 3 own uploads over QUIC, opaque probes"
    )
    r["config"] |= {"grant_report_ms": 5.0, "uploads": 1, "upload_kind": "tcp"}
    r["config"] |= {"upload_lie_ms": -40, "uplink_loss": 0.01, "downlink_ack_thin": 8}
    assert compare.link_label(r) == (
        "4 Mb/s, base RTT 50 ms, buffer of 1500 kB, uplink 5 Mb/s with a modem of 600 kB, grants "
        "after 8 ms of what is reported each 5 ms, 1 flow, 10 s, 1 % loss on the way up, "
        "one of an upload's ACKs of 8, an own upload whose server's clock lies by -40 ms, "
        "opaque probes"
    )


def test_label_of_a_link_that_changes_often() -> None:
    r = result("stock", "stock", 9.6, 1800.0)
    r["config"]["events"] = [f"{n}s rate={n}mbit" for n in range(1, 5)]
    assert compare.link_label(r).endswith(
        "1s rate=1mbit, 2s rate=2mbit, 3s rate=3mbit, 4s rate=4mbit"
    )
    r["config"]["events"].append("5s rate=5mbit")
    assert compare.link_label(r).endswith("5 changes from 1s rate=1mbit to 5s rate=5mbit")


def test_link_label() -> None:
    r = run(
        "x",
        "drwa",
        lam=2,
        duration_s=10,
        rate_bps=4_000_000,
        flows=5,
        loss=0.01,
        upload=True,
        events=["5s rate=1mbit"],
    )
    assert compare.link_label(r) == (
        "4 Mb/s, base RTT 50 ms, buffer of 1500 kB, 5 flows, 10 s, 1 % loss, "
        "an own upload, 5s rate=1mbit"
    )
