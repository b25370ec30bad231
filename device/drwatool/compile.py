# SPDX-License-Identifier: Apache-2.0
"""Compiles what a kernel's series touches, with the tree's configuration, away from the tree."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from drwatool.errors import ConflictError, UsageError

OPTION = "CONFIG_TCP_DRWA"
TESTS_OPTIONS = ("CONFIG_KUNIT", "CONFIG_TCP_DRWA_KUNIT_TEST")
ARCH = "arm64"
# What a build in the tree left there, which a build beside it may not see.
BUILT = (".config", "include/config", "include/generated", f"arch/{ARCH}/include/generated")
NEEDED = ("make", "flex", "bison", "bc")
CROSS = "CROSS_COMPILE=aarch64-linux-gnu-"
TOOLCHAINS = (
    # Before 5.15, the prefix tells clang what to compile for.
    (("clang", "ld.lld", "llvm-ar"), ("LLVM=1", "LLVM_IAS=1", CROSS)),
    (("aarch64-linux-gnu-gcc",), (CROSS,)),
)
# Qualcomm's 4.19 and 5.4 have a wrapper, often for Python 2, that ends a build at any warning, its
# own, too. 4.19's cannot be left out but by naming the compiler.
WRAPPER, WITHOUT_WRAPPER = "gcc-wrapper.py", "DISABLE_WRAPPER"
SAID_LINES = 12
NO_CAUSE = re.compile(r"$|make|\d+ errors? generated")
LACKED_HEADER = re.compile(
    r"(?:certs|scripts|tools)/\S+ fatal error: .*(?:file not found|No such file)"
)


def compile_objects(
    source: Path, files: dict[str, bytes], say: Callable[[str], None], tests: bool
) -> str:
    """What was compiled, and how; ConflictError says what the compiler objects to.

    `files` are those that change; the tree itself is not written to. With `tests`, KUnit's suites
    are compiled, too.
    """
    toolchain = _toolchain()
    makefile = (source / "Makefile").read_text(errors="replace")
    wrapped = WRAPPER in makefile
    if wrapped:
        named = f"CC={_compiler(toolchain)}"
        without = f"{WITHOUT_WRAPPER}=1" if WITHOUT_WRAPPER in makefile else named
        toolchain = (*toolchain, without)
    with tempfile.TemporaryDirectory(prefix="drwa-") as name:
        copy, out = Path(name) / "source", Path(name) / "out"
        out.mkdir()
        _link(source, copy, {*files, *(f"{built}/" for built in BUILT)})
        for path, text in files.items():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).unlink(missing_ok=True)
            (copy / path).write_bytes(text)
        make = ["make", f"O={out}", f"ARCH={ARCH}", *toolchain, f"--jobs={os.cpu_count()}"]
        say("configuring")
        options = (OPTION, *(TESTS_OPTIONS if tests else ()))
        configured = _configure(source, copy, out, make, options)
        objects = sorted(
            f"{path.removesuffix('.c')}.o"
            for path in files
            if path.startswith("net/ipv4/") and path.endswith(".c")
            if tests or not path.endswith("_test.c")
        )
        say(f"compiling {len(objects)} objects")
        said = _run([*make, "--keep-going", *objects], copy)
    done = f"compiled {len(objects)} objects for {ARCH}, {configured}, {' '.join(toolchain)}"
    lines = said.replace(f"{copy}/", "").splitlines()
    warned = [line for line in lines if re.search(r"drwa\S*: warning:", line)]
    if wrapped and warned:
        done += f"; scripts/{WRAPPER} would refuse {'; '.join(warned[:SAID_LINES])}"
    return done


def _toolchain() -> tuple[str, ...]:
    """The variables of make for what is installed; what the caller's environment says goes."""
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        raise UsageError(f"--compile needs {', '.join(missing)}: install that, or leave it out")
    if "LLVM" in os.environ or "CROSS_COMPILE" in os.environ:
        return ()
    for programs, variables in TOOLCHAINS:
        if all(map(shutil.which, programs)):
            return variables
    wanted = " or ".join(" with ".join(programs) for programs, _ in TOOLCHAINS)
    raise UsageError(f"--compile needs {wanted} in PATH: put the tree's own there")


