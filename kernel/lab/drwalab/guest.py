# SPDX-License-Identifier: GPL-2.0-only
"""Boots one guest for one run or script, pinned to a CPU that no other guest of this user has."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from drwalab import kernels, network
from drwalab.kernels import Kernel
from drwalab.sources import cache_dir
from drwalab.spec import RunSpec

CPUS = len(os.sched_getaffinity(0))
MEMORY = "512M"
# What a guest really uses stays well below that.
MEMORY_ROOM = 256 << 20

# A guest reports every second of its time; at 1 Gb/s that is a few seconds of ours, with a CPU of
# its own.
STALL_S = 60.0
# A script may be silent for as long as one of its steps takes.
SCRIPT_STALL_S = 300.0
# So many times as long where others have the CPU, and no longer: it may hang there, too.
CROWDED_MOST = 10
POLL_S = 0.05
LOG_LINES = 12
START_NS = 1_700_000_000 * 10**9

# What a kernel says when it finds a mistake in itself.
COMPLAINT = re.compile(
    r"WARNING:|BUG:|BUG at|KASAN:|UBSAN:|INFO: |Oops|general protection|Call Trace:"
    r"|suspicious RCU|unreferenced object"
)
# In 6.1 User Mode Linux itself walks the memory areas of a forking process without a lock.
NOT_OURS = re.compile(
    r"WARNING: suspicious RCU usage\n(?:.*\n){2}.*lib/maple_tree\.c.*\n(?:.*\n)*?"
    r".*Call Trace:\n(?:<4> \[.*\n)*?.*force_flush_all.*\n(?:<4> \[.*\n)*"
)

Progress = Callable[[float], None]


class GuestError(Exception):
    """A guest that did not come to its end; the text has the last lines of its console."""


class Cancelled(Exception):
    """The user stopped the lab."""


@contextmanager
def leased_cpu(cancel: threading.Event) -> Iterator[int]:
    """A CPU of ours that no guest has, waited for if need be."""
    folder = cache_dir() / "locks"
    folder.mkdir(exist_ok=True)
    while not cancel.is_set():
        for cpu in sorted(os.sched_getaffinity(0)):
            with (folder / f"cpu-{cpu}").open("w") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield cpu
                return
        cancel.wait(POLL_S)
    raise Cancelled


def run(
    spec: RunSpec, kernel: Kernel, agent: Path, cancel: threading.Event, progress: Progress
) -> Path:
    """Boot, wait for the end, and return the folder with what the agent wrote.

    The folder is the caller's then. progress gets the seconds of the run that are done.
    """

    def write(folder: Path) -> None:
        _write_inputs(spec, kernel, folder)

    return run_inputs(
        spec.name, write, kernel, agent, cancel, progress, seed=spec.seed, stall_s=STALL_S
    )


def run_script(
    script: str,
    kernel: Kernel,
    agent: Path,
    files: Sequence[Path] = (),
    parameters: str = "",
    memory: str = MEMORY,
) -> Path:
    """Boot, run a shell script as root of the guest, and return the folder as run() does.

    The folder is the script's working folder; it has the given files, and the script's output in
    console. All else of the host's that the guest sees is read-only, and its TMPDIR is its own.
    """

    def write(folder: Path) -> None:
        (folder / "script.sh").write_text(script)
        for path in files:
            shutil.copy(path, folder)

    cancel = threading.Event()
    return run_inputs(
        "script",
        write,
        kernel,
        agent,
        cancel,
        lambda _: None,
        stall_s=SCRIPT_STALL_S,
        parameters=parameters,
        memory=memory,
    )


def run_inputs(
    name: str,
    write: Callable[[Path], None],
    kernel: Kernel,
    agent: Path,
    cancel: threading.Event,
    progress: Progress,
    *,
    stall_s: float,
    seed: int = 1,
    parameters: str = "",
    memory: str = MEMORY,
) -> Path:
    """As run(), with whatever `write` puts into the folder for the agent."""
    with _run_folder() as folder:
        (folder / "agent").symlink_to(agent)
        write(folder)
        with leased_cpu(cancel) as cpu:
            command = [*_command(kernel, cpu, seed, memory), *parameters.split()]
            _boot(name, command, folder, cancel, progress, stall_s)
    return folder


@contextmanager
def _run_folder() -> Iterator[Path]:
    """A folder that stays when the guest came to its end, or may be asked why it did not."""
    runs = cache_dir() / "runs"
    runs.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=runs))
    try:
        yield folder
    except GuestError:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_inputs(spec: RunSpec, kernel: Kernel, folder: Path) -> None:
    (folder / "setup.sh").write_text(network.setup_script(spec))
    if spec.scheme.bpf:
        (folder / Path(network.BPF).name).symlink_to(kernels.bpf())
    if spec.scheme.module:
        name = Path(network.MODULE).name
        (folder / name).symlink_to(kernel.path.with_name(name))
    (folder / "spec").write_text(network.agent_spec(spec))
    for name, text in network.client_scripts(spec).items():
        (folder / name).write_text(text)
    for direction, link in (("down", spec.down), ("up", spec.up)):
        if link and link.trace:
            link.trace.write_native(folder / network.trace_name(direction))


@cache
def _fixed_addresses() -> tuple[str, ...]:
    """A prefix that puts the guest's heap at a fixed place, where the host permits that.

    UML adds the gap before its heap to the guest's memory, whose size decides that of hash tables,
    and so which packets share an IP id counter. Some containers forbid it.
    """
    prefix = ("setarch", "--addr-no-randomize")
    done = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if done.returncode == 0 else ()


def _memory_folder(other: Path) -> Path:
    """Where guests can keep their memory, a file that they execute: a tmpfs with room, if any."""
    for path in (Path("/dev/shm"), Path("/tmp"), other):
        if os.access(path, os.W_OK):
            stat = os.statvfs(path)
            room = stat.f_bavail * stat.f_frsize
            if room >= MEMORY_ROOM * CPUS and not stat.f_flag & os.ST_NOEXEC:
                return path
    return other


def _command(kernel: Kernel, cpu: int, seed: int, memory: str) -> list[str]:
    """The guest's command line, for the run's folder as working folder.

    The kernel feeds it to its random numbers, so it may not depend on where files are.
    """
    here = "/proc/self/cwd"
    return [
        *_fixed_addresses(),
        "taskset",
        "--cpu-list",
        str(cpu),
        str(kernel.path),
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={here}/agent",
        "con0=fd:0,fd:1",
        "con=null",
        "quiet",
        "loglevel=3",
        f"mem={memory}",
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"labseed={seed}",
        "uml_dir=.",
        f"lab_out={here}",
    ]


def _orphan_check() -> list[str]:
    """A prefix that runs nothing once this process has ended.

    A parent that ends before its child asks for the signal sends none (prctl(2), PR_SET_PDEATHSIG).
    """
    return ["sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"', str(os.getpid())]


@contextmanager
def started(
    command: Sequence[str], folder: Path, console: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command in `folder`; ends it and all that it started when the block ends.

    A parent that is killed takes the command with it.
    """
    with (
        console.open("wb") as output,
        subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *_orphan_check(), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=env,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _boot(
    name: str,
    command: Sequence[str],
    folder: Path,
    cancel: threading.Event,
    progress: Progress,
    stall_s: float,
) -> None:
    log = folder / "console"
    env = os.environ | {"TMPDIR": str(_memory_folder(folder))}
    with started(command, folder, log, env) as process:
        problem = _wait(process, log, cancel, progress, stall_s)
    if problem is None and not _complete(folder):
        problem = "ended before the run was complete"
    if problem:
        raise GuestError(f"{name}: the guest {problem} (log: {log}){_tail(log)}")
    complaints = kernel_complaints(folder)
    if complaints:
        shown = "".join(f"\n  {line}" for line in complaints[:LOG_LINES])
        raise GuestError(f"{name}: the guest's kernel complains (log: {folder / 'kmsg'}){shown}")


class Patience:
    """How long a process may be silent: so much time of ours, less what it waited for a CPU."""

    def __init__(self, pid: int, stall_s: float) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._stall_s = stall_s
        self.renew()

    def renew(self) -> None:
        self._since_s = time.monotonic()
        self._ran_ns, self._waited_ns = self._times_ns()

    def is_over(self) -> bool:
        elapsed_s = time.monotonic() - self._since_s
        if elapsed_s < self._stall_s:
            return False
        ran_ns, waited_ns = self._times_ns()
        ran_ns, waited_ns = ran_ns - self._ran_ns, waited_ns - self._waited_ns
        crowded = (ran_ns + waited_ns) / ran_ns if ran_ns > 0 else 1.0
        return elapsed_s >= self._stall_s * min(max(crowded, 1.0), CROWDED_MOST)

    def _times_ns(self) -> tuple[int, int]:
        """What its threads ran, and waited for a CPU, so far; nothing where Linux does not tell."""
        ran_ns = waited_ns = 0
        # A thread, or the process, may end meanwhile.
        with suppress(OSError):
            for path in self._tasks.glob("*/schedstat"):
                ran, waited, _ = path.read_text().split()
                ran_ns += int(ran)
                waited_ns += int(waited)
        return ran_ns, waited_ns


def _wait(
    process: subprocess.Popen[bytes],
    log: Path,
    cancel: threading.Event,
    progress: Progress,
    stall_s: float,
) -> str | None:
    """Wait for the guest's end; returns what is wrong, if anything."""
    seen = 0
    patience = Patience(process.pid, stall_s)
    while process.poll() is None:
        if cancel.wait(POLL_S):
            raise Cancelled
        size = log.stat().st_size
        if size > seen:
            seen = size
            patience.renew()
            progress(_reached(log))
        elif patience.is_over():
            return f"has not moved for {stall_s:.0f} s"
    return None


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _reached(log: Path) -> float:
    """Seconds of the run that the console reports as done."""
    for line in reversed(_lines(log)):
        words = line.split()
        if len(words) == 2 and words[0] == "at" and words[1].isdigit():
            return float(words[1])
    return 0.0


def _complete(folder: Path) -> bool:
    try:
        return (folder / "raw").read_bytes().splitlines()[-1:] == [b"end"]
    except FileNotFoundError:
        return False


def kernel_complaints(folder: Path) -> list[str]:
    """What the guest's kernel and its leak detector, if it has one, object to."""
    said = NOT_OURS.sub("", (folder / "kmsg").read_text(errors="replace"))
    found = [line for line in said.splitlines() if COMPLAINT.search(line)]
    leaks = folder / "kmemleak"
    return found + (_lines(leaks) if leaks.exists() else [])


def _tail(log: Path) -> str:
    lines = [line for line in _lines(log) if line.strip() and not line.startswith("at ")]
    return "".join(f"\n  {line}" for line in lines[-LOG_LINES:])
