# SPDX-License-Identifier: Apache-2.0
"""The system in a lab guest: what goes into the guest's folder, and what starts it there."""

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.append(str(TOP / "netd_patches" / "tests"))

import building  # noqa: E402

HOSTS = ("A", "B")
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

ANDROID = "15"
SDK = "35"
OUT = TOP / "out" / "e2e"
CLASSES = TOP / "out" / "frameworks" / f"android-{SDK}"
MAIN = ["org.junit.runner.JUnitCore", "com.android.server.drwa.SystemServer"]


class BuildError(Exception):
    """Something that the system is made of does not build."""


def files(host: str) -> list[Path]:
    """What the guest's folder has to hold, up to date; host is "A" or "B"."""
    assert host in HOSTS
    folder = OUT / host
    folder.mkdir(parents=True, exist_ok=True)
    known = {"host": host, "java": _java(), "main": MAIN}
    _write(folder / "system.json", json.dumps(known))
    return [
        folder / "system.json",
        HERE / "guest" / "commands",
        _clock(),
        _netd(),
    ]


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
