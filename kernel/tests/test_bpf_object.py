# SPDX-License-Identifier: GPL-2.0-only
"""The BPF programs' object: what the simplest loaders, such as Android's, take."""

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from builds import KERNEL

BPF = KERNEL / "bpf"
# The lab's, Android's, and Android's on 5.15.
VARIANTS = ["-DDRWA_NETNS", "", "-DDRWA_NO_GETSOCKOPT"]
PROGRAMS = {"cgroup_skb/ingress", "sockops", "cgroup/setsockopt", "cgroup/sock_release"}

CALL = 0x85  # BPF_JMP | BPF_CALL
MAP = 1  # R_BPF_64_64, the address of a map
SHT_REL = 9


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    data: bytes
    applies_to: int


def sections(path: Path) -> list[Section]:
    """Of a little-endian ELF64 file."""
    elf = path.read_bytes()
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names_at = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = elf[headers[names_at][4] :]
    return [
        Section(names[name : names.index(b"\0", name)].decode(), kind, elf[at : at + length], info)
        for name, kind, _, _, at, length, _, info, _, _ in headers
    ]


@pytest.fixture(scope="module", params=VARIANTS)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Section]:
    """Compiled with all warnings as errors."""
    out = tmp_path_factory.mktemp("bpf")
    command = ["make", f"--directory={BPF}", f"OUT={out}", f"VARIANT={request.param}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return sections(out / "drwa.bpf.o")


def test_has_its_programs_alone(built: list[Section]) -> None:
    code = {section.name: section.data for section in built if section.name in {*PROGRAMS, ".text"}}
    assert {name for name, data in code.items() if data} == PROGRAMS


def test_calls_no_function_but_the_kernels(built: list[Section]) -> None:
    for section in built:
        if section.name not in PROGRAMS:
            continue
        for code, registers, _, _ in struct.iter_unpack("<BBhi", section.data):
            assert code != CALL or registers >> 4 == 0


def test_needs_no_relocation_but_of_maps(built: list[Section]) -> None:
    found = 0
    for section in built:
        if section.kind == SHT_REL and built[section.applies_to].name in PROGRAMS:
            for _, info in struct.iter_unpack("<QQ", section.data):
                assert info & 0xFFFFFFFF == MAP
                found += 1
    assert found > 10
    # The end of the header of what the compiler tells of types: CO-RE's relocations.
    (ext,) = (section.data for section in built if section.name == ".BTF.ext")
    (header,) = struct.unpack_from("<I", ext, 4)
    core = struct.unpack_from("<I", ext, 28)[0] if header >= 32 else 0
    assert core == 0
