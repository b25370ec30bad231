# SPDX-License-Identifier: GPL-2.0-only
"""HTTP/3 by aioquic: a server of as many bytes as the path says, and a client that fetches them.

    h3load.py serve ADDRESS PORT CC KEY CERTIFICATE
    h3load.py fetch ADDRESS PORT BYTES SECONDS FILE

The client asks for BYTES every SECONDS, or when it has them if that is later; with 0, without a
pause, in requests of which two are always under way. All that comes is written into FILE.
"""

import asyncio
import os
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

# One that is left takes over before the next has come.
BULK_REQUEST_BYTES = 8 << 20
# As Chromium has: 15 MiB for a connection, 6 MiB for a stream.
MAX_DATA, MAX_STREAM_DATA = 15 << 20, 6 << 20


class _Http(QuicConnectionProtocol):
    http: H3Connection | None = None

    def http_events(self, event: QuicEvent) -> list[H3Event]:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        return self.http.handle_event(event) if self.http else []


class Server(_Http):
    def quic_event_received(self, event: QuicEvent) -> None:
        for each in self.http_events(event):
            if isinstance(each, HeadersReceived):
                self.answer(each)

    def answer(self, request: HeadersReceived) -> None:
        assert self.http
        size = int(dict(request.headers)[b":path"].removeprefix(b"/"))
        fields = [(b":status", b"200"), (b"content-length", str(size).encode())]
        self.http.send_headers(request.stream_id, fields)
        self.http.send_data(request.stream_id, bytes(size), end_stream=True)
        self.transmit()


class Client(_Http):
    file = -1
    ended: asyncio.Queue[int]

    def fetch(self, size: int) -> None:
        assert self.http
        stream = self._quic.get_next_available_stream_id()
        fields = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"server"),
            (b":path", f"/{size}".encode()),
        ]
        self.http.send_headers(stream, fields, end_stream=True)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        for each in self.http_events(event):
            if isinstance(each, DataReceived):
                os.write(self.file, each.data)
            if isinstance(each, DataReceived | HeadersReceived) and each.stream_ended:
                self.ended.put_nowait(each.stream_id)


async def run_server(address: str, port: int, cc: str, key: str, certificate: str) -> None:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=H3_ALPN, congestion_control_algorithm=cc
    )
    configuration.load_cert_chain(certificate, key)
    await serve(address, port, configuration=configuration, create_protocol=Server)
    await asyncio.Event().wait()


async def run_client(address: str, port: int, size: int, every_s: float, path: str) -> None:
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=H3_ALPN,
        verify_mode=ssl.CERT_NONE,
        max_data=MAX_DATA,
        max_stream_data=MAX_STREAM_DATA,
    )
    async with connect(
        address, port, configuration=configuration, create_protocol=Client
    ) as client:
        assert isinstance(client, Client)
        client.file = os.open(path, os.O_WRONLY)
        client.ended = asyncio.Queue()
        if not size:
            client.fetch(BULK_REQUEST_BYTES)
        due = asyncio.get_running_loop().time()
        while True:
            client.fetch(size or BULK_REQUEST_BYTES)
            await client.ended.get()
            due += every_s
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))


def main(words: list[str]) -> int:
    match words:
        case ["serve", address, port, cc, key, certificate]:
            asyncio.run(run_server(address, int(port), cc, key, certificate))
        case ["fetch", address, port, size, every_s, path]:
            asyncio.run(run_client(address, int(port), int(size), float(every_s), path))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
