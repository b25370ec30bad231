# SPDX-License-Identifier: Apache-2.0
"""The patches with the BPF programs, compiled with a real AOSP tree, and run on this kernel.

AOSP names the tree. The object is the one of Android's bpf rule; the loader that reads it is the
tree's own; the kernel is this machine's, so running it needs root.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from scripts import FRAMEWORKS, load

HERE = FRAMEWORKS / "series/tests"
PROJECT = "packages_modules_Connectivity"
ANDROID = Path("/usr/include/android")
MULTIARCH = "/usr/lib/x86_64-linux-gnu"
# What a loader takes itself for on its own release; that of Android 14 has its version itself.
LOADER_VERSIONS = {"14": None, "15": 46, "16": 47}


check_aosp = load("check-aosp")

from drwatool.trees import detect_android  # noqa: E402


class Tree:
    """The module with our patches."""

    def __init__(self, release: str, patched: Path) -> None:
        self.release, self.patched = release, patched

    def headers(self) -> Path:
        """These have moved within Android 15."""
        moved = self.patched / "bpf/headers/include"
        return moved if moved.is_dir() else self.patched / "staticlibs/native/bpf_headers/include"

    def wrappers(self) -> Path:
        moved = self.patched / "bpf/syscall_wrappers/include"
        old = self.patched / "staticlibs/native/bpf_syscall_wrappers/include"
        return moved if moved.is_dir() else old


@pytest.fixture(scope="module")
def aosp() -> Path:
    name = os.environ.get("AOSP")
    if not name or not (Path(name) / "packages/modules/Connectivity").is_dir():
        pytest.skip("AOSP names no tree with packages/modules/Connectivity")
    if not ANDROID.is_dir():
        pytest.skip("no android-libbase-dev")
    return Path(name)


@pytest.fixture(scope="module")
def tree(aosp: Path, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    top = tmp_path_factory.mktemp("aosp")
    (top / "objects").mkdir()
    repository = check_aosp.Repository(aosp / "packages/modules/Connectivity", top)
    _, after = repository.patched(PROJECT, "HEAD")
    (top / "patched").mkdir()
    packed = repository.git("archive", after, ":!Cronet", ":!thread", ":!tests")
    subprocess.run(["tar", "x"], cwd=top / "patched", input=packed, check=True)
    return Tree(detect_android(aosp).name, top / "patched")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rule_flags(android_bp: Path) -> list[str]:
    """The cflags of the only module, as a shell has their words."""
    (text,) = re.findall(r"cflags: \[(.*?)\]", android_bp.read_text(), re.DOTALL)
    return [word for flag in re.findall(r'"([^"]+)"', text) for word in flag.split()]


@pytest.fixture(scope="module")
def object_(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As build/soong/bpf/bpf.go has it compiled, with this machine's UAPI in place of bionic's."""
    out = tmp_path_factory.mktemp("object")
    headers = tree.headers()
    # Until Android 15, the rule looked into the folder below.
    include = headers / "bpf" if (headers / "bpf/bpf_helpers.h").exists() else headers
    ids = re.findall(
        r"^#define AID_.*$", (ANDROID / "cutils/android_filesystem_config.h").read_text(), re.M
    )
    (out / "cutils").mkdir()
    names = "\n".join(["#include <stddef.h>", *ids, ""])
    (out / "cutils/android_filesystem_config.h").write_text(names)
    module = tree.patched / "drwa/bpf"
    run(
        *("clang", "--target=bpf", "-ffreestanding", "-O2", "-g", "-c", "-Wextra"),
        *("-D__always_inline=__attribute__((__always_inline__))",),
        *("-D__unused=__attribute__((__unused__))",),
        *("-isystem", out, f"-I{include}", f"-I{module}"),
        *("-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"),
        *rule_flags(module / "Android.bp"),
        *(module / "drwa.c", "-o", out / "drwa.o"),
    )
    return out / "drwa.o"


def test_no_name_has_a_dollar_for_the_kernel(object_: Path) -> None:
    """The loader gives it the first 15 characters."""
    sections = re.findall(r"\] (\S+/\S+_drwa\S*) ", run("readelf", "--wide", "--sections", object_))
    names = [name.replace("/", "_") for name in sections if not name.startswith(".rel")]
    assert len(names) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_.]+", name[:15]) for name in names)


def test_on_this_kernel(tree: Tree, object_: Path, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root")
    version = LOADER_VERSIONS[tree.release]
    loader = tree.patched / "netbpfload"
    whole = tree.patched / "bpf/loader/NetBpfLoad.cpp"
    sources = [f'-DWHOLE_LOADER="{whole}"'] if whole.exists() else [str(loader / "loader.cpp")]
    (tmp_path / "android").mkdir()
    levels = zip("STUV", (31, 33, 34, 35), strict=True)
    defined = "".join(f"#define __ANDROID_API_{name}__ {level}\n" for name, level in levels)
    device = "inline int android_get_device_api_level() { return 36; }\n"
    (tmp_path / "android/api-level.h").write_text(f"#pragma once\n{defined}{device}")
    program = tmp_path / "loader_test"
    headers = tree.headers()
    run(
        *("clang++", "-std=gnu++20", "-O1", "-include", HERE / "Bionic.h"),
        *("-isystem", ANDROID, "-isystem", headers, "-isystem", headers / "bpf"),
        *("-isystem", tree.wrappers()),
        *(
            "-w",
            f"-I{loader}",
            f"-isystem{tmp_path}",
            *([f"-DLOADER_VERSION={version}"] if version else []),
        ),
        *sources,
        *(HERE / "LoaderTest.cpp", "-o", program, f"-L{MULTIARCH}/android"),
        *(f"-Wl,-rpath,{MULTIARCH}/android", "-lbase", "-llog", "-lgtest", "-lpthread", "-lbpf"),
    )
    environment = os.environ | {"OBJECT": str(object_)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    said = re.sub(r"(?m)^NetBpfLoad .*\n", "", done.stdout + done.stderr)
    assert done.returncode == 0, said
    written = re.findall(r"(?m)^TEST_F", (HERE / "LoaderTest.cpp").read_text())
    assert f"[  PASSED  ] {len(written)} tests" in done.stdout
