# SPDX-License-Identifier: GPL-2.0-only
"""A short search for harmful liars, and that it finds them where the law is weaker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import adversary
import builds
import model

SEED = 1
RUNS = 30


@pytest.mark.parametrize("harm", adversary.HARMS, ids=lambda harm: harm.name)
def test_no_liar_harms_others(harm: adversary.Harm) -> None:
    print(f"seed {SEED}")
    result = adversary.search(harm, RUNS, SEED)
    assert result.stories >= RUNS // 2
    assert not result.found, f"{result.harm:.2f} x by {result.found}"


def test_short_connections_are_no_rival() -> None:
    """Most of what they bring is after their last whole round, and so nobody's."""
    for packets in (2, 20):
        lie = adversary.Lie(0, 10, packets, rtt_us=1, queue_us=0, claims=0, life=1)
        story = adversary.Story(mbps=5, base_ms=100, beside=True, lies=(lie,))
        assert adversary.fetch_harm(story, 500_000) < 1.05


def test_who_stays_in_start_keeps_no_silence_from_others() -> None:
    """Its window never falls, so its bursts use little of it and its rounds go with theirs."""
    lie = adversary.Lie(724, 160, 32, rtt_us=1, queue_us=0, claims=0, life=0)
    story = adversary.Story(mbps=5, base_ms=100, beside=False, lies=(lie,))
    assert adversary.bulk_harm(story) < 1.05


@pytest.fixture
def weaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A law whose text a test may change."""
    path = tmp_path / builds.CORE.name
    path.write_text(builds.CORE.read_text())
    monkeypatch.setattr(builds, "CORE", path)
    model.library.cache_clear()
    yield path
    model.library.cache_clear()


def test_the_search_finds_what_a_weaker_law_allows(weaker: Path) -> None:
    """Whoever takes another one's path for its own can be made slow."""
    law = weaker.read_text()
    for told, lie in (
        ("if (d->phase == DRWA_HOLD && r->used) {", "if (d->phase == DRWA_HOLD || r->used) {"),
        ("u32 us = d->path_us + max(", "u32 us = min(d->path_us, 4 * r->target_us) + max("),
    ):
        assert law.count(told) == 1
        law = law.replace(told, lie)
    weaker.write_text(law)
    bulk = adversary.HARMS[2]
    # Most searches find it; what each tries depends on which modules Hypothesis sees.
    results = (adversary.search(bulk, 60, SEED + i, shrink=False) for i in range(10))
    assert any(result.found and result.harm > bulk.most for result in results)
