# SPDX-License-Identifier: Apache-2.0
"""What governs a phone's interfaces, the kernel's knob or the BPF programs, as root sets it.

The knob is the series', below /proc/sys/net/ipv4/conf/; the programs have a loader, kernel/bpf.
"""

import ctypes
import json
import os
import shlex
import struct
import subprocess
from pathlib import Path
from typing import Protocol

CONF = Path("/proc/sys/net/ipv4/conf")
COUNTERS = Path("/proc/net/tcp_drwa")

BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_GET_NEXT_KEY = 1, 2, 4
BPF_OBJ_GET, BPF_OBJ_GET_INFO_BY_FD = 7, 15
# Of struct bpf_map_info: type, id, size of keys and of values
MAP_INFO = struct.Struct("4I")
# struct drwa_dev: λ, queue's number, place, queue's place, l2, priority, clsact, local,
# aqm and echo
DEV = struct.Struct("5IH2B2I")
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}


class Governor(Protocol):
    """λ in hundredths, 0 for off, and the queue, of interfaces by name."""

    def set_lambda(self, interface: str, hundredths: int) -> None: ...

    def set_queue(self, interface: str, number: int) -> None: ...

    def line(self, interface: str) -> dict[str, str]:
        """What is set and was counted, with the keys of /proc/net/tcp_drwa."""
        ...


class Knob:
    """The series' files."""

    def set_lambda(self, interface: str, hundredths: int) -> None:
        (CONF / interface / "tcp_drwa_lambda").write_text(str(hundredths))

    def set_queue(self, interface: str, number: int) -> None:
        (CONF / interface / "tcp_drwa_queue").write_text(str(number))

    def line(self, interface: str) -> dict[str, str]:
        for line in COUNTERS.read_text().splitlines():
            name, *pairs = line.split()
            if name == interface:
                return dict(pair.split("=", 1) for pair in pairs)
        # Nobody turned a knob there.
        return dict.fromkeys(("lambda", "queue", "sockets", "rounds", "capped"), "0")


class Map:
    """A pinned map of the kernel's, with keys of 32 bits."""

    def __init__(self, path: str) -> None:
        name = ctypes.create_string_buffer(path.encode())
        self._file = bpf(BPF_OBJ_GET, ctypes.addressof(name))
        info = ctypes.create_string_buffer(MAP_INFO.size)
        words = self._file | MAP_INFO.size << 32, ctypes.addressof(info)
        bpf(BPF_OBJ_GET_INFO_BY_FD, *words)
        *_, self._size = MAP_INFO.unpack(info.raw)

    def get(self, key: int) -> bytes | None:
        value = ctypes.create_string_buffer(self._size)
        return value.raw if self._call(BPF_MAP_LOOKUP_ELEM, key, value) else None

    def put(self, key: int, value: bytes) -> None:
        if len(value) != self._size:
            raise ValueError(f"a value of {len(value)} bytes, of {self._size}")
        content = ctypes.create_string_buffer(value, len(value))
        self._call(BPF_MAP_UPDATE_ELEM, key, content)

    def keys(self) -> set[int]:
        """What changes meanwhile may be among them or not."""
        found: set[int] = set()
        key = ctypes.c_uint32()
        before = 0
        while True:
            try:
                bpf(BPF_MAP_GET_NEXT_KEY, self._file, before, ctypes.addressof(key))
            except FileNotFoundError:
                return found
            found.add(key.value)
            before = ctypes.addressof(key)

    def _call(self, command: int, key: int, value: "ctypes.Array[ctypes.c_char]") -> bool:
        """Whether there is such a key."""
        key_at = ctypes.c_uint32(key)
        try:
            bpf(command, self._file, ctypes.addressof(key_at), ctypes.addressof(value))
        except FileNotFoundError:
            return False
        return True


def bpf(command: int, *words: int) -> int:
    """bpf(2) with attributes of 64 bits each; raises OSError."""
    attributes = struct.pack(f"{len(words)}Q", *words).ljust(128, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(BPF_SYSCALL[os.uname().machine], command, attributes, 128))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf() command {command}: {os.strerror(number)}")
    return result


class Filters:
    """The BPF programs, by their loader."""

    def __init__(self, loader: str) -> None:
        self._loader = shlex.split(loader)

    def set_lambda(self, interface: str, hundredths: int) -> None:
        self._run("attach", interface, "--lambda", str(hundredths / 100))

    def set_queue(self, interface: str, number: int) -> None:
        lambda_ = str(int(self.line(interface)["lambda"]) / 100)
        self._run("attach", interface, "--lambda", lambda_, "--queue", str(number))

    def line(self, interface: str) -> dict[str, str]:
        found = json.loads(subprocess.check_output([*self._loader, "status", "--json"]))
        for dev in found["interfaces"]:
            if dev["interface"] == interface:
                break
        else:
            # Nobody attached to it.
            return dict.fromkeys(("lambda", "queue", "sockets", "rounds", "capped"), "0")
        line = {key: str(dev[key]) for key in ("queue", "rounds", "capped")}
        line |= {"lambda": str(round(dev["lambda"] * 100)), "sockets": str(dev["flows"])}
        bins = {key: dev[f"{key}_log2"] for key in ("delay_us", "rtt_us")}
        return line | {key: ",".join(map(str, values)) for key, values in bins.items()}

    def _run(self, command: str, interface: str, *options: str) -> None:
        subprocess.check_call([*self._loader, command, "--interface", interface, *options])


def find(interface: str) -> Governor | str:
    """What governs this interface, which exists, or why nothing does."""
    knob = CONF / interface / "tcp_drwa_lambda"
    if knob.exists():
        return Knob()
    loader = os.environ.get("DRWA_TC_LOADER")
    if loader:
        filters = Filters(loader)
        # A connection's SYN is to be seen, whenever it is governed.
        filters.set_lambda(interface, 0)
        return filters
    return f"this kernel lacks DRWA: no {knob}, and no programs, whose loader DRWA_TC_LOADER names"
