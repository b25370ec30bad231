# SPDX-License-Identifier: Apache-2.0
"""Breaks the product in the ways of mutants.toml, one at a time, and tells which test notices.

That happens in copies of the work tree, with a cache for kernels of their own. All are removed at
the end.
"""

import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer
from rich.console import Console

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
sys.path.append(str(TOP / "kernel" / "lab"))

from drwalab.sources import cache_dir  # noqa: E402

MUTANTS = HERE / "mutants.toml"
TABLE = HERE / "results" / "mutation.md"
RESULTS = TOP / "out" / "mutation.json"
REPORT = "out/mutation.xml"
# What the cache has of these is for one state of the product.
OWN_CACHE = ("kernels", "logs", "results", "runs", "trees")
POLL_S = 0.1
TIME_LIMIT_S = 1800.0
# For pytest to end its guests
GRACE_S = 20.0
# A mutant's Java does not live long enough to pay back what optimizing it costs.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHOWN_TESTS = 3
SURVIVED = "**survived**"
NOT_ASKED = "not asked yet"
SHOWN_LENGTH = 70
SHOWN_LINES = 15


class MutationError(Exception):
    """Something else than a test that fails; the text says what."""


class Stopped(Exception):
    """The user wants no more."""


def _pytest(*arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "--config-file=kernel/lab/pyproject.toml"),
        *("-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}"),
        *arguments,
    ]


def _make_netd(*targets: str) -> list[str]:
    jobs = f"--jobs={len(os.sched_getaffinity(0))}"
    makefile = ["--file=netd_patches/Makefile", "OUT=out/netd"]
    return ["make", "--silent", jobs, *makefile, *(f"out/netd/{target}" for target in targets)]


@dataclass(frozen=True)
class Suite:
    """Tests that run together: what they need built, their command, and its JUnit reports.

    What prepares a tree runs once, ahead of all mutants.
    """

    test: list[str]
    prepare: list[str] = field(default_factory=list)
    build: list[str] = field(default_factory=list)
    # The line and flavour that its guests boot
    kernel: tuple[str, str] | None = None
    reports: str = REPORT

    def builds(self) -> list[list[str]]:
        """All commands that have to succeed before the tests can tell anything."""
        commands = [self.build] if self.build else []
        if self.kernel:
            line, flavour = self.kernel
            lab = ["kernel/lab/lab", "kernel", "build", "--kernel", line, "--flavour", flavour]
            commands.append(lab)
        return commands


_LAW = "import sys; sys.path += ['kernel/tests', 'kernel/lab']; import law; law.library()"


_BPF = "import sys; sys.path.insert(0, 'kernel/lab'); from drwalab import kernels; kernels.bpf()"
_BUILD_BPF = [sys.executable, "-c", _BPF]


_COMPILE_JAVA = ["frameworks/run-tests", "15", "-DskipTests"]
# What the guests of most suites boot
_KERNEL = ("6.12", "drwa")


def _java(tests: str, kernel: tuple[str, str] | None = None, compiler: str = "compile") -> Suite:
    """Tests on Android 15's framework, which are compiled once; a mutant costs its own class."""
    maven = ["mvn", "--quiet", "--batch-mode", "--offline", "--file=frameworks", "-Pandroid-15"]
    return Suite(
        [*maven, f"-Dtest={tests}", compiler, "surefire:test"],
        prepare=_COMPILE_JAVA,
        kernel=kernel,
        reports="out/frameworks/android-35/surefire-reports/TEST-*.xml",
    )


def _host_side(test: str) -> Suite:
    # Mutants are among the tests, too
    return _java(f"com.android.drwa.hostside.{test}", _KERNEL, "test-compile")


