# SPDX-License-Identifier: GPL-2.0-only
"""One self-contained HTML page about a set of results."""

import base64
import gzip
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Annotated, Any

import typer

from drwalab import compare
from drwalab.compare import Comparison, Result, Run, change, mbps, ms
from drwalab.style import THEMES, Style, decade_ticks

MAX_POINTS = 1500
# Chrome refuses to save data: links of more than 2 MB, so long reports offer their JSON compressed.
MAX_PLAIN_JSON = 1_000_000


def _log_axis(values: Sequence[float], unit: float = 1.0) -> dict[str, Any]:
    """A fixed logarithmic axis with 1-2-5 ticks that holds these values."""
    positive = [v / unit for v in values if v > 0] or [1.0, 10.0]
    low, high = min(positive) / 1.15, max(positive) * 1.15
    ticks = decade_ticks(low, high)
    if len(ticks) > 9:
        ticks = decade_ticks(low, high, (1,))
    return {
        "type": "log",
        "range": [round(log10(low), 4), round(log10(high), 4)],
        "tickvals": ticks,
        "ticktext": [f"{t:g}" if t < 10000 else f"{t:,.0f}".replace(",", " ") for t in ticks],
    }


def _binned(
    values: Sequence[float], interval_s: float, wanted_s: float
) -> tuple[list[float], float]:
    """Means over intervals of about wanted_s, wider where MAX_POINTS would be exceeded."""
    k = max(1, round(wanted_s / interval_s), -(-len(values) // MAX_POINTS))
    means = [sum(values[i : i + k]) / k for i in range(0, len(values) - k + 1, k)]
    return [round(m, 3) for m in means], k * interval_s


def _thinned(t: Sequence[float], v: Sequence[float]) -> tuple[list[float], list[float]]:
    """At most MAX_POINTS points: the worst of each stretch."""
    k = -(-len(t) // MAX_POINTS) if t else 1
    picks = [max(range(i, min(i + k, len(v))), key=lambda j: v[j]) for i in range(0, len(v), k)]
    return [round(t[i], 3) for i in picks], [round(v[i], 1) for i in picks]


def _marks(
    x: Sequence[float], y: Sequence[float], nth: int, of: int
) -> tuple[list[float], list[float]]:
    """Ten points of a line, at other places for each run, to carry its symbol."""
    if not x:
        return [], []
    step = max(1, len(x) // 10)
    at = range(int(step * (nth + 0.5) / of), len(x), step)
    return [x[i] for i in at], [y[i] for i in at]


def _marker(style: Style, scale: float = 1.0) -> dict[str, Any]:
    return {
        "symbol": style.symbol,
        "size": round(style.size * scale, 1),
        "color": style.colour,
        "line": {"color": "@page", "width": 1},
    }


def time_figure(comparison: Comparison) -> dict[str, Any]:
    """RTT, advertised window, and goodput with link rate, stacked over a shared time axis."""
    data: list[dict[str, Any]] = []
    symbols: list[dict[str, Any]] = []
    rtts: list[float] = []
    windows: list[float] = []
    tops: list[float] = []
    runs = comparison.runs
    first = runs[0].result["series"]
    link, width = _binned(first["link_mbps"], first["interval_s"], 0.5)
    tops += link
    data.append(
        {
            "x": [round((i + 0.5) * width, 3) for i in range(len(link))],
            "y": link,
            "yaxis": "y3",
            "name": "link",
            "mode": "lines",
            "line": {"color": "@soft", "width": 1, "shape": "hvh"},
            "fill": "tozeroy",
            "fillcolor": "@area",
            "hovertemplate": "%{y:.1f} Mb/s",
        }
    )
    for i, run in enumerate(runs):
        series = run.result["series"]
        style = Style(i)
        interval = series["interval_s"]
        rate, width = _binned(series["goodput_mbps"], interval, 0.5)
        window, step = _binned(series["rwnd_bytes"], interval, interval)
        rtt_t, rtt = _thinned(series["rtt"]["t_s"], series["rtt"]["ms"])
        rtts += rtt
        windows += window
        tops += rate
        lines = (
            ("y", rtt_t, rtt, "%{y:.0f} ms"),
            (
                "y2",
                [round((n + 0.5) * step, 3) for n in range(len(window))],
                [round(w / 1000, 1) for w in window],
                "%{y:.0f} kB",
            ),
            ("y3", [round((n + 0.5) * width, 3) for n in range(len(rate))], rate, "%{y:.1f} Mb/s"),
        )
        wide = 2.4 if run is comparison.subject else 1.4
        for axis, x, y, hover in lines:
            common = {"yaxis": axis, "name": run.name, "meta": i}
            line = {"color": style.colour, "width": wide, "dash": style.dash}
            data.append(
                common | {"x": x, "y": y, "mode": "lines", "line": line, "hovertemplate": hover}
            )
            mark_x, mark_y = _marks(x, y, i, len(runs))
            symbols.append(
                common
                | {
                    "x": mark_x,
                    "y": mark_y,
                    "mode": "markers",
                    "hoverinfo": "skip",
                    "marker": _marker(style),
                }
            )
    end = max((run.result["config"]["duration_s"] for run in runs), default=1)
    base = runs[0].rtt("base")
    shapes = [_rule("y", base)] if base else []
    events = [_event(e) for run in runs[:1] for e in run.result["config"].get("events") or []]
    for at, _ in events:
        line = {"color": "@soft", "width": 1, "dash": "dot"}
        shapes.append(
            {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        )
    titles = {
        "y": "RTT, ms",
        "y2": "Advertised window, kB",
        "y3": "Goodput and link rate (grey), Mb/s",
    }
    layout = {
        "height": 760,
        "hovermode": "x unified",
        "xaxis": {
            "range": [0, end],
            "title": {"text": "time, s"},
            "anchor": "y3",
            "showspikes": False,
        },
        "yaxis": _log_axis([*rtts, base or 0.0]) | {"domain": [0.68, 1], "fixedrange": True},
        "yaxis2": _log_axis(windows, 1000) | {"domain": [0.34, 0.62], "fixedrange": True},
        "yaxis3": {
            "domain": [0, 0.28],
            "fixedrange": True,
            "range": [0, 1.05 * max(tops, default=1)],
        },
        "shapes": shapes,
        "annotations": [
            _note(text, xref="paper", x=0, yref=f"{axis} domain", y=1, yanchor="bottom")
            for axis, text in titles.items()
        ]
        + [
            _note(text, x=at, yref="paper", y=0.65, xanchor="left", color="@soft", size=11)
            for at, text in events
        ],
    }
    return {"kind": "time", "data": data + symbols, "layout": layout}


def _rule(axis: str, y: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": axis,
        "y0": y,
        "y1": y,
        "line": {"color": "@soft", "width": 1, "dash": "dot"},
    }


def _note(text: str, *, color: str = "@ink", size: int = 13, **where: Any) -> dict[str, Any]:
    return {
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "font": {"color": color, "size": size},
    } | where


def _event(event: Any) -> tuple[float, str]:
    """Time and text of an event of the form '10s base-rtt=150ms'."""
    at, _, text = str(event).partition(" ")
    number = re.match(r"[0-9.]+", at)
    scale = 0.001 if at.endswith("ms") else 1.0
    return (float(number.group()) * scale if number else 0.0), text


def ccdf_figure(comparison: Comparison) -> dict[str, Any]:
    """The share of probes that took longer than a given RTT."""
    data: list[dict[str, Any]] = []
    everything: list[float] = []
    least = 0.01
    for i, run in enumerate(comparison.runs):
        ordered = sorted(run.result["series"]["rtt"]["ms"])
        n = len(ordered)
        if n == 0:
            continue
        everything += ordered
        least = min(least, 1 / n)
        # Even steps on the logarithmic axis: every point of the tail, few of the body.
        above = sorted({round(n ** (1 - k / 150)) for k in range(151)} | {1, n}, reverse=True)
        x = [round(ordered[n - a], 1) for a in above]
        y = [round(a / n, 5) for a in above]
        style = Style(i)
        wide = 2.6 if run is comparison.subject else 1.6
        line = {"color": style.colour, "width": wide, "dash": style.dash}
        common = {"name": run.name, "meta": i}
        hover = "%{x:.0f} ms is exceeded by %{y:.2%}"
        data.append(
            common | {"x": x, "y": y, "mode": "lines", "line": line, "hovertemplate": hover}
        )
        shares = (0.5, 0.05, 0.01)
        data.append(
            common
            | {
                "x": [round(ordered[min(n - 1, int(n * (1 - s)))], 1) for s in shares],
                "y": list(shares),
                "mode": "markers",
                "hoverinfo": "skip",
                "marker": _marker(style),
            }
        )
    ticks = [t for t in (1, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0001) if t >= least * 0.9]
    layout = {
        "height": 430,
        "hovermode": "closest",
        "xaxis": _log_axis(everything) | {"title": {"text": "RTT, ms"}, "fixedrange": True},
        "yaxis": {
            "type": "log",
            "range": [round(log10(least), 4), 0.03],
            "tickvals": ticks,
            "ticktext": [f"{t * 100:g} %" for t in ticks],
            "fixedrange": True,
        },
        "shapes": [_rule("y", 0.05)],
        "annotations": [
            _note(
                "Probes with a longer RTT", xref="paper", x=0, yref="paper", y=1, yanchor="bottom"
            )
        ],
    }
    return {"kind": "ccdf", "data": data, "layout": layout}


def scatter_figure(comparison: Comparison) -> dict[str, Any]:
    """Goodput against p95 RTT on an inverted axis, as Pantheon draws it: up and right is better."""
    data: list[dict[str, Any]] = []
    points = []
    for i, run in enumerate(comparison.runs):
        p95 = run.rtt("p95")
        if p95 is None:
            continue
        points.append((p95, run.goodput))
        style = Style(i)
        data.append(
            {
                "x": [p95],
                "y": [run.goodput],
                "name": run.name,
                "meta": i,
                "mode": "markers",
                "marker": _marker(style, 1.6 if run is comparison.subject else 1.3),
                "hovertemplate": "%{x:.0f} ms, %{y:.2f} Mb/s",
            }
        )
    base = comparison.runs[0].rtt("base") or 1.0
    xs = [base, *(p[0] for p in points)]
    axis = _log_axis([min(xs) / 1.1, max(xs) * 1.25])
    axis["range"] = axis["range"][::-1]
    ys = [p[1] for p in points] or [0.0, 1.0]
    pad = max(0.25 * (max(ys) - min(ys)), 0.04 * max(ys), 0.01)
    line = {"color": "@soft", "width": 1, "dash": "dot"}
    layout = {
        "height": 430,
        "hovermode": "closest",
        "xaxis": axis
        | {"title": {"text": "p95 RTT, ms (shorter to the right)"}, "fixedrange": True},
        "yaxis": {
            "range": [round(max(0.0, min(ys) - pad), 4), round(max(ys) + pad, 4)],
            "fixedrange": True,
        },
        "shapes": [
            {
                "type": "line",
                "x0": base,
                "x1": base,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": line,
            }
        ],
        "annotations": [
            _note("Goodput, Mb/s", xref="paper", x=0, yref="paper", y=1, yanchor="bottom")
        ],
    }
    return {"kind": "scatter", "data": data, "layout": layout}


@dataclass(frozen=True)
class Column:
    title: str
    unit: str = ""


@dataclass(frozen=True)
class Cell:
    text: str
    delta: str = ""


def table(comparison: Comparison) -> tuple[list[Column], list[list[Cell]]]:
    """The comparison table; a column that would say nothing is left out."""
    runs, baseline = comparison.runs, comparison.baseline

    def delta(run: Run, value: float | None, reference: float | None) -> str:
        return "" if run is baseline else change(value, reference)

    def count(key: str) -> list[Cell]:
        return [Cell(str(r.result[key])) for r in runs]

    def times(run: Run) -> str:
        p95, base = run.rtt("p95"), run.rtt("base")
        return f"{p95 / base:.1f}×" if p95 is not None and base else "–"

    columns: list[tuple[Column, list[Cell]]] = [
        (
            Column("Goodput", "Mb/s"),
            [Cell(mbps(r.goodput), delta(r, r.goodput, baseline.goodput)) for r in runs],
        ),
        (
            Column("RTT p95", "ms"),
            [Cell(ms(r.rtt("p95")), delta(r, r.rtt("p95"), baseline.rtt("p95"))) for r in runs],
        ),
        (Column("p95 ÷ base"), [Cell(times(r)) for r in runs]),
        (
            Column("RTT mean", "ms"),
            [Cell(ms(r.rtt("mean")), delta(r, r.rtt("mean"), baseline.rtt("mean"))) for r in runs],
        ),
        (Column("RTT p50", "ms"), [Cell(ms(r.rtt("p50"))) for r in runs]),
        (Column("RTT p99", "ms"), [Cell(ms(r.rtt("p99"))) for r in runs]),
        (Column("Link used", "%"), [Cell(f"{r.result['utilisation'] * 100:.1f}") for r in runs]),
    ]
    if any(r.result.get("jain") is not None and len(r.result["flows"]) > 1 for r in runs):
        fairness = [r.result.get("jain") for r in runs]
        columns.append((Column("Jain"), [Cell("–" if j is None else f"{j:.3f}") for j in fairness]))
    if any(r.result.get("upload_goodput_mbps") is not None for r in runs):
        up = [r.result.get("upload_goodput_mbps") for r in runs]
        columns.append(
            (Column("Upload", "Mb/s"), [Cell("–" if u is None else mbps(u)) for u in up])
        )
    if any(r.result["objects"].get("count") for r in runs):
        first = baseline.result["objects"]
        for key, title in (("mean_fct_ms", "Object mean"), ("p95_fct_ms", "Object p95")):
            cells = []
            for r in runs:
                value = r.result["objects"].get(key)
                cells.append(Cell(ms(value), delta(r, value, first.get(key))))
            columns.append((Column(title, "ms"), cells))
    columns.append((Column("Retransmits"), count("retransmits")))
    columns.append((Column("Zero windows"), count("zero_windows")))
    return [c for c, _ in columns], [[cells[i] for _, cells in columns] for i in range(len(runs))]


def _provenance(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What the runs were made with, each fact once, with the runs it holds for when they differ."""
    facts = (
        ("Kernel", lambda p: p.get("kernel_release")),
        ("Debian source", lambda p: p.get("debian_version")),
        ("Kernel build", lambda p: p.get("kernel_key")),
        (
            "Patch ids",
            lambda p: " ".join(i[:12] for i in p.get("patch_ids") or []) or "none (unpatched)",
        ),
        ("Link trace, SHA-256", lambda p: p.get("trace_sha256")),
        ("Seed", lambda p: p.get("seed")),
        ("Lab", lambda p: p.get("lab_version")),
    )
    rows = []
    for title, get in facts:
        holders: dict[str, list[str]] = {}
        for run in runs:
            value = get(run.result["provenance"])
            if value is not None:
                holders.setdefault(str(value), []).append(run.name)
        for value, names in holders.items():
            suffix = "" if len(holders) == 1 else f" ({', '.join(names)})"
            rows.append((title, value + suffix))
    return rows


def _download(results: Sequence[Result], stem: str) -> tuple[str, str]:
    """File name and data: link of the results."""
    raw = json.dumps(list(results), ensure_ascii=False, separators=(",", ":")).encode()
    if len(raw) <= MAX_PLAIN_JSON:
        return f"{stem}.json", "data:application/json;base64," + base64.b64encode(raw).decode()
    packed = gzip.compress(raw, mtime=0)
    return f"{stem}.json.gz", "data:application/gzip;base64," + base64.b64encode(packed).decode()


def _script_json(value: Any) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _keep_units(text: str) -> str:
    """Numbers and their units on one line."""
    return re.sub(r"(?<=\d) (?=(?:%|ms|s|Mb/s|kB)(?:\W|$))", "\u00a0", text)


def write_html(results: Sequence[Result], path: Path, title: str, intro: str) -> None:
    """Write the page about these results; the same results give the same bytes."""
    # Slow to import, and most commands of the lab do not need them.
    import jinja2
    from plotly.offline import get_plotlyjs

    comparisons = compare.compare(results)
    figures: dict[str, Any] = {}
    sections = []
    for n, comparison in enumerate(comparisons):
        for figure in (
            time_figure(comparison),
            ccdf_figure(comparison),
            scatter_figure(comparison),
        ):
            figures[f"{figure['kind']}-{n}"] = figure | {"section": n}
        columns, rows = table(comparison)
        sections.append(
            {
                "n": n,
                "comparison": comparison,
                "verdict": compare.verdict(comparison),
                "columns": columns,
                "rows": list(zip(comparison.runs, rows, strict=True)),
                "styles": [Style(i) for i in range(len(comparison.runs))],
                "facts": _provenance(comparison.runs),
                "lost": sum(r.result["rtt_ms"].get("lost") or 0 for r in comparison.runs),
            }
        )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["units"] = _keep_units
    download_name, download_link = _download(results, path.stem)
    page = environment.get_template("report.html.j2").render(
        title=title,
        intro=intro,
        verdict=compare.overall_verdict(comparisons),
        sections=sections,
        themes=THEMES,
        download_name=download_name,
        download_link=download_link,
        figures_json=_script_json(figures),
        themes_json=_script_json(THEMES),
        plotly=get_plotlyjs(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.json...", help="Results that `lab run --json` wrote."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "DRWA lab report",
) -> None:
    """Write one self-contained HTML page that compares results."""
    try:
        results = compare.load(files)
        write_html(results, output, title, "")
    except compare.ResultError as e:
        fail("report", str(e))
    except OSError as e:
        fail("report", f"{output}: {e.strerror}")
    typer.echo(output)


def fail(command: str, message: str) -> None:
    """End with one clear line, as every command of the lab does for wrong input."""
    print(f"lab {command}: {message}", file=sys.stderr)
    raise typer.Exit(2)
