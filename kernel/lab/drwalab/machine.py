# SPDX-License-Identifier: GPL-2.0-only
"""Machines of two CPUs, emulated by qemu, that run the selftests of every form of the law.

Time is real in them. What a guest of the lab cannot show, they do: races between CPUs, code patched
while another CPU runs it, another architecture, compiled BPF programs, Debian's own kernels.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from drwalab import errors, guest, kernels, units
from drwalab.guest import COMPLAINT, GuestError
from drwalab.kernels import (
    BPF_DIR,
    FLAVOURS,
    GUEST_DIR,
    MODULE_DIR,
    SELFTEST_COMMON,
    KernelError,
)
from drwalab.sources import KERNEL_DIR, Log, cache_dir, download_packages, get_image, locked
from drwalab.spec import SpecError

# The least system that runs the selftests; busybox is there to turn it off.
PACKAGES = (
    *("busybox-static", "coreutils", "dash", "grep", "iproute2", "libbpf1", "mawk", "mount"),
    *("sed", "util-linux"),
)
# What the selftests use that is no part of Debian's kernel itself
MODULES = ("sch_netem", "veth", "sch_ingress", "cls_bpf")
# What the packages leave to scripts that run when they are set up
LINKS = {"bin/sh": "dash", "usr/bin/awk": "mawk"}
SELFTESTS = "tools/testing/selftests/net"

# Emulated and instrumented, a boot takes half a minute of an idle CPU.
STALL_S = 300.0
POLL_S = 0.2
LOG_LINES = 15
# qemu before 8.1 may run the breakpoint by which the kernel patches a jump after it is gone
# ("accel/tcg: Always lock pages before translation"): none of the kernel's mistakes.
EMULATORS = re.compile(r"\bint3: 0000 \[#1\]")
BOOTS = 3
# Lines of the console that are no kernel's
TOLD = ("machine: ", "ok ", "not ok ", "# ")


@dataclass(frozen=True)
class Machine:
    debian: str
    qemu: str
    options: tuple[str, ...]
    console: str
    parameters: str = ""
    tests: tuple[str, ...] = ("series", "bpf")
    # Two CPUs, or one whose clock tells a nanosecond for each instruction
    cpus: tuple[str, ...] = ("-accel", "tcg,thread=multi", "-smp", "2")


_PC = Machine(
    "amd64",
    "qemu-system-x86_64",
    ("-machine", "pc", "-cpu", "max"),
    "ttyS0",
    # A kernel counts ticks in a delay that it times by the TSC, and panics over too few: where
    # the emulator waits for a CPU, both clocks part.
    "tsc=unstable clocksource=acpi_pm no_timer_check",
)
_ARM64 = Machine(
    "arm64", "qemu-system-aarch64", ("-machine", "virt", "-cpu", "cortex-a57"), "ttyAMA0"
)
MACHINES = {
    "smp": _PC,
    "kcsan": replace(_PC, tests=("series", "bpf", "uplink")),
    "arm64": _ARM64,
    "arm64-module": replace(_ARM64, tests=("module", "uplink")),
    "debian": replace(_PC, tests=("bpf",)),
    "cost": replace(
        _PC,
        parameters="tsc=reliable",
        tests=("cost",),
        cpus=("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"),
    ),
}
# What a kernel that somebody else built runs on, by the architecture's name in Debian, and what it
# may run there
IMAGES = {each.debian: each for each in (_PC, _ARM64)}
IMAGE_TESTS = _PC.tests
CROSS = {"amd64": "", "arm64": FLAVOURS["arm64"].cross}
# By default; cost measures, and tests nothing.
TESTED = ("smp", "kcsan", "arm64", "arm64-module", "debian")


def _root(machine: Machine, log: Log) -> Path:
    """A folder with a small Debian of the machine's architecture, packed, and its libbpf."""
    key = hashlib.sha256(repr((PACKAGES, LINKS)).encode()).hexdigest()[:12]
    home = cache_dir() / "roots" / f"{machine.debian}-{key}"
    with locked(f"root-{machine.debian}", log):
        if home.exists():
            return home
        home.parent.mkdir(parents=True, exist_ok=True)
        log(f"downloading {', '.join(PACKAGES)} for {machine.debian}")
        with tempfile.TemporaryDirectory(dir=home.parent, prefix="new-") as name:
            root, new = Path(name) / "root", Path(name) / "new"
            root.mkdir()
            new.mkdir()
            for package in download_packages(PACKAGES, machine.debian, Path(name)):
                _run(["dpkg-deb", "--extract", str(package), str(root)])
            for unused in ("usr/share", "var"):
                shutil.rmtree(root / unused, ignore_errors=True)
            for folder in ("dev", "proc", "root", "run", "sys", "tmp"):
                (root / folder).mkdir(exist_ok=True)
            for link, target in LINKS.items():
                if not (root / link).is_symlink():
                    (root / link).symlink_to(target)
            shutil.copy(next(root.rglob("libbpf.so.1")), new / "libbpf.so.1")
            with (new / "root.cpio.gz").open("wb") as file:
                subprocess.run(["gzip", "-1"], input=_packed(root), stdout=file, check=True)
            new.rename(home)
    return home


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


