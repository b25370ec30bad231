# SPDX-License-Identifier: GPL-2.0-only
"""The laws' KUnit suites in user space, with sanitizers.

In a kernel, kernel/lab/tests/test_kunit.py runs them, and those of the bindings.
"""

import re
import subprocess
from pathlib import Path

import pytest

from builds import suite

NET = Path(__file__).resolve().parents[1] / "src" / "net"


@pytest.mark.parametrize("source", ["ipv4/tcp_drwa_core_test.c", "sched/drwa_up_test.c"])
def test_every_case_passes(source: str, tmp_path: Path) -> None:
    """A kernel's KUnit frees what a suite allocates; here it is left."""
    done = subprocess.run(
        [suite(NET / source, tmp_path)],
        env={"ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    cases = re.findall(r"KUNIT_CASE\((\w+)\)", (NET / source).read_text())
    assert len(cases) >= 10
    reported = [line for line in done.stdout.splitlines() if not re.match(r"# seed", line)]
    assert reported == [f"ok {number} {case}" for number, case in enumerate(cases, start=1)]
