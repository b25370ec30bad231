# SPDX-License-Identifier: Apache-2.0
"""The scripts that make, check and apply the patches, and what patches share with sources."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scripts import FRAMEWORKS, load

HOOKS = sorted((FRAMEWORKS / "patches").glob("packages_modules_Connectivity/*/0002-*.patch"))
CARRIER_CONFIGS = sorted((FRAMEWORKS / "patches").glob("frameworks_base/*/0001-*.patch"))
POLICY = FRAMEWORKS / "drwa/src/com/android/server/connectivity"


mkpatches = load("mkpatches")
check_aosp = load("check-aosp")


@pytest.fixture
def frameworks(tmp_path: Path) -> Path:
    """A copy of frameworks/ to spoil, beside what else patches are made from."""
    copy = tmp_path / "frameworks"
    for name in "patches", "src":
        shutil.copytree(FRAMEWORKS.parent / "netd_patches" / name, tmp_path / "netd_patches" / name)
    shutil.copytree(FRAMEWORKS / "patches", copy / "patches")
    shutil.copytree(FRAMEWORKS / "drwa/src", copy / "drwa/src")
    for name in "bpf", "src", "tests/include":
        shutil.copytree(FRAMEWORKS.parent / "kernel" / name, tmp_path / "kernel" / name)
    shutil.copy(FRAMEWORKS / "releases.toml", copy)
    return copy


def complaints(frameworks: Path) -> list[str]:
    table = tomllib.loads((frameworks / "releases.toml").read_text())
    found = mkpatches.check(frameworks, table, mkpatches.expected(frameworks, table))
    assert isinstance(found, list)
    return found


def test_good_patches_pass(frameworks: Path) -> None:
    assert complaints(frameworks) == []


def test_changed_source_makes_the_patch_of_every_release_stale(frameworks: Path) -> None:
    source = frameworks / "drwa/src/com/android/server/connectivity/DrwaController.java"
    source.write_text(source.read_text().replace("package ", "package  "))
    found = complaints(frameworks)
    series = list((frameworks / "patches").glob("packages_modules_Connectivity/*/0001-*.patch"))
    assert len(found) == len(series)
    assert all("0001-drwa-policy.patch is stale" in complaint for complaint in found)


@pytest.mark.parametrize(
    "name",
    [
        "kernel/src/net/ipv4/tcp_drwa_core.c",
        "kernel/bpf/drwa.bpf.c",
        "kernel/bpf/android/drwa.c",
    ],
)
def test_changed_bpf_makes_the_patches_stale(frameworks: Path, name: str) -> None:
    source = frameworks.parent / name
    source.write_text(source.read_text() + "\n")
    found = complaints(frameworks)
    assert found
    assert all("0004-drwa-bpf.patch is stale" in complaint for complaint in found)


def test_new_source_makes_the_patch_stale(frameworks: Path) -> None:
    (frameworks / "drwa/src/com/android/server/connectivity/More.java").write_text(
        "class More {}\n"
    )
    assert any("is stale" in complaint for complaint in complaints(frameworks))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda text: text.replace("Signed-off-by", "Signed-by"), "no header"),
        (lambda text: text.replace("\n+import ", "\n+\n+import "), "corrupt patch"),
        (lambda text: re.sub(r"\d+ insertion", "3 insertion", text), "summary says otherwise"),
        (lambda text: re.sub(r"(\n\+import [^\n]*)", r"\1 ", text, count=1), "white space"),
    ],
)
def test_malformed_patch(frameworks: Path, spoil: Callable[[str], str], complaint: str) -> None:
    patch = frameworks / "patches/packages_modules_Connectivity/15/0002-drwa-hooks.patch"
    patch.write_text(spoil(patch.read_text()))
    found = complaints(frameworks)
    assert len(found) == 1
    assert complaint in found[0]


def test_patches_in_another_folder_are_checked_too(frameworks: Path) -> None:
    netd = frameworks.parent / "netd_patches"
    source = netd / "src/server/drwa/DrwaController.h"
    source.write_text(source.read_text() + "\n")
    shutil.copytree(netd / "patches/system_netd/15", netd / "patches/system_netd/17")
    found = complaints(frameworks)
    assert sum("0001-drwa-controller.patch is stale" in complaint for complaint in found) == 2
    assert "releases.toml does not know netd_patches/patches/system_netd/17" in found


def test_missing_and_unknown_patches(frameworks: Path) -> None:
    patches = frameworks / "patches/packages_modules_Connectivity"
    (patches / "15/0002-drwa-hooks.patch").unlink()
    shutil.copytree(patches / "15", patches / "17")
    found = "\n".join(complaints(frameworks))
    assert (
        "releases.toml does not know frameworks/patches/packages_modules_Connectivity/17" in found
    )
    assert "packages_modules_Connectivity/15 is not numbered" in found


def test_maven_has_a_profile_for_every_release() -> None:
    """Maven cannot read the table, so pom.xml says once more what it says."""
    pom = {"": "http://maven.apache.org/POM/4.0.0"}
    found = {}
    for profile in ElementTree.parse(FRAMEWORKS / "pom.xml").iterfind(".//profile", pom):
        name = profile.findtext("id", "", pom).removeprefix("android-")
        found[name] = int(profile.findtext("properties/android.sdk", "0", pom))
    table = tomllib.loads((FRAMEWORKS / "releases.toml").read_text())
    assert found == table["api_levels"]
    assert table["releases"].keys() == table["api_levels"].keys()


@pytest.mark.parametrize("patch", HOOKS, ids=lambda path: path.parent.name)
def test_hooks_call_what_the_policy_has(patch: Path) -> None:
    called = set(re.findall(r"^\+.*mDrwaController\.(\w+)\(", patch.read_text(), re.MULTILINE))
    source = (POLICY / "DrwaController.java").read_text()
    offered = set(re.findall(r"^    public (?:void|int) (\w+)\(", source, re.MULTILINE))
    assert called == offered


@pytest.mark.parametrize("patch", CARRIER_CONFIGS, ids=lambda path: path.parent.name)
def test_carrier_config_has_the_keys_and_defaults_of_the_policy(patch: Path) -> None:
    def constant(name: str) -> str:
        found = re.search(rf" {name} =\s*([^;]+);", source)
        assert found is not None
        return found[1]

    source = (POLICY / "DrwaCarrierConfig.java").read_text()
    text = patch.read_text()
    assert f"KEY_DRWA_ENABLED_BOOL = {constant('KEY_ENABLED')};" in text
    assert f"KEY_DRWA_LAMBDA_INT = {constant('KEY_LAMBDA')};" in text
    assert f"KEY_DRWA_UPLINK_TARGET_MS_INT = {constant('KEY_UPLINK')};" in text
    assert constant("DEFAULT_UPLINK_MS") == "DrwaUplink.OFF"
    assert "putInt(KEY_DRWA_UPLINK_TARGET_MS_INT, 0);" in text
    milliseconds = f"from {constant('MIN_UPLINK_MS')} to {constant('MAX_UPLINK_MS')}, or 0"
    assert f"milliseconds {milliseconds}" in text
    assert f"putBoolean(KEY_DRWA_ENABLED_BOOL, {constant('DEFAULT_ENABLED')});" in text
    assert f"putInt(KEY_DRWA_LAMBDA_INT, {constant('DEFAULT_LAMBDA')});" in text
    limits = f"from {constant('MIN_LAMBDA')}\n+     * to {constant('MAX_LAMBDA')}."
    assert limits in text


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one file, and beside it a series of two patches for it."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for text in "one", "two", "three":
        (folder / "file").write_text(f"{text}\n")
        git(folder, "add", "file")
        git(folder, "commit", "--quiet", "--message", text)
    git(folder, "format-patch", "-2", "--output-directory", str(tmp_path / "series"))
    git(folder, "checkout", "--quiet", "--detach", "HEAD~2")
    return folder


def repository(project: Path) -> Any:
    scratch = project.parent / "scratch"
    (scratch / "objects").mkdir(parents=True)
    return check_aosp.Repository(project, scratch)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_applying_leaves_the_project_alone(project: Path) -> None:
    before = contents(project)
    series = sorted((project.parent / "series").iterdir())
    opened = repository(project)
    tree = opened.apply("HEAD", series)
    assert opened.git("show", f"{tree}:file") == b"three\n"
    assert opened.changed("HEAD", tree) == ["file"]
    assert contents(project) == before


def test_a_series_that_does_not_apply_is_named(project: Path) -> None:
    series = sorted((project.parent / "series").iterdir())
    with pytest.raises(check_aosp.CheckError, match=r"0002-three\.patch does not apply to HEAD"):
        repository(project).apply("HEAD", series[1:])


def test_compilers_complaints_are_compared_without_line_numbers(tmp_path: Path) -> None:
    def say(line: int, text: str) -> list[str]:
        message = f"A.java:{line}: error: cannot find symbol\\n        {text}\\n        ^\\n"
        return ["sh", "-c", f"printf '{message}'; exit 1"]

    old = check_aosp.complaints(say(3, "foo();"), tmp_path)
    assert check_aosp.complaints(say(5, "foo();"), tmp_path) - old == {}
    new = check_aosp.complaints(say(5, "bar();"), tmp_path) - old
    assert list(new) == ["A.java: error: cannot find symbol\n    bar();"]


def test_a_compiler_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(check_aosp.CheckError, match="no such option"):
        check_aosp.complaints(["sh", "-c", "echo no such option; exit 2"], tmp_path)
