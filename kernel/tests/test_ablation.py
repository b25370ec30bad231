# SPDX-License-Identifier: GPL-2.0-only
"""The edits of ablation.py and constants.py fit the law, and what is counted without them."""

from pathlib import Path

import pytest

import ablation
import builds
import constants
import model


@pytest.mark.parametrize("mechanism", ablation.MECHANISMS)
def test_a_mechanism_can_be_left_out(mechanism: str, tmp_path: Path) -> None:
    """It is there once, and what stays is a law."""
    rest = tmp_path / "rest.c"
    rest.write_text(model.law_source(ablation.MECHANISMS[mechanism]))
    assert rest.read_text() != model.law_source(())
    builds.run(["gcc", "-fsyntax-only", *builds.WARNINGS, *builds.INCLUDES, rest])


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
