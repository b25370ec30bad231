# SPDX-License-Identifier: GPL-2.0-only
"""Real QUIC stacks, as neighbours: the commands of their servers and clients.

A client writes what it gets into a named pipe that the agent reads, so goodput is what an
application would have, whatever was lost and sent again.
"""

import hashlib
import importlib.metadata
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from drwalab import extras


class StackError(Exception):
    """A stack that is not on this machine; the text says how it gets there."""


# Of the first one's server; the agent's own are from 5000 on.
PORT = 4433
# More than any run brings.
_BULK_BYTES = 10**11
OBJECT_BYTES = 500_000
SEGMENT_BYTES = 2_000_000
SEGMENT_S = 4
_H3LOAD = Path(__file__).with_name("h3load.py")
_RUN_H3LOAD = shlex.join([sys.executable, str(_H3LOAD)])
_POLL = Path(__file__).parents[1] / "guest" / "preload" / "poll.c"
BUILD_POLL = (
    f"[ -e /run/poll.so ] || gcc -O2 -shared -fPIC -o /run/poll.so {shlex.quote(str(_POLL))}"
)
WITH_POLL = "env LD_PRELOAD=/run/poll.so"
_QUIET = "--quiet --no-quic-dump --no-http-dump"


@dataclass(frozen=True)
class Load:
    """Somebody's stack with a congestion control, and what is fetched over it."""

    stack: str
    cc: str
    fetches: str = "bulk"


LOADS = {
    "ngtcp2": Load("ngtcp2", "cubic"),
    "ngtcp2-bbr": Load("ngtcp2", "bbr"),
    "ngtcp2-objects": Load("ngtcp2", "cubic", "objects"),
    "aioquic": Load("aioquic", "cubic"),
    "aioquic-video": Load("aioquic", "cubic", "video"),
}
# Debian's server is where an ordinary user's PATH does not lead.
_GUEST_PATH = "/usr/sbin:/usr/bin"
NGTCP2_PACKAGES = ("ngtcp2-server", "ngtcp2-client")


def pipe(number: int) -> str:
    """Where the client of a neighbour writes."""
    return f"/run/neighbour-{number}"


def client_script(number: int) -> str:
    """File name of a client's commands in the run's folder."""
    return f"neighbour-{number}.sh"


def server(number: int, load: Load, address: str) -> list[str]:
    """Lines that make the pipe and start the server, in the name space of that name."""
    port = PORT + number
    lines = [
        f"mkfifo {pipe(number)}",
        "[ -e /run/quic.key ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
        "-nodes -subj /CN=server -days 3650 -keyout /run/quic.key -out /run/quic.pem 2>/dev/null",
    ]
    if load.stack == "ngtcp2":
        name = OBJECT_BYTES if load.fetches == "objects" else _BULK_BYTES
        command = (
            f"{WITH_POLL} gtlsserver {_QUIET} --cc={load.cc} --max-dyn-length=1000G "
            f"{address} {port} /run/quic.key /run/quic.pem"
        )
        lines += [
            BUILD_POLL,
            f"mkdir /run/download-{number}",
            f"ln -s {pipe(number)} /run/download-{number}/{name}",
        ]
    else:
        command = f"{_RUN_H3LOAD} serve {address} {port} {load.cc} /run/quic.key /run/quic.pem"
    return [*lines, f"nsenter --net=/run/netns/server {command} >/dev/null 2>&1 &"]


def client(number: int, load: Load, address: str) -> str:
    """What the phone runs; it ends with the run."""
    port = PORT + number
    host = f"[{address}]" if ":" in address else address
    if load.stack == "ngtcp2":
        command = (
            f"{WITH_POLL} gtlsclient {_QUIET} --exit-on-all-streams-close "
            f"--download=/run/download-{number} {address} {port} https://{host}:{port}"
        )
        if load.fetches == "objects":
            return f"while {command}/{OBJECT_BYTES}; do :; done >/dev/null 2>&1\n"
        return f"exec {command}/{_BULK_BYTES} >/dev/null 2>&1\n"
    size, every_s = (SEGMENT_BYTES, SEGMENT_S) if load.fetches == "video" else (0, 0)
    return (
        f"exec {_RUN_H3LOAD} fetch {address} {port} {size} {every_s} "
        f"{pipe(number)} 2>{client_script(number)}.log\n"
    )


@cache
def version(stack: str) -> str:
    """A stack's version on this machine; raises StackError where it is missing."""
    if stack == "aioquic":
        extras.need("aioquic")
        return importlib.metadata.version("aioquic")
    if not all(shutil.which(name, path=_GUEST_PATH) for name in ("gtlsserver", "gtlsclient")):
        raise StackError(
            f"--neighbour: {stack} is not here: kernel/lab/packages {' '.join(NGTCP2_PACKAGES)}"
        )
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Version}", NGTCP2_PACKAGES[0]],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout or "of unknown version"


def versions(kinds: Sequence[str]) -> list[str]:
    """Stacks that neighbours of these kinds need, with their versions."""
    stacks = sorted({LOADS[kind].stack for kind in kinds if kind in LOADS})
    return [f"{stack} {version(stack)}" for stack in stacks]


def key_words(kinds: Sequence[str]) -> list[str]:
    """All that a run beside neighbours of these kinds depends on, besides the rest of the lab."""
    found = versions(kinds)
    files = [Path(__file__), _H3LOAD, _POLL] if found else []
    return found + [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
