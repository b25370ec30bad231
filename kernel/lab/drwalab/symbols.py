# SPDX-License-Identifier: GPL-2.0-only
"""What the series does to the versions of exported symbols (CONFIG_MODVERSIONS).

A module that was built for the kernel without the series loads into the one with it unless a symbol
that it uses has another version. That is a checksum which genksyms makes of the symbol's type and
all that it reaches, from a source as the preprocessor leaves it. So it is made here, of the sources
of the guests' kernels, with modules switched on. Those are read that see a header which the series
changes: of no other the preprocessed text could differ.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from drwalab import errors, kernels
from drwalab.kernels import KernelError, Recipe
from drwalab.sources import Log

MODULES = ("-D__GENKSYMS__", "-DCONFIG_MODULES=1", "-DCONFIG_MODVERSIONS=1")
# Its folder alone is no target of stable kernels any more; later ones ask for GENKSYMS.
GENKSYMS = "CONFIG_MODVERSIONS=y CONFIG_GENKSYMS=y scripts"

_COMMAND = re.compile(r"^(?:saved)?cmd_\S+ := (gcc .*?) -c -o \S+ (\S+\.c) *$", re.MULTILINE)
_DEPENDENCY_FILE = re.compile(r"-Wp,-MM?D,\S+")
# Up to 5.18 it prints what a linker script takes.
_VERSION = re.compile(r"^(?:#SYMVER |__crc_)(\w+) (?:= )?(0x[0-9a-f]+)", re.MULTILINE)
_CHANGED_HEADER = re.compile(rb"^--- a/(include/\S+\.h)$", re.MULTILINE)

Versions = dict[str, str]


@dataclass(frozen=True)
class Comparison:
    """The versions of the symbols that sources export which the series could change."""

    before: Versions
    after: Versions

    @property
    def changed(self) -> list[str]:
        """Those with another version, or that are gone: modules that use them do not load."""
        return sorted(name for name in self.before if self.before[name] != self.after.get(name))


def headers(recipe: Recipe) -> list[str]:
    """The headers of the kernel that a series changes."""
    found = {name.decode() for _, patch in recipe.series for name in _CHANGED_HEADER.findall(patch)}
    return sorted(found)


def sources(tree: Path, changed: Sequence[str]) -> list[tuple[str, str]]:
    """The C files of a built tree that see one of the headers: their command's begin, and name."""
    sees = re.compile(rf"^ +({'|'.join(map(re.escape, changed))}) ", re.MULTILINE)
    found = []
    for path in sorted(tree.rglob(".*.o.cmd")):
        text = path.read_text()
        command = _COMMAND.search(text)
        if command and sees.search(text):
            plain = command[1].replace("\\#", "#").replace("$$", "$")
            found.append((_DEPENDENCY_FILE.sub("", plain), command[2]))
    return found


def versions(tree: Path, files: Sequence[tuple[str, str]], ahead: Path | None = None) -> Versions:
    """What the files export; a folder of headers may stand ahead of the tree's."""

    def of(command: str, name: str) -> Versions:
        if ahead is not None:
            command = command.replace("-nostdinc", f"-nostdinc '-I{ahead}'", 1)
        line = " ".join([command, "-E", *MODULES, name])
        text = subprocess.run(["sh", "-c", line], cwd=tree, capture_output=True, check=False)
        if text.returncode:
            raise KernelError(f"{name}: {text.stderr.decode().strip()}")
        done = subprocess.run(
            [tree / "scripts/genksyms/genksyms", "-r", "/dev/null"],
            input=text.stdout,
            capture_output=True,
            check=True,
        )
        return dict(_VERSION.findall(done.stdout.decode()))

    found: Versions = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for each in pool.map(of, *zip(*files, strict=True)):
            found |= each
    return found


def compare(line: str, log: Log) -> Comparison:
    """Compares a line without the series and with it."""
    with kernels.tree_lock(line, log):
        tree, recipe = kernels.built_tree(line, "drwa", log, GENKSYMS)
        files = sources(tree, headers(recipe))
        after = versions(tree, files)
        tree, _ = kernels.built_tree(line, "base", log, GENKSYMS)
        # The series' own files export nothing that a module could have used before.
        files = [(command, name) for command, name in files if (tree / name).exists()]
        return Comparison(versions(tree, files), after)


def symbols(
    kernel: Annotated[str, typer.Option(metavar="LINE", help="Kernel line.")] = "6.12",
) -> None:
    """Tell which exported symbols have another version with the series."""
    console = Console(stderr=True)
    with errors.reported():
        found = compare(kernel, console.print)
    print(f"{kernel}: {len(found.changed)} of {len(found.before)} versions differ")
    for name in found.changed:
        print(f"  {name} {found.before[name]} {found.after.get(name, 'gone')}")
