# SPDX-License-Identifier: GPL-2.0-only
"""Python packages that few commands need; requirements-lab.txt lists what the others do with."""

import importlib
import subprocess
from importlib.util import find_spec

from drwalab.sources import KERNEL_DIR

VENV = KERNEL_DIR / "lab" / "venv"


class ExtraError(Exception):
    """A package is missing that could not be installed."""


def need(package: str) -> None:
    """Completes the lab's virtual environment where it lacks this package."""
    if find_spec(package):
        return
    # It tells by itself what it does, and what goes wrong.
    done = subprocess.run([VENV], stdout=subprocess.DEVNULL, check=False)
    importlib.invalidate_caches()
    if done.returncode or not find_spec(package):
        raise ExtraError(f"the Python package {package} is missing, and {VENV} did not install it")
