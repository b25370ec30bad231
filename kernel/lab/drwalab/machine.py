# SPDX-License-Identifier: GPL-2.0-only
"""Machines of two CPUs, emulated by qemu, that run the series' selftest.

Time is real in them. What a guest of the lab cannot show, they do: races between CPUs, code patched
while another CPU runs it, another architecture.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from drwalab import errors, guest, kernels
from drwalab.guest import COMPLAINT, GuestError
from drwalab.kernels import FLAVOURS, GUEST_DIR, Kernel, KernelError
from drwalab.sources import KERNEL_DIR, Log, cache_dir, download_packages, locked

# The least system that runs the selftest; busybox is there to turn it off.
PACKAGES = (
    *("busybox-static", "coreutils", "dash", "grep", "iproute2", "mawk", "mount", "sed"),
    "util-linux",
)
# What the packages leave to scripts that run when they are set up
LINKS = {"bin/sh": "dash", "usr/bin/awk": "mawk"}
SELFTESTS = "tools/testing/selftests/net"

# Emulated and instrumented, a boot takes half a minute of an idle CPU.
STALL_S = 300.0
POLL_S = 0.2
LOG_LINES = 15


@dataclass(frozen=True)
class Machine:
    debian: str
    qemu: str
    options: tuple[str, ...]
    console: str
    parameters: str = ""


_PC = Machine(
    "amd64",
    "qemu-system-x86_64",
    ("-machine", "pc", "-cpu", "max"),
    "ttyS0",
    "tsc=unstable clocksource=acpi_pm",
)
MACHINES = {
    "smp": _PC,
    "kcsan": _PC,
    "arm64": Machine(
        "arm64", "qemu-system-aarch64", ("-machine", "virt", "-cpu", "cortex-a57"), "ttyAMA0"
    ),
}


def _root(machine: Machine, log: Log) -> Path:
    """A small Debian of the machine's architecture, packed for the kernel to unpack."""
    key = hashlib.sha256(repr((PACKAGES, LINKS)).encode()).hexdigest()[:12]
    home = cache_dir() / "roots" / f"{machine.debian}-{key}"
    packed = home / "root.cpio.gz"
    with locked(f"root-{machine.debian}", log):
        if packed.exists():
            return packed
        home.mkdir(parents=True, exist_ok=True)
        log(f"downloading {', '.join(PACKAGES)} for {machine.debian}")
        with tempfile.TemporaryDirectory(dir=home) as name:
            root = Path(name) / "root"
            root.mkdir()
            for package in download_packages(PACKAGES, machine.debian, Path(name)):
                _run(["dpkg-deb", "--extract", str(package), str(root)])
            for unused in ("usr/share", "var"):
                shutil.rmtree(root / unused, ignore_errors=True)
            for folder in ("dev", "proc", "root", "run", "sys", "tmp"):
                (root / folder).mkdir(exist_ok=True)
            for link, target in LINKS.items():
                if not (root / link).is_symlink():
                    (root / link).symlink_to(target)
            new = Path(name) / "new"
            with new.open("wb") as file:
                subprocess.run(["gzip", "-1"], input=_packed(root), stdout=file, check=True)
            new.rename(packed)
    return packed


def _packed(folder: Path) -> bytes:
    """A folder as an archive that the kernel unpacks, owned by root whoever packs it."""
    names = "\0".join(
        str(path.relative_to(folder)) for path in [folder, *sorted(folder.rglob("*"))]
    )
    return subprocess.run(
        ["cpio", "--null", "--create", "--quiet", "--format=newc", "--owner=0:0"],
        cwd=folder,
        input=names.encode(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def _tests(flavour: str, seconds: int, into: Path) -> None:
    """What is added to the system: its init and the selftest."""
    target = into / "tests"
    target.mkdir(parents=True)
    shutil.copy(GUEST_DIR / "machine" / "init", into / "init")
    (into / "init").chmod(0o755)
    (target / "seconds").write_text(f"{seconds}\n")
    for source in sorted((KERNEL_DIR / "src" / SELFTESTS).iterdir()):
        if source.suffix == ".c":
            gcc = f"{FLAVOURS[flavour].cross}gcc"
            _run([gcc, "-O2", "-Wall", "-static", "-o", str(target / source.stem), str(source)])
        elif source.suffix == ".sh":
            shutil.copy(source, target)
            (target / source.name).chmod(0o755)


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise KernelError(f"{command[0]} is not installed: make test-arch installs it") from None
    if done.returncode:
        raise KernelError(f"{command[0]} failed:\n{done.stderr.strip()}")


def run(kernel: Kernel, seconds: int, log: Log) -> None:
    """Boots the machine, and raises GuestError unless judge() is content."""
    machine = MACHINES[kernel.flavour]
    if not shutil.which(machine.qemu):
        raise KernelError(f"{machine.qemu} is not installed: make test-arch installs it")
    runs = cache_dir() / "runs"
    runs.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=runs, prefix="machine-"))
    with (folder / "initrd").open("wb") as initrd:
        root = _root(machine, log).read_bytes()
        initrd.write(root + bytes(-len(root) % 4))
        with tempfile.TemporaryDirectory() as name:
            _tests(kernel.flavour, seconds, Path(name) / "root")
            initrd.write(_packed(Path(name) / "root"))
    with guest.leased_cpu(threading.Event()) as cpu:
        _boot(machine, kernel, cpu, folder, log)
    console = (folder / "console").read_text(errors="replace")
    judge(f"{kernel.line} {kernel.flavour}", console, f"(log: {folder / 'console'})")
    shutil.rmtree(folder)


