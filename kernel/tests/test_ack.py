# SPDX-License-Identifier: GPL-2.0-only
"""The patches for the Android Common Kernel: their form, what their lists hold, where they fit.

ACK=DIR names the source of one, or several, as PATH does; there they are applied and compiled.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from drwalab.sources import find_source, read_lines

KERNEL = Path(__file__).resolve().parents[1]
TOP = KERNEL.parent
PATCHES = sorted((KERNEL / "module/ack").glob("*/*.patch"))
RESULTS = json.loads((TOP / "device/results/kmi.json").read_text())
BRANCHES = sorted({path.parent.name for path in PATCHES})
RTT_HOOK = "__tracepoint_android_vh_tcp_rcv_rtt_update"
TREES = [Path(name) for name in os.environ.get("ACK", "").split(":") if name]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def source(line: str) -> Path:
    found = find_source(read_lines()[line])
    if found is None:
        pytest.skip(f"no source of {line} is unpacked: kernel/lab/lab kernel build --kernel {line}")
    return found.path


def branch_patches(branch: str) -> list[Path]:
    return [path for path in PATCHES if path.parent.name == branch]


def test_every_branch_has_patches() -> None:
    assert {result["branch"] for result in RESULTS} == set(BRANCHES)


@pytest.mark.parametrize("path", PATCHES, ids=name_of)
def test_form(path: Path) -> None:
    """What ACK's README asks of a patch that is no backport."""
    head, _ = path.read_text().split("\n---\n", 1)
    assert re.search(r"^Subject: \[PATCH(?: \d/\d)?\] ANDROID: \S", head, re.M)
    for tag in (r"Bug: \S", r"Change-Id: I[0-9a-f]{40}$", "Signed-off-by: .+ <.+@.+>$"):
        assert len(re.findall(f"^{tag}", head, re.M)) == 1


def test_change_ids_differ() -> None:
    ids = [re.findall(r"^Change-Id: (\S+)", path.read_text(), re.M) for path in PATCHES]
    assert len({each for found in ids for each in found}) == len(PATCHES)


@pytest.mark.parametrize("path", PATCHES, ids=name_of)
def test_checkpatch(path: Path) -> None:
    """The letters that Gerrit wants are no reason to complain to the kernel's script."""
    command = ["perl", "scripts/checkpatch.pl", "--strict", "--no-summary"]
    done = subprocess.run(
        [*command, "--ignore=GERRIT_CHANGE_ID,FILE_PATH_CHANGES", str(path)],
        cwd=source("6.12"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_list_is_what_the_module_needs(branch: str) -> None:
    """As check-kmi found it, in both forms, and the hook that the patch before it adds."""
    (text,) = [p.read_text() for p in branch_patches(branch) if "symbol-list" in p.name]
    listed = re.findall(r"^\+  (\w+)$", text, re.M)
    needed = {
        symbol
        for result in RESULTS
        if result["branch"] == branch
        for form in result["forms"].values()
        for symbol in form["needed"]
    }
    hook = {RTT_HOOK} if len(branch_patches(branch)) > 1 else set()
    assert listed == sorted(needed | hook)


def test_the_hook_is_the_stand_ins() -> None:
    """The lab's kernel calls it at the same place, and the module is tried on it."""

    def calls(patch: Path) -> list[str]:
        text = patch.read_text().split("+++ b/net/ipv4/tcp_input.c\n")[1].split("\n--- a/")[0]
        found = re.search(r"((?:^ .*\n)*)^\+\ttrace_android_vh_tcp_rcv_rtt_update.*\n", text, re.M)
        assert found is not None
        return found[0].splitlines()[-4:]

    (ours,) = [path for path in PATCHES if "hook" in path.name]
    assert calls(ours) == calls(KERNEL / "lab/guest/vendor/hooks.patch")


@pytest.mark.parametrize("line", [pytest.param("6.1", marks=pytest.mark.lines), "6.12"])
def test_the_hook_fits_neighbours(line: str, tmp_path: Path) -> None:
    """No Debian has a 6.6; the function is the same before and after it."""
    (patch,) = [path for path in PATCHES if "hook" in path.name]
    target = tmp_path / "net/ipv4/tcp_input.c"
    target.parent.mkdir(parents=True)
    shutil.copy(source(line) / "net/ipv4/tcp_input.c", target)
    done = subprocess.run(
        ["git", "apply", "--include=net/ipv4/*", "-C3", str(patch)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trace_android_vh_tcp_rcv_rtt_update(tp, sample, win_dep);" in target.read_text()


@pytest.mark.skipif(not TREES, reason="ACK names no Android Common Kernel")
@pytest.mark.parametrize("tree", TREES, ids=lambda path: path.name)
def test_applies_and_compiles(tree: Path, tmp_path: Path) -> None:
    """What the patches touch compiles, and then the module at the hook that they add."""
    branch = next(
        found[1]
        for name in ("build.config.constants", "build.config.common")
        if (tree / name).exists()
        and (found := re.search(r"^BRANCH=(\S+)$", (tree / name).read_text(), re.M))
    )
    copy, module = tmp_path / "ack", tmp_path / "drwa"
    # Links: git and make write new files in place of those that they change.
    subprocess.run(["cp", "-al", str(tree), str(copy)], check=True)
    for path in branch_patches(branch):
        subprocess.run(["git", "apply", str(path)], cwd=copy, check=True)
    for name in ("module", "src"):
        shutil.copytree(KERNEL / name, module / name)
    make = ["make", "--silent", "LLVM=1", "ARCH=arm64", f"O={tmp_path / 'out'}"]
    for words in (
        ["gki_defconfig"],
        ["-j2", "modules_prepare"],
        ["net/ipv4/tcp_input.o", "drivers/android/vendor_hooks.o"],
        [f"M={module / 'module'}", "drwa.o"],
    ):
        done = subprocess.run(
            [*make, *words], cwd=copy, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    needs = subprocess.run(
        [KERNEL / "module/check-symbols", module / "module/drwa.o"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if len(branch_patches(branch)) > 1:
        assert RTT_HOOK in needs
