# SPDX-License-Identifier: GPL-2.0-only
"""The gate's law, net/sched/drwa_up_core.c, in front of a modelled modem."""

import dataclasses
import statistics
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builds
import constants
import up_model as model
from drwalab import burstlink, ltelink
from up_campaign import FETCHES, OPAQUE_PROBES, QUIC, TOLD, story
from up_model import PROBES, Event, Flow

MINUTE_S = 60
# Probes before an upload starts, and its first seconds
BEFORE, SETTLED = 20, 100


def pfifo(**options: object) -> model.Result:
    return model.run(gate=model.NONE, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mbps", [1, 2, 5, 20, 50])
def test_a_steady_link_is_full_and_its_queue_short(mbps: int) -> None:
    """What waits is the target, a packet's time, and one that is released beside it."""
    rate_bps = mbps * 1_000_000
    governed = model.run(rate_bps=rate_bps, seconds=MINUTE_S)
    assert governed.use > 0.97 * pfifo(rate_bps=rate_bps, seconds=MINUTE_S).use
    packet_ms = 12 / mbps
    bound_ms = 50 + (model.GRANT_US + model.TARGET_US) / 1000 + 2 * packet_ms
    assert governed.rtt_ms(0.95, SETTLED) < bound_ms + 10
    assert governed.law.opened == 0


def bound_use(**options: object) -> float:
    """What QCUT-D makes of the same link, which reads the modem's queue."""
    return model.run(gate=model.OCCUPANCY, target_us=20_000, **options).use  # type: ignore[arg-type]


@pytest.mark.parametrize("mbps", [5, 20])
def test_a_long_path_loses_no_time(mbps: int) -> None:
    """START does not end with a burst, and a DRAIN withholds little more than what waits."""
    options = {"rate_bps": mbps * 1_000_000, "base_rtt_us": 150_000, "seconds": MINUTE_S}
    governed = model.run(**options)  # type: ignore[arg-type]
    assert governed.use > 0.984 * bound_use(**options)
    assert governed.rtt_ms(0.95, SETTLED) < 180


def test_a_few_queries_do_not_tell_what_a_packet_takes() -> None:
    """They crossed an idle link before the upload; its queue must show all the same."""
    run = model.run(rate_bps=1_000_000, base_rtt_us=20_000, seconds=MINUTE_S)
    assert run.rtt_ms(0.95, SETTLED) < 80


def test_a_faster_link_is_found_within_rounds() -> None:
    steps = [(15, 2), (30, 20), (45, 10)]
    options = {
        "rate_bps": 10_000_000,
        "base_rtt_us": 150_000,
        "events": [Event(at_s * 1_000_000, mbps * 1_000_000) for at_s, mbps in steps],
        "seconds": MINUTE_S,
    }
    governed = model.run(**options)  # type: ignore[arg-type]
    assert governed.use > 0.945 * bound_use(**options)
    assert governed.rtt_ms(0.95, SETTLED) < 240


def test_a_window_that_nobody_uses_does_not_grow() -> None:
    """Uploads of two seconds, and two without one: no burst of twice the path's at each start."""
    starts_us = range(2_000_000, 58_000_000, 4_000_000)
    flows = [Flow(start_us=start_us, stop_us=start_us + 2_000_000) for start_us in starts_us]
    run = model.run([PROBES, *flows], base_rtt_us=100_000, seconds=MINUTE_S)
    assert run.max_queue_bytes < 150_000
    assert run.rtt_ms(0.95, SETTLED) < 170


@pytest.mark.parametrize("target_ms", [5, 20, 100])
def test_the_target_is_what_waits(target_ms: int) -> None:
    run = model.run(target_us=target_ms * 1000, seconds=MINUTE_S)
    waits_ms = run.rtt_ms(0.5, SETTLED) - 58
    assert 0.7 * target_ms < waits_ms < target_ms + 10


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "part"), [(50, 150, 0.9), (150, 50, 0.93), (30, 300, 0.8)]
)
def test_another_path_is_found(before_ms: int, after_ms: int, part: float) -> None:
    """A DRAIN tells a longer path from a queue, after four seconds; a shorter one shows by
    itself."""
    options = {
        "base_rtt_us": before_ms * 1000,
        "events": [Event(20_000_000, base_rtt_us=after_ms * 1000)],
        "seconds": MINUTE_S,
    }
    governed = model.run(**options)  # type: ignore[arg-type]
    assert governed.use > part * pfifo(**options).use
    last = governed.rtt_us[-400:]
    assert sorted(last)[380] / 1000 < after_ms + 60


