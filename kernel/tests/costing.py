# SPDX-License-Identifier: GPL-2.0-only
"""Counts the instructions of the law's functions with callgrind, and records them."""

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import builds
import fuzzing

RESULT = builds.TESTS / "results" / "cost.md"

# Most that a call may cost.
ROUND_LIMIT = 200
SHORT_LIMIT = 15


@dataclass
class Cost:
    """Instructions and divisions of each call of one kind, and where instructions were spent."""

    calls: list[int] = field(default_factory=list)
    divisions: list[int] = field(default_factory=list)
    by_function: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def worst(self) -> int:
        return max(self.calls)

    @property
    def mean(self) -> float:
        return sum(self.calls) / len(self.calls)


Costs = dict[str, Cost]


def limit(name: str) -> int | None:
    """What the kind of call may cost; what happens for each segment may cost little."""
    if name.startswith("round"):
        return ROUND_LIMIT
    return SHORT_LIMIT if name == "heard" or name.endswith("no") else None


@dataclass(frozen=True)
class Recorded:
    """A kind of call in results/cost.md."""

    mean: float
    worst: int
    divisions: int


def recorded() -> dict[str, Recorded]:
    """What results/cost.md has, by kind of call."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in RESULT.read_text().splitlines()
        if re.match(r"\| (count|due|heard|round|sample) ", line)
    ]
    return {
        name: Recorded(float(mean), int(worst), int(divisions))
        for name, _, mean, worst, _, divisions in rows
    }


def measure() -> Costs:
    """Plays the fuzzer's corpus: honest links and all that the fuzzer knows to be hostile."""
    with tempfile.TemporaryDirectory() as name:
        binary = builds.costed(Path(name))
        dump = Path(name) / "callgrind.out"
        functions = ["drwa_sample", "drwa_heard", "drwa_due", "drwa_round", "drwa_count"]
        builds.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={dump}",
                "--combine-dumps=yes",
                "--dump-instr=yes",
                "--compress-strings=no",
                "--compress-pos=no",
                "--collect-atstart=no",
                *[f"--toggle-collect={function}" for function in functions],
                binary,
                *sorted(fuzzing.CORPUS.iterdir()),
            ]
        )
        divisions = _divisions(binary)
        spent: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        costs: Costs = defaultdict(Cost)
        for kind, counts in _dumps(dump):
            costs[kind].calls.append(sum(counts.values()))
            costs[kind].divisions.append(sum(counts[at] for at in counts.keys() & divisions))
            for at, count in counts.items():
                spent[kind][at] += count
        names = _functions(binary, sorted({at for counts in spent.values() for at in counts}))
        for kind, counts in spent.items():
            for at, count in counts.items():
                costs[kind].by_function[names[at]] += count
    return dict(sorted(costs.items()))


def _dumps(path: Path) -> Iterator[tuple[str, dict[int, int]]]:
    """Each dumped call: its kind, and how often each of its instructions was executed."""
    kind, total = "", 0
    counts: dict[int, int] = {}
    called = False
    with path.open() as lines:
        for line in lines:
            if line.startswith("0x"):
                # After calls= comes what the callee cost, which it reports itself.
                if not called:
                    at, _, count = line.split()
                    counts[int(at, 16)] = counts.get(int(at, 16), 0) + int(count)
                called = False
            elif line.startswith("calls="):
                called = True
            elif line.startswith("desc: Trigger: Client Request: "):
                kind, counts = line.removeprefix("desc: Trigger: Client Request: ").strip(), {}
            elif line.startswith("desc: Trigger:"):
                kind = ""
            elif line.startswith("summary:"):
                total = int(line.split()[1])
            elif line.startswith("totals:") and kind:
                assert sum(counts.values()) == total
                yield kind, counts


def _divisions(binary: Path) -> set[int]:
    """Addresses of the division instructions."""
    listing = builds.run(["objdump", "--disassemble", "--no-show-raw-insn", binary])
    found = re.findall(r"^\s*([0-9a-f]+):\s+i?div[bwlq]?\s", listing, re.MULTILINE)
    return {int(address, 16) for address in found}


def _functions(binary: Path, addresses: list[int]) -> dict[int, str]:
    """The innermost function, inlined ones too, that each address belongs to."""
    done = subprocess.run(
        ["addr2line", "--functions", "--exe", binary],
        input="\n".join(map(hex, addresses)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(zip(addresses, done.stdout.splitlines()[::2], strict=True))


def report(costs: Costs) -> str:
    compiler = builds.run(["gcc", "--version"]).splitlines()[0]
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# cost",
        "Instructions of the law's functions on x86-64, counted by callgrind over the fuzzer's",
        "corpus. A division counts as one instruction.",
        "",
        "| call | calls | mean | worst | limit | divisions, worst |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for name, cost in costs.items():
        most = limit(name)
        lines.append(
            f"| {name} | {len(cost.calls):,} | {cost.mean:.0f} | {cost.worst} | {most or '–'} "
            f"| {max(cost.divisions)} |"
        )
    lines += ["", "Where the instructions of a mean round go:", ""]
    rounds = {name: cost for name, cost in costs.items() if name.startswith("round")}
    functions = sorted({name for cost in rounds.values() for name in cost.by_function})
    lines.append(f"| function | {' | '.join(name.removeprefix('round ') for name in rounds)} |")
    lines.append(f"| --- |{' --: |' * len(rounds)}")
    for function in functions:
        shares = [cost.by_function.get(function, 0) / len(cost.calls) for cost in rounds.values()]
        cells = [f"{share:.0f}" if share >= 0.5 else "–" for share in shares]
        lines.append(f"| {function} | {' | '.join(cells)} |")
    lines += [
        "",
        f"tcp_drwa_core.c: {builds.law_digest()}. Compiler: {compiler}. Repeat it with"
        " `kernel/tests/cost --record`.",
        "",
    ]
    return "\n".join(lines)


def main(
    record: Annotated[bool, typer.Option("--record", help="Write results/cost.md.")] = False,
) -> None:
    """Count what the law costs on x86-64."""
    costs = measure()
    table = Table("call", "calls", "mean", "worst", "limit", "divisions, worst")
    for name, cost in costs.items():
        most = limit(name)
        table.add_row(
            name,
            str(len(cost.calls)),
            f"{cost.mean:.0f}",
            str(cost.worst),
            str(most or "–"),
            str(max(cost.divisions)),
        )
    Console().print(table)
    if record:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(report(costs))


if __name__ == "__main__":
    typer.run(main)
