# SPDX-License-Identifier: Apache-2.0
"""That the mutants can still break the product, and that what runs them tells the truth."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

CTS_TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(CTS_TESTS))

import mutation  # noqa: E402
from mutation import NOT_ASKED, SURVIVED, Mutant, MutationError, Result, Stopped, Suite  # noqa: E402

MUTANTS = mutation.read_mutants()
TOP = CTS_TESTS.parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_text_is_there_once(mutant: Mutant) -> None:
    text = (TOP / mutant.file).read_text()
    assert mutant.broken(text) != text


def test_all_layers_are_broken() -> None:
    assert len(MUTANTS) >= 30
    folders = {Path(mutant.file).parts[0] for mutant in MUTANTS}
    assert folders >= {"frameworks", "netd_patches", "sepolicy", "device", "kernel"}


def test_every_suite_is_asked() -> None:
    assert {name for mutant in MUTANTS for name in mutant.suites} == set(mutation.SUITES)


def test_what_is_built_in_python_finds_its_modules() -> None:
    """Without what pytest adds to the path."""
    scripts = {
        suite.build[-1] for suite in mutation.SUITES.values() if "-c" in (suite.build or [])[:-1]
    }
    assert len(scripts) == 2
    for script in scripts:
        imports = script.rpartition(";")[0]
        subprocess.run([sys.executable, "-c", imports], cwd=TOP, check=True)


# --- A product of one file, one test and three mutants

PRODUCT = "def double(x):\n    return 2 * x\n"
TESTS = """
import product
def test_two():
    assert product.double(2) == 4
def test_three():
    assert product.double(3) == 6
"""
TOML = """
[caught]
layer = "l"
what = "w"
file = "product.py"
old = "2 * x"
new = "x + 2"
suites = ["small"]

[survives]
layer = "l"
what = "w"
file = "product.py"
old = "2 * x"
new = "x * 2"
suites = ["small"]

