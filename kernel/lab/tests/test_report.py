# SPDX-License-Identifier: GPL-2.0-only
import base64
import gzip
import json
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import typer
from typer.testing import CliRunner

import axe
import browser
from browser import Browser
from drwalab import compare, figures, report
from drwalab.style import SERIES_DARK, SERIES_LIGHT, THEMES, goodput_range
from synthetic import demo_runs, run


def page(results: list[dict[str, Any]], folder: Path, name: str = "demo.html") -> str:
    report.write_html(results, folder / name, "A title", "An introduction.")
    return (folder / name).read_text(encoding="utf-8")


def own_part(html: str) -> str:
    """The page without plotly."""
    return html.replace(report.packed_plotly(), "")


def test_same_results_same_bytes(tmp_path: Path) -> None:
    assert page(demo_runs(), tmp_path) == page(json.loads(json.dumps(demo_runs())), tmp_path)


def test_opens_with_the_verdict(tmp_path: Path) -> None:
    results = demo_runs()
    html = own_part(page(results, tmp_path))
    (comparison,) = compare.compare(results)
    plain, verdict = compare.plainly(comparison), compare.verdict(comparison)
    text = re.sub(r"<[^>]+>", "", html[html.index("<body>") :]).replace("\u00a0", " ")
    assert text.strip().startswith("A title")
    assert (
        0
        < text.index(plain)
        < text.index(verdict)
        < text.index("An introduction.")
        < text.index("Goodput")
    )


def test_self_contained(tmp_path: Path) -> None:
    html = own_part(page(demo_runs(), tmp_path))
    assert "http:" not in html and "https:" not in html and "src=" not in html
    assert "default-src 'none'" in html
    assert {h[:5] for h in re.findall(r'href="([^"]*)"', html)} == {"data:"}


def test_holds_the_raw_results(tmp_path: Path) -> None:
    results = demo_runs()
    html = page(results, tmp_path)
    found = re.search(r'download="demo.json" href="data:application/json;base64,([^"]+)"', html)
    assert found and json.loads(base64.b64decode(found[1])) == results


def test_a_page_goes_by_mail(tmp_path: Path) -> None:
    assert len(page(demo_runs(), tmp_path).encode()) < 3_000_000


@browser.needed
def test_in_a_browser(tmp_path: Path) -> None:
    page(demo_runs(), tmp_path)
    with Browser(1280, 844) as window:
        window.open(tmp_path / "demo.html")
        window.wait("return document.querySelectorAll('.plot .main-svg').length >= 3")
        assert window.complaints() == []


@browser.needed
@axe.VIEWS
def test_nothing_grave_keeps_people_from_reading(
    tmp_path: Path, width: int, scheme: str, media: str
) -> None:
    page(demo_runs(), tmp_path)
    assert axe.grave_on(tmp_path / "demo.html", width, scheme, media) == []


@browser.needed
def test_a_phone_shows_all_columns(tmp_path: Path) -> None:
    html = own_part(page(demo_runs(), tmp_path))
    with Browser(390, 844) as window:
        window.open(tmp_path / "demo.html")
        ends = window.run(
            "return [...document.querySelectorAll('td')]"
            ".map((cell) => cell.getBoundingClientRect().right)"
        )
        assert len(ends) == html.count("<td ")
        assert max(ends) <= 390


@browser.needed
def test_paper_loses_nothing(tmp_path: Path) -> None:
    """Of a dark window, too: its figures are light there, fit, and nothing is folded away."""
    results = [r | {"config": r["config"] | {"seed": n}} for n in (1, 2) for r in demo_runs(10)]
    for r in results[5:]:
        r["config"] |= {"base_rtt_ms": 80.0}
    page(results, tmp_path)
    state = (
        "return [document.querySelectorAll('details:not([open])').length,"
        "Math.max(...[...document.querySelectorAll('.plot .main-svg')].map((s) => s.clientWidth)),"
        "getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor]"
    )
    with Browser(1280, 844) as window:
        window.prefer("dark")
        window.open(tmp_path / "demo.html")
        window.wait("return document.querySelectorAll('.plot [role=img]').length >= 6")
        before = window.run(state)
        assert before[0] == 2
        window.run("window.dispatchEvent(new Event('beforeprint'))")
        assert window.run(state) == [0, 680, "rgb(255, 255, 255)"]
        window.run("window.dispatchEvent(new Event('afterprint'))")
        assert window.run(state) == before
        assert window.printed().startswith(b"%PDF")
        assert window.run(state) == before
        assert window.complaints() == []