def _tests(machine: Machine, cross: str, libbpf: Path, seconds: int, into: Path) -> None:
    """What is added to the system: its init and the selftests, each in a folder of its own."""
    into.mkdir()
    shutil.copy(GUEST_DIR / "machine" / "init", into / "init")
    (into / "init").chmod(0o755)
    selftests = KERNEL_DIR / "src" / SELFTESTS
    download = selftests / "tcp_drwa.c"
    programs = {
        "series": [download, selftests / "tcp_drwa_peer.c"],
        "bpf": [download],
        "module": [download],
        "uplink": [download],
        "cost": [GUEST_DIR / "machine" / "segments.c"],
    }
    scripts = {
        "series": selftests / "tcp_drwa.sh",
        "bpf": BPF_DIR / "selftest.sh",
        "module": MODULE_DIR / "selftest.sh",
        "uplink": MODULE_DIR / "selftest_uplink.sh",
        "cost": GUEST_DIR / "machine" / "cost.sh",
    }
    for test in machine.tests:
        target = into / "tests" / test
        target.mkdir(parents=True)
        shutil.copy(scripts[test], target / f"{test}.sh")
        for source in programs[test]:
            gcc = [f"{cross}gcc", "-O2", "-Wall", "-static", f"-I{selftests}"]
            _run([*gcc, "-o", str(target / source.stem), str(source)])
        if test not in ("series", "cost"):
            shutil.copy(SELFTEST_COMMON, target)
            (target / SELFTEST_COMMON.name).chmod(0o644)
        if test in ("bpf", "cost"):
            _run(
                [
                    *("make", f"--directory={BPF_DIR}", f"OUT={target}", f"CC={cross}gcc"),
                    "time_packets" if test == "cost" else "all",
                    # libbpf's own libraries are in the machine alone.
                    f"LIBBPF={libbpf} -Wl,--allow-shlib-undefined",
                ]
            )
    (into / "tests" / "seconds").write_text(f"{seconds}\n")


def _run(command: Sequence[str]) -> None:
    kernels.need_of_machines(command[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"{command[0]} failed:\n{done.stderr.strip()}")


def run(line: str, name: str, seconds: int, progress: kernels.Progress) -> str:
    """Boots the machine; its console. Raises GuestError unless judge() is content."""
    kernels.need_of_machines(MACHINES[name].qemu)
    if name in FLAVOURS:
        kernel, cross = kernels.build(line, name, progress).path, FLAVOURS[name].cross
    else:
        kernel, cross = get_image(kernels.get_line(line), MODULES, progress) / "vmlinuz", ""
    return _run_kernel(f"{line} {name}", MACHINES[name], kernel, cross, seconds, progress)


def run_image(
    image: Path, architecture: str, test: str, seconds: int, progress: kernels.Progress
) -> str:
    """The same of a kernel that somebody else built, with all that it needs in it."""
    if not image.is_file():
        raise KernelError(f"{image} is no file")
    kernels.need_of_machines(IMAGES[architecture].qemu)
    with tempfile.TemporaryDirectory() as name:
        # Of modules, those in the kernel's folder are loaded: here, none.
        kernel = Path(shutil.copy(image, name))
        machine, cross = replace(IMAGES[architecture], tests=(test,)), CROSS[architecture]
        return _run_kernel(image.name, machine, kernel, cross, seconds, progress)


def _run_kernel(
    title: str,
    machine: Machine,
    kernel: Path,
    cross: str,
    seconds: int,
    progress: kernels.Progress,
) -> str:
    runs = cache_dir() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=runs, prefix="machine-"))
    system = _root(machine, progress)
    with (folder / "initrd").open("wb") as initrd, tempfile.TemporaryDirectory() as made:
        packed = (system / "root.cpio.gz").read_bytes()
        initrd.write(packed + bytes(-len(packed) % 4))
        root = Path(made) / "root"
        _tests(machine, cross, system / "libbpf.so.1", seconds, root)
        (root / "modules").mkdir()
        for module in kernel.parent.glob("*.ko"):
            own = "module" in machine.tests and module.stem == "drwa"
            shutil.copy(module, root / ("tests/module" if own else "modules"))
        initrd.write(_packed(root))
    for _ in range(BOOTS):
        with guest.leased_cpu(threading.Event()) as cpu:
            _boot(machine, kernel, cpu, folder, progress)
        console = (folder / "console").read_text(errors="replace")
        if not EMULATORS.search(console):
            break
        progress("the emulator took a breakpoint that was gone: once more")
    judge(title, console, f"(log: {folder / 'console'})")
    shutil.rmtree(folder)
    return console