def _forms(form: str) -> list[str]:
    """What a form of the law does without the series; needs no other kernel beside its own."""
    names = (
        "rival or small_segments or seldom or without_timestamps or hole or 64_kb or lets_go or "
        "gives_back or ungoverned or chose or deliveries or bursts or upload"
    )
    return _pytest(
        *("kernel/lab/tests/test_forms.py", "-m", "lines"),
        *("-k", f"{form}-6.12 and ({names} or start)"),
    )


def _bpf(tests: list[str]) -> Suite:
    """In guests without the series."""
    return Suite(tests, build=_BUILD_BPF, kernel=("6.12", "bpf"))


def _wire(ip: str) -> Suite:
    tests = _pytest("cts_tests/kernel/tests", "-k", f"6.12 and {ip}")
    return Suite(tests, kernel=_KERNEL)


SUITES = {
    "policy": _java("Drwa*Test,!DrwaStateMachineTest,!DrwaConcurrencyTest"),
    # Mutants are among these tests, too
    "device-side": _java("com.android.drwa.cts.*Test", compiler="test-compile"),
    "patches": Suite(_pytest("frameworks/series/tests")),
    "netd": Suite(
        _pytest("netd_patches/tests/test_netd.py", "-k", "unit or range"),
        build=_make_netd("drwa_test"),
    ),
    "netd-guest": Suite(
        _pytest("netd_patches/tests/test_netd_guest.py", "-k", "6.12"),
        build=_make_netd("drwa_kernel_test", "drwactl"),
        kernel=_KERNEL,
    ),
    "law": Suite(
        _pytest("kernel/tests/test_core.py", "kernel/tests/test_recovery.py"),
        build=[sys.executable, "-c", _LAW],
    ),
    "law-model": Suite(_pytest("kernel/tests/test_model.py")),
    "cost": Suite(_pytest("kernel/tests/test_cost.py")),
    "gate": Suite(
        _pytest("kernel/tests/test_up.py", "kernel/tests/test_kunit_suites.py", "-k", "not ipv4")
    ),
    "gate-modem": Suite(_pytest("kernel/lab/tests/test_uplink.py", "-k", "bearer"), kernel=_KERNEL),
    "gate-selftest": Suite(
        _pytest("kernel/lab/tests/test_gate_selftest.py", "-k", "6.12 and drwa and several"),
        kernel=_KERNEL,
    ),
    "knob": Suite(
        _pytest("kernel/lab/tests/test_knob.py", "-k", "test_knob and 6.12"), kernel=_KERNEL
    ),
    "bpf": _bpf(_forms("drwa-tc")),
    "bpf-clients": _bpf(_pytest("kernel/lab/tests/test_client.py", "-m", "lines", "-k", "tc")),
    "bpf-wire": _bpf(
        _pytest("cts_tests/kernel/tests", "-m", "lines", "-k", "6.12 and bpf and Ipv4")
    ),
    "bpf-quic": _bpf(_pytest("kernel/lab/tests/test_quic.py")),
    "bpf-packets": Suite(_pytest("kernel/bpf/tests/test_tc.py"), build=_BUILD_BPF),
    "bpf-aqm": Suite(_pytest("kernel/bpf/tests/test_aqm.py")),
    "bpf-loader": Suite(_pytest("kernel/bpf/tests/test_tc_loader.py"), build=_BUILD_BPF),
    "module": Suite(_forms("drwa-module"), kernel=("6.12", "module")),
    # Beside the series, whose kernel other suites have built
    "module-same": Suite(
        _pytest("kernel/lab/tests/test_forms.py", "-m", "lines", "-k", "sends_what or closes_the"),
        kernel=("6.12", "module"),
    ),
    "module-same-older": Suite(
        _pytest("kernel/lab/tests/test_forms.py", "-m", "lines", "-k", "sends_what and not 6.12"),
        kernel=("6.1", "module"),
    ),
    "module-table": Suite(
        _pytest("kernel/lab/tests/test_module.py", "-m", "lines", "-k", "short_connections"),
        kernel=("6.12", "module"),
    ),
    "hooks": Suite(_forms("drwa-hooks"), kernel=("6.12", "vendor")),
    "lab": Suite(
        _pytest(
            *(f"kernel/lab/tests/test_{name}.py" for name in ("campaign", "compare", "results")),
            *("-m", "not guest and not lines"),
        )
    ),
    "interrupted": Suite(_pytest("device/tests/test_interrupted.py", "-k", "signals_while")),
    "check": Suite(_pytest("cts_tests/tests/test_check.py")),
    "wire-4": _wire("Ipv4"),
    "wire-6": _wire("Ipv6"),
    # All that changes there makes the recorded results old, which says nothing.
    "sepolicy": Suite(_pytest("sepolicy/tests", "-k", "not results_are")),
    "product": Suite(_pytest("device/product/tests")),
    "graph": Suite(_pytest("device/tests/test_graph.py")),
    "doctor": Suite(_pytest("device/tests/test_doctor.py", "-k", "not real_kernel")),
    "tool": Suite(_pytest("device/tests/test_tool.py", "device/tests/test_places.py")),
    # The copies are no clones, whose files git would list.
    "series": Suite(_pytest("kernel/lab/tests/test_mkseries.py", "-k", "not repository")),
    "host-side-knob": _host_side("KnobTest"),
    "host-side-dumpsys": _host_side("DumpsysTest"),
    "host-side-restart": _host_side("RestartTest"),
    "host-side-switch": _host_side("SwitchTest"),
    "host-side-uplink": _host_side("UplinkTest"),
    "e2e": Suite(
        _pytest("cts_tests/e2e/tests", "-k", "test_step"),
        prepare=_COMPILE_JAVA,
        build=_make_netd("drwa_netd"),
        kernel=_KERNEL,
    ),
}