def _compiler(toolchain: tuple[str, ...]) -> str:
    """What these variables, or the caller's, compile with"""
    said = dict(os.environ) | dict(each.split("=") for each in toolchain)
    return "clang" if "LLVM" in said else f"{said['CROSS_COMPILE']}gcc"


def _link(source: Path, copy: Path, apart: set[str]) -> None:
    """A folder of links to the source, but for the paths in `apart` and the folders above them."""
    names = {path.partition("/")[0] for path in apart}
    copy.mkdir()
    for entry in source.iterdir():
        below = {path.partition("/")[2] for path in apart if path.startswith(f"{entry.name}/")}
        if entry.name not in names:
            (copy / entry.name).symlink_to(entry)
        elif entry.is_dir() and "" not in below:
            _link(entry, copy / entry.name, below)
        elif entry.is_file() and entry.name in apart:
            (copy / entry.name).symlink_to(entry)


def _configure(
    source: Path, copy: Path, out: Path, make: list[str], options: tuple[str, ...]
) -> str:
    """Configures the kernel as the tree says, with these; returns the configuration's name."""
    name = ".config"
    if (source / name).is_file():
        shutil.copyfile(source / name, out / name)
    else:
        name = _default_configuration(source)
        _run([*make, name], copy)
    wanted = [f"{each}=y" for each in options]
    _set(copy, out, make, wanted)
    if lost := sorted({*wanted} - {*(out / ".config").read_text().splitlines()}):
        raise ConflictError(f"{source}: its configuration, {name}, leaves no {', '.join(lost)}")
    if not (unset := _unset(copy, make)):
        return name
    # None of what is compiled depends on a vendor's number.
    _set(copy, out, make, numbers := [f"{each}=0" for each in unset])
    if left := _unset(copy, make):
        raise UsageError(
            f"{source}: its configuration, {name}, has no value for {', '.join(left)}, and cannot "
            "have 0: copy your configuration to .config, or leave --compile out"
        )
    return f"{name} with {' '.join(numbers)}"


def _set(copy: Path, out: Path, make: list[str], options: list[str]) -> None:
    with (out / ".config").open("a") as config:
        config.writelines(f"{each}\n" for each in options)
    _run([*make, "olddefconfig"], copy)


def _unset(copy: Path, make: list[str]) -> list[str]:
    """Numbers without a default, of which a build would ask whom it cannot, and without end."""
    said = _done([*make, "listnewconfig"], copy).stdout
    return re.findall(r"^(CONFIG_\w+)=$", said, re.MULTILINE)


def _default_configuration(source: Path) -> str:
    """A name for make, which would look for one that is missing without end."""
    folder = source / "arch" / ARCH / "configs"
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*defconfig"))
    for name in "gki_defconfig", "defconfig":
        if name in names:
            return name
    if len(names) == 1:
        return names[0]
    found = f"it has {', '.join(names[:SAID_LINES])}" if names else "it has none"
    raise UsageError(
        f"{source}: no gki_defconfig or defconfig for {ARCH}; {found}: copy your configuration to "
        ".config, or leave --compile out"
    )


def _run(command: list[str], folder: Path) -> str:
    """What it complains of."""
    return _done(command, folder).stderr


def _done(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What it said; ConflictError if it fails."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        # A header that is missing is said once for each file that has it.
        said = list(dict.fromkeys(line.strip() for line in done.stderr.splitlines()))
        made = [line for line in said if "***" in line]
        said = [line for line in said if not NO_CAUSE.match(line)] or made or said
        errors = [line for line in said if re.search(r"\berror\b", line)]
        others = [line for line in said if "warning:" not in line] or said
        text = "; ".join(errors[:SAID_LINES] or others[-SAID_LINES:])
        if "can't open file" in text:
            text += ": is a submodule not checked out?"
        if LACKED_HEADER.search(text):
            text += ": the build's own programs need that: libelf-dev, libssl-dev or libdw-dev?"
        if re.search(r"Kconfig:\d+: syntax error", text):
            text += ": does the tree's own build script set a variable? export that, too"
        raise ConflictError(f"{' '.join(command[-3:])} fails: {text}")
    return done
