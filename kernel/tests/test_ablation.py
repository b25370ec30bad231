# SPDX-License-Identifier: GPL-2.0-only
"""The edits of ablation.py and constants.py fit the law, and what is counted without them."""

import pytest

import ablation
import constants
import model


@pytest.mark.parametrize("mechanism", ablation.MECHANISMS)
def test_a_mechanism_is_there_and_can_be_left_out(mechanism: str) -> None:
    edits = ablation.MECHANISMS[mechanism]
    assert model.law_source(edits) != model.law_source(())
    assert model.run(model.Link(10), [model.Flow(0.05)], 5, edits=edits).goodput_mbps[0] > 0


@pytest.mark.parametrize("constant", constants.constants(), ids=lambda constant: constant.name)
def test_a_constant_can_be_halved_and_doubled(constant: constants.Constant) -> None:
    values = constant.half_and_twice()
    assert len(set(values)) == 2
    for value in values:
        assert f"{value}\n" in model.law_source(constant.edit(value))


def test_a_law_without_a_mechanism_fails_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the law as it is does not."""
    monkeypatch.setattr(ablation, "TESTED", ("test_core.py",))
    assert ablation.failing(()) == 0
    assert ablation.failing(ablation.MECHANISMS["mistrust"]) > 0


def test_flat_is_what_changes_nothing() -> None:
    present = {"goodput": 0.98, "p95": 2.0}
    rows = {
        "nothing": ({"goodput": 0.985, "p95": 1.99}, 0),
        "goodput": ({"goodput": 0.96, "p95": 2.0}, 0),
        "a test": ({"goodput": 0.98, "p95": 2.0}, 1),
    }
    lines = ablation.report(rows, (present, 0)).splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.endswith("flat |")] == ["nothing"]
