# SPDX-License-Identifier: GPL-2.0-only
"""What a call of the law may cost, in instructions on x86-64: what is recorded, and little more."""

import subprocess

import pytest

import builds
import costing

KINDS = [
    "count",
    "due classic no",
    "due delay no",
    "heard",
    "round classic",
    "round delay DRAIN",
    "round delay HOLD",
    "round delay START",
    "sample classic",
    "sample delay",
]
# Of what is recorded
MORE = 1.1


@pytest.fixture(scope="module")
def costs() -> costing.Costs:
    return costing.measure()


@pytest.mark.parametrize("kind", ["due classic no", "due delay no", "heard"])
def test_what_each_segment_costs_is_little(costs: costing.Costs, kind: str) -> None:
    assert costs[kind].worst <= costing.SHORT_LIMIT


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_costs_what_is_recorded(costs: costing.Costs, kind: str) -> None:
    """The corpus may grow, and compilers differ a little; more is a change of the law's cost."""
    recorded = costing.recorded()[kind]
    assert costs[kind].mean <= MORE * recorded.mean
    assert costs[kind].worst <= MORE * recorded.worst
    assert max(costs[kind].divisions) <= recorded.divisions


def test_a_round_has_two_divisions_at_most() -> None:
    assert max(recorded.divisions for recorded in costing.recorded().values()) <= 2


def test_each_kind_of_call_is_measured(costs: costing.Costs) -> None:
    assert set(KINDS) <= set(costs)
    assert min(len(costs[kind].calls) for kind in KINDS) > 10
    assert set(costing.recorded()) == set(costs)


@pytest.mark.parametrize("command", ["ablation", "adversary", "constants", "cost", "fuzz", "hooks"])
def test_the_commands_that_record_start(command: str) -> None:
    subprocess.run([builds.TESTS / command, "--help"], check=True, capture_output=True)
