#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Two flows of UDP to ADDRESS, for selftest_uplink.sh: one mixes sizes, as QUIC does that also
downloads; one of short packets alone is a call. `take` prints how many packets of each were late,
and how long they took in the mean; `send` sends them.
"""

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

SIZES = {5001: (1200, 40), 5002: (40,)}
PACKETS = 600
# So many at once: more than the gate lets through.
BURST = 8
APART_S = 0.03
# Nothing comes after such a silence; the sender begins within it.
QUIET_S = 4
HEAD = struct.Struct("!Id")


def take(address: str, port: int) -> str:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, port))
    end.settimeout(QUIET_S)
    highest, late = -1, 0
    waits: list[float] = []
    try:
        while True:
            number, sent_s = HEAD.unpack(end.recv(2000)[: HEAD.size])
            late += number < highest
            highest = max(highest, number)
            waits.append(time.monotonic() - sent_s)
    except TimeoutError:
        wait_us = sum(waits) / max(len(waits), 1) * 1e6
        return f"port={port} late={late} count={len(waits)} wait_us={wait_us:.0f}"


def send(address: str, port: int) -> None:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((address, port))
    sizes = SIZES[port]
    for number in range(PACKETS):
        size = sizes[number % len(sizes)]
        end.send(HEAD.pack(number, time.monotonic()).ljust(size, bytes(1)))
        if number % BURST == BURST - 1:
            time.sleep(APART_S)


def main() -> None:
    what, address = sys.argv[1:]
    said: dict[int, str | None] = {}
    ends: dict[str, Callable[[str, int], str | None]] = {"take": take, "send": send}

    def run(port: int) -> None:
        said[port] = ends[what](address, port)

    threads = [threading.Thread(target=run, args=(port,)) for port in SIZES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for port in SIZES:
        if line := said[port]:
            print(line)


if __name__ == "__main__":
    main()