@dataclass(frozen=True)
class Mutant:
    """A way to break the product: a text of a file that becomes another one.

    Each of suites has to notice.
    """

    name: str
    layer: str
    what: str
    file: str
    old: str
    new: str
    suites: list[str]

    def broken(self, text: str) -> str:
        """The file's text, broken; raises MutationError unless old is in it exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise MutationError(f"{self.name}: {self.file} has the text {count} times, not once")
        return text.replace(self.old, self.new)

    def apply(self, tree: Path) -> None:
        """Breaks a tree."""
        path = tree / self.file
        path.write_text(self.broken(path.read_text()))


def read_mutants(path: Path = MUTANTS) -> list[Mutant]:
    """The mutants; raises MutationError for one that cannot be."""
    mutants = []
    for name, entry in tomllib.loads(path.read_text()).items():
        mutant = Mutant(name=name, **entry)
        if unknown := set(mutant.suites) - set(SUITES):
            raise MutationError(f"{name}: unknown suite {', '.join(sorted(unknown))}")
        if mutant.old == mutant.new or not mutant.suites:
            raise MutationError(f"{name}: it changes nothing, or asks no suite")
        mutants.append(mutant)
    return mutants


@dataclass(frozen=True)
class Result:
    """What became of a mutant: the tests that noticed, by suite. A problem means no answer."""

    name: str
    tests: dict[str, list[str]]
    seconds: float
    problem: str = ""

    @property
    def caught(self) -> bool:
        return not self.problem and all(self.tests.values())


def tracked(top: Path) -> list[str]:
    """The files of a work tree that git has or would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listing.split("\0") if name and (top / name).is_file())


def state_of(top: Path) -> str:
    """A hash of what results depend on: all files but documents and records."""
    digest = hashlib.sha256()
    for name in tracked(top):
        if not name.endswith(".md") and "/results/" not in name:
            data = (top / name).read_bytes()
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:12]


