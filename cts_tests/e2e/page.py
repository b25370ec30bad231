# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML page about the story, in the lab's style."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import story
from drwalab import figures, report
from drwalab.style import Style

TITLE = "DRWA for Android: the whole chain"
LTE_STYLE, WIFI_STYLE = Style(3), Style(1)
# For interfaces whose lines would cover each other
CLAT_STYLE = Style(2)
STYLES = {story.LTE: LTE_STYLE, story.WIFI: WIFI_STYLE, story.CLAT: CLAT_STYLE}


def write_html(stories: list[dict[str, Any]], path: Path, facts: dict[str, str]) -> None:
    """Write the page about what Story.as_dict() made of the hosts."""
    drawn = {
        f"time-{number}": _figure(told) | {"section": number} for number, told in enumerate(stories)
    }
    failed = [
        f"{told['phone']}: {step['name']}"
        for told in stories
        for step in told["steps"]
        if not step["passed"]
    ]
    checks = sum(len(step["checks"]) for told in stories for step in told["steps"])
    name, link = report.download(stories, path.stem)
    report.render(
        path,
        Path(__file__).with_name("page.html.j2"),
        title=TITLE,
        verdict=f"Failed: {', '.join(failed)}."
        if failed
        else f"Every step came out as it has to: {checks} checks on {len(stories)} "
        f"{'hosts' if len(stories) > 1 else 'host'}.",
        stories=stories,
        facts=facts,
        download_name=name,
        download_link=link,
        figures_json=report.script_json(drawn),
    )


def _device(t_s: float) -> str:
    """The interface that downloads and pings use at this time."""
    events = [event for step in story.STEPS if step.at_s <= t_s for event in step.events]
    probes = [event.split()[1] for event in events if event.startswith("probe ")]
    return probes[-1]


def _line(
    axis: str, iface: str, x: list[float], y: Sequence[float | None], hover: str
) -> dict[str, Any]:
    style = STYLES[iface]
    return {
        "x": x,
        "y": y,
        "yaxis": axis,
        "name": iface,
        "meta": iface,
        "mode": "lines",
        "line": {"color": style.colour, "width": 1.6},
        "hovertemplate": hover,
    }


def _figure(told: dict[str, Any]) -> dict[str, Any]:
    """RTT, window and λ over a shared time axis, with a line for each step."""
    data = []
    t, rtt = told["rtt"]["t_s"], told["rtt"]["ms"]
    bounds = [step.at_s for step in story.STEPS] + [story.DURATION_S]
    for begin, end in pairwise(bounds):
        part = [(x, y) for x, y in zip(t, rtt, strict=True) if begin <= x < end]
        if part:
            x, y = figures.thinned([p[0] for p in part], [p[1] for p in part])
            data.append(_line("y", _device(begin), x, y, "%{y:.0f} ms"))
    for window in told["window"]:
        x = window["t_s"]
        y = [round(value / 1e3, 1) for value in window["bytes"]]
        data.append(_line("y2", _device(x[0]), x, y, "%{y:.0f} kB"))
    for iface in (story.LTE, story.WIFI):
        changes = [change for change in told["lambdas"][iface] if change[0] > 0]
        before = [change[1] for change in told["lambdas"][iface] if change[0] <= 0]
        steps = [[0.0, before[-1] if before else 0], *changes]
        x = [at for at, _ in steps] + [float(story.DURATION_S)]
        lambdas = [value for _, value in [*steps, steps[-1]]]
        # A gap where the interface is gone
        shown = [None if value is None else value / 100 for value in lambdas]
        line = _line("y3", iface, x, shown, "%{y:.2f}")
        line["line"] |= {"shape": "hv", "width": 2.4}
        data.append(line)
    mark = {"color": "@soft", "width": 1, "dash": "dot"}
    shapes = [figures.rule("y", story.BASE_RTT_MS)]
    shapes += [
        {
            "type": "line",
            "x0": step.at_s,
            "x1": step.at_s,
            "yref": "paper",
            "y0": 0,
            "y1": 1.06,
            "line": mark,
        }
        for step in story.STEPS
    ]
    titles = {
        "y": "RTT, ms",
        "y2": "Advertised window, kB",
        "y3": "λ in the kernel, 0: off",
    }
    windows = [value for window in told["window"] for value in window["bytes"]]
    layout = {
        "height": 760,
        "hovermode": "x unified",
        "margin": {"l": 52, "r": 14, "t": 64, "b": 48},
        "xaxis": {
            "range": [0, story.DURATION_S],
            "title": {"text": "time, s"},
            "anchor": "y3",
            "showspikes": False,
        },
        "yaxis": figures.log_axis([*rtt, story.BASE_RTT_MS])
        | {"domain": [0.6, 0.96], "fixedrange": True},
        "yaxis2": figures.log_axis(windows, 1000) | {"domain": [0.22, 0.54], "fixedrange": True},
        "yaxis3": {"domain": [0, 0.16], "fixedrange": True, "range": [-0.15, 3.4], "dtick": 1},
        "shapes": shapes,
        "annotations": [
            figures.note(text, xref="paper", x=0, yref=f"{axis} domain", y=1, yanchor="bottom")
            for axis, text in titles.items()
        ]
        + [
            # Two rows, so that neighbours have room
            figures.note(
                f"{number + 1} {step.mark}",
                x=step.at_s,
                yref="paper",
                y=1.065 - 0.035 * (number % 2),
                yanchor="middle",
                color="@soft",
                size=12,
                bgcolor="@page",
            )
            for number, step in enumerate(story.STEPS)
        ],
    }
    return {"kind": "time", "data": data, "layout": layout}
