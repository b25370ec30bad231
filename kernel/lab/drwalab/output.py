# SPDX-License-Identifier: GPL-2.0-only
"""What the commands print and write: the table of runs, and files that are whole or absent."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from drwalab import compare
from drwalab.results import Result, goodput_between, jain, of_idle, settled

WIDE = 250


def number(value: float | None, decimals: int = 1) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


def _goodput(result: Result) -> str:
    return number(result["goodput_mbps"] if result["flows"] else None, 2)


def _object(key: str) -> Callable[[Result], str]:
    return lambda result: number(result["objects"][key], 0)


def _segment(key: str) -> Callable[[Result], str]:
    return lambda result: number(result["segments"][key] if result["segments"] else None, 0)


def _rtt(key: str) -> Callable[[Result], str]:
    return lambda result: number(result["rtt_ms"][key], 0)


def _up(key: str) -> Callable[[Result], str]:
    return lambda result: number(result["up_ms"][key], 0)


def _of_idle(key: str) -> Callable[[Result], str]:
    return lambda result: number(of_idle(result, key), 2)


# Title, text of a result, and whether these results have it at all.
_COLUMNS: list[tuple[str, Callable[[Result], str], Callable[[Result], bool]]] = [
    ("Goodput\nMb/s", _goodput, lambda _: True),
    ("RTT base\nms", _rtt("base"), lambda _: True),
    ("RTT mean\nms", _rtt("mean"), lambda _: True),
    ("RTT p50\nms", _rtt("p50"), lambda _: True),
    ("RTT p95\nms", _rtt("p95"), lambda _: True),
    ("RTT p99\nms", _rtt("p99"), lambda _: True),
    ("Mean\nof idle", _of_idle("mean"), lambda _: True),
    ("p95\nof idle", _of_idle("p95"), lambda _: True),
    ("Link use\n%", lambda r: number((r["utilisation"] or 0) * 100), lambda _: True),
    ("Jain", lambda r: number(r["jain"], 3), lambda r: r["jain"] is not None),
    ("Objects", lambda r: str(r["objects"]["count"]), lambda r: bool(r["config"]["objects"])),
    (
        "Unfin-\nished",
        lambda r: str(r["objects"]["unfinished"]),
        lambda r: r["objects"]["unfinished"] > 1,
    ),
    ("FCT mean\nms", _object("mean_fct_ms"), lambda r: bool(r["config"]["objects"])),
    ("FCT p95\nms", _object("p95_fct_ms"), lambda r: bool(r["config"]["objects"])),
    ("Seg-\nments", _segment("count"), lambda r: r["segments"] is not None),
    ("Segment\nmean ms", _segment("mean_fct_ms"), lambda r: r["segments"] is not None),
    ("Segment\np95 ms", _segment("p95_fct_ms"), lambda r: r["segments"] is not None),
    (
        "Upload\nMb/s",
        lambda r: number(r["upload_goodput_mbps"], 2),
        lambda r: bool(r["config"]["upload"]),
    ),
    ("Up p50\nms", _up("p50"), lambda r: r["firmware"] is not None),
    ("Up p95\nms", _up("p95"), lambda r: r["firmware"] is not None),
    (
        "Firmware\nmean kB",
        lambda r: number(r["firmware"]["mean_bytes"] / 1e3),
        lambda r: r["firmware"] is not None,
    ),
    (
        "Neighbours\nMb/s",
        lambda r: " ".join(number(n["goodput_mbps"], 2) for n in r["neighbours"]),
        lambda r: bool(r["neighbours"]),
    ),
    (
        "Calls and games\nlost packets",
        lambda r: " ".join(str(n["lost"]) for n in r["neighbours"] if n.get("lost") is not None),
        lambda r: any(n.get("lost") is not None for n in r["neighbours"]),
    ),
    (
        "Of a fair\nshare",
        lambda r: number(r["fair_share"], 2),
        lambda r: r["fair_share"] is not None,
    ),
    ("Retrans-\nmits", lambda r: str(r["retransmits"]), lambda _: True),
    ("Zero\nwindows", lambda r: str(r["zero_windows"]), lambda _: True),
]


def link_label(result: Result) -> str:
    """The link in a few words."""
    config = result["config"]
    rate = config["rate_bps"]
    link = config["trace"] if rate is None else f"{rate / 1e6:g} Mb/s"
    if config.get("uplink_scheme"):
        rate = config["uplink_rate_bps"]
        link += f" / {config['uplink_trace'] if rate is None else f'{rate / 1e6:g} Mb/s'}"
    return f"{link}, {config['base_rtt_ms']:g} ms"


def _settled_columns(
    results: Sequence[Result], from_s: float
) -> list[tuple[str, Callable[[Result], str]]]:
    def goodput(result: Result) -> str:
        return number(settled(result, from_s)[0], 2)

    def rtt(result: Result) -> str:
        return number(settled(result, from_s)[1])

    def ratio(result: Result) -> str:
        mean = settled(result, from_s)[1]
        return number(None if mean is None else mean / result["rtt_ms"]["base"], 2)

    def fairness(result: Result) -> str:
        return number(jain(goodput_between(result, from_s, result["config"]["duration_s"])), 3)

    since = f"from {from_s:g} s"
    columns: list[tuple[str, Callable[[Result], str]]]
    columns = [(f"{since}\nMb/s", goodput), ("RTT mean\nms", rtt), ("of base", ratio)]
    return columns + ([("Jain", fairness)] if any(r["jain"] for r in results) else [])


def _grid(results: Sequence[Result], settled_s: float | None) -> tuple[list[str], list[list[str]]]:
    """Heads and rows, with a column for the link where it differs."""
    links = [link_label(result) for result in results]
    start: list[tuple[str, Callable[[Result], str]]] = [("Scheme", lambda r: str(r["name"]))]
    if len(set(links)) > 1:
        start.append(("Link", link_label))
    columns = start + [(head, text) for head, text, has in _COLUMNS if any(map(has, results))]
    if settled_s is not None:
        columns += _settled_columns(results, settled_s)
    heads = [head for head, _ in columns]
    return heads, [[text(result) for _, text in columns] for result in results]


def print_table(results: Sequence[Result], settled_s: float | None = None) -> None:
    """The results as a table on standard output.

    With settled_s, also what the runs did from that second on.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    heads, rows = _grid(results, settled_s)
    for head in heads:
        words = head in ("Scheme", "Link")
        table.add_column(
            head, justify="left" if words else "right", overflow="fold", no_wrap=head == "Link"
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def markdown_table(results: Sequence[Result], settled_s: float | None = None) -> str:
    """The same table for a document."""
    heads, rows = _grid(results, settled_s)
    lines = [[head.replace("-\n", "").replace("\n", " ") for head in heads]]
    lines += [["---" if head in ("Scheme", "Link") else "--:" for head in heads], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_MEANS_HEADS = ("Base RTT, ms", "Scheme", "Links", "Goodput", "Mean of idle", "p95 of idle")


def _means(results: Sequence[Result]) -> list[list[str]]:
    return [
        [
            f"{m.base_rtt_ms:g}",
            m.name,
            str(m.links),
            number(m.goodput_of_baseline, 3),
            number(m.mean_of_idle, 2),
            number(m.p95_of_idle, 2),
        ]
        for m in compare.means(compare.compare(results))
    ]


def means_markdown(results: Sequence[Result]) -> str:
    """Geometric means over the links, for a document."""
    lines = [_MEANS_HEADS, ["--:", "---", "--:", "--:", "--:", "--:"], *_means(results)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"Geometric means over the links; goodput is that of stock's.\n\n{table}\n"


def print_means(results: Sequence[Result]) -> None:
    """Geometric means over the links, on standard output."""
    table = Table(*_MEANS_HEADS, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in _means(results):
        table.add_row(*row)
    console = Console()
    (console if console.is_terminal else Console(width=WIDE)).print(table)


def record_option(what: str) -> Any:
    """--record, of a folder that has to exist; `what` is written into it."""
    return typer.Option(
        metavar="FOLDER", exists=True, file_okay=False, help=f"Write {what} to FOLDER too."
    )


def check_writable(path: Path) -> str | None:
    """Why a file cannot be written here, if that is so."""
    parent = path.parent
    if path.is_dir():
        return f"{path} is a folder"
    if not parent.is_dir():
        return f"{parent} is no folder"
    if not os.access(path if path.exists() else parent, os.W_OK):
        return f"{path} is not writable"
    return None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no half of it is ever seen."""
    if not path.exists() or path.is_file():
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        new = Path(file.name)
        new.chmod(0o666 & ~_umask())
        new.replace(path)
    else:
        path.write_text(text)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def describe(values: dict[str, Any]) -> None:
    """Print names and values, one pair per line."""
    width = max(len(name) for name in values)
    for name, value in values.items():
        print(f"{name:<{width}}  {value}")
