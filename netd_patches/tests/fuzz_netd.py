#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes netd's part for a while, each fuzzer in turn.

What makes one fail is left in out/netd/, with the command that repeats it.
"""

import argparse
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import building

CORPUS = building.NETD / "tests/corpus"
RESULT = building.NETD / "tests/results/fuzz.md"
FUZZERS = {
    "DrwaControllerFuzzer": "what a shell may ask for, and the kernel's files may hold",
    "DrwaSocketsFuzzer": "the answers of inet_diag",
    "DrwaUplinkFuzzer": "what a client may ask of uplinks, and the answers of rtnetlink",
}
SOURCES = [
    "DrwaController.cpp",
    "DrwaCounters.cpp",
    "DrwaNetlink.cpp",
    "DrwaSockets.cpp",
    "DrwaUplink.cpp",
]
# The controller's files; on a disk they would take most of the time.
MEMORY = Path("/dev/shm")
# A process's share: progress shows after each, and none runs long enough to grow in memory.
SHARE_S = 60


class FuzzError(Exception):
    """A fuzzer stopped; the text says where and how to repeat it."""


class Result(NamedTuple):
    """What a fuzzer did; `edges` are those of the control flow that its corpus reaches."""

    executions: int
    cpu_s: float
    edges: int


def fuzz(name: str, limit: str, *corpora: Path) -> tuple[int, int]:
    """Runs a fuzzer up to a limit, an option of libFuzzer; returns the executions and the edges.

    What it finds goes to the first corpus. Raises FuzzError with all that it said.
    """
    program = building.make(name)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        done = subprocess.run(
            [
                program,
                limit,
                f"-artifact_prefix={building.OUT}/",
                "-max_len=2048",
                "-len_control=0",
                "-timeout=10",
                "-print_final_stats=1",
                *corpora,
            ],
            env=os.environ | {"TMPDIR": scratch, "ASAN_OPTIONS": "quarantine_size_mb=16"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    executed = re.search(r"number_of_executed_units: (\d+)", done.stdout)
    if done.returncode or not executed:
        # Both ends: it names its seed first.
        raise FuzzError(f"{program}: {done.stdout[:1000]}\n...\n{done.stdout[-4000:]}")
    edges = [int(count) for count in re.findall(r" cov: (\d+) ", done.stdout)]
    return int(executed[1]), max(edges)


def fuzz_for(name: str, minutes: float) -> Result:
    """Fuzzes for minutes of CPU time, from what the repository's corpus and earlier runs have."""
    found = building.OUT / "corpus" / name
    kept = CORPUS / name
    for folder in found, kept:
        folder.mkdir(parents=True, exist_ok=True)
    building.make(name)
    executions, edges, spent_s = 0, 0, 0.0
    before_s = cpu_s()
    while spent_s < minutes * 60:
        share_s = max(1, round(min(minutes * 60 - spent_s, SHARE_S)))
        count, edges = fuzz(name, f"-max_total_time={share_s}", found, kept)
        executions += count
        spent_s = cpu_s() - before_s
        print(f"{name}: {executions:,} executions, {edges} edges", flush=True)
    return Result(executions, spent_s, edges)


def cpu_s() -> float:
    """What the processes started here have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(name: str) -> None:
    """Makes the repository's corpus the smallest that reaches every edge that was found."""
    kept = CORPUS / name
    with tempfile.TemporaryDirectory() as scratch:
        merged = Path(scratch) / "merged"
        merged.mkdir()
        options = ["-merge=1", "-use_counters=0", "-max_len=2048"]
        subprocess.run(
            [building.make(name), *options, merged, kept, building.OUT / "corpus" / name],
            env=os.environ | {"TMPDIR": scratch},
            capture_output=True,
            check=True,
        )
        shutil.rmtree(kept)
        shutil.copytree(merged, kept)


def report(results: dict[str, Result], minutes: float) -> str:
    rows = ""
    for name, result in results.items():
        files = list((CORPUS / name).iterdir())
        size = sum(path.stat().st_size for path in files)
        rows += (
            f"| {name} | {FUZZERS[name]} | {result.executions:,} | "
            f"{result.executions / result.cpu_s:,.0f} | {result.edges} | "
            f"{len(files)} inputs, {size:,} bytes |\n"
        )
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update((building.NETD / "src/server/drwa" / source).read_bytes())
    compiler = subprocess.run(["clang++", "--version"], capture_output=True, text=True, check=True)
    return f"""\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# fuzz
libFuzzer with address and undefined behaviour sanitizers on {", ".join(SOURCES)}
(sha256 {digest.hexdigest()[:12]}), by {compiler.stdout.splitlines()[0]}. Without a finding:

| fuzzer | input | executions | for a second of CPU time | edges | corpus |
|---|---|--:|--:|--:|---|
{rows}
Repeat it with `netd_patches/tests/fuzz_netd.py --minutes {minutes:g} --record`.
"""


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=1, help="of CPU time for each fuzzer (default: 1)"
    )
    parser.add_argument(
        "--record", action="store_true", help=f"keep the corpus, and write {RESULT.name}"
    )
    options = parser.parse_args()
    try:
        results = {name: fuzz_for(name, options.minutes) for name in FUZZERS}
    except FuzzError as error:
        print(error, file=sys.stderr)
        return 1
    if options.record:
        for name in FUZZERS:
            keep(name)
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(report(results, options.minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
