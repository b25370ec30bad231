# SPDX-License-Identifier: GPL-2.0-only
"""What a call of the law may cost, in instructions on x86-64."""

import pytest

import costing

KINDS = [
    "due classic no",
    "due delay no",
    "round classic",
    "round delay ASIDE",
    "round delay DRAIN",
    "round delay GAUGE",
    "round delay HOLD",
    "round delay START",
    "sample classic",
    "sample delay",
]


@pytest.fixture(scope="module")
def costs() -> costing.Costs:
    return costing.measure()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("due")])
def test_a_call_that_only_returns_is_short(costs: costing.Costs, kind: str) -> None:
    assert costs[kind].worst <= costing.SHORT_LIMIT


def test_a_round_has_two_divisions_at_most(costs: costing.Costs) -> None:
    assert max(max(costs[kind].divisions) for kind in KINDS) <= 2


def test_each_kind_of_call_is_measured(costs: costing.Costs) -> None:
    assert set(KINDS) <= set(costs)
    assert min(len(costs[kind].calls) for kind in KINDS) > 10
