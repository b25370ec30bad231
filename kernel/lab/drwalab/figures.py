# SPDX-License-Identifier: GPL-2.0-only
"""The interactive figures, as plotly takes them; colours are the @tokens of style.py."""

from collections.abc import Sequence
from math import log10
from typing import Any

from drwalab import units
from drwalab.compare import Comparison
from drwalab.results import Result
from drwalab.style import Style, decade_ticks, goodput_range

MAX_POINTS = 1500


def log_axis(values: Sequence[float], unit: float = 1.0) -> dict[str, Any]:
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
        "ticktext": [f"{t:g}" if t < 10000 else f"{t / 1000:g}k" for t in ticks],
    }


def _binned(
    values: Sequence[float], interval_s: float, wanted_s: float
) -> tuple[list[float], float]:
    """Means over intervals of about wanted_s, wider where MAX_POINTS would be exceeded."""
    k = max(1, round(wanted_s / interval_s), -(-len(values) // MAX_POINTS))
    means = [sum(values[i : i + k]) / k for i in range(0, len(values) - k + 1, k)]
    return [round(m, 3) for m in means], k * interval_s


def stretch(count: int) -> int:
    """Of how many values thinned() takes one."""
    return -(-count // MAX_POINTS) if count else 1


def thinned(t: Sequence[float], v: Sequence[float]) -> tuple[list[float], list[float]]:
    """At most MAX_POINTS points: the worst of each stretch."""
    k = stretch(len(t))
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


def of_uplink(comparison: Comparison) -> bool:
    """Whether these runs are about uploads, over a modem whose queue is known."""
    return all(r.result.get("firmware") and not r.result["flows"] for r in comparison.runs)


def _panels(result: Result) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Of a run about downloads: goodput, what the link could carry, and the window in bytes."""
    series = result["series"]
    return series["goodput_mbps"], series["link_mbps"], series["rwnd_bytes"]


def _uplink_panels(result: Result) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Of a run about uploads: their goodput, what the uplink could carry, and the modem's bytes."""
    series = result["series"]
    goodput = [sum(each) for each in zip(*series["upload_goodput_mbps"], strict=True)]
    return goodput or [0.0] * len(series["t_s"]), series["uplink_mbps"], series["firmware_bytes"]


def time_figure(comparison: Comparison) -> dict[str, Any]:
    """RTT, what makes it, and goodput with link rate, stacked over a shared time axis.

    That is the window that the phone advertises, or what is in its modem.
    """
    uplink = of_uplink(comparison)
    panels = _uplink_panels if uplink else _panels
    data: list[dict[str, Any]] = []
    symbols: list[dict[str, Any]] = []
    rtts: list[float] = []
    windows: list[float] = []
    tops: list[float] = [0.0]
    runs = comparison.runs
    interval = runs[0].result["series"]["interval_s"]
    link, width = _binned(panels(runs[0].result)[1], interval, 0.5)
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
        goodput, _, cause = panels(run.result)
        rate, width = _binned(goodput, interval, 0.5)
        window, step = _binned(cause, interval, interval)
        rtt_t, rtt = thinned(series["rtt"]["t_s"], series["rtt"]["ms"])
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
    shapes = [rule("y", base)] if base else []
    events = [_event(e) for run in runs[:1] for e in run.result["config"].get("events") or []]
    for at, _ in events:
        line = {"color": "@soft", "width": 1, "dash": "dot"}
        shapes.append(
            {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        )
    # A hole that is filled releases seconds of data at once; that should not flatten the rest.
    top = 1.2 * max([*link, 0.1])
    titles = {
        "y": "RTT, ms",
        "y2": "In the modem, kB" if uplink else "Advertised window, kB",
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
        "yaxis": log_axis([*rtts, base or 0.0]) | {"domain": [0.68, 1], "fixedrange": True},
        "yaxis2": log_axis(windows, 1000) | {"domain": [0.34, 0.62], "fixedrange": True},
        "yaxis3": {
            "domain": [0, 0.28],
            "fixedrange": True,
            "range": [0, round(top, 2)],
        },
        "shapes": shapes,
        "annotations": [
            note(text, xref="paper", x=0, yref=f"{axis} domain", y=1, yanchor="bottom")
            for axis, text in titles.items()
        ]
        + [
            note(text, x=at, yref="paper", y=0.665, yanchor="middle", color="@soft", size=11)
            for at, text in events
        ],
    }
    of = max(stretch(len(run.result["series"]["rtt"]["t_s"])) for run in runs)
    probes = "that of every probe" if of == 1 else f"the longest of {of} probes each"
    return {
        "kind": "time",
        "data": data + symbols,
        "layout": layout,
        "clipped": max(tops) > top,
        "drawn": f"RTT is {probes}; goodput and link rate are means of {width:g} s",
    }


def rule(axis: str, y: float) -> dict[str, Any]:
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


def note(text: str, *, color: str = "@ink", size: int = 13, **where: Any) -> dict[str, Any]:
    return {
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "font": {"color": color, "size": size},
    } | where


def _event(event: str) -> tuple[float, str]:
    """Time in s and text of an event of the form '10s base-rtt=150ms'."""
    at, _, text = event.partition(" ")
    return units.parse_time_us(at) / 1e6, text


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
        "xaxis": log_axis(everything) | {"title": {"text": "RTT, ms"}, "fixedrange": True},
        "yaxis": {
            "type": "log",
            "range": [round(log10(least), 4), 0.03],
            "tickvals": ticks,
            "ticktext": [f"{t * 100:g} %" for t in ticks],
            "fixedrange": True,
        },
        "shapes": [rule("y", 0.05)],
        "annotations": [
            note("Probes with a longer RTT", xref="paper", x=0, yref="paper", y=1, yanchor="bottom")
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
    idle = comparison.runs[0].idle_p95 or 1.0
    xs = [idle, *(p[0] for p in points)]
    axis = log_axis([min(xs) / 1.1, max(xs) * 1.25])
    axis["range"] = axis["range"][::-1]
    line = {"color": "@soft", "width": 1, "dash": "dot"}
    layout = {
        "height": 430,
        "hovermode": "closest",
        "xaxis": axis
        | {"title": {"text": "p95 RTT, ms (shorter to the right)"}, "fixedrange": True},
        "yaxis": {
            "range": list(goodput_range([p[1] for p in points])),
            "fixedrange": True,
        },
        "shapes": [
            {
                "type": "line",
                "x0": idle,
                "x1": idle,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": line,
            }
        ],
        "annotations": [
            note("Goodput, Mb/s", xref="paper", x=0, yref="paper", y=1, yanchor="bottom")
        ],
    }
    return {"kind": "scatter", "data": data, "layout": layout}
