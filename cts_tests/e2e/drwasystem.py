# SPDX-License-Identifier: Apache-2.0
"""The system in a lab guest: what goes into the guest's folder, and what starts it there."""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path += [str(TOP / "netd_patches" / "tests"), str(TOP / "kernel" / "lab")]

import building  # noqa: E402
from drwalab import kernels  # noqa: E402

HOSTS = ("A", "B")


@dataclass(frozen=True)
class Phone:
    """Where the policy is, and the flavour of the kernel: bpf has no series, but the programs."""

    host: str
    flavour: str = "drwa"

    @property
    def name(self) -> str:
        return f"{self.host} with BPF" if self.programs else self.host

    @property
    def programs(self) -> bool:
        return self.flavour == "bpf"


PHONES = tuple(Phone(host, flavour) for flavour in ("drwa", "bpf") for host in HOSTS)
# Knows the kernel's knob and the programs' maps
GOVERNORS = TOP / "cts_tests" / "kernel" / "governors.py"
# For run_script(): a JVM with the classes of Android's framework.
MEMORY = "1024M"
# The folder of the commands in the guest
COMMANDS = "/run/system"
# To be run as root of the guest, in the folder with files() and in the network name space that is
# to be the phone's.
START = f"""\
./commands init
export PATH="{COMMANDS}:$PATH"
"""
# Where Android's loaders pin the programs for each host: the module's and the platform's
PINS = {"A": "/sys/fs/bpf/net_shared", "B": "/sys/fs/bpf"}

ANDROID = "15"
SDK = "35"
OUT = TOP / "out" / "e2e"
CLASSES = TOP / "out" / "frameworks" / f"android-{SDK}"
MAIN = ["org.junit.runner.JUnitCore", "com.android.server.drwa.SystemServer"]


def attach(phone: Phone) -> str:
    """Ahead of START, on a phone with programs: what init and Android's loader have done."""
    return f"""\
mount -t bpf bpf /sys/fs/bpf
./drwa-bpf attach --interface rmnet0 --lambda 0 --object ./drwa.bpf.o
./pin {PINS[phone.host]}
"""


class BuildError(Exception):
    """Something that the system is made of does not build."""


def files(phone: Phone) -> list[Path]:
    """What the guest's folder has to hold, up to date."""
    folder = OUT / phone.host
    folder.mkdir(parents=True, exist_ok=True)
    known = {"host": phone.host, "java": _java(), "main": MAIN}
    _write(folder / "system.json", json.dumps(known))
    return [
        *(_programs_files(phone.host) if phone.programs else []),
        folder / "system.json",
        HERE / "guest" / "commands",
        GOVERNORS,
        _clock(),
        _netd(),
    ]


def _programs_files(host: str) -> list[Path]:
    made = kernels.bpf()
    # Host B's are netd's, and the JVM needs no way to them.
    natives = [_natives()] if host == "A" else []
    return [made / "drwa-bpf", made / "drwa.bpf.o", HERE / "guest" / "pin", *natives]


def _write(path: Path, text: str) -> None:
    """In one step: others may be about to copy it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
        new.write(text)
    Path(new.name).replace(path)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=TOP,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed: make e2e installs it") from None
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])} fails:\n{done.stdout.strip()[-3000:]}")


def _netd() -> Path:
    try:
        return building.make("drwa_netd")
    except AssertionError as e:
        raise BuildError(f"netd does not build:\n{e}") from e


@cache
def _clock() -> Path:
    source, library = HERE / "guest" / "clock.c", OUT / "clock.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        _run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-o{library}", f"{source}"])
    return library


@cache
def _natives() -> Path:
    source, library = HERE / "guest" / "natives.c", OUT / "natives.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        javac = shutil.which("javac")
        if not javac:
            raise BuildError("javac is not installed: make e2e installs it")
        headers = Path(javac).resolve().parents[1] / "include"
        includes = [f"-I{headers}", f"-I{headers / 'linux'}"]
        flags = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
        _run(["gcc", *flags, *includes, f"-o{library}", f"{source}"])
    return library


@cache
def _java() -> list[str]:
    """The JVM with its options; compiles what is to run in it."""
    listing = OUT / "classpath"
    _run(
        [
            *("mvn", "--quiet", "--batch-mode", "--no-transfer-progress"),
            *("--file", "frameworks", f"-Pandroid-{ANDROID}"),
            *("test-compile", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"),
        ]
    )
    libraries = listing.read_text().strip().split(":")
    # Where Maven keeps the framework's classes, it keeps those for Robolectric, too.
    plain = next(Path(path) for path in libraries if "/android-all/" in path)
    framework = plain.parents[2] / "android-all-instrumented" / f"{plain.parent.name}-i7"
    classes = [CLASSES / "classes", CLASSES / "test-classes", CLASSES / "androidx" / "monitor.jar"]
    return [
        "java",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        # A signal handler of the guest keeps no wider registers.
        "-XX:UseAVX=2",
        "-Xmx512m",
        "-Dfile.encoding=UTF-8",
        "-Djava.io.tmpdir=/run",
        "-Duser.home=/run",
        "--add-opens=java.base/java.io=ALL-UNNAMED",
        f"-Drobolectric.enabledSdks={SDK}",
        "-Drobolectric.offline=true",
        f"-Drobolectric.dependency.dir={framework}",
        "-classpath",
        ":".join(map(str, [*classes, *libraries])),
    ]
