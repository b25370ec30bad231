# SPDX-License-Identifier: Apache-2.0
"""Which version of the project this is."""

import subprocess
from pathlib import Path

from drwatool.git import inherited
from drwatool.trees import TOP

VERSION = "1.0"


def this_version() -> str:
    """With the commit, for `--version` of each tool."""
    return f"{VERSION}{_commit()}"


def _commit() -> str:
    """This repository's own, if it is one."""
    asked = ["rev-parse", "--show-toplevel", "--short=12", "HEAD"]
    try:
        done = subprocess.run(
            ["git", "-C", TOP, *asked],
            capture_output=True,
            text=True,
            check=True,
            env=inherited(),
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    top, commit = done.stdout.splitlines()
    return f", {commit}" if Path(top) == TOP else ""
