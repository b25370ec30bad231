# SPDX-License-Identifier: Apache-2.0
"""Interfaces of a phone that are tuns, and servers behind them whose packets this process makes.

The kernel that this runs on is the phone. A server sends a download over a link with a rate, a
delay and a queue without end, and keeps what the phone's segments offer.
"""

import ctypes
import fcntl
import heapq
import itertools
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

CLONE_NEWNET = 0x40000000
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
TUNSETIFF = 0x400454CA
PR_SET_TIMERSLACK = 29
SO_RCVBUFFORCE = 33
TUN_DEVICES = (Path("/dev/tun"), Path("/dev/net/tun"))

# Bytes of the headers that every packet has
IP_HEADER = {4: 20, 6: 40}
TCP_HEADER = 20
TIMESTAMP_OPTION = 12

SEQUENCE_NUMBERS = 1 << 32
# So that every download crosses the end of the sequence numbers, and of the timestamps.
SERVER_ISN = SEQUENCE_NUMBERS - 50_000
TIMESTAMP_OFFSET = SEQUENCE_NUMBERS - 1000
# RFC 6928
INITIAL_SEGMENTS = 10
MAX_UNSCALED = 65535
SYN, RST, ACK = 0x02, 0x04, 0x10


def enter_new_network() -> None:
    """Moves this process to a network of its own, so that nothing of the machine's changes.

    Raises OSError if it may not.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot make a network name space: {os.strerror(number)}")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def keep_time() -> None:
    """Lets this process sleep to the microsecond: a real-time task without timer slack."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)


