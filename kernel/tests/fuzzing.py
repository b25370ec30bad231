# SPDX-License-Identifier: GPL-2.0-only
"""Runs the libFuzzer harness of the law, keeps the corpus and records the result."""

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import builds

CORPUS = builds.TESTS / "corpus"
RESULT = builds.TESTS / "results" / "fuzz.md"
OUT = builds.TOP / "out" / "fuzz"

# Long enough for thirty steps; longer stories run slower and found nothing more.
MAX_BYTES = 128
# One process's share: progress shows after each, and none runs long enough to grow in memory.
CHUNK = 1_000_000


class FuzzError(Exception):
    """The harness stopped; the text says where and how to repeat it."""


@dataclass(frozen=True)
class Coverage:
    lines: str
    branches: str


def fuzz(binary: Path, runs: int, seed: int, found: Path, crashes: Path) -> int:
    """Executes this many inputs, starting from the corpora; returns how many there were."""
    done = subprocess.run(
        [
            binary,
            f"-runs={runs}",
            f"-seed={seed}",
            f"-max_len={MAX_BYTES}",
            f"-artifact_prefix={crashes}/",
            "-timeout=10",
            "-print_final_stats=1",
            found,
            CORPUS,
        ],
        # The harness frees nothing that ASan would have to watch.
        env=os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    if done.returncode or not executed:
        # The first line of the complaint, and where the input lies.
        said = re.findall(r".*(?:not true|runtime error|ERROR|Test unit).*", done.stderr)
        raise FuzzError("\n".join([f"fuzz_core failed with seed {seed}", *said]))
    return int(executed[1])


def merge(binary: Path, corpora: Sequence[Path]) -> dict[str, bytes]:
    """The smallest inputs that reach every branch that the corpora reach."""
    with tempfile.TemporaryDirectory() as name:
        builds.run([binary, "-merge=1", "-use_counters=0", name, *corpora])
        return {path.name: path.read_bytes() for path in sorted(Path(name).iterdir())}


def coverage() -> Coverage:
    """What the repository's corpus reaches of the law."""
    with tempfile.TemporaryDirectory() as name:
        binary = builds.counted_fuzzer(Path(name))
        builds.run([binary, *sorted(CORPUS.iterdir())])
        said = builds.run(["gcov", "-b", "-n", "-o", name, Path(name) / "core.gcda"])
    law = said[said.index(builds.CORE.name) :]
    found = [re.search(rf"{what}:(.*)", law) for what in ("Lines executed", "Taken at least once")]
    assert found[0] and found[1]
    return Coverage(found[0][1], found[1][1])


def report(executions: int, seed: int, cpu_s: float, corpus: int, size: int) -> str:
    reached = coverage()
    compiler = builds.run(["clang", "--version"]).splitlines()[0]
    return f"""\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# fuzz
libFuzzer on the law with address and undefined behaviour sanitizers; what it checks is in
[fuzz_core.c](../fuzz_core.c).

| | |
| --- | --- |
| executions without a finding | {executions:,} |
| executions per second of CPU time | {executions / cpu_s:,.0f} |
| lines of the law that the corpus reaches | {reached.lines} |
| branches taken | {reached.branches} |
| corpus | {corpus} inputs, {size:,} bytes |
| tcp_drwa_core.c | {builds.law_digest()} |
| compiler | {compiler} |

Repeat it with `kernel/tests/fuzz --runs {executions} --seed {seed} --record`.
"""


def main(
    runs: Annotated[int, typer.Option(min=1, help="Executions.")] = 1_000_000,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    seed: Annotated[int, typer.Option(min=1, help="First random seed.")] = 1,
    record: Annotated[
        bool, typer.Option("--record", help="Keep the corpus and write results/fuzz.md.")
    ] = False,
) -> None:
    """Fuzz the law. A failing input is left in out/fuzz/, with how to repeat it."""
    found = OUT / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    CORPUS.mkdir(exist_ok=True)
    binary = builds.fuzzer(OUT)
    shares = [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]
    executions = findings = 0
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with bar, ThreadPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=runs)
        waiting = [
            pool.submit(fuzz, binary, share, seed + number, found, OUT)
            for number, share in enumerate(shares)
        ]
        try:
            for done in as_completed(waiting):
                try:
                    executions += done.result()
                except FuzzError as e:
                    # It ends its share alone: a long run shows all that there are.
                    findings += 1
                    bar.console.print(f"{e}\nRepeat it with {binary} FILE", soft_wrap=True)
                bar.update(task, completed=executions)
        finally:
            pool.shutdown(cancel_futures=True)
    if findings:
        raise SystemExit(f"findings: {findings}; nothing is recorded")
    cpu_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"{executions:,} executions, {executions / cpu_s:,.0f} per second of CPU time")
    if not record:
        return
    kept = merge(binary, [CORPUS, found])
    for path in CORPUS.iterdir():
        path.unlink()
    for name, content in kept.items():
        (CORPUS / name).write_bytes(content)
    RESULT.parent.mkdir(exist_ok=True)
    size = sum(map(len, kept.values()))
    RESULT.write_text(report(executions, seed, cpu_s, len(kept), size))


if __name__ == "__main__":
    typer.run(main)
