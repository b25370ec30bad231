# SPDX-License-Identifier: Apache-2.0
"""That `make test` fails when tests fail, do not run, or are not there: .ci/check's counting.

pytest is the real one, on small files; run-tests is a script that leaves Surefire's reports.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

CHECK = Path(__file__).resolve().parents[2] / ".ci" / "check"
PASSES = "def test_good():\n    pass\n"
FAILS = "def test_bad():\n    assert False\n"
SKIPS = "import pytest\n@pytest.mark.skip(reason='no radio')\ndef test_away():\n    pass\n"
ENDS = {
    "passes": (PASSES, (1, 0, [])),
    "fails": (PASSES + FAILS, (1, 1, [])),
    "skips beside a test that passes": (PASSES + SKIPS, (1, 0, ["test_away: no radio"])),
    "skips alone": (SKIPS, (0, 1, ["test_away: no radio"])),
    "cannot be imported": (PASSES + "import nosuchmodule\n", (0, 1, [])),
    # The report has the test that was stopped as one that passed.
    "is interrupted": (PASSES + "def test_stop():\n    raise KeyboardInterrupt\n", (2, 1, [])),
    "ends pytest": (PASSES + "import os\ndef test_end():\n    os._exit(0)\n", (0, 1, [])),
    "asks pytest to end": (
        f"import pytest\n{PASSES}def test_end():\n    pytest.exit('enough', returncode=3)\n",
        (2, 1, []),
    ),
    "has no test": ("", (0, 1, [])),
}


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, for a repository that is empty."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("check", str(CHECK))
    spec = importlib.util.spec_from_loader("check", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    configuration = tmp_path / "kernel/lab/pyproject.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n")
    monkeypatch.setattr(module, "TOP", tmp_path)
    monkeypatch.setattr(module, "TESTS", ["test_it.py"])
    return module


@pytest.mark.parametrize("name", list(ENDS))
def test_pytest_that(check: ModuleType, tmp_path: Path, name: str) -> None:
    text, result = ENDS[name]
    (tmp_path / "test_it.py").write_text(text)
    # What an earlier run left says nothing.
    (tmp_path / "out").mkdir()
    (tmp_path / "out/tests.xml").write_text("<testsuite><testcase name='old'/></testsuite>")
    assert check.tests(tmp_path / "out/tests.xml", ["test_it.py"]) == result


def test_pytest_with_wrong_arguments(check: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PASSES)
    assert check.tests(tmp_path / "out/tests.xml", ["test_it.py"], "--nosuch") == (0, 1, [])


def run_tests(top: Path, reports: dict[str, str], code: int = 0) -> None:
    """Makes the script that stands in for Maven."""
    lines = ["#!/bin/sh", "mkdir -p out/frameworks/android-35/surefire-reports"]
    for name, cases in reports.items():
        path = f"out/frameworks/android-35/surefire-reports/TEST-{name}.xml"
        lines.append(f"echo '<testsuite>{cases}</testsuite>' > {path}")
    script = top / "frameworks/run-tests"
    script.parent.mkdir(exist_ok=True)
    script.write_text("\n".join([*lines, f"exit {code}", ""]))
    script.chmod(0o755)


PASSED = '<testcase name="a"/>'
FAILED = '<testcase name="b"><failure/></testcase>'
ERROR = '<testcase name="c"><error/></testcase>'
SKIPPED = '<testcase name="d"><skipped message="no phone"/></testcase>'
POLICY = "com.android.server.connectivity.DrwaControllerTest"
DEVICE = "com.android.drwa.cts.VpnTest"
HOST = "com.android.drwa.hostside.KnobTest"


@pytest.mark.parametrize(
    ("reports", "code", "framework", "device"),
    [
        ({POLICY: PASSED, DEVICE: PASSED}, 0, (1, 0), (1, 0)),
        ({POLICY: PASSED, DEVICE: PASSED + SKIPPED}, 0, (1, 0), (1, 0)),
        ({POLICY: PASSED, DEVICE: PASSED + FAILED + ERROR}, 1, (1, 1), (1, 2)),
        # No device-side test: taken out of the build, or none that could run
        ({POLICY: PASSED}, 0, (1, 0), (0, 1)),
        ({POLICY: PASSED, DEVICE: SKIPPED}, 0, (1, 0), (0, 1)),
        ({DEVICE: PASSED}, 0, (0, 1), (1, 0)),
        # Maven failed, although no test did
        ({POLICY: PASSED, DEVICE: PASSED}, 1, (1, 1), (1, 0)),
        ({}, 1, (0, 1), (0, 1)),
    ],
)
def test_java(
    check: ModuleType,
    tmp_path: Path,
    reports: dict[str, str],
    code: int,
    framework: tuple[int, int],
    device: tuple[int, int],
) -> None:
    run_tests(tmp_path, {"com.android.drwa.cts.OldTest": PASSED})
    check.java_tests("15")
    run_tests(tmp_path, reports, code)
    results = check.java_tests("15")
    assert list(results) == ["Android 15", "CTS device side, Android 15"]
    assert [result[:2] for result in results.values()] == [framework, device]


@pytest.mark.parametrize(
    ("cases", "code", "result"),
    [
        (PASSED + SKIPPED, 0, (1, 0, ["d: no phone"])),
        (PASSED + FAILED, 1, (1, 1, [])),
        (PASSED, 1, (1, 1, [])),
        (SKIPPED, 0, (0, 1, ["d: no phone"])),
        (None, 0, (0, 1, [])),
    ],
)
def test_host_side(
    check: ModuleType,
    tmp_path: Path,
    cases: str | None,
    code: int,
    result: tuple[int, int, list[str]],
) -> None:
    run_tests(tmp_path, {HOST: PASSED})
    check.host_tests()
    run_tests(tmp_path, {HOST: cases} if cases else {}, code)
    assert check.host_tests() == {"CTS host side": result}


@pytest.mark.parametrize(("text", "code"), [(PASSES, 0), (PASSES + FAILS, 1), ("", 1)])
def test_the_end(
    check: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: int,
) -> None:
    """The last line adds up, and the exit code goes by it."""
    (tmp_path / "test_it.py").write_text(text)
    monkeypatch.setattr(sys, "argv", ["check", "--lines"])
    # That of a line's tests; no test here has the mark.
    monkeypatch.setattr(
        check, "tests", lambda report, folders, *_, run=check.tests: run(report, folders)
    )
    assert check.main() == code
    passed, failed = text.count("test_good"), text.count("test_bad") + (text == "")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"in all: {passed} passed, {failed} failed, 0 could not run here"


def lanes(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, **ends: Callable[[], object]
) -> list[str]:
    """Has all that is run tell its name, and end as it should or as the keywords say."""
    ran: list[str] = []

    def stand_in(name: str, value: object) -> None:
        def run(*arguments: object) -> object:
            ran.append(" ".join([name, *(str(each) for each in arguments[:1])]))
            return ends[name]() if name in ends else value

        monkeypatch.setattr(check, name, run)

    stand_in("lint", [True, True])
    stand_in("patch_series", True)
    for name in ("java_tests", "host_tests"):
        stand_in(name, {name: (3, 0, [])})
    stand_in("tests", (5, 0, []))
    monkeypatch.setattr(sys, "argv", ["check"])
    return ran


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("", None),
        ("lint", [True, False]),
        ("patch_series", False),
        ("java_tests", {"Android": (3, 1, [])}),
        ("host_tests", {"host": (3, 1, [])}),
        ("tests", (5, 1, [])),
    ],
)
def test_a_failure_in_either_lane_counts(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, end: object
) -> None:
    ran = lanes(check, monkeypatch, **({name: lambda: end} if name else {}))
    usual = ["lint", "java_tests 15"]
    usual += [f"tests {check.TOP / 'out'}/tests{part}.xml" for part in ("", "-end-to-end")]
    more = ["patch_series", "host_tests", "java_tests 14", "java_tests 16", "java_tests 17"]
    assert check.main() == (1 if name and name != "host_tests" else 0)
    # Of one kernel line, whose patches are kept
    assert sorted(ran) == sorted([*usual, "patch_series 7.3"])
    ran.clear()
    monkeypatch.setattr(sys, "argv", ["check", "--all"])
    assert check.main() == (1 if name else 0)
    assert sorted(ran) == sorted(usual + more)


def test_all_has_every_mark(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes(check, monkeypatch)
    marks: list[tuple[object, ...]] = []

    def tests(*arguments: object) -> tuple[int, int, list[str]]:
        marks.append(arguments[2:])
        return 1, 0, []

    monkeypatch.setattr(check, "tests", tests)
    monkeypatch.setattr(sys, "argv", ["check", "--all"])
    assert check.main() == 0
    assert [each[-2:] for each in marks] == [("-m", "")] * 2


def test_classes_are_compiled_by_one_at_a_time(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = lanes(check, monkeypatch, host_tests=lambda: {})
    monkeypatch.setattr(sys, "argv", ["check", "--all"])
    assert check.main() == 0
    assert ran.index("java_tests 15") < ran.index("host_tests") < len(ran) - 1
    assert ran[-1].endswith("end-to-end.xml")


def test_an_interrupt_starts_nothing_more(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    # The other lane is at its first task until nothing more is to be started.
    ran = lanes(check, monkeypatch, lint=lambda: check.stopped.wait(30) and [], tests=interrupted)
    monkeypatch.setattr(sys, "argv", ["check", "--all"])
    with pytest.raises(KeyboardInterrupt):
        check.main()
    assert not {"patch_series", "java_tests 14", "host_tests"} & set(ran)
    assert check.run("more", ["touch", "made"]) is False
    assert not (check.TOP / "made").exists()
