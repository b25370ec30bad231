# SPDX-License-Identifier: GPL-2.0-only
import dataclasses
import os
import signal
import subprocess
import sys
import time
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


def start_source(tmp_path: Path, apt_get: str) -> "subprocess.Popen[str]":
    """kernel/lab/source 6.12, with an apt-get that is this script."""
    fake = tmp_path / "bin" / "apt-get"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n{apt_get}\n")
    fake.chmod(0o755)
    environment = {
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    script = str(sources.KERNEL_DIR / "lab" / "source")
    # A shell lets what it starts in the background ignore SIGINT.
    command = ["env", "--default-signal=INT", sys.executable, script, "6.12"]
    return subprocess.Popen(
        command, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    )


def test_a_source_is_fetched_once(tmp_path: Path) -> None:
    home = tmp_path / "cache" / "drwa" / "sources" / "6.12"
    home.mkdir(parents=True)
    (home / "version").write_text("6.12.1-1\n")
    (home / "unused").write_text("\n".join(sources.UNUSED))
    with start_source(tmp_path, "exit 1") as process:
        said = process.communicate()[1]
    assert said == ""
    assert process.returncode == 0


def test_a_source_that_is_nowhere(tmp_path: Path) -> None:
    with start_source(tmp_path, "echo 'E: no mirror' >&2; exit 100") as process:
        said = process.communicate()[1]
    assert process.returncode == 1
    assert said == "lab: downloading linux-source-6.12\nlab: E: no mirror\n"
    assert list((tmp_path / "cache" / "drwa" / "sources").iterdir()) == []


def test_fetching_can_be_interrupted(tmp_path: Path) -> None:
    script = f"touch '{tmp_path}/asked'; exec sleep 60"
    with start_source(tmp_path, script) as process:
        while not (tmp_path / "asked").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 130
    assert said == "lab: downloading linux-source-6.12\n"
    assert list((tmp_path / "cache" / "drwa" / "sources").iterdir()) == []


@pytest.mark.parametrize(
    ("parts", "packages"),
    [
        ("", ["linux-image-5.10.0-46-amd64"]),
        (
            "  Depends: linux-binary-7.3.4-amd64\n  Depends: linux-modules-7.3.4-amd64\n",
            ["linux-image-7.3.4-amd64", "linux-binary-7.3.4-amd64", "linux-modules-7.3.4-amd64"],
        ),
    ],
)
def test_an_image_is_its_suites_in_all_its_parts(
    parts: str, packages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], cwd: Path | None = None) -> str:
        asked.append(command)
        if command[0] == "apt-get":
            assert cwd is not None
            for name in command[command.index("download") + 1 :]:
                (cwd / f"{name}.deb").touch()
            return ""
        return f"  Depends: {packages[0]}\n" if command[-1] == "meta" else parts

    monkeypatch.setattr(sources, "_run", run)
    monkeypatch.setattr(sources, "_private_apt", lambda *_: ([], ""))
    line = dataclasses.replace(sources.read_lines()["7.3"], image="meta", suite="backports")
    found = sources._download_image(line, tmp_path)
    assert sorted(path.stem for path in found) == sorted(packages)
    assert all("--option=APT::Default-Release=backports" in command for command in asked)
