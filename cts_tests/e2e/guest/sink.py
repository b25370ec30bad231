#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server that takes an upload, and writes down how much has come, "microseconds bytes"."""

import socket
import time
from pathlib import Path

# None of the agent's
PORT = 5300
INTERVAL_S = 0.25

with (
    socket.create_server(("", PORT)) as listener,
    Path("uploaded").open("w", buffering=1) as out,
):
    connection, _ = listener.accept()
    received, next_s = 0, time.monotonic()
    while data := connection.recv(1 << 16):
        received += len(data)
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + INTERVAL_S
            out.write(f"{time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000} {received}\n")