def judge(title: str, console: str, where: str) -> None:
    """Raises GuestError unless the kernel kept quiet and every test of each plan passed."""
    complaints = complaints_of(console)
    if complaints:
        raise GuestError(f"{title}: the kernel complains {where}" + _shown(complaints))
    lines = console.splitlines()
    # kernel_log looks at what complaints_of() does, but takes any race for DRWA's.
    failed = [x for x in lines if x.startswith("not ok ") and " kernel_log" not in x]
    if failed:
        raise GuestError(f"{title}: the selftest failed {where}" + _shown(failed))
    # A kernel with KUnit has a plan of its own, though it runs no case.
    plan = re.compile(r"(?<!KTAP version 1\n)^1\.\.(\d+)$", re.MULTILINE)
    plans = [int(count) for count in plan.findall(console)]
    started = lines.count("TAP version 13")
    reported = sum(line.startswith(("ok ", "not ok ")) for line in lines)
    done = "machine: all is done" in console
    if not plans or len(plans) != started or reported != sum(plans) or not done:
        raise GuestError(f"{title}: the selftest did not run to its end {where}" + _tail(console))


def _boot(machine: Machine, kernel: Path, cpu: int, folder: Path, log: Log) -> None:
    command = [
        "taskset",
        "--cpu-list",
        str(cpu),
        machine.qemu,
        *machine.options,
        *machine.cpus,
        *("-m", "512M"),
        *("-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot"),
        *("-kernel", str(kernel), "-initrd", str(folder / "initrd")),
        "-append",
        f"console={machine.console} rdinit=/init panic=-1 oops=panic {machine.parameters}",
    ]
    console = folder / "console"
    with guest.started(command, folder, console, os.environ) as process:
        _wait(process, console, log)


def _wait(process: subprocess.Popen[bytes], console: Path, log: Log) -> None:
    said = 0
    patience = guest.Patience(process.pid, STALL_S)
    while process.poll() is None:
        time.sleep(POLL_S)
        lines = console.read_text(errors="replace").splitlines()
        if len(lines) > said:
            for line in lines[said:]:
                if line.startswith(TOLD):
                    log(line)
            said = len(lines)
            patience.renew()
        elif patience.is_over():
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
        typer.Argument(
            metavar="[NAME]...",
            help="smp, arm64 and arm64-module, with lockdep; kcsan; debian, its own kernel, with "
            "the BPF programs alone; cost, which tests nothing (see lab cost). Default: all but "
            "that.",
        ),
    ] = None,
    kernel: Annotated[str, typer.Option(metavar="LINE", help="Kernel line.")] = "6.12",
    seconds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Length of the test that turns every knob.")
    ] = 30,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of all these, a kernel of yours, bzImage or Image; it needs what "
            "kernel/lab/README.md names.",
        ),
    ] = None,
    architecture: Annotated[
        str, typer.Option(metavar="NAME", help="Of that image: amd64 or arm64.")
    ] = "amd64",
    test: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of that image: bpf, the BPF programs, or series, where it has the patches.",
        ),
    ] = "bpf",
) -> None:
    """Run the selftests on emulated machines of two CPUs."""
    console = Console(stderr=True)
    with errors.reported():
        if image is not None:
            if flavours:
                raise SpecError("--image: not with the names of machines")
            if architecture not in IMAGES:
                raise SpecError(f"--architecture: '{architecture}' is neither amd64 nor arm64")
            if test not in IMAGE_TESTS:
                raise SpecError(f"--test: {test!r} is neither series nor bpf")
            with console.status("") as status:
                progress = kernels.Progress(console, status)
                said = run_image(image, architecture, test, seconds, progress)
            print(_report(said), flush=True)
            if test == "bpf":
                print(f"machine: {_programs()}", flush=True)
            return
        for name in flavours or TESTED:
            if name not in MACHINES:
                raise KernelError(f"unknown machine '{name}': {units.instead_of(name, MACHINES)}")
            with console.status("") as status:
                run(kernel, name, seconds, kernels.Progress(console, status))
            named = f", {_programs()}" if "bpf" in MACHINES[name].tests else ""
            print(f"{kernel} {name}: passed{named}", flush=True)


def _programs() -> str:
    """What ran, as lab documents looks for it."""
    return f"programs {kernels.programs_id()}"


def _report(console: str) -> str:
    """What the machine and its tests said, without the kernel's log."""
    return "\n".join(line for line in console.splitlines() if line.startswith(TOLD))
