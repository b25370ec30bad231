# SPDX-License-Identifier: Apache-2.0
"""check-kmi: what it takes for a tree, and the page. Real trees are kernel/tests/test_ack.py's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import small_trees
from small_trees import DEVICE, World, write

template = small_trees.template
world = small_trees.world

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 23\n"
BRANCH = "BRANCH=android16-6.12\nKMI_GENERATION=5\n"
RESULT = {
    "branch": "android16-6.12",
    "version": "6.12.23",
    "tree": "somebody/kernel 0123456789",
    "module": "of another day",
    "forms": {
        "vendor hooks": {
            "needed": ["a", "b", "c"],
            "missing": ["c"],
            "has": {"qcom": 2, "vivo": 1},
            "only": {"qcom": ["b"]},
        }
    },
}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "is no kernel: it has no Makefile"),
        ({"Makefile": MAKEFILE}, "is no Android Common Kernel: no build.config there names its"),
        (
            {"Makefile": MAKEFILE, "build.config.constants": BRANCH, "gki/aarch64/abi.stg": ""},
            "has no symbol list: neither android/abi_gki_aarch64_ nor gki/aarch64/symbols/",
        ),
    ],
)
def test_no_common_kernel(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    command = [sys.executable, str(DEVICE / "check-kmi"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"check-kmi: {tmp_path} {problem}")


def test_what_was_found_is_in_the_matrix(world: World) -> None:
    device = world.series("device")
    for name in "module/Kbuild", "module/drwa.c":
        write(world.series("kernel") / name, "")
    for name in "classic.h", "compat.h", "core.c", "proc.c", "sysctl.c":
        write(world.series("kernel/src/net/ipv4") / f"tcp_drwa_{name}", "")
    write(device / "results/kmi.json", json.dumps([RESULT]))
    subprocess.run([sys.executable, str(device / "matrix")], check=True)
    page = (device / "doc/support-matrix.md").read_text()
    assert (
        "| android16-6.12, 6.12.23 | somebody/kernel 0123456789 | vendor hooks "
        "| 3 symbols, an earlier drwa.ko | c | qcom: b |\n"
    ) in page
    counted = (device / "doc/symbol-lists.csv").read_text()
    assert "\nqcom,2\nvivo,1\n" in counted
