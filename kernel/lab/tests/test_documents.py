# SPDX-License-Identifier: GPL-2.0-only
"""Numbers in documents are those of the recorded results."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import typer

from drwalab import documents, kernels
from drwalab.documents import Claim


def test_documents_say_what_results_say() -> None:
    """`lab documents` tells what is stale, and `lab documents --write` mends it."""
    found = documents.claims()
    assert len(found) >= 15
    assert {claim.document for claim in found} == set(documents.DOCUMENTS)
    stale = [f"{c.document}: {c.text}, but it says {c.found()}" for c in found if not c.holds]
    assert not stale


@pytest.mark.parametrize(
    ("document", "campaigns"),
    [("kernel/README.md", ("campaign", "campaign-6.1")), ("kernel/uplink.md", ("uplink",))],
)
def test_no_target_that_is_met_passes_for_missed(document: str, campaigns: tuple[str, ...]) -> None:
    page = (documents.TOP / document).read_text().partition("| Row | Target |")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.partition("\n\n")[0].splitlines()
        if line.startswith("| ")
    ]
    assert sorted(tuple(row[:2]) for row in rows) == sorted(documents.shortfalls(*campaigns))


# Pages that send to a result and have no number from it.
WITHOUT_NUMBERS = {
    "device/doc/limits.md",
    "kernel/bpf/README.md",
    "kernel/lab/doc/reference.md",
}


def test_pages_that_send_to_results_are_compared_with_them() -> None:
    names = subprocess.run(
        ["git", "ls-files", "*.md"],
        cwd=documents.TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    recorded = "|".join(re.escape(path.name) for path in documents.RESULTS.iterdir())
    sends = {
        name
        for name in names
        if "/results/" not in name
        and re.search(rf"\]\([\w./-]*results/({recorded})\)", (documents.TOP / name).read_text())
    }
    assert sends - WITHOUT_NUMBERS <= set(documents.DOCUMENTS)
    assert WITHOUT_NUMBERS <= sends


def test_an_old_result_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"a.md": "**yes**", "b.md": "**no**", "c.json": "**not named**", "d.md": None}
    for name in answers:
        (tmp_path / name).touch()
    laws = tmp_path / "laws"
    laws.mkdir()
    told = {"e.md": "**yes**", "f.md": "**no**", "g.md": None}
    for name in told:
        (laws / name).touch()
    answers["laws"] = None
    monkeypatch.setattr(documents, "RESULTS", tmp_path)
    monkeypatch.setattr(documents, "TESTS_RESULTS", laws)
    monkeypatch.setattr(documents, "of_today", answers.get)
    monkeypatch.setattr(documents, "of_todays_law", told.get)
    monkeypatch.setattr(documents, "claims", list)
    old = {"b.md": "**no**", "c.json": "**not named**", "kernel/tests/results/f.md": "**no**"}
    assert documents.outdated() == old
    with pytest.raises(typer.Exit) as ended:
        documents.documents()
    assert ended.value.exit_code == 1
    said = capsys.readouterr().err
    assert "b.md: of today's patches: no\n" in said
    assert "kernel/tests/results/f.md: of today's law: no\n" in said
    answers |= {"b.md": "**yes**", "c.json": "**yes**"}
    with pytest.raises(typer.Exit):
        documents.documents()
    told["f.md"] = "**yes**"
    documents.documents()


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(documents, "TOP", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(
        "It takes 1.5 to 2 s,\nand 99.7 % of it.\n| 2.00 | 5 |\n| 3.00 | 7 |\n| a | **no** |\n"
    )
    return path


@pytest.mark.parametrize(
    ("text", "fixed", "found"),
    [
        ("takes 1.5 to 2 s, and 99.7 % of it.", 0, "takes 1.5 to 2 s,\nand 99.7 % of it."),
        ("takes 3 s, and 100.0 % of it.", 0, "takes 1.5 to 2 s,\nand 99.7 % of it."),
        ("| 3.00 | 7 |", 8, "| 3.00 | 7 |"),
        ("| 3.00 | 8 |", 8, "| 3.00 | 7 |"),
        ("| 4.00 | 7 |", 8, None),
        ("takes 3 ms", 0, None),
        ("| a | **yes** |", 0, "| a | **no** |"),
        ("| a | **not named** |", 6, "| a | **no** |"),
    ],
)
def test_claims(page: Path, text: str, fixed: int, found: str | None) -> None:
    claim = Claim("page.md", text, fixed)
    assert claim.found() == found
    assert claim.holds == (found is not None and " ".join(found.split()) == text)
    if found and not claim.holds:
        claim.write()
        assert claim.holds
        assert page.read_text().count("|") == 9


@pytest.mark.parametrize(
    ("recorded", "answer"),
    [
        ("Kernel: 6.12.9, patches {0}, {1}. Repeat it.", "**yes**"),
        ("Kernel: 6.12.9; 6.12.9, patches {0}, {1}, {2}; without.", "**yes**"),
        ("Kernel: 6.12.9, patches {0}, {2}. Repeat it.", "**no**"),
        ("Kernel: 6.12.9, patches {0}, {1}; 6.12.9, patches {2}, {1}.", "**no**"),
        ("Linux 6.12", "**not named**"),
    ],
)
def test_results_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, answer: str
) -> None:
    """A result is of today's patches if it names all of them; those of tests do not count."""
    ids = ["a" * 12, "b" * 12, "c" * 12]
    made = [("0001-law.patch", b"a"), ("0002-hooks.patch", b"b"), ("0003-kunit.patch", b"d")]
    monkeypatch.setattr(documents, "RESULTS", tmp_path)
    monkeypatch.setattr("drwalab.sources.find_source", lambda line: line)
    monkeypatch.setattr("drwalab.series.make_series", lambda _folder, _source: made)
    monkeypatch.setattr("drwalab.kernels.patch_id", lambda data: data.decode() * 40)
    (tmp_path / "x.md").write_text(recorded.format(*ids))
    assert documents.of_today("x.md") == answer
    monkeypatch.setattr("drwalab.sources.find_source", lambda _line: None)
    assert documents.of_today("x.md") == (answer if answer == "**not named**" else None)


