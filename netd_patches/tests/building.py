# SPDX-License-Identifier: Apache-2.0
"""What netd_patches/Makefile builds."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

NETD = Path(__file__).resolve().parents[1]
OUT = NETD.parent / "out" / "netd"


@cache
def make(target: str) -> Path:
    """A target, up to date."""
    jobs = f"--jobs={len(os.sched_getaffinity(0))}"
    makefile = f"--file={NETD / 'Makefile'}"
    path = OUT / target
    done = subprocess.run(
        ["make", "--silent", jobs, makefile, f"OUT={OUT}", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return path


def gtest_names(*sources: Path) -> list[str]:
    """The names of the tests in C++ sources, as a gtest program prints those without parameters."""
    pattern = re.compile(r"^TEST(?:_F)?\((\w+), (\w+)\)", re.MULTILINE)
    return [".".join(match) for source in sources for match in pattern.findall(source.read_text())]