class Loop:
    """Calls back by the clock, in whole microseconds, and when files have something to read."""

    def __init__(self) -> None:
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._readers: dict[int, Callable[[], None]] = {}

    @property
    def now_us(self) -> int:
        """The time, of a clock that never steps."""
        return time.monotonic_ns() // 1000

    def after(self, delay_us: int, what: Callable[[], None]) -> None:
        """Calls back once."""
        heapq.heappush(self._events, (self.now_us + delay_us, next(self._order), what))

    def on_readable(self, file: int, what: Callable[[], None]) -> None:
        """Calls back until ignore()."""
        self._readers[file] = what

    def ignore(self, file: int) -> None:
        """Ends what on_readable() began."""
        self._readers.pop(file, None)

    def run(self, seconds: float) -> None:
        """Runs for a time."""
        self._run_until(self.now_us + round(seconds * 1e6))

    def run_to_whole_second(self) -> None:
        """Runs until the clock is where others, such as TSval's, have a whole tick."""
        self._run_until(-(-self.now_us // 1_000_000) * 1_000_000)

    def _run_until(self, end_us: int) -> None:
        while (now_us := self.now_us) < end_us:
            if self._events and self._events[0][0] <= now_us:
                heapq.heappop(self._events)[2]()
                continue
            until_us = min(end_us, self._events[0][0]) if self._events else end_us
            # select() rounds up to the microsecond, and may not be given one more by the division.
            timeout_s = (until_us - now_us - 0.5) / 1e6
            for file in select.select(list(self._readers), [], [], timeout_s)[0]:
                if file in self._readers:
                    self._readers[file]()


@dataclass
class Link:
    """The way down to the phone and up from it; half of the RTT is on each way.

    Of every late_every segments, one takes late_us longer than the others.
    """

    rate_bps: float
    rtt_s: float
    late_every: int = 0
    late_us: int = 30_000
    _free_us: int = 0
    _count: int = 0

    @property
    def way_us(self) -> int:
        """How long one way takes."""
        return round(self.rtt_s * 1e6 / 2)

    def down_us(self, now_us: int, size: int) -> int:
        """How long a packet of so many bytes takes that is sent now."""
        self._free_us = max(now_us, self._free_us) + round(size * 8e6 / self.rate_bps)
        self._count += 1
        late = self.late_every and self._count % self.late_every == 0
        return self._free_us - now_us + self.way_us + (self.late_us if late else 0)


class Interface:
    """A tun of the phone's, up, with an IPv4 and an IPv6 network, and the link behind it."""

    def __init__(self, loop: Loop, name: str, number: int, link: Link, mtu: int = 1500) -> None:
        """number: 1 to 254, makes the addresses."""
        self.loop = loop
        self.name = name
        self.link = link
        self.mtu = mtu
        self.number = number
        self.servers: dict[tuple[int, int], Server] = {}
        device = next(path for path in TUN_DEVICES if path.exists())
        self._file = os.open(device, os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
        fcntl.ioctl(self._file, TUNSETIFF, request)
        _ip("addr", "add", f"{self.phone(4)}/24", "dev", name)
        _ip("addr", "add", f"{self.phone(6)}/64", "dev", name, "nodad")
        _ip("link", "set", name, "mtu", str(mtu), "up")
        loop.on_readable(self._file, self._read)

    def close(self) -> None:
        """Takes the interface away."""
        self.loop.ignore(self._file)
        os.close(self._file)

    def phone(self, version: int) -> str:
        """The phone's address."""
        return self._address(version, 2)

    def server(self, version: int) -> str:
        """The address of all servers."""
        return self._address(version, 1)

    def _address(self, version: int, host: int) -> str:
        if version == 4:
            return f"10.77.{self.number}.{host}"
        return f"2001:db8:{self.number:x}::{host}"

    def send(self, packet: bytes) -> None:
        """Gives the phone a packet, now."""
        os.write(self._file, packet)

    def _read(self) -> None:
        data = os.read(self._file, self.mtu)
        version = data[0] >> 4
        packet = IP(data) if version == 4 else IPv6(data)
        if TCP in packet and (version, packet[TCP].dport) in self.servers:
            self.servers[version, packet[TCP].dport].saw(packet[TCP])


@dataclass(frozen=True)
class Offer:
    """What one segment of the phone's offered, in bytes of the stream, and when."""

    at_us: int
    acked: int
    window: int

    @property
    def edge(self) -> int:
        """The first byte of the stream that the server may not send yet."""
        return self.acked + self.window


class Server:
    """The server's end of a connection, over which it sends a download without end.

    It follows slow start and the offered window, and loses nothing. offers are those of the phone's
    segments, in order; moved_back are those whose right edge is before that of the one ahead.
    """

    def __init__(
        self,
        interface: Interface,
        version: int,
        port: int,
        timestamps: bool = True,
        scaling: bool = True,
        segment: int = 0,
    ) -> None:
        """segment: bytes of the stream in each packet; 0: as many as fit."""
        self._segment = segment
        self.interface = interface
        self.version = version
        self.link = interface.link
        self.loop = interface.loop
        self.port = port
        self.timestamps = timestamps
        self.scaling = scaling
        self.offers: list[Offer] = []
        self.moved_back: list[Offer] = []
        # When, and how long
        self.rtts_us: list[tuple[int, int]] = []
        self.phone_scale: int | None = None
        # Bytes of the server's stream, of which the SYN is none
        self._sent = self._acked = self._edge = 0
        self._cwnd = INITIAL_SEGMENTS * self.mss
        self._phone_port = self._phone_next = self._echo = 0
        self._template = b""
        interface.servers[version, port] = self

    @property
    def mss(self) -> int:
        """Bytes of the stream in a packet."""
        if self._segment:
            return self._segment
        return self._advertised_mss - (TIMESTAMP_OPTION if self.timestamps else 0)

    @property
    def _advertised_mss(self) -> int:
        return self.interface.mtu - IP_HEADER[self.version] - TCP_HEADER

    @property
    def scale(self) -> int:
        """By which the phone's windows are scaled."""
        return self.phone_scale or 0

    @property
    def rate(self) -> float:
        """What the link can carry of the stream, bytes/s."""
        return self.link.rate_bps / 8 * self.mss / self.interface.mtu

    def use_timestamps(self, timestamps: bool) -> None:
        """Goes on with timestamps or without them, whatever the handshake said."""
        self.timestamps = timestamps
        self._template = b""

    def connect(self, phone_port: int) -> None:
        """Opens the connection to a socket of the phone's that listens."""
        self._phone_port = phone_port
        self._send_handshake(SYN, -1)

    def saw(self, segment: TCP) -> None:
        """Takes what the phone has just sent."""
        # It offers nothing, and the server that gets it has nothing more to send.
        if segment.flags & RST:
            return
        options = dict(segment.options)
        acked = (segment.ack - SERVER_ISN - 1) % SEQUENCE_NUMBERS if segment.flags & ACK else 0
        shift = self.scale
        if segment.flags & SYN:
            shift = 0
            self._phone_port = segment.sport
            self._phone_next = (segment.seq + 1) % SEQUENCE_NUMBERS
            self.phone_scale = options.get("WScale") if self.scaling else None
        offer = Offer(self.loop.now_us, acked, segment.window << shift)
        if self.offers and offer.edge < self.offers[-1].edge:
            self.moved_back.append(offer)
        self.offers.append(offer)
        flags = int(segment.flags)
        self.loop.after(self.link.way_us, lambda: self._take(offer, flags, options))

    def _take(self, offer: Offer, flags: int, options: dict[str, tuple[int, int]]) -> None:
        """What the phone sent comes to the server."""
        self._edge = max(self._edge, offer.edge)
        if "Timestamp" in options:
            self._echo = options["Timestamp"][0]
        if flags & SYN:
            if flags & ACK:
                self._send_handshake(ACK, 0)
            else:
                self._send_handshake(SYN | ACK, -1)
        if not flags & ACK:
            return
        if self.timestamps and offer.acked > self._acked:
            sent_ms = (options["Timestamp"][1] - TIMESTAMP_OFFSET) % SEQUENCE_NUMBERS
            now_us = self.loop.now_us
            self.rtts_us.append((now_us, now_us - sent_ms * 1000))
        self._cwnd += offer.acked - self._acked
        self._acked = offer.acked
        while self._sent + self.mss <= min(self._acked + self._cwnd, self._edge):
            self.send_data(self._sent)
            self._sent += self.mss

    def _send_handshake(self, flags: int, first: int) -> None:
        options: list[tuple[str, int | tuple[int, int]]] = []
        if flags & SYN:
            options.append(("MSS", self._advertised_mss))
            if self.scaling:
                options.append(("WScale", 0))
        if self.timestamps:
            options.append(("Timestamp", (self._clock(), self._echo)))
        acknowledged = self._phone_next if flags & ACK else 0
        self._deliver(self._packet(flags, first, acknowledged, options))

    def send_data(self, first: int) -> None:
        """A full segment: a template with other numbers, as scapy would take long to make each."""
        header = IP_HEADER[self.version]
        if not self._template:
            options = [("Timestamp", (0, 0))] if self.timestamps else []
            zero = -SERVER_ISN - 1
            self._template = self._packet(ACK, zero, 0, options, bytes(self.mss))
        packet = bytearray(self._template)
        sequence = (SERVER_ISN + 1 + first) % SEQUENCE_NUMBERS
        numbers = [(header + 4, sequence), (header + 8, self._phone_next)]
        if self.timestamps:
            option = header + TCP_HEADER + 2
            numbers += [(option, self._clock()), (option + 4, self._echo)]
        (checksum,) = struct.unpack_from("!H", packet, header + 16)
        total = checksum ^ 0xFFFF
        for offset, number in numbers:
            struct.pack_into("!I", packet, offset, number)
            total += (number >> 16) + (number & 0xFFFF)
        while total > 0xFFFF:
            total = (total >> 16) + (total & 0xFFFF)
        struct.pack_into("!H", packet, header + 16, total ^ 0xFFFF)
        self._deliver(bytes(packet))

    def _packet(
        self,
        flags: int,
        first: int,
        acknowledged: int,
        options: Sequence[tuple[str, int | tuple[int, int]]],
        payload: bytes = b"",
    ) -> bytes:
        protocol = IP if self.version == 4 else IPv6
        source, target = self.interface.server(self.version), self.interface.phone(self.version)
        segment = TCP(
            sport=self.port,
            dport=self._phone_port,
            seq=(SERVER_ISN + 1 + first) % SEQUENCE_NUMBERS,
            ack=acknowledged,
            flags=flags,
            window=MAX_UNSCALED,
            options=list(options),
        )
        return bytes(protocol(src=source, dst=target) / segment / Raw(payload))

    def _clock(self) -> int:
        return (self.loop.now_us // 1000 + TIMESTAMP_OFFSET) % SEQUENCE_NUMBERS

    def _deliver(self, packet: bytes) -> None:
        way_down_us = self.link.down_us(self.loop.now_us, len(packet))
        self.loop.after(way_down_us, lambda: self.interface.send(packet))


class Application:
    """The phone's end: a socket, and whoever reads from it."""

    def __init__(self, loop: Loop, version: int) -> None:
        self.loop = loop
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.read_bytes = 0

    def clamp(self, size: int) -> None:
        """Bounds the window, in bytes, and with it the scale that a SYN asks for."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, size)

    def set_buffer(self, size: int) -> None:
        """Sets the receive buffer, in bytes, beyond what users without privileges may."""
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, size)

    @property
    def buffer(self) -> int:
        """The receive buffer, bytes."""
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    @property
    def window_clamp(self) -> int:
        """What bounds the window, bytes."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)

    def connect(self, server: Server) -> None:
        """Opens a connection and reads whatever comes."""
        # By the interface, as a phone's sockets are bound to a network.
        self.socket.bind((server.interface.phone(server.version), 0))
        self.socket.connect_ex((server.interface.server(server.version), server.port))
        self.read()

    def accept(self, server: Server) -> None:
        """Lets a server open a connection, and reads whatever comes."""
        listener = self.socket
        listener.bind((server.interface.phone(server.version), 0))
        listener.listen()
        server.connect(listener.getsockname()[1])
        self.loop.on_readable(listener.fileno(), lambda: self._accepted(listener))

    def _accepted(self, listener: socket.socket) -> None:
        self.loop.ignore(listener.fileno())
        self.socket, _ = listener.accept()
        self.socket.setblocking(False)
        listener.close()
        self.read()

    def read(self) -> None:
        """Reads from now on."""
        self.loop.on_readable(self.socket.fileno(), self._read)

    def pause(self) -> None:
        """Reads nothing until read()."""
        self.loop.ignore(self.socket.fileno())

    def _read(self) -> None:
        self.read_bytes += len(self.socket.recv(1 << 20))

    def close(self) -> None:
        """Ends the connection at once: the next one must not meet what is left of it."""
        if self.socket.fileno() == -1:
            return
        self.loop.ignore(self.socket.fileno())
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
