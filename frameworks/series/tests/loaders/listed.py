#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: listed.py FOLDER <LIST

A model of the platform's loader after Android 16: takes the objects of a list, which listed.rs
prints, from a folder in place of /, as bpfloader.rs does by libbpf-rs. The rules are that

- an object that is not there is passed over;
- libbpf opens it, with the type of "skfilter/" set, and loads it;
- each map and program is pinned, by the object's name and its own; one that the list does not have
  ends the object;
- an error of an object that is not critical is logged, and no more.

It prints errors, and a line when it comes to what /vendor has.
"""

import ctypes
import os
import sys
from pathlib import Path

PINS = "/sys/fs/bpf/"
BPF_PROG_TYPE_SOCKET_FILTER = 1

libbpf = ctypes.CDLL("libbpf.so.1")
for function in (
    *("bpf_object__open", "bpf_object__next_program", "bpf_object__next_map", "bpf_program__name"),
    *("bpf_program__section_name", "bpf_map__name"),
):
    getattr(libbpf, function).restype = ctypes.c_void_p


class LoadError(Exception):
    """What the loader logs of an object."""


def check(result: int, what: str) -> None:
    if result < 0:
        raise LoadError(f"{what}: {os.strerror(-result)}")


def each(kind: str, handle: ctypes.c_void_p) -> list[tuple[str, ctypes.c_void_p]]:
    """The names and handles of an object's maps or programs."""
    found = []
    step = getattr(libbpf, f"bpf_object__next_{kind}")
    at = step(handle, None)
    while at:
        one = ctypes.c_void_p(at)
        name = ctypes.string_at(getattr(libbpf, f"bpf_{kind}__name")(one)).decode()
        found.append((name, one))
        at = step(handle, one)
    return found


def load(path: Path, prefix: str, listed: dict[str, set[str]]) -> None:
    if not path.exists():
        return
    handle = ctypes.c_void_p(libbpf.bpf_object__open(os.fspath(path).encode()))
    if not handle:
        raise LoadError("cannot be opened")
    for _, program in each("program", handle):
        section = ctypes.string_at(libbpf.bpf_program__section_name(program)).decode()
        if section.startswith("skfilter/"):
            libbpf.bpf_program__set_type(program, BPF_PROG_TYPE_SOCKET_FILTER)
    check(libbpf.bpf_object__load(handle), "cannot be loaded")
    for kind, short in (("map", "map"), ("program", "prog")):
        for name, one in each(kind, handle):
            if name.endswith(".rodata"):
                continue
            if name not in listed[short]:
                raise LoadError(f"Descriptor for {name} not found!")
            pin = f"{PINS}{prefix}{short}_{path.stem}_{name}"
            check(getattr(libbpf, f"bpf_{kind}__pin")(one, pin.encode()), pin)


def main(root: Path) -> int:
    libbpf.libbpf_set_print(None)
    for line in sys.stdin:
        path, *pairs = line.split()
        if not pairs:
            print(f"on to /{path}")
            continue
        words = [pair.split("=", 1) for pair in pairs]
        named = dict(words)
        listed = {
            kind: {value.split(":")[0] for key, value in words if key == kind}
            for kind in ("map", "prog")
        }
        try:
            load(root / path.lstrip("/"), named["prefix"], listed)
        except LoadError as e:
            print(f"Error when loading {path}: {e}")
            if named["critical"] == "true":
                return 1
    return 0


sys.exit(main(Path(sys.argv[1])))
