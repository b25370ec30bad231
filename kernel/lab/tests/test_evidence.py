# SPDX-License-Identifier: GPL-2.0-only
"""The page of all evidence, on made-up results: what it says, and what a browser makes of it."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import axe
import browser
from browser import Browser
from conftest import Lab
from drwalab import cases, evidence, evidence_page, literature, pool, report, results, spec
from drwalab.evidence import Spread
from drwalab.kernels import KernelMissing, gate_id
from drwalab.spec import RunSpec
from synthetic import run

Result = dict[str, Any]

# What the made-up law has of stock's 8 Mb/s, by the first word of a scheme.
GOODPUT = {"drwa": 7.8, "drwa-classic": 7.9, "stock": 8.0}
P95 = {"drwa": 100.0, "drwa-classic": 200.0, "stock": 800.0}


@cache
def seconds(scheme: str) -> Result:
    return run(scheme, scheme, lam=1.25, duration_s=10)


def made_up(one: RunSpec) -> Result:
    name = one.scheme.name
    result = seconds(name) | {"name": one.name, "cc": one.cc, "aqm": one.aqm}
    goodput = GOODPUT.get(name, 7.0) if one.cc == "cubic" and not one.aqm else 7.5
    # A little more on each seed's link.
    seed = re.search(r"seed(\d+)", one.down.trace.path.name) if one.down.trace else None
    result["goodput_mbps"] = goodput + (int(seed[1]) / 100 if seed and name == "drwa" else 0)
    # On links with an upload, the law fails.
    if one.uploads and name == "drwa":
        result["goodput_mbps"] = 4.0
    result["rtt_ms"] = result["rtt_ms"] | {"p95": P95.get(name, 400.0)}
    result["config"] = results._config(one)
    result["objects"] = result["objects"] | {"mean_fct_ms": 4 * P95.get(name, 400.0), "count": 9}
    result["segments"] = {"mean_fct_ms": 500.0, "count": 9} if one.reader.kind == "burst" else None
    result["firmware"] = {"mean_bytes": 1000.0, "max_bytes": 2000} if one.uplink else None
    result["up_ms"] = {"mean": 100.0, "p50": 90.0, "p95": 200.0, "p99": 300.0}
    result["neighbours"] = [{"kind": each.kind} for each in one.neighbours]
    result["fair_share"] = 0.7 if one.neighbours else None
    command = result["provenance"] | {"command": one.command()}
    result["provenance"] = command
    return result


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A page of the quick campaign with a recorded link, made once."""
    folder = tmp_path_factory.mktemp("page")
    traces = folder / "traces"
    traces.mkdir()
    (traces / "my-street.down").write_text("".join(f"{n}\n" for n in range(1, 1001)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "run_specs", lambda specs, **_: [made_up(s) for s in specs])
        patch.setattr(pool, "find_kernels", _without_module)
        patch.setattr(pool, "fresh", lambda specs, _: set(specs))
        book = evidence.collect(evidence.plan(False, traces), lambda _: None)
    evidence_page.write(book, evidence.numbers(book), folder / "report.html", False)
    (folder / "report.json").write_text(json.dumps(evidence.numbers(book)))
    yield folder / "report.html"


def _without_module(specs: Sequence[RunSpec]) -> pool.Builds:
    if any(s.flavour == "module" for s in specs):
        raise KernelMissing("kernel 6.12 module is not built: run this")
    return {}


def text_of(path: Path) -> str:
    html = path.read_text().replace(report.packed_plotly(), "")
    body = re.sub(r"<script.*?</script>", " ", html[html.index("<body>") :], flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", body).replace("\u00a0", " ").split())


def test_spread() -> None:
    alone = Spread.of([0.5])
    assert alone == Spread(0.5, 0.5, 0.5, 1)
    assert Spread.of([]) is None
    found = Spread.of([0.5, 2.0, 1.0])
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    # ln 2 is the standard deviation; Student's t of two degrees of freedom is 4.30.
    assert found.high == pytest.approx(2 ** (4.30 / 3**0.5))
    assert found.low == pytest.approx(1 / found.high)


def test_verdict_comes_first(page: Path) -> None:
    text = text_of(page)
    law = "DRWA keeps 97.8 % of stock’s goodput at 12.5 % of its p95 RTT"
    assert law in text[:400]
    questions = [
        "What do I gain?",
        "What can it cost?",
        "Which λ?",
        "Which binding?",
        "And beside others?",
        "How responsive with eight downloads?",
        "And uploads?",
        "The worst regressions",
        "The papers, figure by figure",
    ]
    body = text[text.index("Up and to the right") - 600 :]
    places = [body.index(question) for question in questions]
    assert places == sorted(places)


def test_responsiveness() -> None:
    """Of probes from four seconds after the last download began, without the longest 5 %."""
    result = run("stock", "stock", duration_s=10)
    result["flows"] = [{"start_s": 0.0}, {"start_s": 1.0}]
    times = [round(0.05 * n, 2) for n in range(200)]
    ms = [500.0 if t < 5 else 100.0 for t in times]
    result["series"]["rtt"] = {"t_s": times, "ms": ms}
    assert evidence.rpm(result) == pytest.approx(600)
    # Five of the hundred that count.
    result["series"]["rtt"]["ms"] = [*ms[:-5], *[9000.0] * 5]
    assert evidence.rpm(result) == pytest.approx(600)
    result["series"]["rtt"]["ms"] = [*ms[:-10], *[9000.0] * 10]
    assert (evidence.rpm(result) or 0) < 150
    result["flows"] = [{"start_s": 8.0}]
    assert evidence.rpm(result) is None


def test_the_gate_is_held_against_the_same_phone() -> None:
    """Its losses are to pfifo with the same receiver; the law's, under that, are the law's."""
    runs = []
    for scheme, uplink, mbps in (
        ("stock", "pfifo", 5.0),
        ("stock", "drwa", 4.0),
        ("drwa", "pfifo", 2.0),
        ("drwa", "drwa", 1.9),
    ):
        options = {"rate": "20mbit", "uplink-rate": "5mbit", "upload": True, "flows": "0"}
        one = spec.parse(scheme, options | {"uplink-scheme": uplink})
        result = made_up(one) | {"upload_goodput_mbps": mbps}
        result["objects"] = result["objects"] | {"mean_fct_ms": None}
        runs.append(evidence.Run("x", "a link", "a link", "key", one.name, result))
    found = [(loss.law.player, loss.ratio) for loss in evidence.losses(runs)]
    assert found == [("stock, uplink drwa", 0.8), ("drwa λ=1.25, uplink drwa", 0.95)]


def test_regressions_are_told(page: Path) -> None:
    found = json.loads(page.with_suffix(".json").read_text())
    worst = found["regressions"][0]
    assert (worst["what"], worst["of_baseline"]) == ("goodput", 0.5)
    assert "--upload" in worst["command"]
    assert "50.0 %" in text_of(page)
    ratios = [each["of_baseline"] for each in found["regressions"]]
    assert ratios == sorted(ratios) and ratios[-1] < evidence.REGRESSION


def test_a_dropped_trace_is_in_it(page: Path) -> None:
    found = json.loads(page.with_suffix(".json").read_text())
    assert "my-street.down, 50 ms" in found["peers"]
    assert "my-street.down" in text_of(page)


def test_what_could_not_run_is_told(page: Path) -> None:
    text = text_of(page)
    assert "Not run here: a module at tracepoints" in text
    assert "kernel 6.12 module is not built: run this" in text


def test_every_figure_has_published_and_measured(page: Path) -> None:
    html, text = page.read_text(), unescape(text_of(page))
    for name, figure in literature.published().items():
        assert f'<article id="{name}"' in html
        assert figure.published in text


def test_cells_have_their_commands(page: Path) -> None:
    html = page.read_text()
    found = re.search(r'id="commands">(.*?)</script>', html, flags=re.S)
    assert found
    commands = json.loads(found[1])
    used = {int(n) for group in re.findall(r'data-runs="([^"]+)"', html) for n in group.split(",")}
    assert used == set(range(len(commands)))
    assert all(command.startswith("lab run --kernel 6.12 --scheme ") for command in commands)


def test_record_names_its_kernels(page: Path) -> None:
    told = json.loads((page.parent / "report.json").read_text())["made_of"]
    assert told.startswith("Kernel: ")
    assert f"Gate {gate_id()}." in told


def test_self_contained_and_small(page: Path) -> None:
    assert page.stat().st_size < 3_000_000
    html = page.read_text().replace(report.packed_plotly(), "")
    assert "http:" not in html and "https:" not in html and "src=" not in html


def test_time_left_is_of_what_was_not_run_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of four cases the first was there; of three that take a minute, two are left, then one,
    though one has a run of the last again.
    """
    chosen = [
        cases.Case(name, "", None, False, [spec.parse("stock", {"rate": rate, "seed": n})], [], {})
        for n, (name, rate) in enumerate(
            (("old", "10mbit"), ("a", "20mbit"), ("b", "20mbit"), ("c", "20mbit"))
        )
    ]
    chosen[2].specs.append(chosen[1].specs[0])
    clock = [0.0]

    def run_specs(specs: Sequence[RunSpec], **_: object) -> list[Result]:
        clock[0] += 60.0 if specs[0] in new else 0.0
        return [made_up(s) for s in specs]

    new = {one for case in chosen[1:] for one in case.specs}
    monkeypatch.setattr(pool, "run_specs", run_specs)
    monkeypatch.setattr(pool, "find_kernels", lambda _: {})
    monkeypatch.setattr(pool, "fresh", lambda *_: new)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    evidence.collect(chosen, said.append)
    left = [re.search(r"about (\d+) min left", text) for text in said]
    assert [found and int(found[1]) for found in left] == [None, None, 2, 1]


def test_command(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "run_specs", lambda specs, **_: [made_up(s) for s in specs])
    monkeypatch.setattr(pool, "find_kernels", _without_module)
    monkeypatch.setattr(pool, "fresh", lambda specs, _: set(specs))
    names = ("e-links", "paper-fig18")
    monkeypatch.setattr(evidence, "plan", lambda full, traces: cases.choose(names, traces))
    done = lab(f"evidence -o {tmp_path}/new/page.html")
    assert done.code == 0, done.err
    assert "e-links (1 of 2 cases, 0 of " in done.err
    assert "DRWA keeps" in done.out
    assert (tmp_path / "new" / "page.json").exists()
    (tmp_path / "file").write_text("")
    done = lab(f"evidence -o {tmp_path}/file/page.html")
    assert (done.code, done.err.count("\n")) == (2, 1)


@browser.needed
@axe.VIEWS
def test_nothing_grave_keeps_people_from_reading(
    page: Path, width: int, scheme: str, media: str
) -> None:
    assert axe.grave_on(page, width, scheme, media) == []


@browser.needed
@pytest.mark.parametrize("width", [1200, 390])
def test_in_a_browser(page: Path, width: int) -> None:
    """It renders, the console is silent, the filters filter, and nothing is wider than a phone."""
    visible = "return document.querySelectorAll('tbody tr:not([hidden])').length"
    with Browser(width, 844) as window:
        window.open(page)
        window.wait("return document.querySelectorAll('.plot .main-svg').length >= 3")
        assert window.run("return document.documentElement.scrollWidth") <= width
        everything = window.run(visible)
        # A player's chip hides its rows.
        chip = "document.querySelector('.set button[data-player=\"drwa-classic λ=3.00\"]')"
        rows = window.run(
            "return document.querySelectorAll('tr[data-player=\"drwa-classic λ=3.00\"]').length"
        )
        window.run(f"{chip}.click()")
        assert 0 < rows == everything - window.run(visible)
        window.run(f"{chip}.click()")
        assert window.run(visible) == everything
        # So does a kind of link's.
        window.run("document.querySelector('.set button[data-link=\"EVDO\"]').click()")
        left = "return document.querySelectorAll('tr[data-link=\"EVDO\"]:not([hidden])').length"
        assert window.run(left) == 0
        window.run("document.querySelector('.set button[data-link=\"EVDO\"]').click()")
        # Words are looked for in rows and headings; articles without any row go.
        find = "const box = document.getElementById('find'); box.value = '{}';"
        window.run(find.format("Figure 18 sprint") + "box.dispatchEvent(new Event('input'))")
        articles = "return [...document.querySelectorAll('article:not([hidden])')].map((a) => a.id)"
        assert window.run(articles) == ["paper-fig18"]
        assert window.run("return document.getElementById('shown').textContent").endswith(" rows")
        window.run(find.format("") + "box.dispatchEvent(new Event('input'))")
        assert window.run(visible) == everything
        # A number shows the commands that repeat it.
        window.run("document.querySelector('td button').click()")
        assert window.run("return document.querySelector('dialog').open") is True
        shown = window.run("return document.querySelector('dialog code').textContent")
        assert shown.startswith("kernel/lab/lab run --kernel 6.12 --scheme ")
        assert window.complaints() == []
