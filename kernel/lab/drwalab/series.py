# SPDX-License-Identifier: GPL-2.0-only
"""The patch series for a source, made by the engine of device/drwa.

Standard library only, as sources.py: kernel/mkseries uses it.
"""

import hashlib
import json
import sys
from pathlib import Path

from drwalab.sources import KERNEL_DIR, Source, cache_dir

DEVICE_DIR = KERNEL_DIR.parent / "device"
sys.path.insert(0, str(DEVICE_DIR))

from drwatool.described import (  # noqa: E402
    folder_reader,
    patches,
    place,
    read_series,
    sources_of,
)
from drwatool.places import code_of as code_of  # noqa: E402


def make_series(kernel: Path, source: Source) -> list[tuple[str, bytes]]:
    """The patches for a source by file name. Making them takes seconds, so they are kept."""
    home = cache_dir() / "series" / f"{_key(kernel, source)}.json"
    try:
        made = json.loads(home.read_text())
    except FileNotFoundError:
        made = generate(kernel, source.path)
        home.parent.mkdir(exist_ok=True)
        draft = home.with_suffix(".part")
        draft.write_text(json.dumps(made))
        draft.rename(home)
    return [(name, text.encode()) for name, text in made.items()]


def _key(kernel: Path, source: Source) -> str:
    """Of all that the patches are made of, and with."""
    tool = [DEVICE_DIR / "drwatool" / name for name in ("described.py", "places.py")]
    digest = hashlib.sha256(f"{source.line.name} {source.version} {source.path}".encode())
    for path in (*sources_of(kernel / "series", kernel / "src"), *tool):
        data = path.read_bytes()
        digest.update(f"{path.name} {len(data)} ".encode() + data)
    return digest.hexdigest()[:16]


def generate(kernel: Path, pristine: Path) -> dict[str, str]:
    """The patches for a source by file name; nothing may be left out."""
    steps = read_series(kernel / "series", kernel / "src")
    return patches(place(steps, folder_reader(pristine), with_tests=True))
