# SPDX-License-Identifier: Apache-2.0
"""What governs a phone's interfaces, the kernel's knob or the BPF programs, as root sets it.

The knob is the series', below /proc/sys/net/ipv4/conf/; the programs' maps are pinned by Android's
loader or by drwa-bpf, and kernel/bpf/drwa.h has what is in them. The tc programs
have a loader of their own, kernel/bpf/tc.
"""

import ctypes
import json
import os
import shlex
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Protocol

CONF = Path("/proc/sys/net/ipv4/conf")
COUNTERS = Path("/proc/net/tcp_drwa")
# The prefixes of the maps' names, where they are pinned
PINNED = ("/sys/fs/bpf/netd_readonly/map_drwa_drwa_", "/sys/fs/bpf/drwa/drwa_")

BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY = 1, 2, 3, 4
BPF_OBJ_GET = 7
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
SO_NETNS_COOKIE = 71
BINS = 14
# struct drwa_dev, and struct drwa_stats
DEV = struct.Struct("II")
STATS = struct.Struct(f"{5 + 2 * BINS}Q")
COUNTS = ("came", "sockets", "rounds", "clamps", "refused")


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

    def get(self, key: int, size: int) -> bytes | None:
        value = ctypes.create_string_buffer(size)
        return value.raw if self._call(BPF_MAP_LOOKUP_ELEM, key, value) else None

    def put(self, key: int, value: bytes) -> None:
        content = ctypes.create_string_buffer(value, len(value))
        self._call(BPF_MAP_UPDATE_ELEM, key, content)

    def delete(self, key: int) -> None:
        self._call(BPF_MAP_DELETE_ELEM, key, None)

    def all_keys(self) -> list[int]:
        found: list[int] = []
        following = ctypes.create_string_buffer(4)
        while self._call(BPF_MAP_GET_NEXT_KEY, found[-1] if found else None, following):
            found.append(int.from_bytes(following.raw, sys.byteorder))
        return found

    def _call(
        self, command: int, key: int | None, value: "ctypes.Array[ctypes.c_char] | None"
    ) -> bool:
        """Whether there is such a key."""
        key_at = None if key is None else ctypes.c_uint32(key)
        addresses = [0 if x is None else ctypes.addressof(x) for x in (key_at, value)]
        try:
            bpf(command, self._file, *addresses)
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


class Programs:
    """The maps of BPF programs that are attached."""

    def __init__(self, prefix: str) -> None:
        self._devs = Map(f"{prefix}devs")
        self._stats = Map(f"{prefix}stats")
        if Path(f"{prefix}netns").exists():
            # drwa-bpf's are for one network name space: make it this one.
            with socket.socket() as any_socket:
                cookie = any_socket.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
            Map(f"{prefix}netns").put(0, cookie)

    def set_lambda(self, interface: str, hundredths: int) -> None:
        self._forget_gone()
        index = socket.if_nametoindex(interface)
        _, queue = self._dev(index)
        self._devs.put(index, DEV.pack(hundredths, queue))
        # Handshakes, whose interface is not known
        most = max(self._dev(each)[0] for each in self._devs.all_keys() if each)
        self._devs.put(0, DEV.pack(most, 0))

    def set_queue(self, interface: str, number: int) -> None:
        index = socket.if_nametoindex(interface)
        hundredths, _ = self._dev(index)
        self._devs.put(index, DEV.pack(hundredths, number))

    def line(self, interface: str) -> dict[str, str]:
        index = socket.if_nametoindex(interface)
        hundredths, queue = self._dev(index)
        counts = STATS.unpack(self._stats.get(index, STATS.size) or bytes(STATS.size))
        found = {"lambda": hundredths, "queue": queue}
        found |= dict(zip(COUNTS, counts[: len(COUNTS)], strict=True))
        bins = {"delay_us": counts[-2 * BINS : -BINS], "rtt_us": counts[-BINS:]}
        texts = {key: ",".join(map(str, values)) for key, values in bins.items()}
        return {key: str(value) for key, value in found.items()} | texts

    def _forget_gone(self) -> None:
        names = {index for index, _ in socket.if_nameindex()}
        for index in set(self._devs.all_keys()) - names - {0}:
            self._devs.delete(index)

    def _dev(self, index: int) -> tuple[int, int]:
        hundredths, queue = DEV.unpack(self._devs.get(index, DEV.size) or bytes(DEV.size))
        return hundredths, queue


class Filters:
    """The tc programs, by their loader."""

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
    for prefix in PINNED:
        if Path(f"{prefix}devs").exists():
            return Programs(prefix)
    return f"this kernel lacks DRWA: no {knob}, and no BPF programs at {' or '.join(PINNED)}*"
