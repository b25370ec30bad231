# SPDX-License-Identifier: Apache-2.0
"""What carriers read about λ is what the lab measured last."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def span(values: list[float], form: str, unit: str = "") -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return (low if low == high else f"{low} to {high}") + unit


def measured() -> dict[str, list[str]]:
    """The README's row for each λ, made of the recorded table."""
    recorded = (TOP / "kernel/lab/results/lambda.md").read_text()
    head, _, *table = rows(recorded)
    runs = [dict(zip(head, row, strict=True)) for row in table]
    stock = {run["Link"]: float(run["Goodput Mb/s"]) for run in runs if run["Scheme"] == "stock"}
    found = {}
    for scheme in dict.fromkeys(run["Scheme"] for run in runs):
        cells = []
        for varies in True, False:
            links = [
                run
                for run in runs
                if run["Scheme"] == scheme and run["Link"].startswith("lte-") == varies
            ]
            share = [100 * float(run["Goodput Mb/s"]) / stock[run["Link"]] for run in links]
            cells.append("100 %" if scheme == "stock" else span(share, "{:.1f}", " %"))
            for key in "RTT mean ms", "RTT p95 ms":
                cells.append(span([float(run[key]) for run in links], "{:.0f}"))
        name = re.search(r"λ=(.*)", scheme)
        found[name[1] if name else "off (stock)"] = cells
    return found


def test_the_table_is_what_was_recorded() -> None:
    readme = (TOP / "frameworks/carrier/README.md").read_text()
    written = {row[0].strip("*"): row[1:] for row in rows(readme) if len(row) == 7}
    expected = measured()
    assert len(expected) == 9
    assert {name: written.get(name) for name in expected} == expected
