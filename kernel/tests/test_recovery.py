# SPDX-License-Identifier: GPL-2.0-only
"""The delay law on a link of constant rate, after something went wrong.

A sender fills what it may, up to a buffer; TCP's right edge never moves back.
"""

from dataclasses import dataclass

import pytest

from law import DELAY, DRAIN, HOLD, MSS, Law, Link

RATE_BPS = 10e6
FIRST_WINDOW = 65_535


@dataclass
class Round:
    """What one RTT brought."""

    end_us: int
    rtt_us: int
    received: int


class Download:
    """A connection over the link: one call of rtt() is one RTT."""

    def __init__(self, lambda_: int = 150, link: Link | None = None) -> None:
        self.law = Law(DELAY, lambda_, link)
        self.rate_bps = RATE_BPS
        self.base_us = 100_000
        self.mss = MSS
        self.buffer_bytes = 4_000_000
        self.clock_offset_us = 12_345
        self.tick_us = 1000
        self.edge = self.law.rcv_nxt + FIRST_WINDOW
        self.cwnd = 10 * MSS
        self.rounds: list[Round] = []

    def connect(self) -> None:
        """The SYN ACK's sample, which finds no queue."""
        self.law.now_us += self.base_us
        self._sample(self.base_us)

    def rtt(self) -> None:
        law = self.law
        received = min(self.cwnd, self.edge - law.rcv_nxt) // self.mss * self.mss
        rtt_us = max(self.base_us, int(received * 8e6 / self.rate_bps))
        law.receive(rtt_us, received, int(received * 8e6 / self.rate_bps))
        self._sample(rtt_us)
        if law.due():
            law.round(self.mss)
        # What the kernel would offer stays ahead of the sender.
        window = law.wnd or max(4 * received, FIRST_WINDOW)
        self.edge = max(self.edge, law.rcv_nxt + window)
        bdp = int(self.rate_bps * self.base_us / 8e6)
        self.cwnd = min(2 * self.cwnd, bdp + self.buffer_bytes)
        self.rounds.append(Round(law.now_us, rtt_us, received))

    def _sample(self, rtt_us: int) -> None:
        """The way up takes no time; the sender's clock ticks."""
        sent_us = self.law.now_us - rtt_us + self.clock_offset_us
        self.law.sample(rtt_us, self.law.now_us - sent_us // self.tick_us * 1000)

    def run(self, seconds: float) -> None:
        end_us = self.law.now_us + int(seconds * 1e6)
        while self.law.now_us < end_us:
            self.rtt()

    def since(self, seconds: float) -> list[Round]:
        """The rounds of the last seconds."""
        return [r for r in self.rounds if r.end_us > self.law.now_us - int(seconds * 1e6)]

    def goodput(self, seconds: float) -> float:
        """Share of the link that the last seconds used."""
        rounds = self.since(seconds)
        time_us = sum(r.rtt_us for r in rounds)
        return sum(r.received for r in rounds) * 8e6 / (self.rate_bps * time_us)

    def rtts(self, seconds: float) -> float:
        """Mean RTT of the last seconds, in base RTTs."""
        rounds = self.since(seconds)
        return sum(r.rtt_us for r in rounds) / len(rounds) / self.base_us


def settled(base_us: int = 100_000, lambda_: int = 150) -> Download:
    download = Download(lambda_)
    download.base_us = base_us
    download.connect()
    download.run(20)
    return download


@pytest.mark.parametrize(
    ("base_us", "times"),
    [
        (base_us, times)
        for base_us in (20_000, 50_000, 100_000, 300_000)
        for times in (1.2, 1.35, 1.5, 1.6, 1.8, 2, 3, 5, 10)
        if base_us * times <= 1_000_000
    ],
)
@pytest.mark.parametrize("lambda_", [100, 110, 125, 150, 200])
def test_a_longer_path_is_found(base_us: int, times: float, lambda_: int) -> None:
    """Handover: the link is used again after 5 s and ten RTTs, and the queue is soon short."""
    download = settled(base_us, lambda_)
    download.base_us = int(base_us * times)
    download.run(5 + 10 * download.base_us / 1e6)
    download.run(5)
    assert download.goodput(5) > 0.9
    download.run(20)
    download.run(20)
    segment_us = MSS * 8e6 / RATE_BPS
    assert download.rtts(20) < lambda_ / 100 * 1.1 + segment_us / base_us


@pytest.mark.parametrize("times", [2, 5, 10])
def test_a_shorter_path_is_found(times: float) -> None:
    download = settled(300_000)
    download.base_us = int(300_000 / times)
    download.run(20)
    download.run(20)
    assert download.goodput(20) > 0.95
    assert download.rtts(20) < 2


@pytest.mark.parametrize("minutes", [5, 30, 36, 60, 71, 120])
def test_a_phone_that_slept(minutes: int) -> None:
    """The local clock stops in suspend, the sender's does not: the one-way delay falls by hours."""
    download = settled()
    download.clock_offset_us += minutes * 60_000_000
    download.run(10)
    assert download.goodput(8) > 0.9
    download.run(20)
    assert download.rtts(10) < 1.75


def test_small_segments_leave_the_floor() -> None:
    """A window of a few segments of 88 bytes is no trap, whatever the rate is rounded to."""
    download = Download()
    download.mss, download.cwnd = 88, 880
    download.rate_bps, download.base_us = 300e3, 340_000
    download.connect()
    download.run(10)
    download.base_us = 900_000
    download.run(10)
    download.base_us = 340_000
    download.run(20)
    download.run(20)
    assert download.goodput(20) > 0.9


@pytest.mark.parametrize("rate_bps", [300e3, 1e6])
@pytest.mark.parametrize("base_us", [20_000, 100_000])
def test_what_was_offered_is_no_path(rate_bps: float, base_us: int) -> None:
    """The window takes seconds to come down; the queue that stays meanwhile is not the path's."""
    download = Download()
    download.mss = 536
    download.rate_bps, download.base_us, download.buffer_bytes = (
        rate_bps,
        base_us,
        40_000,
    )
    download.connect()
    download.edge = download.law.rcv_nxt + 500_000
    download.run(30)
    download.run(20)
    floor_us = 6 * download.mss * 8e6 / rate_bps
    assert download.rtts(20) < 1.5 * max(1.5, floor_us / base_us)
    assert download.goodput(20) > 0.95


def test_switched_on_behind_a_full_queue() -> None:
    """The first sample already has seconds of queue in it."""
    download = Download()
    download.buffer_bytes = 1_000_000
    download.edge = download.law.rcv_nxt + (1 << 40)
    download.cwnd = 1 << 40
    download.rtt()
    download.edge = download.law.rcv_nxt + 2_000_000
    download.run(60)
    assert download.law.phase >= HOLD
    assert download.rtts(10) < 2


def test_large_segments_are_no_unexplained_queue() -> None:
    """Three segments fill the link, and the fourth of the floor is a queue by itself."""
    download = Download(125)
    download.mss = 8960
    download.cwnd = 10 * download.mss
    download.base_us = 20_000
    download.connect()
    download.run(10)
    drains = 0
    for _ in range(200):
        download.rtt()
        drains += download.law.phase == DRAIN
    assert drains <= 4


def queued(queues_us: list[int]) -> Law:
    """A path of 30 ms, with a round behind each of these queues."""
    law = Law(DELAY, 125)
    law.sample(30_000)
    for queue_us in queues_us:
        law.now_us += 30_000 + queue_us
        law.rcv_nxt += 16 * MSS
        law.sample(30_000 + queue_us, queue_us)
        law.round()
    return law


@pytest.mark.parametrize("tick_us", [0, 300, 900])
def test_a_base_that_is_little_too_low_is_found(tick_us: int) -> None:
    """DRAIN finds the path's delay where it was, but for the tick of 1 ms."""
    law = queued([0] * 3 + [12_000] * 3)
    assert law.phase == HOLD
    for _ in range(400):
        law.now_us += 35_000
        law.rcv_nxt += min(16 * MSS, law.wnd)
        law.sample(35_000, 5_000 + (tick_us if law.phase != DRAIN else 0))
        law.round()
    assert law.path_us == pytest.approx(35_000, abs=1000)


@pytest.mark.parametrize("segments", [4.5, 6.5, 7.5])
def test_drain_leaves_few_segments_alone(segments: float) -> None:
    """The sender rounds down to whole segments; a sixteenth off as well would cost one or two."""
    download = Download(125)
    download.base_us = int(segments * MSS * 8e6 / RATE_BPS)
    download.connect()
    drained = []
    for _ in range(2000):
        download.rtt()
        if download.law.phase == DRAIN:
            # The header's unit
            drained.append(-(-download.law.wnd // 512) * 512)
    assert drained
    assert min(drained) >= int(segments) * MSS
