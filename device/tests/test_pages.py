# SPDX-License-Identifier: Apache-2.0
"""Pages for users: .ci/pages sees each fault that device/doc/style.md names."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    loader = SourceFileLoader("ci_pages", str(TOP / ".ci/pages"))
    spec = importlib.util.spec_from_loader("ci_pages", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_pages"] = module
    loader.exec_module(module)
    return module


pages = _load()
GOOD = "# Title\nRun this. You get one line.\n\n    what whoever: of code, who cares\n"


def test_pages_are_as_the_style_asks(capsys: pytest.CaptureFixture[str]) -> None:
    assert pages.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"{GOOD}\n{'word ' * 19}end.\n{'word ' * 40}end.\n", "words a sentence"),
        (f"{GOOD}\n| head |\n|---|\n| {'word ' * 31} |\n", "above 30 words"),
        (f"{GOOD}\nSet the knob.\n", "nobody else knows: knob"),
        (f"{GOOD}\n| the series |\n|---|\n", "nobody else knows: series"),
        (f"{GOOD}\n## On host B\n", "nobody else knows: host B"),
        (f"{GOOD}\n- See [the law](x.md).\n", "nobody else knows: law"),
        (f"{GOOD}\nWho fills it waits.\n", "of what, who, whoever"),
    ],
)
def test_a_fault_is_seen(text: str, fault: str) -> None:
    found = pages.faults("page.md", text)
    assert any(fault in each for each in found), found


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"{GOOD}\nRun `knob series` and [series/x.md](x.md), or [law.md](law.md).\n",
        f"{GOOD}\nWho needs this?\n",
        f"{GOOD}\n```\nthe law, the gate\n```\n",
        "# Title\n<!-- the law -->\n<picture><img alt='who'></picture>\n" + "Run it now. " * 40,
    ],
)
def test_code_names_and_questions_are_no_faults(text: str) -> None:
    assert pages.faults("page.md", text) == []


def test_the_front_page_is_short() -> None:
    assert pages.faults("README.md", "Run it. " * 301)
    assert not pages.faults("README.md", "Run it. " * 300)


def test_sentences_and_cells() -> None:
    page = pages.read(
        "One two `three four`.\n**Five** six seven\n- Eight.\n\n| a b | c |\n|--|--|\n"
    )
    assert [pages.words(sentence) for sentence in page.sentences] == [3, 3, 1]
    assert page.cells == ["a b", "c"]
    assert page.mean == pytest.approx(7 / 3)


def test_links(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# A/B `c`, *d*\n[x](b.md) [x](b.md#yes) [x](#ab-c-d) [x](https://example.org/none)\n"
    )
    (tmp_path / "b.md").write_text("## Yes\n[x](c.md) [x](a.md#no) ![x](none.png)\n")
    assert pages.broken_links(tmp_path, ["a.md"]) == []
    assert pages.broken_links(tmp_path, ["b.md"]) == [
        "b.md: no file at c.md",
        "b.md: no heading for a.md#no",
        "b.md: no file at none.png",
    ]
