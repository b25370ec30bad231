# SPDX-License-Identifier: GPL-2.0-only
"""The edits of ablation.py and constants.py fit the laws, and what is counted without them."""

import dataclasses
from pathlib import Path

import pytest

import ablation
import builds
import constants
import model
import up_campaign

LAWS = (ablation.DOWNLINK, ablation.GATE, ablation.OTHERS)
ALL = [(law, name) for law in LAWS for name in law.mechanisms]


@pytest.mark.parametrize(("law", "mechanism"), ALL, ids=[name for _, name in ALL])
def test_a_mechanism_can_be_left_out(law: ablation.Law, mechanism: str, tmp_path: Path) -> None:
    """It is there once, and what stays is a law."""
    rest = tmp_path / "rest.c"
    rest.write_text(builds.edited(law.source, law.mechanisms[mechanism]))
    assert rest.read_text() != law.source.read_text()
    flags = [*builds.WARNINGS, "-Wno-sign-compare", *builds.INCLUDES]
    # As the two models build: the gate's does without this warning
    if law is ablation.GATE:
        flags.append("-Wno-unused-parameter")
    builds.run(["gcc", "-fsyntax-only", *flags, rest])


@pytest.mark.parametrize("constant", constants.constants(), ids=lambda constant: constant.name)
def test_a_constant_can_be_halved_and_doubled(constant: constants.Constant) -> None:
    values = constant.half_and_twice()
    assert len(set(values)) == (1 if constant.name == "DRWA_HIDDEN_MAX" else 2)
    assert constant.value not in values
    for value in values:
        assert f"{value}\n" in model.law_source(constant.edit(value))


@pytest.mark.parametrize(
    ("law", "tested", "mechanism"),
    [
        (ablation.DOWNLINK, "test_core.py", "mistrust"),
        (ablation.GATE, "test_kunit_suites.py", "queries"),
    ],
)
def test_a_law_without_a_mechanism_fails_tests(
    law: ablation.Law, tested: str, mechanism: str
) -> None:
    """And the law as it is does not."""
    law = dataclasses.replace(law, tested=(tested,))
    assert ablation.failing(law, ()) == 0
    assert ablation.failing(law, law.mechanisms[mechanism]) > 0


def test_the_gates_campaign_sees_a_mechanism_that_is_left_out() -> None:
    """With few cases; what half a percent of target changes is chance."""
    whole, rest = (up_campaign.bursts(edits) for edits in ((), ablation.GATE.mechanisms["silence"]))
    assert rest["bursts: upload"] < 0.9 * whole["bursts: upload"]


def test_flat_is_what_changes_nothing() -> None:
    present = {"goodput": 0.98, "p95": 2.0}
    rows = {
        "nothing": ({"goodput": 0.985, "p95": 1.99}, 0),
        "goodput": ({"goodput": 0.96, "p95": 2.0}, 0),
        "a test": ({"goodput": 0.98, "p95": 2.0}, 1),
    }
    law = ablation.DOWNLINK
    lines = ablation.report(law, rows, (present, 0), present).splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.endswith("flat |")] == ["nothing"]


def test_what_chance_changes_as_much_is_flat() -> None:
    present, chance = {"upload": 0.9}, {"upload": 0.87}
    rows = {"little": ({"upload": 0.92}, 0), "much": ({"upload": 0.85}, 0)}
    lines = ablation.report(ablation.GATE, rows, (present, 0), chance).splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.endswith("flat |")] == ["little"]