def test_a_slower_link_keeps_no_queue() -> None:
    """From 5 to 1 Mb/s, what was on its way waits once; then the queue is short."""
    run = model.run(events=[Event(10_000_000, rate_bps=1_000_000)], seconds=30)
    later = [rtt for rtt in run.rtt_us[-300:]]
    assert max(later) < 150_000


@pytest.mark.parametrize(
    ("mbps", "then_mbps", "base_ms", "settled_ms"),
    [(10, 2, 50, 100), (20, 2, 150, 350), (10, 1, 80, 160), (5, 1, 150, 230)],
)
def test_a_link_gets_slower_in_a_drain(
    mbps: int, then_mbps: int, base_ms: int, settled_ms: int
) -> None:
    """Whenever it does, within a DRAIN's period: the queue that lasts is no longer path."""
    for at_us in range(14_000_000, 18_500_000, 90_000):
        run = model.run(
            rate_bps=mbps * 1_000_000,
            base_rtt_us=base_ms * 1000,
            events=[Event(at_us, then_mbps * 1_000_000)],
            seconds=28,
        )
        assert sorted(run.rtt_us[-100:])[50] / 1000 < settled_ms, at_us


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_link_that_varies_stays_busy(seed: int) -> None:
    """Beside QCUT-D, which reads the modem's queue, and what nobody holds back."""
    options = {"opportunities": ltelink.opportunities(seed, MINUTE_S), "seconds": MINUTE_S}
    governed = model.run(**options)  # type: ignore[arg-type]
    assert governed.use > 0.95 * bound_use(**options)
    assert governed.rtt_ms(0.95, SETTLED) < 0.2 * pfifo(**options).rtt_ms(0.95, SETTLED)


def test_an_outage_fills_no_modem() -> None:
    """What comes in three seconds of silence waits above the gate, not in the modem."""
    events = [Event(20_000_000, rate_bps=0), Event(23_000_000, rate_bps=5_000_000)]
    governed = model.run(events=events, seconds=MINUTE_S)
    ungoverned = pfifo(events=events, seconds=MINUTE_S)
    assert governed.use > 0.9 * ungoverned.use
    assert governed.max_queue_bytes < 0.2 * ungoverned.max_queue_bytes
    assert governed.law.opened == 0


def outage(mbps: int, seconds: int) -> tuple[Event, Event]:
    """From ten seconds on, and so long."""
    over_us = (10 + seconds) * 1_000_000
    return Event(10_000_000, rate_bps=0), Event(over_us, rate_bps=mbps * 1_000_000)


