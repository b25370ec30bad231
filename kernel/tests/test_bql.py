# SPDX-License-Identifier: GPL-2.0-only
"""The proposals for vendors' drivers are patches, and say what their worth depends on."""

import subprocess
from pathlib import Path

import pytest

PATCHES = sorted((Path(__file__).resolve().parents[1] / "bql").glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch(patch: Path) -> None:
    """What is counted as sent is counted as completed, or a queue stops for good."""
    command = ["git", "apply", "--numstat", str(patch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    added = [line for line in patch.read_text().splitlines() if line.startswith("+")]
    assert sum("netdev_tx_sent_queue(" in line for line in added) == 1
    assert any("netdev_tx_completed_queue(" in line for line in added)
    assert "Its worth depends on" in patch.read_text()


def test_both_vendors() -> None:
    assert [patch.stem for patch in PATCHES] == ["mediatek-dpmaif", "samsung-cpif"]