class Trees:
    """Copies of the work tree, each for one mutant at a time, and the cache of their builds."""

    def __init__(self, folder: Path, count: int, suites: Sequence[Suite]) -> None:
        self.cache = folder / "cache"
        self._names = tracked(TOP)
        self._whole = folder / "whole"
        self._free: queue.Queue[Path] = queue.Queue()
        self._fill_cache(suites)
        self.all = [self._whole, *(folder / f"tree-{number}" for number in range(count))]
        for tree in self.all:
            for name in self._names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(TOP / name, tree / name)
            (tree / "out").mkdir()
        del self.all[0]
        for tree in self.all:
            self._free.put(tree)

    def _fill_cache(self, suites: Sequence[Suite]) -> None:
        """Links to what the user's cache has; of a kernel's build tree, a copy to go on from."""
        real, own = cache_dir(), self.cache / "drwa"
        for name in OWN_CACHE:
            (own / name).mkdir(parents=True)
        for entry in real.iterdir():
            if entry.name not in OWN_CACHE:
                (own / entry.name).symlink_to(entry)
        for entry in (real / "kernels").glob("[0-9]*"):
            (own / "kernels" / entry.name).symlink_to(entry)
        for name in {"-".join(suite.kernel) for suite in suites if suite.kernel}:
            tree = real / "trees" / name
            if tree.exists():
                subprocess.run(["cp", "-a", "--reflink=auto", tree, own / "trees"], check=True)

    @contextmanager
    def lease(self) -> Iterator[Path]:
        """A tree that nobody else has; it is as it was when the block ends."""
        tree = self._free.get()
        try:
            yield tree
        finally:
            for name in self._names:
                whole = (self._whole / name).read_bytes()
                if (tree / name).read_bytes() != whole:
                    (tree / name).write_bytes(whole)
            self._free.put(tree)


