# SPDX-License-Identifier: GPL-2.0-only
"""Several runs in parallel, one guest per CPU."""

import gzip
import hashlib
import json
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from drwalab import guest, kernels, quicstacks, results
from drwalab.guest import Cancelled
from drwalab.kernels import Kernel
from drwalab.sources import cache_dir
from drwalab.spec import RunSpec

SHOW_S = 0.2
PCAPS = ("server.pcap", "phone.pcap")
# What decides, besides the kernel, the agent and the scheme, which result a command has.
DECIDING = ("guest.py", "network.py", "results.py", "traces.py")


Builds = dict[tuple[str, str], Kernel]

T = TypeVar("T")
# Takes what tells it to end, and what to tell of the seconds of its guest that are done.
Job = Callable[[threading.Event, guest.Progress], T]


def find_kernels(specs: Sequence[RunSpec]) -> Builds:
    """The builds that these runs need; raises KernelMissing, which names the command to run.

    Raises StackError in the same way, where a neighbour's stack is missing.
    """
    if any(spec.scheme.module for spec in specs):
        kernels.need("insmod", "kmod")
    if any(spec.client and spec.client.nat for spec in specs):
        kernels.need("nft", "nftables")
    quicstacks.versions([each.kind for spec in specs for each in spec.neighbours])
    wanted = dict.fromkeys((spec.kernel, spec.flavour) for spec in specs)
    return {key: kernels.find(*key) for key in wanted}


def run_specs(
    specs: Sequence[RunSpec],
    progress: bool = True,
    reuse: bool = False,
    builds: Builds | None = None,
    beside_idle: bool = True,
) -> list[dict[str, Any]]:
    """The results of these runs, in their order; with reuse, those of earlier runs where possible.

    Each has the delay of its idle link, which is run once for all that share the link, and kept;
    without beside_idle, it is not.
    Raises KernelMissing before any guest boots, and GuestError when one fails (the rest end then).
    """
    builds = builds or find_kernels(specs)
    agent = kernels.agent()
    idle = idle_of(specs) if beside_idle else []
    everything = [*specs, *dict.fromkeys(idle)]

    def job(spec: RunSpec, reuse: bool) -> Job[dict[str, Any]]:
        kernel = builds[spec.kernel, spec.flavour]
        kept = kept_path(spec, kernel, agent) if reuse else None

        def run(cancel: threading.Event, reached: guest.Progress) -> dict[str, Any]:
            if kept and kept.exists():
                return read_kept(kept)
            result = run_guest(spec, kernel, agent, cancel, reached)
            if kept:
                keep(kept, result)
            return result

        return run

    jobs = [job(spec, reuse or number >= len(specs)) for number, spec in enumerate(everything)]
    found = run_jobs(jobs, [spec.duration_us / 1e6 for spec in everything], progress)
    idle_results = dict(zip(everything[len(specs) :], found[len(specs) :], strict=True))
    for result, link in zip(found, idle, strict=False):
        results.add_idle(result, idle_results[link])
    return found[: len(specs)]