def test_headings_are_in_order(tmp_path: Path) -> None:
    one = demo_runs(10)
    two = [r | {"config": r["config"] | {"base_rtt_ms": 80.0}} for r in one]
    for results in (one, one + two):
        levels = [int(n) for n in re.findall(r"<h(\d)", own_part(page(results, tmp_path)))]
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_figures_say_what_they_draw(tmp_path: Path) -> None:
    html = own_part(page(demo_runs(10), tmp_path))
    assert "RTT is that of every probe; goodput and link rate are means of 0.5\u00a0s." in html
    long = demo_runs(180)
    assert figures.stretch(len(long[0]["series"]["rtt"]["t_s"])) > 1
    assert re.search(r"RTT is the longest of \d+ probes each;", own_part(page(long, tmp_path)))


def test_many_long_runs_stay_small(tmp_path: Path) -> None:
    results = [r for seed in range(4) for r in demo_runs(180, seed)]
    html = page(results, tmp_path)
    assert len(html.encode()) < 5_500_000
    found = re.search(r'download="demo.json.gz" href="data:application/gzip;base64,([^"]+)"', html)
    assert found and json.loads(gzip.decompress(base64.b64decode(found[1]))) == results


def test_names_cannot_inject(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    results = [
        run(evil, "stock", duration_s=10),
        run("drwa", "drwa", lam=2, duration_s=10, trace=evil),
    ]
    html = own_part(page(results, tmp_path))
    assert "alert(1)</script>" not in html


def drawn(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        figure(c)
        for c in compare.compare(results)
        for figure in (figures.time_figure, figures.ccdf_figure, figures.scatter_figure)
    ]


def painted(value: Any, theme: dict[str, str]) -> Any:
    """What the page's script does with colour tokens."""
    if isinstance(value, dict):
        return {k: painted(v, theme) for k, v in value.items()}
    if isinstance(value, list):
        return [painted(v, theme) for v in value]
    return theme[value] if isinstance(value, str) and value.startswith("@") else value


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plotly_accepts_the_figures(theme: str) -> None:
    results = demo_runs()
    results[0]["config"]["events"] = ["20s rate=1mbit"]
    for r in results[1:]:
        r["config"]["events"] = ["20s rate=1mbit"]
    for figure in drawn(results):
        go.Figure(painted(figure["data"], THEMES[theme]), painted(figure["layout"], THEMES[theme]))


def test_time_figure_holds_every_run_in_every_panel() -> None:
    figure = drawn(demo_runs())[0]
    lines = {(t.get("meta"), t["yaxis"]) for t in figure["data"] if t["mode"] == "lines"}
    assert lines == {(i, y) for i in range(5) for y in ("y", "y2", "y3")} | {(None, "y3")}
    assert figure["layout"]["xaxis"]["range"] == [0, 60]


def test_uploads_show_the_modem(tmp_path: Path) -> None:
    """Their goodput and link in place of the downloads', and the modem's bytes for the window."""
    results = []
    for scheme, upload in (("pfifo", 4.0), ("drwa", 3.0), ("qcut-d", 3.5)):
        r = run(f"uplink {scheme}", "stock", duration_s=10)
        r |= {"flows": [], "goodput_mbps": 0.0, "upload_goodput_mbps": upload}
        r["config"] |= {"uplink_scheme": scheme, "upload": True, "uploads": 2}
        r["firmware"] = {"mean_bytes": 9000.0, "max_bytes": 9000}
        r["series"] |= {"upload_goodput_mbps": [[1.0] * 100, [upload - 1] * 100]}
        r["series"] |= {"firmware_bytes": [9000] * 100, "uplink_mbps": [5.0] * 100}
        results.append(r)
    (c,) = compare.compare(results)
    assert (c.baseline.name, c.subject and c.subject.name) == ("uplink pfifo", "uplink drwa")
    assert c.subject and c.subject.goodput == 3.0
    figure = figures.time_figure(c)
    lines = {(d["name"], d["yaxis"]): d["y"] for d in figure["data"] if d["mode"] == "lines"}
    assert set(lines["link", "y3"]) == {5.0}
    assert set(lines["uplink drwa", "y3"]) == {3.0}
    assert set(lines["uplink drwa", "y2"]) == {9.0}
    assert "In the modem, kB" in str(figure["layout"]["annotations"])
    report.write_html(results, tmp_path / "x.html", "Uploads", "")
    text = (tmp_path / "x.html").read_text()
    assert "what is in the phone’s modem" in text
    # Beside a download, it is about that.
    results[0]["flows"] = results[1]["flows"] = run("stock", "stock")["flows"]
    (c,) = compare.compare(results)
    assert "Advertised window, kB" in str(figures.time_figure(c)["layout"]["annotations"])


def test_bursts_after_losses_do_not_flatten_the_panel(tmp_path: Path) -> None:
    results = demo_runs(10)
    assert "waited behind" not in own_part(page(results, tmp_path))
    results[0]["series"]["goodput_mbps"][50:55] = [300.0] * 5
    highest = max(results[0]["series"]["link_mbps"])
    assert drawn(results)[0]["layout"]["yaxis3"]["range"][1] <= 1.2 * highest
    assert "waited behind" in own_part(page(results, tmp_path))


def test_thinning_keeps_the_worst() -> None:
    t = [i / 100 for i in range(100_000)]
    v = [50.0] * len(t)
    v[54321] = 4000.0
    thin_t, thin_v = figures.thinned(t, v)
    assert len(thin_t) == len(thin_v) <= figures.MAX_POINTS
    assert (543.21, 4000.0) in zip(thin_t, thin_v, strict=True)


def test_ccdf_reads_back_the_percentiles() -> None:
    r = run("stock", "stock", duration_s=60)
    r["series"]["rtt"] = {
        "t_s": [float(i) for i in range(1, 1001)],
        "ms": [float(i) for i in range(1, 1001)],
    }
    figure = drawn([r])[1]
    curve = dict(zip(figure["data"][0]["y"], figure["data"][0]["x"], strict=True))
    assert curve[1.0] == 1 and curve[0.001] == 1000
    assert all(x == 1001 - round(y * 1000) for y, x in curve.items())


def test_delay_axis_is_inverted() -> None:
    figure = drawn(demo_runs())[2]
    left, right = figure["layout"]["xaxis"]["range"]
    assert left > right and figure["layout"]["xaxis"]["type"] == "log"


@pytest.mark.parametrize(
    ("values", "from_zero"), [([9.0, 9.6], False), ([2.4, 9.6], True), ([0.0], True), ([], True)]
)
def test_goodput_axis(values: list[float], from_zero: bool) -> None:
    low, high = goodput_range(values)
    assert low < high
    assert (low == 0) is from_zero
    assert all(low <= v <= high for v in values)


def titles(results: list[dict[str, Any]]) -> list[str]:
    (c,) = compare.compare(results)
    return [column.title for column in report.table(c)[0]]


def test_table_columns_follow_the_runs() -> None:
    plain = run("stock", "stock", duration_s=10)
    assert titles([plain])[-2:] == ["Retransmits", "Zero windows"]
    assert not {"Jain", "Upload", "Object mean"} & set(titles([plain]))
    full = run("stock", "stock", duration_s=10)
    full["jain"] = 0.98
    full["flows"] *= 2
    full["upload_goodput_mbps"] = 1.5
    full["objects"] |= {"count": 3, "mean_fct_ms": 520.0, "p95_fct_ms": 610.0}
    assert {"Jain", "Upload", "Object mean", "Object p95"} <= set(titles([full]))


def test_table_cells() -> None:
    results = demo_runs()
    results[0] |= {"goodput_mbps": 9.6}
    results[1] |= {"goodput_mbps": 9.41, "zero_windows": 3}
    results[0]["rtt_ms"] |= {"p95": 1800.0}
    results[1]["rtt_ms"] |= {"p95": 212.4}
    (c,) = compare.compare(results)
    columns, rows = report.table(c)
    first, second = (dict(zip([x.title for x in columns], row, strict=True)) for row in rows[:2])
    assert first["Goodput"] == report.Cell("9.60", "")
    assert second["Goodput"] == report.Cell("9.41", "−2.0 %")
    assert second["RTT p95"] == report.Cell("212", "−88 %")
    # The idle link has 60 ms.
    assert second["p95 ÷ idle"].text == "3.5×"
    assert second["Zero windows"].text == "3"


def test_runs_without_probes_or_traffic(tmp_path: Path) -> None:
    """An idle run has no RTT series and no goodput; the page still stands."""
    r = run("stock", "stock", duration_s=10)
    r |= {"goodput_mbps": 0.0, "utilisation": None}
    r["rtt_ms"] |= {"mean": None, "p50": None, "p95": None, "p99": None, "count": 0}
    r["rtt_ms"]["idle"] |= {"mean": None, "p50": None, "p95": None}
    r["series"] |= {"rtt": {"t_s": [], "ms": []}, "rwnd_bytes": [0] * 100}
    assert "–" in own_part(page([r], tmp_path))
    for figure in drawn([r]):
        go.Figure(
            painted(figure["data"], THEMES["light"]), painted(figure["layout"], THEMES["light"])
        )


@pytest.mark.parametrize(
    ("event", "at"), [("10s base-rtt=150ms", 10.0), ("1500ms rate=1mbit", 1.5)]
)
def test_event_times(event: str, at: float) -> None:
    assert figures._event(event)[0] == pytest.approx(at)


def cli() -> typer.Typer:
    app = typer.Typer()
    app.command()(report.report)
    return app


def test_command(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text(json.dumps(demo_runs(10)))
    done = CliRunner().invoke(cli(), [str(source), "-o", str(tmp_path / "out" / "a.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "a.html").stat().st_size > 1_000_000


def test_command_refuses_in_one_line(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text("[]")
    done = CliRunner().invoke(cli(), [str(source), "-o", str(tmp_path / "a.html")])
    assert done.exit_code == 2
    assert done.stderr == f"lab: {source}: holds no result\n"
    assert not (tmp_path / "a.html").exists()


def linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def times(matrix: list[list[float]], v: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, v, strict=True)) for row in matrix]


def lab(rgb: list[float]) -> list[float]:
    xyz = times(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]],
        [min(1.0, max(0.0, c)) for c in rgb],
    )
    white = (0.9505, 1.0, 1.089)
    f = [
        (c / w) ** (1 / 3) if c / w > 0.008856 else 7.787 * c / w + 16 / 116
        for c, w in zip(xyz, white, strict=True)
    ]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]


# Machado, Oliveira and Fernandes (2009), severity 1.0.
VISION = {
    "normal": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [
        [0.3673, 0.8606, -0.2280],
        [0.2801, 0.6725, 0.0474],
        [-0.0118, 0.0429, 0.9689],
    ],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("colours", "theme"), [(SERIES_LIGHT, "light"), (SERIES_DARK, "dark")])
def test_colours_stay_apart(vision: str, colours: tuple[str, ...], theme: str) -> None:
    """CIELAB distance of 12 between any two series; contrast of 3:1 with the page (WCAG)."""
    seen = [lab(times(VISION[vision], linear(c))) for c in colours]
    for a, b in combinations(seen, 2):
        assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > 12

    def luminance(colour: str) -> float:
        return times([[0.2126, 0.7152, 0.0722]], linear(colour))[0]

    page_colour = luminance(THEMES[theme]["@page"])
    for colour in colours:
        low, high = sorted((luminance(colour), page_colour))
        assert (high + 0.05) / (low + 0.05) >= 3
