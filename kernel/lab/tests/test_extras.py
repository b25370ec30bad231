# SPDX-License-Identifier: GPL-2.0-only
"""The lab's virtual environment: the few packages first, and all of them where one is missing."""

import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from drwalab import extras
from drwalab.extras import ExtraError
from drwalab.sources import KERNEL_DIR

LAB = KERNEL_DIR / "lab"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script and lists of two packages, of which the first is for the lab."""
    folder = tmp_path / "lab"
    folder.mkdir()
    shutil.copy(LAB / "venv", folder)
    (folder / "requirements.txt").write_text("few==1\nmore==1\n")
    (folder / "requirements-lab.txt").write_text("few\n")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, version in (("few", "1"), ("few", "2"), ("more", "1")):
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(wheels / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", f"VERSION = {version}\n")
            about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            wheel.writestr(f"{info}/METADATA", about)
            tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{info}/WHEEL", tags)
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return folder


def run(lab: Path, *arguments: str) -> tuple[Path, list[str]]:
    """The virtual environment, and what the script said of it."""
    done = subprocess.run([lab / "venv", *arguments], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()), done.stderr.splitlines()


def has(venv: Path, name: str) -> bool:
    command = [str(venv / "bin" / "python"), "-c", f"import {name}; assert {name}.VERSION == 1"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_few_packages_first_and_then_all(lab: Path) -> None:
    venv, said = run(lab, "--lab")
    assert len(said) == 1, said
    assert (has(venv, "few"), has(venv, "more")) == (True, False)
    assert run(lab, "--lab") == (venv, [])

    whole, said = run(lab)
    assert len(said) == 1, said
    assert whole == venv
    assert (has(venv, "few"), has(venv, "more")) == (True, True)
    assert run(lab) == run(lab, "--lab") == (venv, [])


def test_an_interrupted_one_is_made_anew(lab: Path, tmp_path: Path) -> None:
    venv, _ = run(lab, "--lab")
    (venv / "left").touch()
    (tmp_path / "wheels" / "more-1-py3-none-any.whl").rename(tmp_path / "more")
    with pytest.raises(subprocess.CalledProcessError):
        run(lab)
    (tmp_path / "more").rename(tmp_path / "wheels" / "more-1-py3-none-any.whl")
    assert run(lab)[0] == venv
    assert not (venv / "left").exists()
    assert has(venv, "few")


def test_a_longer_list_is_seen(lab: Path) -> None:
    run(lab, "--lab")
    (lab / "requirements-lab.txt").write_text("few\nmore\n")
    venv, said = run(lab, "--lab")
    assert len(said) == 1, said
    assert has(venv, "more")


def test_the_lab_does_with_its_list() -> None:
    """Whatever else its modules import, they do so when they use it."""
    named = {
        line.lower()
        for line in (LAB / "requirements-lab.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    pinned = {
        line.partition("==")[0].lower()
        for line in (LAB / "requirements.txt").read_text().splitlines()
    }
    assert named <= pinned
    code = (
        "import sys, drwalab.cli, jinja2, plotly.offline\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    environment = os.environ | {"PYTHONPATH": f"{LAB}:{KERNEL_DIR.parent / 'device'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    unused = {"aioquic", "matplotlib", "pandas", "pyarrow", "scapy", "dpkt", "pytest"}
    assert not unused & set(done.stdout.split())


def test_what_a_command_lacks_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "venv"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/needed_by_few.py'\n")
    script.chmod(0o755)
    monkeypatch.setattr(extras, "VENV", script)
    monkeypatch.syspath_prepend(str(tmp_path))
    extras.need("json")
    assert not (tmp_path / "needed_by_few.py").exists()
    extras.need("needed_by_few")
    assert importlib.import_module("needed_by_few")


def test_what_cannot_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "venv"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(extras, "VENV", script)
    with pytest.raises(ExtraError, match="needed_by_none is missing"):
        extras.need("needed_by_none")


def test_make_unpacks_while_pip_installs(tmp_path: Path) -> None:
    """Each ends only when it has seen the other begin."""
    scripts = {"packages": "exit 0"}
    for name, other in (("source", "venv"), ("venv", "source")):
        seen = f"[ ! -e {other} ] || exit 0"
        scripts[name] = f"touch {name}; for i in $(seq 99); do {seen}; sleep 0.1; done; exit 1"
    for name, script in scripts.items():
        path = tmp_path / "kernel" / "lab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    shutil.copy(KERNEL_DIR.parent / "Makefile", tmp_path)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    subprocess.run(["make", "ready"], cwd=tmp_path, env=environment, check=True)
