# SPDX-License-Identifier: GPL-2.0-only
"""A small figure for documents: RTT over time, and goodput against p95 RTT."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drwalab import cases, compare, errors, extras, report
from drwalab.compare import Comparison, ResultError
from drwalab.results import Result
from drwalab.style import SERIES_LIGHT, THEMES, Style, decade_ticks, goodput_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "d",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
}
LINES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
RTT_WINDOW_S = 0.5
RC: dict[Any, Any] = {
    # With a fixed salt and no date the same results give the same bytes.
    "svg.hashsalt": "drwa",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": THEMES["light"]["@soft"],
    "axes.labelcolor": THEMES["light"]["@soft"],
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": THEMES["light"]["@grid"],
    "grid.linewidth": 0.8,
    "xtick.color": THEMES["light"]["@soft"],
    "ytick.color": THEMES["light"]["@soft"],
    "xtick.minor.bottom": False,
    "ytick.minor.left": False,
    "text.color": THEMES["light"]["@ink"],
}


def write_picture(results: Sequence[Result], path: Path) -> None:
    """Write the figure; the ending of the name (.svg, .png) says in which format."""
    extras.need("matplotlib")
    import matplotlib
    from matplotlib.figure import Figure

    comparisons = compare.compare(results)
    if len(comparisons) != 1:
        raise ResultError(f"a picture shows runs over one link, these are over {len(comparisons)}")
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(9.6, 3.9), layout="constrained")
        over_time, against = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _rtt_panel(over_time, comparisons[0])
        _scatter_panel(against, comparisons[0])
        names = [run.name for run in comparisons[0].runs]
        lines = over_time.get_lines()[: len(names)]
        figure.legend(lines, names, loc="outside upper center", ncols=5, frameon=False)
        of = {"Date": None, "Description": cases.made_of(results)}
        figure.savefig(path, dpi=160, metadata=of if path.suffix == ".svg" else None)


def _windowed(t: Sequence[float], v: Sequence[float]) -> tuple[list[float], list[float]]:
    """Means over windows of RTT_WINDOW_S; a window without a probe leaves a gap."""
    windows: dict[int, list[float]] = {}
    for at, value in zip(t, v, strict=True):
        windows.setdefault(int(at / RTT_WINDOW_S), []).append(value)
    last = max(windows, default=-1)
    means = [sum(w) / len(w) if (w := windows.get(i)) else float("nan") for i in range(last + 1)]
    return [(i + 0.5) * RTT_WINDOW_S for i in range(last + 1)], means


def _log_ticks(axis: "Axes", which: str) -> None:
    low, high = sorted(axis.get_xlim() if which == "x" else axis.get_ylim())
    ticks = decade_ticks(low, high)
    labels = [f"{t:g}" for t in ticks]
    if which == "x":
        axis.set_xticks(ticks, labels)
    else:
        axis.set_yticks(ticks, labels)
    axis.minorticks_off()


def _rtt_panel(axes: "Axes", comparison: Comparison) -> None:
    runs = comparison.runs
    for i, run in enumerate(runs):
        style = Style(i)
        rtt = run.result["series"]["rtt"]
        t, v = _windowed(rtt["t_s"], rtt["ms"])
        every = max(1, len(t) // 7)
        axes.plot(
            t,
            v,
            color=SERIES_LIGHT[i % len(SERIES_LIGHT)],
            linestyle=LINES[style.dash],
            linewidth=2.0 if run is comparison.subject else 1.2,
            marker=MARKERS[style.symbol],
            markersize=style.size * 0.55,
            markevery=(int(every * (i + 0.5) / len(runs)), every),
            markeredgecolor="white",
            markeredgewidth=0.5,
        )
    base = runs[0].rtt("base")
    if base:
        axes.axhline(base, color=THEMES["light"]["@soft"], linestyle=":", linewidth=1)
    axes.set_yscale("log")
    axes.set_title("RTT under load, ms (dotted: without load)")
    axes.set_xlabel("time, s")
    axes.set_xlim(0, max(run.result["config"]["duration_s"] for run in runs))
    _log_ticks(axes, "y")


def _scatter_panel(axes: "Axes", comparison: Comparison) -> None:
    points = []
    for i, run in enumerate(comparison.runs):
        p95 = run.rtt("p95")
        if p95 is None:
            continue
        style = Style(i)
        points.append((p95, run.goodput))
        axes.plot(
            [p95],
            [run.goodput],
            color=SERIES_LIGHT[i % len(SERIES_LIGHT)],
            linestyle="",
            marker=MARKERS[style.symbol],
            markersize=style.size * (1.0 if run is comparison.subject else 0.85),
        )
    idle = comparison.runs[0].idle_p95 or 1.0
    axes.axvline(idle, color=THEMES["light"]["@soft"], linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(max([idle, *(p for p, _ in points)]) * 1.6, idle / 1.3)
    axes.set_ylim(*goodput_range([g for _, g in points]))
    axes.set_title("Goodput, Mb/s (better: up and right)")
    axes.set_xlabel("p95 RTT, ms (shorter to the right)")
    _log_ticks(axes, "x")


def picture(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="Results over one link.")],
    out: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE.svg", help="The figure to write, .svg or .png."
        ),
    ],
) -> None:
    """Draw RTT over time and goodput against p95 RTT as a figure for documents."""
    with errors.reported():
        if out.suffix not in (".svg", ".png"):
            raise ResultError(f"{out}: the name must end in .svg or .png")
        results = compare.load([file])
        report.make_folder(out)
        write_picture(results, out)
    typer.echo(out)
