# SPDX-License-Identifier: GPL-2.0-only
"""One self-contained HTML page about a set of results."""

import base64
import functools
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from drwalab import compare, errors, figures, output
from drwalab.compare import Comparison, ResultError, Run, change, mbps, ms
from drwalab.results import Result, dump, of_idle
from drwalab.style import THEMES, Style

TEMPLATES = Path(__file__).parent / "templates"

# Browsers may refuse to save data: links of more than 2 MB, so long reports compress theirs.
MAX_PLAIN_JSON = 1_000_000


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

    def times(run: Run, key: str) -> str:
        ratio = of_idle(run.result, key)
        return "–" if ratio is None else f"{ratio:.1f}×"

    def used(run: Run) -> str:
        share = run.result["utilisation"]
        return "–" if share is None else f"{share * 100:.1f}"

    columns: list[tuple[Column, list[Cell]]] = [
        (
            Column("Goodput", "Mb/s"),
            [Cell(mbps(r.goodput), delta(r, r.goodput, baseline.goodput)) for r in runs],
        ),
        (
            Column("RTT p95", "ms"),
            [Cell(ms(r.rtt("p95")), delta(r, r.rtt("p95"), baseline.rtt("p95"))) for r in runs],
        ),
        (Column("p95 ÷ idle"), [Cell(times(r, "p95")) for r in runs]),
        (
            Column("RTT mean", "ms"),
            [Cell(ms(r.rtt("mean")), delta(r, r.rtt("mean"), baseline.rtt("mean"))) for r in runs],
        ),
        (Column("mean ÷ idle"), [Cell(times(r, "mean")) for r in runs]),
        (Column("RTT p50", "ms"), [Cell(ms(r.rtt("p50"))) for r in runs]),
        (Column("RTT p99", "ms"), [Cell(ms(r.rtt("p99"))) for r in runs]),
        (Column("Link used", "%"), [Cell(used(r)) for r in runs]),
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
        ("Uplink trace, SHA-256", lambda p: p.get("uplink_trace_sha256")),
        ("Seed", lambda p: p.get("seed")),
        ("Lab version", lambda p: p.get("lab_version")),
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


def download(results: Sequence[Result], stem: str) -> tuple[str, str]:
    """File name and data: link of the results."""
    raw = dump(results).encode()
    if len(raw) <= MAX_PLAIN_JSON:
        return f"{stem}.json", "data:application/json;base64," + base64.b64encode(raw).decode()
    packed = gzip.compress(raw, mtime=0)
    return f"{stem}.json.gz", "data:application/gzip;base64," + base64.b64encode(packed).decode()


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _keep_units(text: str) -> str:
    """Numbers and their units on one line."""
    return re.sub(r"(?<=\d) (?=(?:%|ms|s|Mb/s|kB)(?:\W|$))", "\u00a0", text)


def write_html(results: Sequence[Result], path: Path, title: str, intro: str) -> None:
    """Write the page about these results; the same results give the same bytes."""
    comparisons = compare.compare(results)
    drawn: dict[str, Any] = {}
    sections = []
    for n, comparison in enumerate(comparisons):
        for figure in (
            figures.time_figure(comparison),
            figures.ccdf_figure(comparison),
            figures.scatter_figure(comparison),
        ):
            drawn[f"{figure['kind']}-{n}"] = figure | {"section": n}
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
                "uplink": figures.of_uplink(comparison),
                "clipped": drawn[f"time-{n}"]["clipped"],
                "drawn": drawn[f"time-{n}"]["drawn"],
                "cut": drawn[f"scatter-{n}"]["layout"]["yaxis"]["range"][0] > 0,
                "lost": sum(r.result["rtt_ms"].get("lost") or 0 for r in comparison.runs),
            }
        )
    download_name, download_link = download(results, path.stem)
    verdict = compare.overall_verdict(comparisons)
    plain = compare.plainly(comparisons[0]) if len(comparisons) == 1 else ""
    render(
        path,
        TEMPLATES / "report.html.j2",
        title=title,
        intro=intro,
        verdict=plain or verdict,
        lesser=[verdict] if plain else [],
        sections=sections,
        download_name=download_name,
        download_link=download_link,
        figures_json=script_json(drawn),
    )


@functools.cache
def packed_plotly() -> str:
    """The library that draws, for plotly.html.j2: gzip in base64, the same bytes each time."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def render(path: Path, template: Path, **values: Any) -> None:
    """Write a page from a template, which may include those of the lab and has its themes."""
    # Slow to import, and most commands of the lab do not need them.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["units"] = _keep_units
    page = environment.get_template(template.name).render(
        themes=THEMES, themes_json=script_json(THEMES), plotly=packed_plotly(), **values
    )
    output.write_whole(path, page)


def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.json...", help="Results that `lab run --json` wrote."),
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "DRWA lab report",
) -> None:
    """Write one self-contained HTML page that compares results."""
    with errors.reported():
        results = compare.load(files)
        make_folder(out)
        write_html(results, out, title, "")
    typer.echo(out)


def make_folder(path: Path) -> None:
    """The folder that this file is to be written to, made now; raises ResultError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise ResultError(f"{path.parent}: {e.strerror}") from e
    if problem := output.check_writable(path):
        raise ResultError(problem)