[ends-all]
layer = "l"
what = "w"
file = "product.py"
old = "2 * x"
new = "__import__('os').abort()"
suites = ["small"]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts the small product in the place of the real one; returns its folder."""
    top = tmp_path / "top"
    top.mkdir()
    (top / "product.py").write_text(PRODUCT)
    (top / "test_product.py").write_text(TESTS)
    (top / "mutants.toml").write_text(TOML)
    subprocess.run(["git", "init", "--quiet"], cwd=top, check=True)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--rootdir=.", f"--junitxml={mutation.REPORT}"]
    monkeypatch.setattr(mutation, "SUITES", {"small": Suite([*command, "test_product.py"])})
    monkeypatch.setattr(mutation, "TOP", top)
    monkeypatch.setattr(mutation, "TABLE", top / "table.md")
    monkeypatch.setattr(
        mutation, "read_mutants", lambda read=mutation.read_mutants: read(top / "mutants.toml")
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return top


def run(small: Path, *options: str) -> tuple[int, dict[str, Result]]:
    """Exit code and results."""
    kept = small.parent / "results.json"
    code = 0
    try:
        mutation.app(["--json", str(kept), *options], standalone_mode=True)
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        code = ended.code
    results = mutation.read_results(kept, mutation.state_of(small))
    assert (small / "product.py").read_text() == PRODUCT
    assert list((small.parent / "cache" / "drwa").glob("mutation-*")) == []
    return code, results


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_three_ends(small: Path, jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, results = run(small, "--jobs", jobs)
    assert code == 1
    assert results["caught"].tests == {"small": ["test_product.test_three"]}
    assert not results["survives"].caught
    assert not results["survives"].problem
    assert not results["ends-all"].caught
    assert "small ends with -6 after 0 tests" in results["ends-all"].problem
    said = capsys.readouterr()
    assert "1 of 3 mutants were caught" in said.out
    assert "| survives | l | w | small | **survived** |" in said.out


def test_every_suite_has_to_notice(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = Suite([*mutation.SUITES["small"].test, "-k", "test_two"])
    monkeypatch.setitem(mutation.SUITES, "blind", blind)
    toml = TOML.replace('suites = ["small"]', 'suites = ["small", "blind"]', 1)
    (small / "mutants.toml").write_text(toml)
    code, results = run(small, "--only", "caught")
    assert code == 1
    assert results["caught"].tests == {"small": ["test_product.test_three"], "blind": []}
    assert not results["caught"].caught


def test_all_caught(small: Path) -> None:
    assert run(small, "--only", "caught")[0] == 0


def test_resume_runs_the_rest(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(small, "--only", "caught")
    judged = []
    judge = mutation.Bench.judge

    def watched(self: mutation.Bench, mutant: Mutant) -> Result:
        judged.append(mutant.name)
        return judge(self, mutant)

    monkeypatch.setattr(mutation.Bench, "judge", watched)
    run(small, "--resume")
    assert sorted(judged) == ["ends-all", "survives"]
    # What has a problem has no result yet.
    judged.clear()
    run(small, "--resume")
    assert judged == ["ends-all"]
    # A result is of the sources that it was made from.
    (small / "test_product.py").write_text(TESTS + "\n")
    judged.clear()
    run(small, "--resume")
    assert len(judged) == 3


def test_the_product_has_to_pass(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (small / "test_product.py").write_text(TESTS.replace("== 4", "== 5"))
    code, results = run(small)
    assert (code, results) == (1, {})
    assert "fails on the product as it is: test_product.test_two" in capsys.readouterr().err


def test_record_tells_what_was_not_asked(small: Path) -> None:
    run(small, "--only", "caught", "--record")
    rows = mutation.TABLE.read_text().splitlines()
    assert rows[3].startswith("1 of 3 ") and rows[4].startswith("2 have a suite")
    assert rows[-3:] == [
        "| caught | l | w | small | test_product.test_three |",
        f"| survives | l | w | small | {NOT_ASKED} |",
        f"| ends-all | l | w | small | {NOT_ASKED} |",
    ]


def test_record_keeps_what_was_not_asked(small: Path) -> None:
    run(small, "--record")
    whole = mutation.TABLE.read_text()
    mutants = small / "mutants.toml"
    mutants.write_text(TOML + TOML.split("\n\n")[0].replace("caught", "new"))
    (small.parent / "results.json").unlink()
    mutation.TABLE.write_text(whole.replace("test_three", "earlier").replace(SURVIVED, "a \\| b"))
    assert run(small, "--only", "new", "--only", "ends-all", "--record")[0] == 1
    assert [row.split(" | ")[3:] for row in mutation.TABLE.read_text().splitlines()[-4:]] == [
        ["small", "test_product.earlier |"],
        ["small", "a \\| b |"],
        ["small", f"{SURVIVED} |"],
        ["small", "test_product.test_three |"],
    ]
    assert mutation.TABLE.read_text().splitlines()[3].startswith("3 of 4 ")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('old = "2 * x"', 'old = "3 * x"', "has the text 0 times, not once"),
        ('old = "2 * x"', 'old = "x"', "has the text 2 times, not once"),
        ('suites = ["small"]', 'suites = ["large"]', "unknown suite large"),
        ('new = "x + 2"', 'new = "2 * x"', "changes nothing"),
    ],
)
def test_wrong_mutants(
    small: Path, old: str, new: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / "mutants.toml").write_text(TOML.replace(old, new, 1))
    assert run(small) == (1, {})
    assert complaint in capsys.readouterr().err


def test_unknown_name(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "--only", "nosuch")[0] == 2
    assert "no such mutant: nosuch" in capsys.readouterr().err


def test_what_is_stopped_leaves_nothing(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a suite runs: it is interrupted, and no process of it stays."""
    pid = small.parent / "pid"
    script = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    suite = Suite([sys.executable, "-c", script])
    bench = mutation.Bench(mutation.Trees(small.parent / "scratch", 1, [suite]))
    monkeypatch.setattr(mutation, "SUITES", {"small": suite})

    def stop_when_it_runs() -> None:
        while not (pid.exists() and pid.read_text()):
            pass
        bench.stop.set()

    threading.Thread(target=stop_when_it_runs).start()
    with bench.trees.lease() as tree, pytest.raises(Stopped):
        bench.failures("small", tree)
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_a_build_that_fails_is_a_problem(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(["true"], build=["sh", "-c", "echo no compiler; false"])
    monkeypatch.setattr(mutation, "SUITES", {"small": suite})
    bench = mutation.Bench(mutation.Trees(small.parent / "scratch", 1, [suite]))
    with bench.trees.lease() as tree, pytest.raises(MutationError, match="no compiler"):
        bench.failures("small", tree)


def test_results_are_json(small: Path) -> None:
    run(small, "--only", "caught")
    kept = json.loads((small.parent / "results.json").read_text())
    assert kept["results"][0]["name"] == "caught"


def test_the_record_has_no_survivor() -> None:
    """The record is of the mutants that were there when it was made; newer ones are told."""
    recorded = re.findall(
        r"^\| ([\w-]+) \|.* \| ([\w-]+) \| (.*) \|$", mutation.TABLE.read_text(), re.MULTILINE
    )
    known = {(mutant.name, suite) for mutant in MUTANTS for suite in mutant.suites}
    print("not recorded:", *sorted(known - {row[:2] for row in recorded[1:]}))
    assert len(known & {row[:2] for row in recorded[1:]}) > len(known) * 3 / 4
    assert [name for name, _, tests in recorded if tests == "**survived**"] == []
