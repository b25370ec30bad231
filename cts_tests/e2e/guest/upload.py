#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An app that uploads without an end, as a backup of photos does for a while."""

import socket
import time

SERVER = ("10.0.1.1", 5300)


def connect() -> socket.socket:
    while True:
        try:
            return socket.create_connection(SERVER)
        except ConnectionRefusedError:
            # The server starts at the same moment.
            time.sleep(0.1)


with connect() as connection:
    while True:
        connection.sendall(bytes(1 << 16))
