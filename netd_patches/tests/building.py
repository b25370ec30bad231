# SPDX-License-Identifier: Apache-2.0
"""What netd_patches/Makefile builds."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

NETD = Path(__file__).resolve().parents[1]
TOP = NETD.parent
OUT = TOP / "out" / "netd"


@cache
def make(target: str) -> Path:
    """A target, up to date."""
    jobs = f"--jobs={len(os.sched_getaffinity(0))}"
    # Make cannot have a space in a name, but the tree's folder may have one.
    makefile = "--file=netd_patches/Makefile"
    done = subprocess.run(
        ["make", "--silent", jobs, makefile, "OUT=out/netd", f"out/netd/{target}"],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return OUT / target


def gtest_names(*sources: Path) -> list[str]:
    """The names of the tests in C++ sources, as a gtest program prints those without parameters."""
    pattern = re.compile(r"^TEST(?:_F)?\((\w+), (\w+)\)", re.MULTILINE)
    return [".".join(match) for source in sources for match in pattern.findall(source.read_text())]
