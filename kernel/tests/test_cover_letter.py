# SPDX-License-Identifier: GPL-2.0-only
"""The letter to netdev: it says what was recorded, and nothing that was not."""

import importlib.util
import re
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

KERNEL = Path(__file__).resolve().parents[1]


def load() -> ModuleType:
    loader = SourceFileLoader("mkcover", str(KERNEL / "mkcover"))
    spec = importlib.util.spec_from_loader("mkcover", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


mkcover = load()
TABLE = """\
# Campaign
44 of 62 targets are met

## b01
About it.

| Player | Links | Goodput |
| --- | --: | --- |
| stock | 18 | 1.000 |
| drwa | 18 | 0.986 |

## b02

| Player | Links | Goodput |
| --- | --- | --- |
| drwa | 3 | 0.5 |
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "campaign.md").write_text(TABLE)
    monkeypatch.setattr(mkcover, "RESULTS", tmp_path)
    return mkcover.Recorded()


def test_is_up_to_date() -> None:
    """kernel/mkcover writes it again after results were recorded."""
    assert mkcover.LETTER.read_text() == mkcover.letter()


def test_a_table_by_names(recorded: Any) -> None:
    assert recorded.cell("campaign.md", "b02", "drwa", "Goodput") == "0.5"
    names = {"stock": "stock", "drwa": "this series"}
    assert recorded.table("campaign.md", "b01", names, {"Goodput": "goodput"}) == (
        "             goodput\nstock          1.000\nthis series    0.986"
    )
    assert recorded.words("campaign.md", "([0-9]+ of [0-9]+) targets") == "44 of 62"


@pytest.mark.parametrize(
    ("section", "row", "column"),
    [("b03", "drwa", "Goodput"), ("b01", "bbr", "Goodput"), ("b01", "drwa", "Mean RTT")],
)
def test_what_was_not_recorded(recorded: Any, section: str, row: str, column: str) -> None:
    with pytest.raises(mkcover.LetterError):
        recorded.cell("campaign.md", section, row, column)


def test_every_number_of_a_result_is_looked_up() -> None:
    """What is typed in the template is λ, years, names and the law's own constants."""
    words = re.sub(r"{[{%#].*?[}%#]}", "", mkcover.TEMPLATE.read_text(), flags=re.DOTALL)
    body = words.split("\nTo: ", 1)[1]
    numbers = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", body))
    assert numbers <= {"1", "2", "7", "8", "20", "56", "64", "2012"}