class Bench:
    """Runs suites in trees."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self.stop = threading.Event()
        self._environment = os.environ | {
            "XDG_CACHE_HOME": str(trees.cache),
            "JAVA_TOOL_OPTIONS": SHORT_LIVED_JAVA,
        }

    def failures(self, name: str, tree: Path) -> list[str]:
        """The tests of a suite that fail; raises MutationError when that cannot be told."""
        suite = SUITES[name]
        for command in suite.builds():
            code, said = self._run(command, tree)
            if code:
                raise MutationError(f"{name} does not build:\n{said}")
        for old in tree.glob(suite.reports):
            old.unlink()
        code, said = self._run(suite.test, tree)
        ran, failed = 0, []
        for report in sorted(tree.glob(suite.reports)):
            for case in ElementTree.parse(report).iter("testcase"):
                ran += case.find("skipped") is None
                if case.find("failure") is not None or case.find("error") is not None:
                    owner = case.get("classname", "").rpartition(".")[2]
                    failed.append(f"{owner}.{case.get('name')}".removeprefix("."))
        if not ran or bool(code) != bool(failed):
            raise MutationError(f"{name} ends with {code} after {ran} tests:\n{said}")
        return failed

    def judge(self, mutant: Mutant) -> Result:
        """Breaks a tree and asks the mutant's suites."""
        start = time.monotonic()
        tests: dict[str, list[str]] = {}
        problem = ""
        with self.trees.lease() as tree:
            try:
                mutant.apply(tree)
                for name in mutant.suites:
                    tests[name] = self.failures(name, tree)
            except MutationError as error:
                problem = str(error)
        return Result(mutant.name, tests, round(time.monotonic() - start, 1), problem)

    def prepare(self, tree: Path, suites: Sequence[str]) -> None:
        """Does for a tree what suites need once."""
        for command in {tuple(SUITES[name].prepare) for name in suites} - {()}:
            code, said = self._run(list(command), tree)
            if code:
                raise MutationError(f"{command[0]} ends with {code}:\n{said}")

    def check_unbroken(
        self, tree: Path, suites: Sequence[str], said: Callable[[str], None]
    ) -> None:
        """Raises MutationError unless every suite passes on the product as it is."""
        for name in suites:
            start = time.monotonic()
            if failed := self.failures(name, tree):
                raise MutationError(f"{name} fails on the product as it is: {', '.join(failed)}")
            said(f"{name} passes on the product as it is ({time.monotonic() - start:.0f} s)")

    def _run(self, command: list[str], tree: Path) -> tuple[int, str]:
        """Exit code and the last lines of a command, which ends with all it started."""
        with (
            tempfile.TemporaryFile("w+", errors="replace") as output,
            subprocess.Popen(
                command,
                cwd=tree,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            problem = self._wait(process)
            if isinstance(problem, Exception):
                raise problem
            output.seek(0)
            lines = output.read().splitlines()
            return process.returncode, "\n".join(lines[-SHOWN_LINES:])

    def _wait(self, process: subprocess.Popen[bytes]) -> Exception | None:
        deadline = time.monotonic() + TIME_LIMIT_S
        problem: Exception | None = None
        while process.poll() is None and problem is None:
            if self.stop.wait(POLL_S):
                problem = Stopped()
            elif time.monotonic() > deadline:
                problem = MutationError(f"no end within {TIME_LIMIT_S:.0f} s")
        if problem:
            # pytest ends its guests, which are sessions of their own, when it is interrupted.
            for number in (signal.SIGINT, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(GRACE_S)
        return problem


def read_results(path: Path, state: str) -> dict[str, Result]:
    """Earlier results by name; none if they are of another state of the product."""
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    if kept["state"] != state:
        return {}
    return {entry["name"]: Result(**entry) for entry in kept["results"]}


def write_results(path: Path, state: str, results: Sequence[Result]) -> None:
    """Keeps results for --resume and --record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"state": state, "results": [asdict(result) for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def tests_shown(tests: Sequence[str]) -> str:
    """The tests that noticed, or the first of them and how many more."""
    more = len(tests) - SHOWN_TESTS
    shown = (
        test if len(test) <= SHOWN_LENGTH else f"{test[:SHOWN_LENGTH]}…"
        for test in tests[:SHOWN_TESTS]
    )
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


# What a table shows for a mutant and a suite
Cells = dict[tuple[str, str], str]


def cells_of(mutants: Sequence[Mutant], results: dict[str, Result]) -> Cells:
    """Of the suites that were asked; what cannot be told has survived."""
    cells = {}
    for mutant in mutants:
        if result := results.get(mutant.name):
            for suite in mutant.suites:
                if suite in result.tests or result.problem:
                    shown = tests_shown(result.tests.get(suite, []))
                    cells[mutant.name, suite] = shown.replace("|", "\\|") or SURVIVED
    return cells


def recorded(path: Path) -> Cells:
    """What a table in the repository shows; nothing if there is none."""
    rows = path.read_text().splitlines() if path.exists() else []
    cells = {}
    for row in rows:
        if row.startswith("| ") and not row.startswith("| mutant |"):
            name, _, _, suite, tests = row.removeprefix("| ").removesuffix(" |").split(" | ", 4)
            cells[name, suite] = tests
    return cells


def table(mutants: Sequence[Mutant], cells: Cells) -> str:
    """The document for the repository."""
    shown = {
        mutant.name: {cells.get((mutant.name, suite), NOT_ASKED) for suite in mutant.suites}
        for mutant in mutants
    }
    open_ = sum(NOT_ASKED in tests for tests in shown.values())
    caught = sum(not tests & {NOT_ASKED, SURVIVED} for tests in shown.values())
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        "# What notices when the product is broken",
        "",
        f"{caught} of {len(mutants)} mutants were caught by all suites that are named with them;",
        f"{open_} have a suite that was not asked yet. Made by `cts_tests/mutate --record`,",
        "which leaves the rows of mutants that it was not asked for as an earlier run wrote them.",
        "",
        "| mutant | layer | what is wrong | suite | tests that fail |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {mutant.name} | {mutant.layer} | {mutant.what} | {suite} "
        f"| {cells.get((mutant.name, suite), NOT_ASKED)} |"
        for mutant in mutants
        for suite in mutant.suites
    ]
    return "\n".join(lines) + "\n"


def _chosen(mutants: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    if unknown := set(only) - {mutant.name for mutant in mutants}:
        raise typer.BadParameter(f"no such mutant: {', '.join(sorted(unknown))}")
    return [mutant for mutant in mutants if not only or mutant.name in only]


def _list(mutants: Sequence[Mutant]) -> None:
    width = max(len(mutant.name) for mutant in mutants)
    for mutant in mutants:
        print(f"{mutant.name:{width}}  {mutant.layer}: {mutant.what} ({', '.join(mutant.suites)})")


def _judge_all(
    mutants: Sequence[Mutant], jobs: int, console: Console, done: Callable[[Result], None]
) -> None:
    """Gives a result for each mutant, in the order in which they come."""
    names = [name for name in SUITES if any(name in mutant.suites for mutant in mutants)]

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="mutation-") as folder:
        say("copying the work tree")
        trees = Trees(Path(folder), jobs, [SUITES[name] for name in names])
        bench = Bench(trees)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(lambda tree: bench.prepare(tree, names), trees.all))
                pool.submit(bench.check_unbroken, trees.all[0], names, say).result()
                for number, future in enumerate(
                    as_completed([pool.submit(bench.judge, mutant) for mutant in mutants]), start=1
                ):
                    result = future.result()
                    verdict = result.problem or "; ".join(
                        f"{suite}: {tests_shown(tests) or 'survived'}"
                        for suite, tests in result.tests.items()
                    )
                    say(
                        f"{number}/{len(mutants)} {result.name}: {verdict} ({result.seconds:.0f} s)"
                    )
                    done(result)
            except BaseException:
                bench.stop.set()
                pool.shutdown(cancel_futures=True)
                raise


app = typer.Typer(add_completion=False)


@app.command()
def main(
    only: Annotated[
        list[str] | None, typer.Option(help="This mutant alone; may be given more than once.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the mutants.")] = False,
    jobs: Annotated[int, typer.Option(help="How many mutants at a time.", min=1, max=16)] = 1,
    json_: Annotated[Path, typer.Option("--json", help="Where to keep the results.")] = RESULTS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run of the same sources was stopped.")
    ] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Write the results into cts_tests/results/mutation.md."),
    ] = False,
) -> None:
    """Break the product in one way after the other, and tell which test notices.

    Ends with 0 if all are noticed, 1 if one is not or cannot be told, 2 if the options are wrong.
    """
    console = Console(stderr=True)
    # Also where the shell that started it had it ignore Ctrl-C
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        mutants = read_mutants()
        for mutant in mutants:
            mutant.broken((TOP / mutant.file).read_text())
        chosen = _chosen(mutants, only or [])
        if list_:
            _list(chosen)
            return
        state = state_of(TOP)
        results = read_results(json_, state) if resume or only else {}
        todo = [m for m in chosen if only or m.name not in results or results[m.name].problem]

        def done(result: Result) -> None:
            results[result.name] = result
            ordered = [results[mutant.name] for mutant in mutants if mutant.name in results]
            write_results(json_, state, ordered)

        if todo:
            _judge_all(todo, jobs, console, done)
        if record:
            earlier = {k: tests for k, tests in recorded(TABLE).items() if k[0] not in results}
            cells = earlier | cells_of(mutants, results)
            TABLE.parent.mkdir(exist_ok=True)
            TABLE.write_text(table(mutants, cells))
    except MutationError as error:
        console.print(f"mutate: {error}", style="red", highlight=False, markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("mutate: stopped; --resume goes on", highlight=False)
        raise typer.Exit(130) from None
    print(table(chosen, cells_of(chosen, results)))
    if not all(results[mutant.name].caught for mutant in chosen):
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
