# SPDX-License-Identifier: GPL-2.0-only
"""axe-core, which looks for what keeps people from reading a page.

It is MPL-2.0, and no file of it is here: npm installs this one version into the cache.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from browser import Browser
from drwalab.sources import cache_dir

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
# What nobody may find on our pages; the others are "minor" and "moderate".
GRAVE = ("serious", "critical")
VIEWS = pytest.mark.parametrize(
    ("width", "scheme", "media"),
    [(1280, "dark", "screen"), (390, "light", "screen"), (1280, "dark", "print")],
)


def _install(folder: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip(f"no axe-core {VERSION}: apt-get install npm")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as new:
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        done = subprocess.run(
            ["npm", "install", f"--prefix={new}", *options, f"axe-core@{VERSION}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"npm has no axe-core {VERSION}: {done.stderr.strip().splitlines()[:1]}")
        # Another test may have been faster.
        if not folder.exists():
            (Path(new) / "node_modules/axe-core").rename(folder)


def script() -> str:
    """The library; a test that needs it is skipped where it cannot be had."""
    folder = cache_dir() / f"axe-core-{VERSION}"
    if not folder.exists():
        _install(folder)
    library = (folder / "axe.min.js").read_bytes()
    assert hashlib.sha256(library).hexdigest() == SHA256, f"{folder} is not what it was"
    return library.decode()


def grave_on(page: Path, width: int, scheme: str, media: str) -> list[str]:
    """What is grave about a page with three figures or more, as one of VIEWS shows it."""
    with Browser(width, 844) as window:
        window.prefer(scheme, media)
        window.open(page)
        window.wait("return document.querySelectorAll('.plot [role=img]').length >= 3")
        if media == "print":
            window.run("window.dispatchEvent(new Event('beforeprint'))")
        return _grave(window)


def _grave(window: Browser) -> list[str]:
    """What is grave about the page of this window, with everything on it unfolded."""
    window.run(script())
    window.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    found: list[dict[str, Any]] = window.run(
        "return axe.run({resultTypes: ['violations']}).then((all) => all.violations)"
    )
    return [
        f"{each['id']}: {len(each['nodes'])} as {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in GRAVE
    ]
