# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's selftest, tools/testing/selftests/net/tcp_drwa.sh, in guests."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import SRC, Script

pytestmark = [pytest.mark.guest, pytest.mark.long]

SELFTESTS = SRC / "tools" / "testing" / "selftests" / "net"
SCRIPT = SELFTESTS / "tcp_drwa.sh"
# The names between the quotes of its variables
NAMES = [
    name
    for names in re.findall(r'^(?:knob_)?tests="([^"]*)"', SCRIPT.read_text(), re.MULTILINE)
    for name in names.split()
    if not name.startswith("$")
]
# What is not reached
OPEN = {
    "small_segments": "an ACK of less than the unit of the window's scale cannot lower the window",
}

Tap = dict[str, str]


def compiled(name: str, folder: Path) -> Path:
    """A program of the selftest, linked statically as for a phone."""
    output = folder / name
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", str(output)]
    subprocess.run([*command, str(SELFTESTS / f"{name}.c")], check=True)
    return output


@pytest.fixture(
    scope="module",
    params=[
        "6.12 drwa",
        *(pytest.param(name, marks=pytest.mark.lines) for name in ("6.12 debug", "6.1 drwa")),
    ],
)
def tap(
    request: pytest.FixtureRequest, script: Script, tmp_path_factory: pytest.TempPathFactory
) -> Tap:
    """The selftest's report on each test, by its name."""
    folder = tmp_path_factory.mktemp("selftest")
    programs = [compiled(name, folder) for name in ("tcp_drwa", "tcp_drwa_peer")]
    text = "DRWA_STORM_S=0.5 ./tcp_drwa.sh || :\n"
    done = script(text, *request.param.split(), [SCRIPT, *programs])
    return {
        name: line
        for line, name in re.findall(r"^((?:not )?ok \d+ (\w+).*)", done.console, re.MULTILINE)
    }


@pytest.mark.parametrize("name", NAMES)
def test_kselftest(tap: Tap, name: str) -> None:
    """Here nothing may be skipped."""
    line = tap.get(name, "no report")
    if name in OPEN and line.startswith("not ok"):
        pytest.xfail(OPEN[name])
    assert re.fullmatch(rf"ok \d+ {name}", line)


def test_all_is_reported(tap: Tap) -> None:
    assert len(NAMES) > 30
    assert list(tap) == NAMES
