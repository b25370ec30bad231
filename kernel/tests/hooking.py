# SPDX-License-Identifier: GPL-2.0-only
"""Counts what the hooks add to TCP's code on x86-64, with the feature off and compiled out.

The objects are built with and without CONFIG_TCP_DRWA from the same patched source, with the
kernel's own configuration for x86-64. Each hook is an entry of the jump table: a no-operation
while the static key is off.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import builds
from drwalab.kernels import get_line, patch_id
from drwalab.series import make_series
from drwalab.sources import KERNEL_DIR, cache_dir, get_source

RESULT = builds.TESTS / "results" / "hooks.md"
OBJECTS = ("tcp", "tcp_input", "tcp_output", "tcp_minisocks")
# Without IBT objtool works on each object, and its no-operations can be seen there.
OPTIONS = ("--disable", "X86_KERNEL_IBT")


@dataclass(frozen=True)
class Function:
    """A function of TCP that has hooks: the no-operations, and its size without and with them."""

    name: str
    sites: tuple[str, ...]
    without_bytes: int
    with_bytes: int


def build(line: str, log: Console) -> dict[str, Path]:
    """The folders with the objects, by the option's value; made again when the series changes."""
    source = get_source(get_line(line), log.print)
    series = make_series(KERNEL_DIR, source)
    digest = hashlib.sha256(b"".join(text for _, text in series))
    digest.update(source.version.encode())
    home = cache_dir() / "x86" / f"{line}-{digest.hexdigest()[:12]}"
    tree, folders = home / "source", {value: home / value for value in ("y", "n")}
    if (home / "complete").exists():
        return folders
    for old in home.parent.glob(f"{line}-*"):
        shutil.rmtree(old)
    home.mkdir(parents=True)
    log.print(f"copying the source of {line}")
    builds.run(["cp", "-a", source.path, tree])
    for name, text in series:
        patch = home / name
        patch.write_bytes(text)
        builds.run(["patch", "-s", "-p1", "-d", tree, "-i", patch])
    for value, folder in folders.items():
        log.print(f"compiling with CONFIG_TCP_DRWA={value} (a minute or two)")
        make: list[str | Path] = ["make", "-s", "-C", tree, "ARCH=x86", f"O={folder}"]
        builds.run([*make, "x86_64_defconfig"])
        option = ["--set-val", "TCP_DRWA", value]
        builds.run([tree / "scripts/config", "--file", folder / ".config", *OPTIONS, *option])
        builds.run([*make, "olddefconfig"])
        builds.run([*make, "-j2", *[f"net/ipv4/{name}.o" for name in OBJECTS]])
    (home / "complete").touch()
    return folders


def functions(folders: dict[str, Path], name: str) -> list[Function]:
    with_, without = (folders[value] / "net" / "ipv4" / f"{name}.o" for value in ("y", "n"))
    symbols, before = _symbols(with_), _symbols(without)
    found: dict[str, list[str]] = {}
    for at in _sites(with_):
        holder = next(n for n, (start, size) in symbols.items() if start <= at < start + size)
        found.setdefault(holder, []).append(_instruction(with_, at))
    return [
        Function(holder, tuple(sites), before[holder][1], symbols[holder][1])
        for holder, sites in found.items()
    ]


def _symbols(path: Path) -> dict[str, tuple[int, int]]:
    """Functions of .text: address and size."""
    rows = re.findall(
        r"^([0-9a-f]+) .{6}F \.text\s+([0-9a-f]+) (?:\.hidden )?(\S+)$",
        builds.run(["objdump", "--syms", path]),
        re.MULTILINE,
    )
    return {name: (int(start, 16), int(size, 16)) for start, size, name in rows}


def _sites(path: Path) -> list[int]:
    """Where the jump table has entries of the key: each is code, target and key."""
    listing = builds.run(["objdump", "--reloc", "--section=__jump_table", path])
    values = re.findall(r"R_X86_64_PC\d+\s+(\S+)", listing)
    entries = zip(values[::3], values[2::3], strict=True)
    return sorted(
        int(code.removeprefix(".text+"), 16)
        for code, key in entries
        if key.startswith("tcp_drwa_enabled")
    )


def _instruction(path: Path, at: int) -> str:
    listing = builds.run(
        ["objdump", "--disassemble", f"--start-address={at}", f"--stop-address={at + 5}", path]
    )
    code, text = re.findall(r"^\s+[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*\t(.*)$", listing, re.M)[0]
    kind = "nop" if re.match(r"nop|xchg\s+%ax,%ax", text) else text.strip()
    return f"{kind} ({len(code.split())} bytes)"


def report(line: str, rows: dict[str, list[Function]], log: Console) -> str:
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# hooks",
        f"What the hooks add to TCP's code of {line} on x86-64 while no interface has a"
        " tcp_drwa_lambda: the",
        "instructions at the jump table's entries, and each function's size without and with"
        " CONFIG_TCP_DRWA.",
        "",
        "| object | function | hooks | bytes without | with |",
        "| --- | --- | --- | --: | --: |",
    ]
    for name, found in rows.items():
        for function in found:
            kinds = sorted(set(function.sites))
            sites = ", ".join(f"{function.sites.count(kind)} × {kind}" for kind in kinds)
            lines.append(
                f"| {name}.o | {function.name} | {sites} "
                f"| {function.without_bytes} | {function.with_bytes} |"
            )
    compiler = builds.run(["gcc", "--version"]).splitlines()[0]
    source = get_source(get_line(line), log.print)
    ids = [patch_id(patch)[:12] for _, patch in make_series(KERNEL_DIR, source)]
    lines += [
        "",
        f"Kernel: {source.version}, patches {', '.join(ids)}. Compiler: {compiler}. Repeat it with"
        " `kernel/tests/hooks --record`.",
        "",
    ]
    return "\n".join(lines)


def main(
    kernel: Annotated[str, typer.Option(help="Kernel line.")] = "6.12",
    record: Annotated[bool, typer.Option("--record", help="Write results/hooks.md.")] = False,
) -> None:
    """Count what the hooks cost while the feature is off; builds some objects the first time."""
    log = Console(stderr=True)
    folders = build(kernel, log)
    text = report(kernel, {name: functions(folders, name) for name in OBJECTS}, log)
    print(text)
    if record:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(text)


if __name__ == "__main__":
    typer.run(main)
