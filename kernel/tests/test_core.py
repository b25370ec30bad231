# SPDX-License-Identifier: GPL-2.0-only
"""The control law, kernel/src/net/ipv4/tcp_drwa_core.c, in user space."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from law import CLASSIC, DELAY, DRAIN, GAUGE, HOLD, MSS, START, U32, Law, Link, library


def test_state_fits_64_bytes() -> None:
    assert library().state_size() <= 64


def pipe(law: Law, rate_bps: float, base_us: int, seconds: float) -> list[int]:
    """RTTs of a window-limited sender behind a deep queue: max(base, window / rate)."""
    rtts, end_us = [], law.now_us + int(seconds * 1e6)
    window = 10 * MSS
    while law.now_us < end_us:
        rtt_us = max(base_us, int(window * 8e6 / rate_bps))
        law.now_us += rtt_us
        law.rcv_nxt += min(window, int(rate_bps * rtt_us / 8e6))
        law.sample(rtt_us, 12345 + rtt_us - base_us)
        if law.due():
            window = law.round() or window * 2
        rtts.append(rtt_us)
    return rtts


@pytest.mark.parametrize("lambda_", [200, 300, 400])
@pytest.mark.parametrize(("rate_bps", "base_us"), [(2e6, 100_000), (4e6, 200_000), (20e6, 100_000)])
def test_classic_settles_at_lambda_rtt_min(lambda_: int, rate_bps: float, base_us: int) -> None:
    rtts = pipe(Law(CLASSIC, lambda_), rate_bps, base_us, 60)
    tail = rtts[len(rtts) // 2 :]
    assert sum(tail) / len(tail) == pytest.approx(lambda_ / 100 * base_us, rel=0.05)


def test_delay_settles_at_lambda_rtt() -> None:
    law = Law(DELAY, 150)
    rtts = pipe(law, 10e6, 100_000, 60)
    tail = sorted(rtts[len(rtts) // 2 :])
    assert tail[len(tail) // 2] == pytest.approx(150_000, rel=0.05)


def test_delay_leaves_the_start_alone() -> None:
    law = Law(DELAY, 150)
    for size in (10, 20, 40, 80, 160):
        law.sample(50_000, 7)
        law.now_us += 50_000
        law.rcv_nxt += size * MSS
        assert law.round() == 0
        assert law.phase == START
    law.sample(150_000, 100_007)
    law.now_us += 150_000
    law.rcv_nxt += 160 * MSS
    assert law.round() == 2 * 160 * MSS
    assert law.phase == GAUGE
    law.sample(250_000, 200_007)
    law.now_us += 250_000
    law.rcv_nxt += 160 * MSS
    assert law.round() == pytest.approx(1.5 * 160 * MSS, rel=0.05)
    assert law.phase == HOLD


def test_delay_takes_an_uplink_queue_for_distance() -> None:
    """RTT grows tenfold, one-way delay not at all: the window must not fall."""
    law = Law(DELAY, 150)
    pipe(law, 10e6, 100_000, 10)
    before = law.wnd
    law.sample(1_000_000, 12345)
    law.now_us += 1_000_000
    law.rcv_nxt += int(10e6 / 8)
    assert law.round() > before


def test_a_late_connection_takes_the_queue_from_the_link() -> None:
    """The second one meets 50 ms of queue and must not learn it as its path."""
    link = Link()
    first = Law(DELAY, 150, link)
    pipe(first, 10e6, 100_000, 5)
    assert link.q_us == pytest.approx(50_000, rel=0.1)
    second = Law(DELAY, 150, link)
    second.now_us = first.now_us
    for _ in range(4):
        second.sample(150_000, 777 + 50_000)
        second.now_us += 150_000
        second.rcv_nxt += 40_000
        second.round()
    assert second.rtt_min_us == pytest.approx(100_000, rel=0.05)


@pytest.mark.parametrize("start_us", [0, 1 << 31, 3 << 30])
def test_only_a_drain_of_this_round_counts(start_us: int) -> None:
    """The clock's wrap must not make an old drain a new one."""
    law = Law(DELAY, 150)
    law.now_us = start_us + 100_000
    drains = 0
    window, end_us = 10 * MSS, law.now_us + 5_000_000
    while law.now_us < end_us:
        rtt_us = max(100_000, window * 8 // 10)
        law.now_us += rtt_us
        law.rcv_nxt += window
        law.sample(rtt_us, rtt_us)
        window = law.round() or 2 * window
        drains += law.phase == DRAIN
    assert drains == 0


def test_a_minute_without_rounds_forgets() -> None:
    law = Law(CLASSIC, 300)
    pipe(law, 4e6, 100_000, 5)
    assert law.wnd
    law.now_us += 61_000_000
    assert law.round() == 0
    assert (law.rtt_us, law.lambda_) == (0, 300)


class Paper:
    """Algorithm 1 in real numbers."""

    def __init__(self, lambda_: float) -> None:
        self.lambda_ = lambda_
        self.rtt_min: float | None = None
        self.cwnd: float | None = None

    def round(self, samples: list[int], data_rcvd: int, first: int) -> float:
        rtt = sum(samples) / len(samples)
        self.rtt_min = min(rtt, self.rtt_min or first)
        self.cwnd = data_rcvd if self.cwnd is None else 7 / 8 * self.cwnd + data_rcvd / 8
        return self.lambda_ * self.rtt_min / rtt * self.cwnd


rounds = st.lists(
    st.tuples(
        st.lists(st.integers(1_000, 2_000_000), min_size=1, max_size=20),
        st.integers(1, 10_000_000),
    ),
    min_size=1,
    max_size=30,
)


@given(lambda_=st.integers(100, 1000), story=rounds)
def test_classic_is_the_paper(lambda_: int, story: list) -> None:  # type: ignore[type-arg]
    law, paper = Law(CLASSIC, lambda_), Paper(lambda_ / 100)
    for samples, data_rcvd in story:
        for rtt_us in samples:
            law.sample(rtt_us)
        law.now_us += max(samples)
        law.rcv_nxt += data_rcvd
        expected = max(paper.round(samples, data_rcvd, story[0][0][0]), 2 * MSS)
        # Integers lose up to a byte a round in the average, times lambda.
        assert law.round() == pytest.approx(expected, rel=1e-3, abs=lambda_ / 10 + 2)


events = st.lists(
    st.tuples(st.integers(0, U32 - 1), st.integers(0, U32 - 1), st.integers(0, U32 - 1)),
    max_size=60,
)


@given(
    law=st.sampled_from([DELAY, CLASSIC]),
    lambda_=st.integers(100, 1000),
    mss=st.integers(48, 65535),
    story=events,
)
def test_hostile_numbers_stay_in_bounds(
    law: int, lambda_: int, mss: int, story: list[tuple[int, int, int]]
) -> None:
    """Forged timestamps: no undefined behaviour, and a window of two segments at least, or none."""
    connection = Law(law, lambda_)
    for now_us, number, owd_us in story:
        connection.now_us = now_us
        connection.sample(number % (1 << number % 33), owd_us)
        connection.rcv_nxt += number % 100_000_000
        if connection.due():
            window = connection.round(mss)
            assert window == 0 or 2 * mss <= window <= U32 // 2