def judge(title: str, console: str, where: str) -> None:
    """Raises GuestError unless the kernel kept quiet and every test of the plan passed."""
    complaints = complaints_of(console)
    if complaints:
        raise GuestError(f"{title}: the kernel complains {where}" + _shown(complaints))
    lines = console.splitlines()
    # kernel_log looks at what complaints_of() does, but takes any race for DRWA's.
    failed = [x for x in lines if x.startswith("not ok ") and " kernel_log" not in x]
    if failed:
        raise GuestError(f"{title}: the selftest failed {where}" + _shown(failed))
    plan = re.search(r"^1\.\.(\d+)$", console, re.MULTILINE)
    reported = sum(line.startswith(("ok ", "not ok ")) for line in lines)
    if not plan or reported != int(plan[1]) or "machine: the selftest ended" not in console:
        raise GuestError(f"{title}: the selftest did not run to its end {where}" + _tail(console))


def _boot(machine: Machine, kernel: Kernel, cpu: int, folder: Path, log: Log) -> None:
    command = [
        "taskset",
        "--cpu-list",
        str(cpu),
        machine.qemu,
        *machine.options,
        *("-accel", "tcg,thread=multi", "-smp", "2", "-m", "512M"),
        *("-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot"),
        *("-kernel", str(kernel.path), "-initrd", str(folder / "initrd")),
        "-append",
        f"console={machine.console} rdinit=/init panic=-1 oops=panic {machine.parameters}",
    ]
    console = folder / "console"
    with guest.started(command, folder, console, os.environ) as process:
        _wait(process, console, log)


def _wait(process: subprocess.Popen[bytes], console: Path, log: Log) -> None:
    said = 0
    deadline = time.monotonic() + STALL_S
    while process.poll() is None:
        time.sleep(POLL_S)
        lines = console.read_text(errors="replace").splitlines()
        if len(lines) > said:
            for line in lines[said:]:
                if line.startswith(("machine: ", "ok ", "not ok ")):
                    log(line)
            said = len(lines)
            deadline = time.monotonic() + STALL_S
        elif time.monotonic() > deadline:
            raise GuestError(
                f"the machine has said nothing for {STALL_S:.0f} s (log: {console})"
                + _shown(lines[-LOG_LINES:])
            )


def complaints_of(console: str) -> list[str]:
    """What the kernel objects to; of data races, of which it has its own, those in DRWA."""
    found = []
    for part in re.split(r"^.*={66}$", console, flags=re.MULTILINE):
        race = "BUG: KCSAN:" in part
        if not race or "drwa" in part:
            found += [line for line in part.splitlines() if COMPLAINT.search(line)]
    return found


def _shown(lines: Sequence[str]) -> str:
    return "".join(f"\n  {line}" for line in lines[:LOG_LINES])


def _tail(console: str) -> str:
    return _shown([line for line in console.splitlines() if line.strip()][-LOG_LINES:])


def machine(
    flavours: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="smp, with lockdep; kcsan; arm64. Default: all."),
    ] = None,
    kernel: Annotated[str, typer.Option(metavar="LINE", help="Kernel line.")] = "6.12",
    seconds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Length of the test that turns every knob.")
    ] = 30,
) -> None:
    """Run the series' selftest on emulated machines of two CPUs."""
    console = Console(stderr=True)
    start = time.monotonic()

    def log(line: str) -> None:
        now = int(time.monotonic() - start)
        console.print(f"{now // 60}:{now % 60:02}  {line}", highlight=False, markup=False)

    with errors.reported():
        for name in flavours or MACHINES:
            if name not in MACHINES:
                raise KernelError(f"unknown machine '{name}': choose from {', '.join(MACHINES)}")
            with console.status("") as status:
                built = kernels.build(kernel, name, kernels.Progress(console, status))
            run(built, seconds, log)
            print(f"{kernel} {name}: passed", flush=True)
