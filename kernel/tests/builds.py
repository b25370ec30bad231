# SPDX-License-Identifier: GPL-2.0-only
"""Builds of the law, kernel/src/net/ipv4/tcp_drwa_core.c, in user space."""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from drwalab.series import code_of

TESTS = Path(__file__).resolve().parent
KERNEL = TESTS.parent
TOP = KERNEL.parent
CORE = KERNEL / "src" / "net" / "ipv4" / "tcp_drwa_core.c"
UP_CORE = KERNEL / "src" / "net" / "sched" / "drwa_up_core.c"
INCLUDES = [f"-I{folder}" for folder in (TESTS / "include", KERNEL / "src/include", CORE.parent)]
# Old text that is there once, and what is there in its place
Edits = tuple[tuple[str, str], ...]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

# The law wraps clocks and sequence numbers on purpose, but must never lose high bits.
_SANITIZERS = (
    "-fsanitize=address,undefined,unsigned-shift-base,"
    "implicit-unsigned-integer-truncation,implicit-signed-integer-truncation"
)


def law_digest(source: Path = CORE) -> str:
    """Which law a record is of, whatever its comments say"""
    digest = hashlib.sha256(code_of(source.read_text()).encode()).hexdigest()
    return f"sha256 {digest[:12]} without comments and blanks"


def edited(source: Path, edits: Edits) -> str:
    """Its text with each old one replaced; raises ValueError unless that is there once."""
    text = source.read_text()
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{text.count(old)} times in {source.name}: {old}")
        text = text.replace(old, new)
    return text


def run(command: Sequence[str | Path]) -> str:
    """Output of a tool; its complaint ends the program."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout.rstrip()}")
    return done.stdout


def fuzzer(folder: Path) -> Path:
    """The libFuzzer harness, fuzz_core.c; only the law is watched and guides it."""
    flags = ["-g", "-O2", *WARNINGS, *INCLUDES]
    # Comparisons with constants are few here, and tracing them costs half of the speed.
    guide = ["-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp"]
    watch = [_SANITIZERS, "-fno-sanitize-recover=all"]
    core, harness, binary = folder / "core.o", folder / "harness.o", folder / "fuzz_core"
    run(["clang", *flags, *watch, *guide, "-c", CORE, "-o", core])
    run(["clang", *flags, "-c", TESTS / "fuzz_core.c", "-o", harness])
    run(["clang", "-fsanitize=fuzzer", _SANITIZERS, core, harness, "-o", binary])
    return binary


def up_fuzzer(folder: Path) -> Path:
    """The libFuzzer harness of the uplink's law, fuzz_up.c."""
    binary = folder / "fuzz_up"
    watch = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    flags = ["-g", "-O1", *WARNINGS, "-Wno-sign-compare", *INCLUDES]
    run(["clang", *flags, *watch, UP_CORE, TESTS / "fuzz_up.c", "-o", binary])
    return binary


def suite(source: Path, folder: Path) -> Path:
    """A KUnit suite of a law as a program; the uplink's has its law within."""
    binary = folder / source.stem
    law = [CORE] if source.parent == CORE.parent else []
    flags = ["-g", "-O1", "-std=gnu11", *WARNINGS, "-Wno-sign-compare", *INCLUDES]
    watch = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    run(["clang", *flags, *watch, source, *law, "-o", binary])
    return binary


def counted_fuzzer(folder: Path) -> Path:
    """The harness with the law built for gcov; core.gcda appears beside it when it ran."""
    core, harness, binary = folder / "core.o", folder / "harness.o", folder / "fuzz_core"
    run(["gcc", "--coverage", "-O0", *INCLUDES, "-c", CORE, "-o", core])
    run(["clang", "-O2", *INCLUDES, "-c", TESTS / "fuzz_core.c", "-o", harness])
    gcov = run(["gcc", "-print-file-name=libgcov.a"]).strip()
    run(["clang", "-fsanitize=fuzzer", core, harness, gcov, "-o", binary])
    return binary


def costed(folder: Path) -> Path:
    """Plays stories under callgrind; the law is built as for a 64-bit x86 kernel."""
    kernel = ["-O2", "-std=gnu11", "-fno-strict-aliasing", "-fno-strict-overflow"]
    kernel += ["-fno-delete-null-pointer-checks", "-fstack-protector-strong"]
    kernel += ["-fcf-protection=branch", "-mno-sse", "-mno-80387", "-mno-red-zone"]
    kernel += ["-mpreferred-stack-boundary=3"]
    core, binary = folder / "core.o", folder / "cost_core"
    run(["gcc", "-g", "-fno-pie", *kernel, *WARNINGS, *INCLUDES, "-c", CORE, "-o", core])
    run(["gcc", "-O2", "-no-pie", *WARNINGS, *INCLUDES, TESTS / "cost_core.c", core, "-o", binary])
    return binary
