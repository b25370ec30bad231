#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a kernel with DRWA offers on the wire: the windows of a phone's downloads.

Needs root, tun, network name spaces, and the kernel's knob or the BPF programs; what is missing is
the reason of skipped tests.
The links' rate and delay are made here, so nothing of the machine's speed is measured.

DRWA_VIRTUAL_TIME=1 says that the clock waits for the machine. Two equal runs then offer the same to
the byte, and have to.
"""

import itertools
import os
import statistics
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import governors
import tun_peer
from tun_peer import (
    MAX_UNSCALED,
    TIMESTAMP_OPTION,
    Application,
    Interface,
    Link,
    Loop,
    Offer,
    Server,
)

RATE_BPS = 3e6
RTT_S = 0.06
# The law has its window by then. The first DRAIN, which lowers it for a moment, is not before the
# third second, and not after the eighth.
SETTLED_S = 2.0
LOOK_S = 0.5
TICK_S = 0.001
TOLERANCE = 0.06
# What the law adds where rates differed for a while, and takes back slowly
ROOM = 0.35
MTU = 1500
# Least, first and largest receive buffer, bytes, as on a phone, and since Android 13
TCP_RMEM = "4096 131072 2097152"
TCP_RMEM_13 = "2097152 6291456 16777216"
# What the law lets come before it knows anything, and then for each byte that came
FIRST = 1 << 16
START_GAIN = 4
MAX_SCALE = 14
# What a governed connection may have, and the scale of that
GOVERNED_RMEM = 16 << 20
GOVERNED_SCALE = 9
CLASSIC = Path("/sys/module/tcp_drwa/parameters/classic")
IPV4 = Path("/proc/sys/net/ipv4")


def setUpModule() -> None:
    if not any(path.exists() for path in tun_peer.TUN_DEVICES):
        raise unittest.SkipTest("no tun")
    try:
        tun_peer.enter_new_network()
        tun_peer.keep_time()
    except OSError as error:
        raise unittest.SkipTest(str(error)) from None


class Base:
    """Hides the tests without a version of IP from those who load tests."""

    class Windows(unittest.TestCase):
        """An interface that is governed, rmnet_test0, and one that is not, wlan_test0."""

        version: int

        def setUp(self) -> None:
            (IPV4 / "tcp_rmem").write_text(TCP_RMEM)
            self.loop = Loop()
            self.servers: list[Server] = []
            self.cell = self.interface("rmnet_test0", 1)
            self.wifi = self.interface("wlan_test0", 2)
            found = governors.find(self.cell.name)
            if isinstance(found, str):
                self.skipTest(found)
            self.governor = found

        def interface(self, name: str, number: int, mtu: int = MTU) -> Interface:
            """Its link takes as many packets a second, whatever their size."""
            link = Link(RATE_BPS * mtu / MTU, RTT_S)
            interface = Interface(self.loop, name, number, link, mtu)
            self.addCleanup(interface.close)
            return interface

        def set_lambda(self, hundredths: int, interface: Interface | None = None) -> None:
            self.governor.set_lambda((interface or self.cell).name, hundredths)

        def series_alone(self, why: str) -> None:
            """Skips a test of what the programs do otherwise, see kernel/bpf/README.md."""
            if not isinstance(self.governor, governors.Knob):
                self.skipTest(f"not of the BPF programs: {why}")

        def set_classic(self, value: str) -> None:
            """Y: the paper's law, for all connections."""
            self.series_alone("they have one law")
            self.addCleanup(CLASSIC.write_text, CLASSIC.read_text())
            CLASSIC.write_text(value)

        def set_sysctl(self, name: str, value: int) -> None:
            """Below net.ipv4, until the test ends."""
            file = IPV4 / name
            if not file.exists():
                self.skipTest(f"no {file}")
            self.addCleanup(file.write_text, file.read_text())
            file.write_text(str(value))

        def line(self, interface: Interface | None = None) -> dict[str, str]:
            """What is set and was counted, as in /proc/net/tcp_drwa."""
            return self.governor.line((interface or self.cell).name)

        def counters(self, interface: Interface | None = None) -> dict[str, int]:
            """Of an interface: connections, rounds and, of the series, capped segments."""
            line = self.line(interface)
            return {key: int(line[key]) for key in ("sockets", "rounds", "capped") if key in line}

        def application(self) -> Application:
            application = Application(self.loop, self.version)
            self.addCleanup(application.close)
            return application

        def server(
            self, interface: Interface | None = None, timestamps: bool = True, scaling: bool = True
        ) -> Server:
            port = 8000 + len(self.servers)
            interface = interface or self.cell
            self.servers.append(Server(interface, self.version, port, timestamps, scaling))
            return self.servers[-1]

        def download(self, server: Server) -> Application:
            """A connection that the phone opens; its server sends as soon as the loop runs."""
            application = self.application()
            application.connect(server)
            return application

        def settled(self, hundredths: int, timestamps: bool = True, scaling: bool = True) -> Server:
            """A governed download whose window has come to rest."""
            self.set_lambda(hundredths)
            server = self.server(timestamps=timestamps, scaling=scaling)
            self.download(server)
            self.loop.run(SETTLED_S)
            return server

        def offers(self, server: Server, seconds: float = LOOK_S) -> list[Offer]:
            """Runs, and returns what was offered meanwhile."""
            before = len(server.offers)
            self.loop.run(seconds)
            self.check_right_edges()
            self.assertGreater(len(server.offers), before, "the phone is silent")
            return server.offers[before:]

        def window(self, server: Server) -> float:
            """DRAIN lowers it for two rounds, and takes as long to give it back."""
            seconds = max(3 * LOOK_S, 8 * server.link.rtt_s)
            return statistics.median(offer.window for offer in self.offers(server, seconds))

        def check_right_edges(self) -> None:
            """What was offered once stays offered, RFC 9293, 3.8.6."""
            for server in self.servers:
                self.assertEqual(server.moved_back, [])

        def law(self, server: Server, hundredths: float) -> float:
            """The window of the law in bytes, on a link of constant rate.

            λ bandwidth-delay products and the added segment. To the programs an RTT is half a tick
            less.
            """
            segment = server.mss + (TIMESTAMP_OPTION if server.timestamps else 0)
            less_s = 0.0 if isinstance(self.governor, governors.Knob) else TICK_S / 2
            return hundredths / 100 * server.rate * (server.link.rtt_s - less_s) + segment

        def assert_law(self, server: Server, hundredths: float, more: float = TOLERANCE) -> None:
            """It is rounded up to the unit of the window's scale."""
            expected = self.law(server, hundredths)
            window = self.window(server)
            self.assertGreater(window, (1 - TOLERANCE) * expected)
            self.assertLess(window, (1 + more) * expected + (1 << server.scale))

        def assert_stock(self, server: Server) -> None:
            """Linux's own window, which only grows, soon beyond what the link holds."""
            offers = self.offers(server)
            self.assertGreater(offers[-1].window, 3 * self.law(server, 150))
            windows = [offer.window for offer in offers]
            self.assertEqual(windows, sorted(windows))

        def assert_governed_by_rtts(self, server: Server) -> None:
            """They stand in for one-way delays."""
            self.assertLess(self.window(server), 2 * self.law(server, 150))

        def follows_the_law(self, hundredths: int) -> None:
            self.assert_law(self.settled(hundredths), hundredths)

        def test_queue(self) -> None:
            """The segments wait for half an RTT in a queue, with λ = 1.5."""
            server = self.settled(150)
            now_us = self.loop.now_us
            self.loop.run(LOOK_S)
            rtt_us = statistics.median(rtt_us for at_us, rtt_us in server.rtts_us if at_us > now_us)
            self.assertAlmostEqual(rtt_us / 1e6, 1.5 * RTT_S, delta=0.2 * RTT_S)

        def test_start_is_free(self) -> None:
            """Until a queue shows, slow start never meets the window."""
            for governed, stock in self.starts():
                self.assertGreaterEqual(len(stock), 12)
                # When the kernel ACKs two segments at a time, the window decides, too.
                self.assertAlmostEqual(governed[-1].acked, stock[-1].acked, delta=2 * MTU)

        def test_start_is_bounded(self) -> None:
            """By what came, which is far less than the buffers of Android 13 would let come."""
            for governed, _ in self.starts():
                for offer in governed:
                    self.assertLessEqual(offer.window, max(FIRST, START_GAIN * offer.acked))

        def starts(self) -> Iterator[tuple[list[Offer], list[Offer]]]:
            """What connections offer at first, governed and not; opened and accepted."""
            for rmem in TCP_RMEM, TCP_RMEM_13:
                (IPV4 / "tcp_rmem").write_text(rmem)
                for opens in Application.connect, Application.accept:
                    offers = []
                    for hundredths in 125, 0:
                        self.set_lambda(hundredths)
                        server = self.server()
                        application = self.application()
                        opens(application, server)
                        offers.append(self.offers(server, 4 * RTT_S))
                        application.close()
                        self.loop.run(1)
                    yield offers[0], offers[1]

        def test_base_of_the_handshake(self) -> None:
            """Of segments as small as these, TCP takes no RTT; the SYN's is there all the same."""
            self.set_lambda(150)
            for opens in Application.connect, Application.accept:
                before = self.counters()["sockets"]
                server = Server(self.cell, self.version, 8100, segment=60)
                application = self.application()
                opens(application, server)
                self.loop.run(5 * RTT_S)
                self.assertEqual(self.counters()["sockets"], before + 1)
                application.close()

        def test_what_nobody_asked_for(self) -> None:
            """A segment far beyond what was offered, as a blind attacker's, ends no government."""
            server = self.settled(150)
            server.send_data(1 << 30)
            self.loop.run(LOOK_S)
            self.cell.link.rate_bps = 2 * RATE_BPS
            self.loop.run(SETTLED_S)
            self.assert_law(server, 150, more=2 * TOLERANCE)

        def test_rate_rises(self) -> None:
            """Far beyond what the buffer had room for when the window was first held."""
            server = self.settled(150)
            self.cell.link.rate_bps = 8 * RATE_BPS
            self.loop.run(3)
            self.assertGreater(self.window(server), (1 - TOLERANCE) * self.law(server, 150))

        def test_rate_falls(self) -> None:
            server = self.settled(150)
            self.cell.link.rate_bps = RATE_BPS / 2
            self.loop.run(SETTLED_S)
            self.assert_law(server, 150)

        def test_shorter_path(self) -> None:
            """RTT without the queue is learned anew, in two DRAINs at most, 8.4 s apart."""
            server = self.settled(150)
            self.cell.link.rtt_s = RTT_S / 2
            self.loop.run(26)
            self.assert_law(server, 150, more=ROOM)

        def test_longer_path(self) -> None:
            """As after a handover: the next DRAIN finds it, and then the window holds the path."""
            server = self.settled(150)
            self.cell.link.rtt_s = 4 * RTT_S
            self.assertLess(self.window(server), server.rate * server.link.rtt_s)
            self.loop.run(18)
            self.assertGreater(self.window(server), server.rate * server.link.rtt_s)

        def test_switched_on(self) -> None:
            """While the queue is full: DRAIN takes a sixteenth of it a round."""
            server = self.server()
            self.download(server)
            self.loop.run(RTT_S * 8)
            self.assert_stock(server)
            self.set_lambda(150)
            self.loop.run(12)
            self.assert_law(server, 150, more=ROOM)

        def test_switched_off(self) -> None:
            """Here alone: the other interface's λ keeps the kernel's hooks at work."""
            self.set_lambda(150, self.wifi)
            server = self.settled(150)
            self.assert_law(server, 150)
            self.set_lambda(0)
            self.loop.run(SETTLED_S)
            self.assert_stock(server)

        def test_off_twice(self) -> None:
            """0 over 0 takes no other interface's λ off the count that keeps the hooks at work."""
            self.set_lambda(0)
            self.set_lambda(0)
            self.follows_the_law(150)

        def test_other_law(self) -> None:
            """Flipped while data flows, each starts anew: the paper's with the queue as its base,
            ours with Linux's own window.
            """
            server = self.settled(150)
            self.assert_law(server, 150)
            self.set_classic("Y")
            self.loop.run(3)
            self.assertGreater(self.window(server), 1.25 * self.law(server, 150))
            self.set_classic("N")
            self.assertGreater(self.window(server), 3 * self.law(server, 150))

        def test_changed(self) -> None:
            server = self.settled(200)
            self.set_lambda(125)
            self.loop.run(1)
            self.assert_law(server, 125)
            self.set_lambda(200)
            self.loop.run(1)
            # The queue, which is too short now, asks for room.
            self.assertGreater(self.window(server), (1 - TOLERANCE) * self.law(server, 200))

        def test_other_interface_is_stock(self) -> None:
            """λ of one interface moves no window of another."""

            def run() -> list[tuple[int, int]]:
                server = self.server(self.wifi)
                self.loop.run_to_whole_second()
                application = self.download(server)
                offers = [(offer.acked, offer.window) for offer in self.offers(server, 2)]
                application.close()
                self.loop.run(5)
                return offers

            stock = run()
            governed = self.settled(150)
            self.assert_law(governed, 150)
            beside = run()
            if os.environ.get("DRWA_VIRTUAL_TIME"):
                self.assertEqual(beside, stock)
            else:
                self.assertAlmostEqual(beside[-1][1], stock[-1][1], delta=stock[-1][1] / 4)

        def test_each_interface_has_its_own(self) -> None:
            self.set_lambda(200)
            self.set_lambda(125, self.wifi)
            self.wifi.link.rate_bps = RATE_BPS / 2
            servers = [self.server(), self.server(self.wifi)]
            for server in servers:
                self.download(server)
            self.loop.run(SETTLED_S)
            self.assert_law(servers[0], 200)
            self.assert_law(servers[1], 125)

        def test_late_segments(self) -> None:
            """Segments out of order; an ACK of nothing new offers what was offered."""
            self.cell.link.late_every = 40
            server = self.settled(150)
            offers = self.offers(server)
            self.assertLess(offers[-1].window, 2 * self.law(server, 150))
            repeated = [b for a, b in itertools.pairwise(offers) if a.acked == b.acked]
            self.assertGreater(len(repeated), 3)

        def test_reader_that_pauses(self) -> None:
            """It leaves a window unread at least, and no more than with Linux's own."""
            unread: dict[int, list[int]] = {0: [], 150: []}
            for hundredths in unread:
                self.set_lambda(hundredths)
                server = self.server()
                application = self.download(server)
                self.loop.run(SETTLED_S)
                for _ in range(3):
                    application.pause()
                    # Until the buffer is full.
                    self.loop.run(8)
                    left = server.offers[-1].acked - application.read_bytes
                    unread[hundredths].append(left)
                    application.read()
                    self.loop.run(1)
                application.close()
                self.loop.run(1)
            self.check_right_edges()
            for stock, governed in zip(unread[0], unread[150], strict=True):
                self.assertGreater(governed, self.law(server, 150))
                self.assertLessEqual(governed, 1.02 * stock)
            self.assertLess(unread[150][0], 8 * self.law(server, 150))

        def test_without_timestamps(self) -> None:
            server = self.settled(150, timestamps=False)
            self.assert_governed_by_rtts(server)

        def test_without_timestamps_by_the_papers_law(self) -> None:
            """It needs round trips alone, and takes those that the receiver measures."""
            self.set_classic("Y")
            before = self.counters()
            self.settled(150, timestamps=False)
            for name, count in self.counters().items():
                self.assertGreater(count, before[name], name)

        def test_without_timestamps_beside_others(self) -> None:
            self.settled(150)
            server = self.server(timestamps=False)
            self.download(server)
            self.loop.run(SETTLED_S)
            self.assert_governed_by_rtts(server)

        def test_set_buffer(self) -> None:
            """An application that sets its buffer gets that, without the law."""
            self.set_lambda(150)
            server = self.server()
            application = self.application()
            application.set_buffer(400_000)
            application.connect(server)
            self.loop.run(SETTLED_S)
            # At the interface nobody knows who chose a window.
            if isinstance(self.governor, governors.Filters):
                self.assert_law(server, 150)
            else:
                self.assert_stock(server)

        def test_buffer_and_clamp_grow_together(self) -> None:
            """A buffer without the clamp would hold the window to what it was before."""
            self.series_alone("the buffer is the kernel's own")
            self.set_lambda(150)
            server = self.server()
            application = self.download(server)
            self.loop.run(SETTLED_S)
            self.cell.link.rate_bps = 8 * RATE_BPS
            self.loop.run(SETTLED_S)
            law = self.law(server, 150)
            self.assertGreater(application.buffer, 2 * law)
            # Overhead takes up to three quarters of a buffer.
            self.assertGreaterEqual(application.window_clamp, application.buffer / 4)
            self.assertGreaterEqual(application.window_clamp, 2 * law)

        def test_buffer_grows_with_use(self) -> None:
            """A window twice and the overhead; not what the kernel could have."""
            self.set_lambda(150)
            server = self.server()
            application = self.download(server)
            self.loop.run(3 * SETTLED_S)
            self.assertLess(application.buffer, GOVERNED_RMEM / 16)

        def test_buffer_stays(self) -> None:
            """Where the kernel shall not tune buffers, it is what tcp_rmem says."""
            self.series_alone("the buffer is the kernel's own")
            self.set_sysctl("tcp_moderate_rcvbuf", 0)
            self.set_lambda(300)
            server = self.server()
            application = self.download(server)
            self.loop.run(4 * RTT_S)
            before = application.buffer, application.window_clamp
            self.loop.run(SETTLED_S)
            self.assertEqual((application.buffer, application.window_clamp), before)

        def test_clamp_is_the_applications(self) -> None:
            """Until the kernel's own tuning raises it, which ends with the growth of the rate."""
            clamp = 60_000
            application = self.download(self.server())
            self.loop.run(SETTLED_S)
            application.clamp(clamp)
            self.set_lambda(300)
            self.loop.run(SETTLED_S)
            self.assertEqual(application.window_clamp, clamp)

        def test_shrinking_allowed(self) -> None:
            """The right edge stays also where the kernel may move it back; DRAIN lowers windows."""
            server = self.settled(300)
            self.set_sysctl("tcp_shrink_window", 1)
            self.set_lambda(125)
            self.loop.run(10)
            self.check_right_edges()
            self.assert_law(server, 125, more=ROOM)

        def test_timestamps_go(self) -> None:
            """A server that sends none any more has none, and later has them again."""
            server = self.settled(150)
            self.assert_law(server, 150)
            server.use_timestamps(False)
            self.loop.run(SETTLED_S)
            self.assert_governed_by_rtts(server)
            server.use_timestamps(True)
            self.loop.run(20)
            self.assertLess(self.window(server), 2 * self.law(server, 150))

        def test_one_queue(self) -> None:
            """Interfaces of one radio, as 464xlat: all aim at the queue of the shortest path."""
            stacked = self.interface("v4-rmnet_test0", 3)
            stacked.link.rtt_s = 4 * RTT_S
            self.settled(150)
            self.set_lambda(150, stacked)
            server = self.server(stacked)
            self.download(server)
            for number, hundredths in (0, 150), (7, 100 + 50 / 4), (0, 150):
                for interface in self.cell, stacked:
                    self.governor.set_queue(interface.name, number)
                self.loop.run(3 * SETTLED_S)
                self.assert_law(server, hundredths, more=2 * TOLERANCE)

        def test_queue_of_its_own(self) -> None:
            """The default, and what an interface that comes again has."""
            gone = Interface(self.loop, "rmnet_test1", 3, Link(RATE_BPS, RTT_S))
            self.assertEqual(self.line(gone)["queue"], "0")
            self.governor.set_queue(gone.name, 7)
            self.set_lambda(150, gone)
            self.assertEqual(self.line(gone)["queue"], "7")
            gone.close()
            again = self.interface("rmnet_test1", 3)
            self.assertEqual(self.line(again)["queue"], "0")
            self.assertEqual(self.line(again)["lambda"], "0")

        def test_counters(self) -> None:
            """A connection is counted once, and only where it is governed."""
            before = self.counters()
            wifi = self.counters(self.wifi)
            self.set_lambda(150)
            self.download(self.server())
            self.download(self.server(self.wifi))
            self.loop.run(SETTLED_S)
            one = self.counters()
            self.loop.run(SETTLED_S)
            self.download(self.server())
            self.loop.run(SETTLED_S)
            two = self.counters()
            found = [each["sockets"] - before["sockets"] for each in (one, two)]
            self.assertEqual(found, [1, 2])
            for name in before.keys() - {"sockets"}:
                self.assertGreater(one[name], before[name] + 10)
                self.assertGreater(two[name], one[name] + 10)
            self.assertEqual(self.counters(self.wifi), wifi)

        def test_histograms(self) -> None:
            """Most rounds are in the bins of the path's RTT and of half as long a queue."""
            self.settled(150)
            self.loop.run(SETTLED_S)
            line = self.line()
            for key, expected_s in ("rtt_us", RTT_S), ("delay_us", RTT_S / 2):
                bins = [int(count) for count in line[key].split(",")]
                # Bin 0 holds what is less than 1024 us, each other one twice as much.
                expected = (int(expected_s * 1e6) >> 10).bit_length()
                near = sum(bins[expected - 1 : expected + 2])
                self.assertGreater(near, 0.7 * sum(bins))
                self.assertLessEqual(sum(bins), int(line["rounds"]))
                self.assertGreater(sum(bins), 0.7 * int(line["rounds"]))

        def test_accepted(self) -> None:
            self.set_lambda(150)
            server = self.server()
            self.application().accept(server)
            self.loop.run(2 * SETTLED_S)
            self.assert_law(server, 150, more=ROOM)

        def test_scale_at_syn(self) -> None:
            """Governed connections that the phone opens ask for 16 MB, others for tcp_rmem."""
            self.series_alone("they have no say in the scale")
            servers = [self.server(), self.server(self.wifi), self.server()]
            self.download(servers[0])
            self.set_lambda(150)
            self.download(servers[1])
            self.download(servers[2])
            self.loop.run(1)
            self.set_sysctl("tcp_timestamps", 0)
            servers.append(self.server(timestamps=False))
            self.download(servers[3])
            self.loop.run(1)
            stock, elsewhere, *governed = (server.phone_scale for server in servers)
            self.assertEqual(stock, elsewhere)
            for scale in governed:
                assert scale is not None
                self.assertGreaterEqual(scale, GOVERNED_SCALE)

        def test_scale_rounds_up(self) -> None:
            """With units of 16 KiB, of which the law's window is not quite a whole number."""
            server = self.scales_correctly(MAX_SCALE, accepted=False)
            self.assertGreaterEqual(self.window(server), self.law(server, 150))

        def test_no_scaling(self) -> None:
            server = self.settled(150, scaling=False)
            self.assert_law(server, 150)
            self.assertLessEqual(max(offer.window for offer in server.offers), MAX_UNSCALED)

        def scales_correctly(self, scale: int, accepted: bool) -> Server:
            """Segments of the unit's size: an ACK of less is rounded up and lowers nothing."""
            size = max(1, (2 << scale) // MTU)
            interface = self.interface("rmnet_test1", 3, size * MTU)
            rmem = f"4096 {size * 131072} {1 << 30}"
            Path("/proc/sys/net/ipv4/tcp_rmem").write_text(rmem)
            self.set_lambda(150, interface)
            server = self.server(interface)
            application = self.application()
            # The largest window that asks for this scale and no larger one
            application.clamp((MAX_UNSCALED << scale) + (1 << scale) - 1)
            if accepted:
                application.accept(server)
            else:
                application.connect(server)
            self.loop.run(SETTLED_S)
            self.assertEqual(server.phone_scale, scale)
            self.assert_law(server, 150, more=ROOM if accepted else TOLERANCE)
            return server


def _for_each(name: str, values: range | tuple[int, ...], test: Callable[..., None]) -> None:
    for value in values:

        def one(self: Base.Windows, value: int = value) -> None:
            test(self, value)

        setattr(Base.Windows, f"test_{name}_{value}", one)


_for_each("lambda", (125, 150, 200, 300), Base.Windows.follows_the_law)
_for_each(
    "scale_opened",
    range(MAX_SCALE + 1),
    lambda self, scale: self.scales_correctly(scale, accepted=False),
)
_for_each(
    "scale_accepted",
    (0, 1, 7, MAX_SCALE),
    lambda self, scale: self.scales_correctly(scale, accepted=True),
)


class DrwaIpv4Test(Base.Windows):
    version = 4


class DrwaIpv6Test(Base.Windows):
    version = 6


if __name__ == "__main__":
    unittest.main(verbosity=2)
