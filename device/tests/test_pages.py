# SPDX-License-Identifier: Apache-2.0
"""Pages for users: .ci/pages sees each fault that device/doc/style.md names."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from typer.main import get_command

from drwalab import cli
from drwatool.cli import parser

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


def test_walks_are_short_and_as_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Each reader's way to the first success, and that `.ci/pages --walks` prints it."""
    walks = pages.walks(TOP)
    assert [walk.name for walk in walks] == [
        "ROM maintainer",
        "OEM engineer",
        "carrier",
        "laptop or router",
    ]
    for walk in walks:
        assert walk.faults() == []
        assert walk.words <= 400
        assert 2 * walk.words < walk.told["before"]
        # They find the second page on the first one.
        (front, *_), (page, *_) = walk.told["read"]
        assert front == pages.FRONT
        assert f"]({page})" in walk.parts[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["pages", "--walks"])
        pages.main()
    assert "| carrier | 951 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("part", "before", "fault"),
    [
        ("Run it.\n\n    drwa check | grep x\n\nIt says fine.", 12, "words, at most 5"),
        ("Run it.\n\n    drwa check | grep x\n\nIt ends.", 900, "no fine on the last page"),
        ("It says fine.", 900, "and not ['drwa check']"),
        ("Run it.\n\n    drwa check\n    drwa apply\n\nIt says fine.", 900, "'drwa apply'"),
    ],
)
def test_a_walk_that_is_not_as_told_is_seen(part: str, before: int, fault: str) -> None:
    told = {"reader": "x", "before": before, "success": "fine", "run": [["drwa check", 60]]}
    found = pages.Walk(told, ["# Title\n", part]).faults()
    assert len(found) == 1
    assert fault in found[0]


def test_what_carriers_copy_is_xml_of_keys_that_there_are() -> None:
    shown = re.search(
        r"<carrier_config_list>.*?</carrier_config_list>",
        (TOP / "frameworks/carrier/README.md").read_text(),
        re.DOTALL,
    )
    assert shown
    (config,) = ElementTree.fromstring(shown[0])
    assert config.get("cid", "").isdigit()
    reference = pages.sections((TOP / "device/doc/reference.md").read_text())["Carrier keys"]
    for key in config:
        assert f"`{key.get('name')}`" in reference
        assert str(key.get("name")).endswith({"boolean": "_bool", "int": "_int"}[key.tag])
    assert config.find("boolean[@name='drwa_enabled_bool'][@value='true']") is not None


def test_what_a_walk_reads_and_runs() -> None:
    text = (
        '<!-- x -->\n# One\n<picture><source a="b"><img alt="a queue"></picture> two\n'
        "## Two `c`\n\n    a/drwa check --aosp . | grep x\n    A := b\n    $(call inherit, x)\n"
        "    include a/b.mk\n"
    )
    found = pages.sections(text)
    assert found["One"] == "# One\na queue two\n"
    walk = pages.Walk({"run": [["a/drwa check --aosp .", 30], ["b"]]}, [*found.values()][1:])
    assert walk.shown == ["a/drwa check --aosp ."]
    assert walk.minutes == pytest.approx(0.5 + walk.words / pages.WORDS_A_MINUTE)


def commands(text: str) -> Iterator[list[str]]:
    """The words of what a page shows to be run, one command at a time."""
    shown = re.findall(r"`([^`\n]+)`", text)
    shown += [line for line in text.splitlines() if line.startswith("    ")]
    for line in shown:
        for command in re.split(r" #|\|\||&&|[|;]| -- ", line):
            yield command.split()


def unknown(words: list[str]) -> list[str]:
    """The words of a command that it does not take."""
    name = Path(words[0]).name if words else ""
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    if name == "lab":
        at, rest = get_command(cli.app), words[1:]
        while rest and hasattr(at, "commands"):
            if rest[0] not in at.commands:
                # A placeholder, or an option of every command's.
                return [] if rest[0].isupper() or rest[0].startswith("-") else [rest[0]]
            at, rest = at.commands[rest[0]], rest[1:]
        known = {option for param in at.params for option in param.opts} | {"--help"}
    elif name == "drwa" and "/bin/" not in words[0] and len(words) > 1:
        known = set(parser()._option_string_actions)
        verbs = next(action.choices for action in parser()._actions if action.dest == "command")
        assert verbs
        if words[1].isascii() and words[1].isalpha() and words[1] not in verbs:
            return [words[1]]
    elif name == "drwa-bpf" and len(words) > 1:
        usage = (TOP / "kernel/bpf/drwa-bpf.c").read_text().partition("usage[] =")[2]
        usage = usage.partition('";\n')[0]
        known = set(re.findall(r"--\w+", usage))
        if words[1].isalpha() and words[1] not in re.findall(r"drwa-bpf (\w+)", usage):
            return [words[1]]
    elif name == "make" and len(words) > 1 and not {"-C", "--file"} & set(words):
        targets = re.findall(r"^([\w-]+):", (TOP / "Makefile").read_text(), re.MULTILINE)
        return [word for word in words[1:] if word.islower() and word not in targets]
    else:
        return []
    return [option for option in options if option not in known]


@pytest.mark.parametrize("name", [*pages.PAGES, *pages.DESIGN])
def test_commands_exist(name: str) -> None:
    """With the options that a page shows."""
    text = (TOP / name).read_text()
    assert [(words, bad) for words in commands(text) if (bad := unknown(words))] == []


@pytest.mark.parametrize(
    ("command", "bad"),
    [
        ("kernel/lab/lab run --scheme drwa --rate=1mbit", []),
        ("kernel/lab/lab run --schema drwa", ["--schema"]),
        ("lab trace import a b --kind csv", []),
        ("lab trace show a", ["show"]),
        ("lab COMMAND --help", []),
        ("vendor/drwa/device/drwa check --host B --aosp .", []),
        ("vendor/drwa/device/drwa check --hosts B", ["--hosts"]),
        ("drwa undo --aosp .", ["undo"]),
        ("drwa-bpf attach --interface wwan0", []),
        ("drwa-bpf attach --device wwan0", ["--device"]),
        ("drwa-bpf remove", ["remove"]),
        ("make demo TRACE=FILE", []),
        ("make demos", ["demos"]),
        ("grep --any drwa", []),
    ],
)
def test_unknown_commands_are_seen(command: str, bad: list[str]) -> None:
    assert unknown(command.split()) == bad


def test_commands_are_found() -> None:
    """By the names of what they run: a page that shows them in another way is seen."""
    found = [words for name in pages.PAGES for words in commands((TOP / name).read_text())]
    names = [Path(words[0]).name for words in found if words]
    least = {"lab": 25, "drwa": 20, "drwa-bpf": 8, "make": 8}
    assert {name for name in least if names.count(name) < least[name]} == set()