def run_guest(
    spec: RunSpec, kernel: Kernel, agent: Path, cancel: threading.Event, reached: guest.Progress
) -> dict[str, Any]:
    """One run, whose idle link is not looked at."""
    folder = guest.run(spec, kernel, agent, cancel, reached)
    try:
        result = results.read(folder, spec, kernel)
        if spec.pcap_dir:
            _copy_captures(folder, spec.pcap_dir)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def idle_of(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """The idle run of each one's link."""
    unpatched = {spec.kernel for spec in specs if spec.flavour == "base"}
    return [_idle(spec, unpatched) for spec in specs]


def _idle(spec: RunSpec, unpatched: Collection[str]) -> RunSpec:
    """The idle run of a link, on the kernel without the series where that is there anyway."""
    idle = spec.idle()
    return replace(idle, flavour="base") if idle.kernel in unpatched else idle


def run_jobs(
    jobs: Sequence[Job[T]], durations_s: Sequence[float], progress: bool = True
) -> list[T]:
    """What these jobs return, in their order, each with a guest of so many seconds.

    When one raises, and when the user wants an end, the others are cancelled.
    """
    cancel = threading.Event()
    done_s = [0.0] * len(jobs)

    def one(number: int) -> T:
        def reached(seconds: float) -> None:
            done_s[number] = seconds

        result = jobs[number](cancel, reached)
        done_s[number] = durations_s[number]
        return result

    with ThreadPoolExecutor(max_workers=guest.CPUS) as threads:
        futures = [threads.submit(one, number) for number in range(len(jobs))]
        try:
            _watch(futures, sum(durations_s), done_s, progress)
        finally:
            # A failure, or the user's wish to end: nothing to lose when all are done.
            cancel.set()
    failed = next((future.exception() for future in futures if _failed(future)), None)
    if failed:
        raise failed
    return [future.result() for future in futures]


def results_dir() -> Path:
    return cache_dir() / "results"


def kept_path(spec: RunSpec, kernel: Kernel, agent: Path) -> Path:
    """Where a run's result is kept, by everything that it depends on."""
    code = sorted(Path(__file__).parent.glob("*.py"))
    links = [link.trace.sha256 for link in (spec.down, spec.up) if link and link.trace]
    words = [kernel.key, agent.parent.name, spec.command(), repr(spec.scheme), *links]
    if spec.scheme.bpf:
        words.append(kernels.bpf().name)
    words += quicstacks.key_words([each.kind for each in spec.neighbours])
    digest = hashlib.sha256("\n".join(words).encode())
    for path in code:
        if path.name in DECIDING:
            digest.update(path.read_bytes())
    return results_dir() / f"{digest.hexdigest()[:24]}.json.gz"


def fresh(specs: Sequence[RunSpec], builds: Builds) -> set[RunSpec]:
    """Those that were not run before."""
    agent = kernels.agent()

    def there(spec: RunSpec) -> bool:
        return kept_path(spec, builds[spec.kernel, spec.flavour], agent).exists()

    return {spec for spec in specs if not there(spec)}


def keep(path: Path, result: dict[str, Any]) -> None:
    """Writes it so that no half of it is ever seen; the same result gives the same bytes."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(gzip.compress(json.dumps(result).encode(), compresslevel=4, mtime=0))
    Path(file.name).replace(path)


def read_kept(path: Path) -> dict[str, Any]:
    result = json.loads(gzip.decompress(path.read_bytes()))
    assert isinstance(result, dict)
    return result


def _failed(job: Future[T]) -> bool:
    return not isinstance(job.exception(), Cancelled | None)


def _watch(jobs: list[Future[T]], total_s: float, done_s: list[float], progress: bool) -> None:
    """Shows progress until all are done, or one has failed."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        disable=not (progress and console.is_terminal),
        transient=True,
    )
    lines = progress and not console.is_terminal and len(jobs) > 1
    said = 0
    with bar, _terminated():
        task: TaskID = bar.add_task("", total=total_s)
        while True:
            ended, running = wait_for(jobs, timeout=SHOW_S)
            finished = len(ended)
            bar.update(
                task,
                completed=sum(done_s),
                description=f"{finished} of {len(jobs)} runs",
            )
            if lines and finished > said:
                said = finished
                print(f"{finished} of {len(jobs)} runs", file=sys.stderr, flush=True)
            if not running or any(_failed(job) for job in ended):
                return


class _terminated:
    """Takes SIGTERM as Ctrl-C, so that it ends the guests too."""

    def __enter__(self) -> None:
        self._before = None
        # Only the main thread may set handlers, and only there do signals arrive.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)


def _copy_captures(folder: Path, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name in PCAPS:
        with suppress(FileNotFoundError):
            shutil.copyfile(folder / name, into / name)
