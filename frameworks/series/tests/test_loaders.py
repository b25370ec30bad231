# SPDX-License-Identifier: Apache-2.0
"""How each release's loader comes to the programs: by folder, or by a list that names them.

No loader of a release with a list can be had whole here, so loaders/ has models of their lists.
What the description makes of a model is compiled and run.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from drwatool import trees
from drwatool.described import RefusedError, place, read_series
from placing import assert_reverts, placed

MODELS = Path(__file__).parent / "loaders"
LOADER = "bpf/loader/NetBpfLoad.cpp"
OLD_LOADER = "netbpfload/NetBpfLoad.cpp"
APEX = "Tethering/apex/Android.bp"
RULE = "drwa/bpf/Android.bp"
BY_FOLDER = "int loadAllElfObjects(const Location& location) {\n    return 0;\n}\n"
IMAGE = """\
apex {
    bpfs: [
        "clatd.o",
        "dscpPolicy.o",
        "netd.o",
    ],
}
"""
IMAGE_17 = IMAGE.replace('        "netd.o"', '        "dscpPolicy@funcs.o",\n        "netd.o"')
INPROCESS = IMAGE + IMAGE.replace("apex {", "override_apex {")
HEADER = {"bpf/progs/include/bpf_helpers.h": "#define LICENSE(NAME) char _license[] = (NAME)\n"}
THEIRS = ["offload.o", "clatd.o", "netd.o"]


@dataclass(frozen=True)
class Release:
    """What a tree of it has where the programs go."""

    files: dict[str, str]
    listed: bool = False
    include: bool = False  # whether the rule has to name the header's folder


def model(name: str) -> str:
    return (MODELS / f"{name}.cpp").read_text()


RELEASES = {
    "14": Release({OLD_LOADER: BY_FOLDER, APEX: IMAGE}),
    "15": Release({OLD_LOADER: f"static {BY_FOLDER}", APEX: IMAGE}),
    "15 QPR2": Release({LOADER: f"static {BY_FOLDER}", APEX: IMAGE}),
    "16": Release({LOADER: f"static {BY_FOLDER}", APEX: IMAGE}),
    "16 QPR1": Release({LOADER: model("16-qpr1"), APEX: IMAGE}, listed=True),
    "16 QPR2": Release({LOADER: model("16-qpr2"), APEX: IMAGE, **HEADER}, True, True),
    "17": Release({LOADER: model("17"), APEX: IMAGE_17, **HEADER}, True, True),
}
LISTED = [name for name, release in RELEASES.items() if release.listed]
STEPS = [
    step
    for step in read_series(*trees.described_in("packages_modules_Connectivity"))
    if step.name.endswith(("drwa-bpf", "drwa-bpf-hooks"))
]


@pytest.mark.parametrize("name", RELEASES)
def test_places_of_a_release(name: str) -> None:
    release = RELEASES[name]
    series, after = placed(STEPS, release.files)
    assert len(series.steps) == 2 and not series.left_out
    assert '        "drwa.o",\n        "dscpPolicy.o",\n' in after[APEX]
    folder = "mainline" if release.listed else "net_shared"
    assert after[RULE].count("sub_dir") == 1
    assert f'    sub_dir: "{folder}",\n' in after[RULE]
    include = '    include_dirs: ["packages/modules/Connectivity/bpf/progs/include"],\n'
    assert (include in after[RULE]) == release.include
    changed = {path for path, text in release.files.items() if after[path] != text}
    assert changed == ({APEX, LOADER} if release.listed else {APEX})
    assert release.listed == ("drwa.o" in after.get(LOADER, ""))


def test_an_image_with_the_programs_in_its_process() -> None:
    """Trees for older kernels have it. Without ours, a phone boots, and is not governed."""
    files = {OLD_LOADER: BY_FOLDER, APEX: INPROCESS}
    _, after = placed(STEPS, files)
    assert after[APEX].count('        "drwa.o",\n        "dscpPolicy.o",\n') == 2
    assert_reverts(STEPS, files)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_as_it_was_after_a_revert(name: str) -> None:
    assert_reverts(STEPS, RELEASES[name].files)


def test_a_loader_that_nobody_has_seen_is_refused() -> None:
    """It would leave the programs out, and say nothing."""
    other = model("17").replace("loadAllObjects()", "loadTheObjects()")
    with pytest.raises(RefusedError) as error:
        place(STEPS, {LOADER: other, APEX: IMAGE}.get)
    (refusal,) = error.value.refusals
    assert refusal.startswith(f"{LOADER}: the programs in the loader's list: not found")


@pytest.fixture(scope="module")
def loaders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The models with the places' text, compiled."""
    built = {}
    for name in LISTED:
        folder = tmp_path_factory.mktemp("loader")
        _, after = placed(STEPS, RELEASES[name].files)
        (folder / "loader.cpp").write_text(after[LOADER])
        command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{MODELS}"]
        command += [str(folder / "loader.cpp"), "-o", str(folder / "loader")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        built[name] = folder / "loader"
    return built


def run(loader: Path, folder: Path, **fates: str | None) -> tuple[int, list[str], str]:
    """The loader's end, what it has pinned, and what it says; objects are good, unless told."""
    for name, fate in (dict.fromkeys(["offload", "clatd", "netd", "drwa"], "good") | fates).items():
        if fate is not None:
            (folder / f"{name}.o").write_text(f"{fate}\n")
    pinned = folder / "pinned"
    pinned.touch()
    environment = os.environ | {"OBJECTS": str(folder), "PINNED": str(pinned)}
    done = subprocess.run([loader], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, pinned.read_text().splitlines(), done.stderr


def names_of(pins: list[str]) -> list[str]:
    return [re.split("[/ ]", pin)[-1] for pin in pins]


@pytest.mark.parametrize("name", LISTED)
def test_the_list_loads_ours_behind_theirs(
    loaders: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """Without libbpf: how that takes an object has changed with each release."""
    code, pins, said = run(loaders[name], tmp_path)
    assert code == 0 and not said
    assert names_of(pins) == [*THEIRS, "drwa.o"]
    assert pins[-1] == ("net_shared/drwa.o" if name == "16 QPR1" else "drwa.o")


@pytest.mark.parametrize("ours", ["bad", "abort", None])
@pytest.mark.parametrize("name", LISTED)
def test_whatever_is_wrong_with_ours_the_phone_boots(
    loaders: dict[str, Path], tmp_path: Path, name: str, ours: str | None
) -> None:
    code, pins, said = run(loaders[name], tmp_path, drwa=ours)
    assert code == 0
    assert names_of(pins) == THEIRS
    assert "DRWA's programs are not loaded" in said


@pytest.mark.parametrize("theirs", ["bad", "abort"])
@pytest.mark.parametrize("name", LISTED)
def test_the_models_know_a_boot_that_stops(
    loaders: dict[str, Path], tmp_path: Path, name: str, theirs: str
) -> None:
    code, pins, _ = run(loaders[name], tmp_path, netd=theirs)
    assert code != 0
    assert names_of(pins) == THEIRS[:-1]
