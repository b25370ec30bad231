# SPDX-License-Identifier: GPL-2.0-only
"""What is left to whoever learns late what has left the modem."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from drwalab import lategates, latenews, ltelink, traces
from drwalab.cli import app

GRANT_MS = 8
DURATION_MS = 30_000


def steady(folder: Path) -> traces.Trace:
    """12 Mb/s: a packet each ms."""
    path = folder / "steady.up"
    path.write_text("1\n")
    return traces.load(path)


def test_a_steady_link_keeps_no_secret(tmp_path: Path) -> None:
    """It leaves what it left a round trip ago, and late news cost nothing."""
    for age_ms in latenews.AGES_MS:
        row = latenews.best(steady(tmp_path), age_ms, GRANT_MS, DURATION_MS)
        assert row.bound_p95_ms == pytest.approx(age_ms + GRANT_MS + 20, abs=15)
        assert row.part_within > 0.98
        assert row.beyond_ms is not None and row.beyond_ms < 1


def test_later_news_cost_more(tmp_path: Path) -> None:
    path = tmp_path / "lte.down"
    ltelink.write_trace(path, 1, DURATION_MS // 1000)
    rows = [
        latenews.best(traces.load(path), age_ms, GRANT_MS, DURATION_MS)
        for age_ms in latenews.AGES_MS
    ]
    beyond_ms = [row.beyond_ms for row in rows if row.beyond_ms is not None]
    assert len(beyond_ms) == 3
    assert 20 < beyond_ms[0] < beyond_ms[1] < beyond_ms[2]
    assert rows[0].part_within > rows[2].part_within


def test_no_gate_has_what_has_not_come() -> None:
    """News of a link that opens at 20 s come a round trip later, and nothing before."""
    packets = np.ones(DURATION_MS, dtype=np.int64)
    packets[10_000:20_000] = 0
    crossed = lategates.late(packets, 100, GRANT_MS).crossed
    assert (crossed <= packets.sum()).all()
    assert (crossed > 0.9 * packets.sum()).all()


def test_who_reads_the_modem_misses_nothing() -> None:
    """It refills the modem within a burst, so that one grant is enough."""
    packets = np.zeros(DURATION_MS, dtype=np.int64)
    packets[::100] = 80
    assert lategates.bound(packets, 50, GRANT_MS).crossed == packets[GRANT_MS:].sum()


def test_a_modem_that_ran_empty_asks_again() -> None:
    """Three times until the first news of enough packets; what is in it needs no other grant."""
    packets = np.ones(14_000, dtype=np.int64)
    soon, later = (lategates.late(packets, 50, grant_ms).crossed for grant_ms in (1, GRANT_MS))
    assert (soon - later == 3 * (GRANT_MS - 1)).all()


def test_nowhere_to_record(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["late-news", "--record", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "Invalid value for '--record'" in done.output
