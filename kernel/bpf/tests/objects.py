# SPDX-License-Identifier: GPL-2.0-only
"""BPF objects, as files and as what a kernel's verifier makes of them."""

import ctypes
import os
import re
import struct
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

SHT_REL = 9
MAP_ADDRESS = 1  # R_BPF_64_64
BPF_PROG_TYPE_SCHED_CLS = 3
# "processed" alone, without what it saw of each instruction
BPF_LOG_STATS = 4
LOG_BYTES = 1 << 16


BPF = Path(__file__).resolve().parents[1]
KERNEL = BPF.parent


def for_host(source: Path, binary: Path, *options: str) -> Path:
    """A C program for this machine, with all warnings as errors."""
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{BPF}"]
    command += [f"-I{KERNEL / 'src/include'}", "-o", str(binary), str(source), *options]
    subprocess.run(command, check=True)
    return binary


def changed(folder: Path, *changes: tuple[str, str]) -> Path:
    """The programs, compiled with other texts: what stands there, and what is to."""
    sources = {name: (BPF / name).read_text() for name in ("drwa.bpf.c", "drwa_aqm.h")}
    for right, wrong in changes:
        assert sum(right in source for source in sources.values()) == 1
        sources = {name: source.replace(right, wrong) for name, source in sources.items()}
    for name, source in sources.items():
        (folder / name).write_text(source)
    makefile = (
        (BPF / "Makefile")
        .read_text()
        .replace("-Werror", "")
        .replace("$(here)drwa.bpf.c", str(folder / "drwa.bpf.c"))
    )
    (folder / "Makefile").write_text(
        makefile.replace("$(lastword $(MAKEFILE_LIST))", str(BPF / "Makefile"))
    )
    programs = folder / "drwa.bpf.o"
    subprocess.run(["make", f"--directory={folder}", f"OUT={folder}", str(programs)], check=True)
    return programs


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    data: bytes
    applies_to: int


def sections(path: Path) -> list[Section]:
    """Of an ELF64 file, of either byte order."""
    elf = path.read_bytes()
    order = {1: "<", 2: ">"}[elf[5]]
    (table,) = struct.unpack_from(order + "Q", elf, 40)
    size, count, names_at = struct.unpack_from(order + "HHH", elf, 58)
    layout = order + "IIQQQQIIQQ"
    headers = [struct.unpack_from(layout, elf, table + i * size) for i in range(count)]
    names = elf[headers[names_at][4] :]
    return [
        Section(
            names[name : names.index(b"\0", name)].decode(),
            kind,
            elf[at : at + length],
            info,
        )
        for name, kind, _, _, at, length, _, info, _, _ in headers
    ]


def relocations(found: list[Section], programs: Collection[str]) -> list[int]:
    """The kinds of those in the programs."""
    return [
        info & 0xFFFFFFFF
        for section in found
        if section.kind == SHT_REL and found[section.applies_to].name in programs
        for _, info in struct.iter_unpack("<QQ", section.data)
    ]


def core_bytes(found: list[Section]) -> int:
    """Length of the relocations by types (CO-RE), from the end of .BTF.ext's header."""
    (ext,) = (section.data for section in found if section.name == ".BTF.ext")
    (header,) = struct.unpack_from("<I", ext, 4)
    return int(struct.unpack_from("<I", ext, 28)[0]) if header >= 32 else 0


def why_not() -> str:
    """Why this process cannot load programs, "" if it can."""
    if os.geteuid():
        return "loading BPF programs needs root"
    attributes = struct.pack("8I", 2, 4, 4, 1, 0, 0, 0, 0).ljust(128, b"\0")  # an array of one
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    made = int(libc.syscall(number, 0, attributes, 128))
    if made < 0:
        return f"this machine takes no BPF: {os.strerror(ctypes.get_errno())}"
    os.close(made)
    return ""


def visited(path: Path) -> dict[str, int]:
    """Instructions that this kernel's verifier follows, by program, from its log."""
    libbpf = ctypes.CDLL("libbpf.so.1")
    for name in ("bpf_object__open", "bpf_object__next_program", "bpf_program__name"):
        getattr(libbpf, name).restype = ctypes.c_void_p
    libbpf.libbpf_set_print(None)
    handle = ctypes.c_void_p(libbpf.bpf_object__open(str(path).encode()))
    logs: dict[str, ctypes.Array[ctypes.c_char]] = {}
    program = None
    while program := libbpf.bpf_object__next_program(handle, ctypes.c_void_p(program)):
        each = ctypes.c_void_p(program)
        name = ctypes.string_at(libbpf.bpf_program__name(each)).decode()
        logs[name] = ctypes.create_string_buffer(LOG_BYTES)
        libbpf.bpf_program__set_type(each, BPF_PROG_TYPE_SCHED_CLS)
        libbpf.bpf_program__set_log_level(each, BPF_LOG_STATS)
        libbpf.bpf_program__set_log_buf(each, logs[name], ctypes.c_size_t(LOG_BYTES))
    loaded = libbpf.bpf_object__load(handle)
    libbpf.bpf_object__close(handle)
    said = {name: log.value.decode() for name, log in logs.items()}
    assert loaded == 0, said
    return {name: int(re.findall(r"processed (\d+) insns", log)[0]) for name, log in said.items()}