@pytest.mark.parametrize(
    ("recorded", "answer"),
    [
        ("All of programs {0}.", "**yes**"),
        ("Some of programs {0}, the rest of programs {1}.", "**no**"),
        ("All of programs from before.", "**not named**"),
        ("patches 012345678901. BPF programs {1}.", "**no**"),
        ("Gate {1}. BPF programs {0}.", "**no**"),
        ("Gate {2}. BPF programs {0}.", "**yes**"),
        ("All of gate {2}.", "**yes**"),
    ],
)
def test_results_of_todays_programs_and_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, answer: str
) -> None:
    monkeypatch.setattr(documents, "RESULTS", tmp_path)
    (tmp_path / "x.md").write_text(
        recorded.format(kernels.programs_id(), "0" * 12, kernels.gate_id())
    )
    assert documents.of_today("x.md") == answer


@pytest.mark.parametrize(
    ("recorded", "answer"),
    [
        ("{core}: sha256 {0} without comments and blanks. Repeat it.", "**yes**"),
        ("| {core} | sha256 {0} without comments and blanks |", "**yes**"),
        ("{up}: sha256 {1} without comments and blanks.", "**yes**"),
        ("{core}: sha256 {0} without\n{up}: sha256 {1} without", "**yes**"),
        ("{core}: sha256 {1} without comments and blanks.", "**no**"),
        ("| {up} | sha256 {0} without comments and blanks |", "**no**"),
        ("{core}: sha256 {0} without\n{up}: sha256 {0} without", "**no**"),
        ("other.c: sha256 {0} without comments and blanks.", "**no**"),
        ("Kernel: 6.12.9, patches cccccccccccc. Repeat it.", "**no**"),
        ("The law without each of its mechanisms", "**not named**"),
    ],
)
def test_records_of_todays_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, answer: str
) -> None:
    """A record of models and fuzzers is of today's law if it names it, whatever it comments."""
    monkeypatch.setattr(documents, "TESTS_RESULTS", tmp_path)
    monkeypatch.setattr("drwalab.sources.find_source", lambda line: line)
    monkeypatch.setattr("drwalab.series.make_series", lambda _folder, _source: [("0001", b"a")])
    monkeypatch.setattr("drwalab.kernels.patch_id", lambda data: data.decode() * 40)
    monkeypatch.setattr(documents, "LAWS", {"core.c": tmp_path / "c", "up.c": tmp_path / "u"})
    (tmp_path / "c").write_text("/* any */\nint a;\n")
    (tmp_path / "u").write_text("int b;\n")
    digests = [hashlib.sha256(text).hexdigest()[:12] for text in (b"inta;", b"intb;")]
    (tmp_path / "x.md").write_text(recorded.format(*digests, core="core.c", up="up.c"))
    assert documents.of_todays_law("x.md") == answer


def test_records_name_the_law_as_their_tools_do() -> None:
    """All that kernel/tests has recorded can be told, but what names compilers alone."""
    names = sorted(path.name for path in documents.TESTS_RESULTS.iterdir())
    unnamed = [name for name in names if documents.of_todays_law(name) == "**not named**"]
    assert set(unnamed) <= {"cost.md", "hooks.md"}
    assert len(names) >= 8


def test_no_result_of_the_patches_depends_on_the_gate() -> None:
    """It is a module of its own: neither what it is made of nor its headers is in a patch."""
    patches = sorted((documents.TOP / "kernel/patches").glob("*/*.patch"))
    assert patches
    changed = [
        path
        for patch in patches
        for path in re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
    ]
    assert changed
    assert not [path for path in changed if "drwa_up" in path or path.startswith("net/sched/")]


def test_spans() -> None:
    assert documents.span([1.04, 0.96], 0) == "1"
    assert documents.span([1.04, 1.26], 1) == "1.0 to 1.3"