@pytest.mark.parametrize("mbps", [1, 2, 5])
@pytest.mark.parametrize("seconds", [4, 16])
def test_after_an_outage_the_link_is_full(mbps: int, seconds: int) -> None:
    """What comes first was late by the outage: neither a DRAIN lasts as long, nor does one keep
    the rate of before."""
    options = {
        "rate_bps": mbps * 1_000_000,
        "events": outage(mbps, seconds),
        "seconds": 24 + seconds,
    }
    assert model.run(**options).use > 0.985 * bound_use(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mbps", "then_mbps"), [(5, 0.5), (10, 1), (20, 2)])
def test_a_slower_link_after_an_outage_keeps_no_queue(mbps: int, then_mbps: float) -> None:
    """What was on its way at the rate of before waits once, for some 2.5 s at a tenth of it: no
    DRAIN begins before the new rate is known."""
    events = [Event(10_000_000, 0), Event(15_000_000, int(then_mbps * 1_000_000))]
    run = model.run(rate_bps=mbps * 1_000_000, base_rtt_us=150_000, events=events, seconds=30)
    assert max(run.rtt_us[350:]) < 600_000
    assert max(run.rtt_us[440:]) < 300_000


@pytest.mark.parametrize("mbps", [1, 2, 5])
def test_less_and_less_passes_in_an_outage(mbps: int) -> None:
    """What the last probe of 16 s waits for, when they are over, is seven packets more than after
    one second."""
    last_ms = {}
    for seconds in (1, 16):
        run = model.run(rate_bps=mbps * 1_000_000, events=outage(mbps, seconds), seconds=40)
        last_ms[seconds] = run.rtt_us[(10 + seconds) * 20 - 1] / 1000
    probes_ms = 15 * 20 * 84 * 8 / mbps / 1000
    assert last_ms[16] - last_ms[1] - probes_ms < 8 * 12 / mbps


@pytest.mark.parametrize(("mbps", "then_mbps"), [(10, 1), (20, 2), (5, 5)])
@pytest.mark.parametrize("seconds", [6, 20])
def test_an_upload_alone_waits_for_the_radio(mbps: int, then_mbps: int, seconds: int) -> None:
    """More is on its way than the slower link's window; somebody is asked all the same, and the
    gate does not take the silent radio for one who does not answer."""
    slower, over_us = then_mbps * 1_000_000, 10_200_000 + seconds * 1_000_000
    events = [Event(10_000_000, slower), Event(10_200_000, 0), Event(over_us, slower)]
    run = model.run([Flow()], rate_bps=mbps * 1_000_000, events=events, seconds=40)
    assert run.law.opened == 0
    # What is on its way at the faster rate, some 60 ms, twice
    assert run.max_queue_bytes < mbps * 125 * 120


@pytest.mark.parametrize(("paths", "part"), [(False, 0.86), (True, 0.76)])
def test_stories(paths: bool, part: float) -> None:
    """Of what QCUT-D has, as the geometric mean of a hundred: whoever gets stuck for long shows."""
    uses = {}
    for seed in range(100):
        options = story(seed, paths)
        uses[seed] = model.run(**options).use / bound_use(**options)  # type: ignore[arg-type]
    worst = sorted(uses.items(), key=lambda each: each[1])[:5]
    assert statistics.geometric_mean(uses.values()) > part, worst


@pytest.mark.parametrize("ppm", [-500, 500])
def test_clocks_drift(ppm: int) -> None:
    run = model.run([PROBES, Flow(drift_ppm=ppm)], seconds=2 * MINUTE_S)
    assert run.use > 0.96
    assert run.rtt_ms(0.95, SETTLED) < 85
    assert run.asides == 0


@pytest.mark.parametrize("tick_us", [1, 4000, 10_000, 100_000])
def test_a_clock_that_ticks_otherwise_is_not_believed(tick_us: int) -> None:
    """TSval is taken for ms; where it is none, our own clock has to do."""
    run = model.run([PROBES, Flow(tick_us=tick_us)], seconds=MINUTE_S)
    assert run.use > 0.95
    assert run.rtt_ms(0.95, SETTLED) < 90


def test_no_clock_at_all() -> None:
    run = model.run([PROBES, Flow(server=model.NO_CLOCK)])
    assert run.use > 0.95
    assert run.rtt_ms(0.95, BEFORE) < 90


def test_queries_are_marks_enough() -> None:
    """Uploads whose answers nobody understands, QUIC's, beside any that somebody does."""
    for server in (model.SILENT, model.DEAD):
        run = model.run([PROBES, Flow(server=server)])
        assert run.use > 0.93
        assert run.rtt_ms(0.95, BEFORE) < 90


@pytest.mark.parametrize("queue_ms", [20, 100, 300])
def test_a_clock_in_microseconds_stops_no_upload_beside_a_download(queue_ms: int) -> None:
    """As Linux has them where asked to: what it claims no queue of a download explains."""
    download = {"down_bps": 10_000_000, "down_queue_us": queue_ms * 1000, "seconds": MINUTE_S}
    run = model.run([OPAQUE_PROBES, Flow(tick_us=1)], **download)  # type: ignore[arg-type]
    assert run.use > 0.95


@pytest.mark.parametrize("server", [model.SILENT, model.DEAD])
def test_nobody_answers(server: int) -> None:
    """Where nobody is asked who may answer, the gate opens at once: as if it were not there."""
    flows = [OPAQUE_PROBES, Flow(server=server)]
    run = model.run(flows, seconds=10)
    assert run.law.phase == model.OPEN
    assert run.law.opened == 1
    # A server of TCP that never answers is waited for, as a radio is that takes two seconds.
    part = 0.99 if server == model.SILENT else 0.8
    assert run.flow_bytes[1] > part * pfifo(flows=flows, seconds=10).flow_bytes[1]


def test_who_is_asked_first_may_answer() -> None:
    """TCP's first answer is waited for, for two seconds: an old queue would bring it late."""
    flows = [Flow(server=model.DEAD, start_us=0)]
    assert model.run(flows, seconds=0.9).max_queue_bytes < 30_000
    assert model.run(flows, seconds=1.6).max_queue_bytes < 150_000
    assert model.run(flows, seconds=2.2).law.phase == model.OPEN


def test_a_radio_that_takes_long_to_begin() -> None:
    """As 3G's does; a gate that opened after a second would leave it seconds of queue."""
    events = [Event(500_000, 0), Event(2_000_000, 400_000)]
    flows = [OPAQUE_PROBES, Flow(start_us=600_000)]
    run = model.run(flows, rate_bps=400_000, events=events, seconds=30)
    free = pfifo(flows=flows, rate_bps=400_000, events=events, seconds=30)
    assert run.law.opened == 0
    assert run.max_queue_bytes < free.max_queue_bytes / 4
    assert run.use > 0.95 * free.use


@pytest.mark.parametrize("mbps", [1, 5, 20])
@pytest.mark.parametrize("interval_ms", [200, 2000])
def test_answers_now_and_then(mbps: int, interval_ms: int) -> None:
    """Name servers answer beside an upload that nobody understands: too seldom to hold it by, or
    often enough to know the rate between them, but never to its harm."""
    queries = Flow(model.QUERY, start_us=0, interval_us=interval_ms * 1000)
    flows = [OPAQUE_PROBES, queries, Flow(server=model.SILENT)]
    options = {"rate_bps": mbps * 1_000_000, "seconds": MINUTE_S}
    run = model.run(flows, **options)  # type: ignore[arg-type]
    assert run.use > 0.95 * pfifo(flows=flows, **options).use


def test_connections_come_and_go_beside_what_nobody_understands() -> None:
    """With each the gate may close, and when it ends nobody is asked any more."""
    starts_us = range(10_000_000, 50_000_000, 5_000_000)
    visits = [Flow(start_us=start_us, stop_us=start_us + 300_000) for start_us in starts_us]
    flows = [OPAQUE_PROBES, Flow(server=model.SILENT), *visits]
    run, free = model.run(flows, seconds=MINUTE_S), pfifo(flows=flows, seconds=MINUTE_S)
    assert run.use > 0.95 * free.use


def test_what_left_before_leaves_still() -> None:
    """Whoever was asked stops asking: the rate that was known then holds until the gate opens."""
    starts_us = range(2_000_000, 50_000_000, 6_000_000)
    calls = [
        Flow(model.QUERY, start_us=start_us, stop_us=start_us + 3_000_000) for start_us in starts_us
    ]
    flows = [OPAQUE_PROBES, Flow(server=model.SILENT), *calls]
    run, free = model.run(flows, seconds=MINUTE_S), pfifo(flows=flows, seconds=MINUTE_S)
    assert run.law.opened > len(calls) / 2
    assert run.use > 0.95 * free.use


@pytest.mark.parametrize("mbps", [5, 20])
def test_an_open_gate_closes_again(mbps: int) -> None:
    """Though the first answers come through the queue that it let grow, which DRAIN finds."""
    upload = Flow(server=model.SILENT, stop_us=20_000_000)
    flows = [OPAQUE_PROBES, upload, Flow(start_us=15_000_000)]
    run = model.run(flows, rate_bps=mbps * 1_000_000, seconds=MINUTE_S)
    assert run.law.opened == 1
    assert sorted(run.rtt_us[-200:])[190] < 90_000
    assert run.use > 0.98 * pfifo(flows=flows, rate_bps=mbps * 1_000_000, seconds=MINUTE_S).use


def test_who_answers_late_stops_nobody() -> None:
    honest = [PROBES, Flow(), Flow(start_us=5_000_000)]
    for server in (model.LATE, model.LATE_CLOCK, model.DEAD, model.SILENT):
        flows = [*honest[:2], dataclasses.replace(honest[2], server=server)]
        run, fair = model.run(flows, seconds=MINUTE_S), model.run(honest, seconds=MINUTE_S)
        assert run.flow_bytes[1] > 0.95 * fair.flow_bytes[1]
        assert run.rtt_ms(0.95, SETTLED) < 90


def test_who_claims_some_ms_more_slows_nobody() -> None:
    """Not even itself: both ways together take as long as our own clock says."""
    lie = Flow(server=model.LATE_CLOCK, claim_us=40_000)
    for flows in ([OPAQUE_PROBES, lie], [PROBES, Flow(), lie]):
        for mbps in (1, 5, 20):
            run = model.run(flows, rate_bps=mbps * 1_000_000, seconds=MINUTE_S)
            assert run.use > 0.94


def test_who_claims_that_nothing_waits() -> None:
    """Our own clock bounds the lie: what came meanwhile, and jitter, is all that explains it."""
    lie = Flow(server=model.EARLY_CLOCK)
    for mbps in (1, 5):
        alone = model.run([OPAQUE_PROBES, lie], rate_bps=mbps * 1_000_000)
        assert alone.rtt_ms(0.95, SETTLED) < 300
    beside = model.run([PROBES, Flow(), dataclasses.replace(lie, start_us=5_000_000)])
    assert beside.rtt_ms(0.95, SETTLED) < 200
    assert beside.use > 0.93


def beside_download(queue_ms: int, uploads: int) -> model.Result:
    return model.run(
        [PROBES, *[Flow(base_us=20_000 * i) for i in range(uploads)]],
        down_bps=10_000_000,
        down_queue_us=queue_ms * 1000,
        seconds=MINUTE_S,
    )


@pytest.mark.parametrize(("queue_ms", "part"), [(100, 0.93), (300, 0.75), (1000, 0.5)])
@pytest.mark.parametrize("uploads", [1, 2])
def test_a_downloads_queue_is_not_the_uplinks(queue_ms: int, part: float, uploads: int) -> None:
    """It grows to that and goes, every four seconds, and was there before the upload began; probes,
    which have no clock, cannot tell it from the modem's."""
    run = beside_download(queue_ms, uploads)
    assert run.use > part
    assert run.mean_queue_us < 80_000
    assert run.max_queue_bytes < 320_000


@pytest.mark.parametrize(
    ("queue_ms", "uploads", "part"),
    [(1900, 2, 0.4), (1900, 3, 0.35), (2500, 1, 0.15), (2500, 2, 0.4), (2500, 3, 0.3)],
)
def test_a_downloads_queue_of_seconds_stops_no_uploads(
    queue_ms: int, uploads: int, part: float
) -> None:
    """Nor is it taken for the modem's before a clock is known, nor comes what a DRAIN withheld for
    so long at once; pauses of a second are those of old news, not of the radio."""
    run = beside_download(queue_ms, uploads)
    assert run.use > part
    assert run.mean_queue_us < 150_000


@pytest.mark.parametrize(("uploads", "part"), [(1, 0.93), (4, 0.92)])
def test_a_dry_modems_time_is_not_the_links(uploads: int, part: float) -> None:
    """News come together, every 20 ms, and a download's queue comes and goes."""
    run = model.run(
        [PROBES, *[Flow()] * uploads],
        down_bps=10_000_000,
        down_queue_us=100_000,
        burst_us=20_000,
        seconds=MINUTE_S,
    )
    assert run.use > part
    assert run.mean_queue_us < 40_000


def test_beside_a_download_nothing_waits_for_a_better_rate() -> None:
    """On a link that varies what keeps the modem busy is half of the queue."""
    opportunities = ltelink.opportunities(1, MINUTE_S)
    beside = {"down_bps": 10_000_000, "down_queue_us": 5000}
    alone, run = (
        model.run(opportunities=opportunities, seconds=MINUTE_S, **options)  # type: ignore[arg-type]
        for options in ({}, beside)
    )
    assert run.mean_queue_us < 0.7 * alone.mean_queue_us
    assert run.rtt_ms(0.95, SETTLED) < 0.85 * alone.rtt_ms(0.95, SETTLED)
    assert run.use > 0.85 * alone.use


def test_answers_to_queries_are_no_download() -> None:
    """Sixty a second are a tenth of what a slow uplink carries."""
    kbps = (800, 200)
    events = [Event(500_000 * i, kbps[i % 2] * 1000) for i in range(1, 2 * MINUTE_S)]
    options = {"base_rtt_us": 150_000, "rate_bps": 800_000, "events": events, "seconds": MINUTE_S}
    run = model.run([PROBES] * 3 + [Flow()], **options)  # type: ignore[arg-type]
    assert run.use > 0.9


def beside_bound(flows: list[Flow], **options: object) -> tuple[float, float]:
    """Of QCUT-D's upload, and ms beyond its p95 RTT, of a gate that is told."""
    run = model.run(flows, **(TOLD | options))  # type: ignore[arg-type]
    qcut = {"gate": model.OCCUPANCY, "target_us": 20_000}
    bound = model.run(flows, **(options | qcut))  # type: ignore[arg-type]
    return run.use / bound.use, run.rtt_ms(0.95, SETTLED) - bound.rtt_ms(0.95, SETTLED)


@pytest.mark.parametrize("mbps", [1, 2, 5, 20, 50])
@pytest.mark.parametrize("base_ms", [30, 150])
def test_a_driver_that_tells_needs_no_answers(mbps: int, base_ms: int) -> None:
    options = {"rate_bps": mbps * 1_000_000, "base_rtt_us": base_ms * 1000, "seconds": MINUTE_S}
    upload, beyond_ms = beside_bound([OPAQUE_PROBES, QUIC], **options)
    assert upload > 0.99
    assert beyond_ms < 10


@pytest.mark.parametrize("interval_ms", [16, 50])
def test_names_that_are_none_beside_words(interval_ms: int) -> None:
    """A game whose packets have the same bytes where STUN has a name, both ways."""
    game = Flow(model.QUERY, model.SAME, start_us=0, interval_us=interval_ms * 1000)
    options = {"rate_bps": 5_000_000, "base_rtt_us": 60_000, "seconds": MINUTE_S}
    upload, beyond_ms = beside_bound([OPAQUE_PROBES, game, QUIC], **options)
    assert upload > 0.99
    assert beyond_ms < 10


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("base_ms", [50, 150])
@pytest.mark.parametrize("down_bps", [0, 20_000_000])
def test_a_driver_tells_of_a_link_that_varies(seed: int, base_ms: int, down_bps: int) -> None:
    """However far the server is, and whatever a download's queue does to answers."""
    options = {
        "opportunities": ltelink.opportunities(seed, MINUTE_S),
        "base_rtt_us": base_ms * 1000,
        "down_bps": down_bps,
        "down_queue_us": 100_000 if down_bps else 0,
        "seconds": MINUTE_S,
    }
    flows = [OPAQUE_PROBES, Flow(), Flow(model.DOWNLOAD, start_us=500_000)]
    upload, beyond_ms = beside_bound(flows, **options)
    assert upload > 0.97
    assert beyond_ms < 5


def on_lte(**options: object) -> tuple[float, float]:
    link = {"opportunities": ltelink.opportunities(1, MINUTE_S), "seconds": MINUTE_S}
    return beside_bound([OPAQUE_PROBES, QUIC], **link, **options)


@pytest.mark.parametrize("late_ms", [1, 10, 50])
def test_late_words_cost_what_they_are_late(late_ms: int) -> None:
    upload, beyond_ms = on_lte(told_late_us=late_ms * 1000)
    assert upload > 0.94
    assert beyond_ms < 2 * late_ms + 5


@pytest.mark.parametrize(("told_ms", "beyond_ms"), [(5, 1), (10, 7), (20, 24)])
def test_how_often_a_modem_is_asked(told_ms: int, beyond_ms: int) -> None:
    """What UP_ASK_US costs, or would."""
    upload, more_ms = on_lte(told_us=told_ms * 1000)
    assert upload == pytest.approx(0.99, abs=0.01)
    assert more_ms == pytest.approx(beyond_ms, abs=3)


@pytest.mark.parametrize(
    ("kept_us", "part", "beyond_ms"),
    [(0, 0.94, -7), (2_500, 0.97, -2), (5_000, 0.99, 1), (7_500, 1.0, 6)],
)
def test_what_a_told_gate_keeps_for_a_grant(kept_us: int, part: float, beyond_ms: int) -> None:
    """UP_TOLD_US is 5,000; another target is as good as another one of it."""
    upload, more_ms = on_lte(target_us=model.TARGET_US - 5_000 + kept_us)
    assert upload == pytest.approx(part, abs=0.01)
    assert more_ms == pytest.approx(beyond_ms, abs=3)


@pytest.mark.parametrize("more_bytes", [3_000, 8_000, 64_000])
@pytest.mark.parametrize("upload", [Flow(), QUIC])
def test_a_modem_that_takes_less_than_before_is_emptied(more_bytes: int, upload: Flow) -> None:
    """Within the period at which it is: 8 s of 60 are lost at most. Where somebody answers, more
    than a round trip's is found at once."""
    options = {"told_more_bytes": more_bytes, "told_more_us": 20_000_000, "seconds": MINUTE_S}
    run = model.run([OPAQUE_PROBES, upload], **(TOLD | options))  # type: ignore[arg-type]
    assert run.use > (0.95 if upload == Flow() and more_bytes > 15_000 else 0.86)
    assert run.rtt_ms(0.95, SETTLED) < 80
    # What seems to have come back makes no rate.
    assert run.max_queue_bytes < model.FIRMWARE_BYTES / 10


def test_a_modem_that_takes_more_than_before_is_emptied() -> None:
    """It had not told of all when the gate came."""
    options = {"told_more_bytes": -64_000, "told_more_us": 20_000_000, "seconds": MINUTE_S}
    run = model.run([PROBES, QUIC], **(TOLD | options))  # type: ignore[arg-type]
    assert run.use > 0.97
    # 8 s of 60 have 0.1 s more.
    assert run.rtt_ms(0.8, SETTLED) < 80


def test_a_modem_that_was_full_when_it_first_told() -> None:
    """Nobody's answers were understood until then, so all was open; 131 ms show that it drains."""
    options = {"rate_bps": 1_000_000, "told_from_us": 8_000_000, "seconds": MINUTE_S}
    run = model.run([OPAQUE_PROBES, QUIC], **(TOLD | options))  # type: ignore[arg-type]
    assert max(run.rtt_us[:200]) > 3_000_000
    assert max(run.rtt_us[400:]) < 110_000
    assert run.use > 0.95


def test_a_driver_that_stops_telling() -> None:
    """Answers do again, within a second; where nobody understands them, the gate opens."""
    options = {"told_until_us": 20_000_000, "seconds": MINUTE_S}
    run = model.run([PROBES, Flow()], **(TOLD | options))  # type: ignore[arg-type]
    assert run.use > 0.95
    assert run.rtt_ms(0.95, SETTLED) < 90
    assert run.law.told == run.law.opened == 0
    opened = model.run([OPAQUE_PROBES, QUIC], **(TOLD | options))  # type: ignore[arg-type]
    assert opened.use > 0.95
    assert opened.law.phase == model.OPEN


def test_an_outage_that_is_told_fills_no_modem() -> None:
    events = [Event(20_000_000, rate_bps=0), Event(30_000_000, rate_bps=5_000_000)]
    run = model.run([OPAQUE_PROBES, QUIC], events=events, seconds=MINUTE_S, **TOLD)  # type: ignore[arg-type]
    assert run.max_queue_bytes < model.FIRMWARE_BYTES / 10
    assert run.law.opened == 0


@pytest.mark.parametrize(("word", "base_s"), constants.BURSTS)
@pytest.mark.parametrize("told", [{}, TOLD])
def test_a_radio_that_serves_in_bursts_starves_nobody(
    word: str, base_s: float, told: dict[str, object]
) -> None:
    """What is in the modem covers its silences, whoever tells of them."""
    options = {
        "opportunities": burstlink.opportunities(word, MINUTE_S),
        "base_rtt_us": int(base_s * 1e6),
        "seconds": MINUTE_S,
    }
    flows = [OPAQUE_PROBES, Flow()]
    run = model.run(flows, **options, **told)  # type: ignore[arg-type]
    assert run.use > 0.72 * pfifo(flows=flows, **options).use


@pytest.mark.parametrize(("told", "times"), [({}, 1.5), (TOLD, 1.35)])
def test_a_fetch_beside_an_upload(told: dict[str, object], times: float) -> None:
    """Of 100 kB, over a link that varies, whatever the gate is told."""
    options = {"opportunities": ltelink.opportunities(1, MINUTE_S), "seconds": MINUTE_S}
    alone = model.run([OPAQUE_PROBES, FETCHES], **options, **told)  # type: ignore[arg-type]
    beside = model.run([OPAQUE_PROBES, Flow(), FETCHES], **options, **told)  # type: ignore[arg-type]
    free = pfifo(flows=[OPAQUE_PROBES, Flow(), FETCHES], **options)
    assert beside.fetch_us < times * alone.fetch_us
    assert free.fetch_us > 4 * alone.fetch_us


@pytest.mark.parametrize("short_each", [2, 8])
def test_short_packets_of_an_upload_change_little(short_each: int) -> None:
    """As of a QUIC connection that downloads as well."""
    flows = [PROBES, Flow(server=model.SILENT, short_each=short_each)]
    run = model.run(flows, seconds=MINUTE_S)
    assert run.use > 0.97 * pfifo(flows=flows, seconds=MINUTE_S).use
    assert run.rtt_ms(0.95, SETTLED) < 90


def test_lost_packets_close_nothing() -> None:
    run = model.run(loss_ppm=100_000)
    assert run.use > 0.93
    assert run.rtt_ms(0.95, BEFORE) < 90


@settings(max_examples=25, deadline=None)
@given(
    clock_us=st.integers(0, model.U32 - 1),
    released=st.integers(0, model.U32 - 1),
    seed=st.integers(1, 1000),
)
def test_nothing_depends_on_where_counters_are(clock_us: int, released: int, seed: int) -> None:
    """32 bits wrap, and only differences count."""
    options = {"seconds": 8, "loss_ppm": 10_000, "seed": seed}
    one = model.run(**options, clock_us=clock_us, released=released)  # type: ignore[arg-type]
    other = model.run(**options, clock_us=0, released=0)  # type: ignore[arg-type]
    assert one.rtt_us == other.rtt_us
    assert one.flow_bytes == other.flow_bytes


@pytest.mark.parametrize(("before_mbps", "mbps"), [(0, 5), (20, 2)])
def test_hours_without_a_full_link(before_mbps: int, mbps: int) -> None:
    """Half of what 32 bits of microseconds count: what was long ago is not yet to come."""
    from_us = 2200 * 1_000_000
    flows = [Flow(model.QUERY, start_us=0, interval_us=500_000), Flow(start_us=from_us)]
    if before_mbps:
        flows.append(Flow(start_us=0, stop_us=20_000_000))
    events = [Event(from_us // 2, mbps * 1_000_000)]
    run = model.run(flows, rate_bps=(before_mbps or mbps) * 1_000_000, events=events, seconds=2230)
    assert run.flow_bytes[1] * 8 / 30 > 0.9 * mbps * 1_000_000
    assert run.rtt_ms(0.9, -40) < 150


def test_more_flows_than_places() -> None:
    """Who finds no place has no marks; those of the others are enough."""
    flows = [PROBES, *(Flow(start_us=1_000_000 + 20_000 * i) for i in range(70))]
    run = model.run(flows, rate_bps=20_000_000, seconds=20)
    assert run.use > 0.85
    assert run.rtt_ms(0.95, SETTLED) < 200
    flows = [OPAQUE_PROBES, *(Flow(start_us=100_000 * i % 3_000_000) for i in range(100))]
    run = model.run(flows, rate_bps=10_000_000, base_rtt_us=100_000, seconds=40)
    assert run.rtt_ms(0.95, SETTLED) < 250


@pytest.mark.parametrize(
    ("uploads", "mbps", "base_ms", "p95_ms"),
    [(48, 10, 100, 180), (64, 10, 50, 90), (30, 2, 50, 120), (30, 1, 100, 200)],
)
def test_many_uploads(uploads: int, mbps: int, base_ms: int, p95_ms: int) -> None:
    """Most began in others' queue, and know too short a path until a DRAIN shows it to each."""
    flows = [OPAQUE_PROBES, *(Flow(start_us=100_000 * i % 3_000_000) for i in range(uploads))]
    run = model.run(flows, rate_bps=mbps * 1_000_000, base_rtt_us=base_ms * 1000, seconds=40)
    assert run.use > 0.95
    assert run.rtt_ms(0.95, SETTLED) < p95_ms


def test_fuzz_finds_nothing(tmp_path: Path) -> None:
    """What fuzz_up.c checks holds for stories that nobody would tell."""
    seed = 1
    print(f"seed {seed}")
    done = subprocess.run(
        [
            builds.up_fuzzer(tmp_path),
            "-runs=20000",
            f"-seed={seed}",
            "-max_len=256",
            f"-artifact_prefix={tmp_path}/",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
