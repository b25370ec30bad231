# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from drwalab import sources

DEBIAN = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"


def test_lines_name_their_source() -> None:
    lines = sources.read_lines()
    assert list(lines) == ["6.12", "6.1", "5.10", "7.3"]
    assert lines["6.1"].source == "linux-source-6.1"


def test_apt_sources_derive_the_security_suite() -> None:
    """A machine with `bookworm main` alone learns where the kernel is; other archives stay out."""
    targets = (
        "Packages http://mirror.example/debian/ bookworm main\n"
        "DEP-11 http://mirror.example/debian/ bookworm main\n"
        "Packages http://apt.example/cloud/ bookworm main\n"
    )
    assert sources.apt_sources(targets, "bookworm-security") == [
        f"{DEBIAN} http://mirror.example/debian bookworm main",
        f"{DEBIAN} http://mirror.example/debian-security bookworm-security main",
    ]


def test_apt_sources_are_named_once() -> None:
    targets = (
        "Packages http://mirror.example/debian/ bookworm main\n"
        "Packages http://mirror.example/debian-security/ bookworm-security main\n"
    )
    assert sources.apt_sources(targets, "bookworm-security") == [
        f"{DEBIAN} http://mirror.example/debian bookworm main",
        f"{DEBIAN} http://mirror.example/debian-security bookworm-security main",
    ]


def test_apt_sources_take_a_suite_from_its_archive() -> None:
    targets = "Packages http://mirror.example/debian-security/ bookworm-security main\n"
    first = f"{DEBIAN} http://mirror.example/debian-security bookworm-security main"
    assert sources.apt_sources(targets, "bullseye-security") == [
        first,
        f"{DEBIAN} http://mirror.example/debian-security bullseye-security main",
    ]
    assert sources.apt_sources(targets, "trixie-backports") == [
        first,
        f"{DEBIAN} http://mirror.example/debian trixie-backports main",
    ]
    assert sources.apt_sources(targets, "") == [first]


def test_find_source_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    line = sources.read_lines()["6.12"]
    assert sources.find_source(line) is None
    home = tmp_path / "drwa" / "sources" / "6.12"
    home.mkdir(parents=True)
    (home / "version").write_text("6.12.1-1\n")
    # Unpacked by an older lab, which left out something else.
    (home / "unused").write_text("net/*")
    assert sources.find_source(line) is None
    (home / "unused").write_text("\n".join(sources.UNUSED))
    found = sources.find_source(line)
    assert found is not None
    assert (found.version, found.path) == ("6.12.1-1", home / "linux")
