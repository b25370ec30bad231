#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: bulk.py PORT listen|connect send
       bulk.py PORT listen|connect take FILE

A transfer without an end, as a backup of photos is for a while, between the lab's server, which
listens, and an app, which connects. Who takes writes down how much has come, "microseconds bytes".
"""

import contextlib
import socket
import sys
import time
from pathlib import Path

SERVER = "10.0.1.1"
INTERVAL_S = 0.25


def connect(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((SERVER, port))
        except ConnectionRefusedError:
            # The server starts at the same moment.
            time.sleep(0.1)


def accept(port: int) -> socket.socket:
    with socket.create_server(("", port)) as listener:
        return listener.accept()[0]


def take(connection: socket.socket, path: Path) -> None:
    received, next_s = 0, time.monotonic()
    with path.open("w", buffering=1) as out:
        while data := connection.recv(1 << 16):
            received += len(data)
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + INTERVAL_S
                out.write(f"{time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000} {received}\n")


def main(port: str, side: str, way: str, *file: str) -> None:
    with (accept if side == "listen" else connect)(int(port)) as connection:
        if way == "take":
            take(connection, Path(file[0]))
            return
        # Until the other one is gone
        with contextlib.suppress(ConnectionError):
            while True:
                connection.sendall(bytes(1 << 16))


main(*sys.argv[1:])
