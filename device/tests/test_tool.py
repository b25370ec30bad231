# SPDX-License-Identifier: Apache-2.0
"""What the tool does to trees that are as they should be, and to those that are not."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import small_trees
from small_trees import (
    BASE,
    CARRIER,
    DEVICE,
    KERNEL,
    LINK,
    MAKE,
    MAKEFILE,
    MODULE,
    OLD,
    POLICY,
    SERVICE,
    SETTING,
    TCP,
    World,
    build_tools,
    commit,
    everything,
    git,
    numbered,
    replace_line,
    write,
)

from drwatool import git as plumbing
from drwatool.cli import _told, main
from drwatool.trees import detect_android

template = small_trees.template
world = small_trees.world


def states(world: World) -> list[str]:
    return [project["applied"] for project in world.drwa("status", "--json").report["projects"]]


MODULE_SERIES = "frameworks/series/packages_modules_Connectivity"
CALLS = f"{MODULE_SERIES}/0002-calls/places.toml"


def test_apply_status_revert_leave_the_same_bytes(world: World) -> None:
    before = world.snapshot()
    assert states(world) == ["none", "none", "none"]
    applied = world.drwa("apply")
    assert (applied.code, applied.err) == (0, "")
    assert states(world) == ["fully", "fully", "fully"]
    assert "tellDrwa" in (world.top / MODULE / SERVICE).read_text()
    for folder in world.projects:
        # Scripts ask the plumbing, which does not look at a file whose index entry is stale. First:
        # the status refreshes them.
        assert git(folder, "diff-files") == ""
        assert git(folder, "status", "--porcelain") == ""
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_commits_are_the_patches_with_trailers(world: World) -> None:
    world.drwa("apply")
    log = git(world.top / MODULE, "log", "-2", "--format=%an|%s|%b").split("\n")
    author = "DRWA for Android"
    assert log[0] == f"{author}|Call the policy|Signed-off-by: {author} <drwa@example.org>"
    assert log[1] == "Drwa-Series: packages_modules_Connectivity/15/0002-calls"
    assert log[2].startswith("Drwa-Patch-Id: ")
    assert git(world.top / MODULE, "log", "-1", "--format=%(trailers:key=Drwa-Series)")


def test_the_same_base_gives_the_same_commits(world: World, tmp_path: Path) -> None:
    """Whatever a user has git do with messages and diffs."""
    shutil.copytree(world.top, tmp_path / "other", symlinks=True)
    other = World(tmp_path / "other")
    for folder in other.projects:
        git(folder, "config", "i18n.commitEncoding", "ISO-8859-1")
        git(folder, "config", "i18n.logOutputEncoding", "ISO-8859-1")
        git(folder, "config", "diff.orderFile", "/none")
    for each in world, other:
        assert each.drwa("apply").code == 0
    heads = [[git(p, "rev-parse", "HEAD") for p in each.projects] for each in (world, other)]
    assert heads[0] == heads[1]


def test_applying_twice_changes_nothing(world: World) -> None:
    world.drwa("apply")
    before = world.snapshot()
    again = world.drwa("apply")
    assert again.code == 0
    assert again.out.count("all patches are there already") == 3
    assert world.snapshot() == before


@pytest.mark.parametrize(
    "words", [["check"], ["apply", "--dry-run"], ["status"], ["revert", "--dry-run"], ["doctor"]]
)
def test_nothing_is_written_not_even_into_git(world: World, words: list[str]) -> None:
    before = everything(world.top / "aosp"), everything(world.top / KERNEL)
    world.run(*words, *world.trees)
    assert (everything(world.top / "aosp"), everything(world.top / KERNEL)) == before


def test_dry_runs_name_the_commits_to_come(world: World) -> None:
    planned = world.drwa("check", "--json").report["projects"]
    world.drwa("apply")
    heads = [git(folder, "rev-parse", "HEAD").strip() for folder in world.projects]
    assert [project["new"] for project in planned] == heads


def test_choices_are_explained(world: World) -> None:
    report = world.drwa("check", "--json").report
    assert report["android"]["name"] == "15"
    assert "Build.java says API level 35" in report["android"]["why"]
    assert report["kernel"] == {
        "name": "6.12",
        "why": "its Makefile says 6.12.8",
        "notes": ["net/ipv4/tcp_output.c:45: what is sent: replace `send(40);` in send_all()"],
        "refusals": [],
    }
    out = world.drwa("check").out
    assert "Android 15: " in out and "kernel 6.12: " in out


def kernel_of(world: World, version: str) -> None:
    """Makes the kernel tree one of another version."""
    kernel = world.top / KERNEL
    major, minor = version.split(".")
    write(kernel / "Makefile", f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 3\n")
    commit(kernel, version)


@pytest.mark.parametrize("version", ["4.19", "6.6", "7.9"])
def test_a_kernel_that_nobody_tried_is_told(world: World, version: str) -> None:
    kernel_of(world, version)
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert f"kernel {version}: the series is tested on 6.12, 6.1; build yours" in applied.out
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_a_kernel_too_old_is_left_out(world: World) -> None:
    """And refused where there is nothing else to do."""
    kernel_of(world, "4.18")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert "kernel 4.18: left out: the series needs Linux 4.19 or newer" in applied.out
    assert states(world) == ["fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before
    alone = world.run("apply", "--kernel", str(world.top / KERNEL))
    assert alone.code == 77
    assert "is Linux 4.18 (its Makefile says 4.18.3): the series needs Linux 4.19" in alone.err


@pytest.mark.parametrize("named", ["", "kernel_platform", "kernel_platform/common"])
def test_a_kernel_in_a_submodule_is_told(world: World, named: str) -> None:
    """With the command that gets it, which works; others beside it are no kernels."""
    top, where = world.top / "vendor", "kernel_platform/common"
    git(world.top, "init", "--quiet", "vendor")
    file = ["-c", "protocol.file.allow=always"]
    for path, source in ((where, KERNEL), ("drivers", KERNEL), ("kernel-scripts", BASE)):
        git(top, *file, "submodule", "add", "--quiet", str(world.top / source), path)
    commit(top, "All but the kernel")
    git(top, "submodule", "deinit", "--quiet", where, "drivers")
    refused = world.run("check", "--kernel", str(top / named))
    assert refused.code == 2
    said = " ".join(refused.err.split())
    get = f"submodule update --init {where}"
    then = f"name --kernel {top}/{where}"
    assert f"Makefile, net/ipv4: {where} is a submodule: git -C {top} {get}, then {then}" in said
    assert "drivers" not in said and "scripts" not in said
    git(top, *file, *get.split())
    assert world.run("check", "--kernel", f"{top}/{where}").code == 0
    if named != where:
        said = " ".join(world.run("check", "--kernel", f"{top}/kernel_platform/..").err.split())
        assert f"{where} is a submodule: {then}" in said


def test_a_submodule_without_a_url_is_told(world: World) -> None:
    top = world.top / "vendor"
    write(top / "README", "Nothing else\n")
    git(world.top, "init", "--quiet", "vendor")
    for name in "kernel", "msm-kernel":
        head = git(world.top / KERNEL, "rev-parse", "HEAD").strip()
        git(top, "update-index", "--add", "--cacheinfo", f"160000,{head},{name}")
    commit_index = ["commit", "--quiet", "--message", "Links alone"]
    git(top, *commit_index)
    said = " ".join(world.run("check", "--kernel", str(top)).err.split())
    for name in "kernel", "msm-kernel":
        clone = f"git clone its source to {top}/{name}, as .gitmodules has no URL"
        assert f"{name} is a submodule: {clone}, then name --kernel {top}/{name}" in said


def test_a_vendors_line_beside_the_place_does_not_matter(world: World) -> None:
    path = world.top / KERNEL / TCP
    replace_line(path, 43, "\tvendor(38);\n\tsend( 39 ); /* send(40); */\n")
    commit(world.top / KERNEL, "Vendor")
    before = world.snapshot()
    assert world.drwa("apply").code == 0
    assert "/* send(40); */\n\tsend(drwa(40));\n" in path.read_text()
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def rewrite(world: World, project: str, name: str, old: str, new: str) -> None:
    path = world.top / project / name
    write(path, path.read_text().replace(old, new))
    commit(world.top / project, "Another way")


def assert_refused(world: World, place: str, words: str) -> None:
    """By name, and nothing is changed in any of the trees."""
    before = world.snapshot()
    for command in "check", "apply":
        done = world.drwa(command)
        assert done.code == 1
        assert f"the series has no place: {place}" in done.err
        assert words in done.err
        assert world.snapshot() == before
    assert states(world) == ["none", "none", "none"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("send(40);", "send_later(40);", "not found: replace `send(40);` in send_all()"),
        ("send_all", "send_some", "in send_all(); it is in send_some()"),
        ("\tsend(50);", "\tsend(40);", "found 2 times, replace `send(40);` in send_all(), in li"),
        ("\tsend(40);", "#if 1\n\tsend(40);\n#endif", "`send(40);` in line 46 is inside of an #if"),
    ],
)
def test_a_place_that_is_not_there_is_refused(world: World, old: str, new: str, words: str) -> None:
    rewrite(world, KERNEL, TCP, old, new)
    assert_refused(world, f"{TCP}: what is sent: ", words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("connect(20);", "disconnect(20);", "not found: after `connect(20);` in connectAll()"),
        ("connectAll", "connectSome", "in connectAll(); it is in connectSome()"),
        ("connect(30);", "connect(20);", "found 2 times, after `connect(20);` in connectAll()"),
        ("connect(20);", "if (x) connect(20);", "`connect(20);` in line 21 is no statement of"),
        (
            "} }\n",
            "}\n    void connectAll(int x) {\n        connect(20);\n    }\n}\n",
            "found 2 times, after `connect(20);` in connectAll(), in lines 21, 6",
        ),
    ],
)
def test_a_place_in_java_that_is_not_there_is_refused(
    world: World, old: str, new: str, words: str
) -> None:
    rewrite(world, MODULE, SERVICE, old, new)
    assert_refused(world, f"{SERVICE}: what the policy is told: ", words)


KINDS = """\
trees = [
    { name = "15 before all", has = "!%s: connect(1);", refused = true },
    { name = "15, the first", has = "%s: first(15);", series = "15-r1" },
    { name = "15 QPR2" },
]
""".replace("%s", SERVICE)


@pytest.mark.parametrize(
    ("old", "new", "name", "series"),
    [
        ("connect(2);", "connect(2, 2);", "15 QPR2", "15"),
        ("connect(15);", "first(15);", "15, the first", "15-r1"),
        ("connect(1);", "", "15 before all", ""),
    ],
)
def test_a_tree_is_called_what_it_is(
    world: World, old: str, new: str, name: str, series: str
) -> None:
    releases = world.series("frameworks/releases.toml")
    of_15 = "[releases.15.packages_modules_Connectivity]\n"
    write(releases, releases.read_text().replace(of_15, of_15 + KINDS))
    path = world.top / MODULE / SERVICE
    write(path, path.read_text().replace(old, new))
    commit(world.top / MODULE, name)
    before = world.snapshot()
    done = world.drwa("apply")
    if not series:
        assert done.code == 77
        assert f"is Android {name}; there are patches for 15, the first, 15 QPR2" in done.err
    else:
        assert done.code == 0, done.err
        assert f"    Android {name}\n" in done.out
        trailer = git(world.top / MODULE, "log", "-1", "--format=%(trailers:key=Drwa-Series)")
        assert f"packages_modules_Connectivity/{series}/0002-calls" in trailer
        assert states(world) == ["fully", "fully", "fully"]
        assert world.drwa("revert").code == 0
    assert world.snapshot() == before


@pytest.mark.parametrize(
    ("old", "new", "described", "named"),
    [
        (
            "send_all",
            "vendor_all",
            'function = "send_all"',
            'function = ["send_all", "vendor_all"]',
        ),
        (
            "\tsend(40);",
            "\tsend_to(40, x);",
            'replace = "send(40);"\ntext = "send(drwa(40));"',
            '[[place.form]]\nreplace = "send(40);"\ntext = "send(drwa(40));"\n'
            '[[place.form]]\nreplace = "send_to(40, x);"\ntext = "send_to(drwa(40), x);"',
        ),
        ("\tsend(50);", "\tsend(40);", "text =", "times = [1, 2]\ntext ="),
    ],
)
def test_by_hand_as_the_page_says(
    world: World, old: str, new: str, described: str, named: str
) -> None:
    """A form is added to the description, and all else works as usual."""
    path = world.top / KERNEL / TCP
    write(path, path.read_text().replace(old, new))
    commit(world.top / KERNEL, "As the vendor has it")
    before = world.snapshot()
    refused = world.drwa("apply")
    assert refused.code == 1
    assert "by-hand.md" in refused.err
    places = world.series("kernel/series/0002-hooks/places.toml")
    write(places, places.read_text().replace(described, named))
    assert world.drwa("apply").code == 0
    assert "drwa(40)" in path.read_text()
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_patches_for_git_am(world: World, tmp_path: Path) -> None:
    done = world.drwa("patches", "-o", str(tmp_path / "made"))
    assert done.code == 0, done.err
    assert "what is sent: replace `send(40);` in send_all()" in done.out
    for name, folder in (("kernel", KERNEL), ("frameworks_base", BASE)):
        patches = sorted((tmp_path / "made" / name).glob("*.patch"))
        assert patches
        git(world.top / folder, "am", "--quiet", *map(str, patches))
    assert states(world) == ["none", "fully", "fully"]
    assert "applied by hand" not in world.drwa("status").out
    assert world.drwa("patches", "-o", str(tmp_path / "made")).code == 2
    assert world.drwa("revert").code == 0
    assert states(world) == ["none", "none", "none"]


def test_patches_of_some_projects(world: World, tmp_path: Path) -> None:
    made = tmp_path / "made"
    done = world.drwa("patches", "-o", str(made), "--project", "frameworks_base")
    assert done.code == 0, done.err
    assert [path.name for path in made.iterdir()] == ["frameworks_base"]
    assert "left out" not in done.out
    none = world.drwa("patches", "-o", str(made), "--project", "system_netd")
    assert none.code == 2
    assert "--project system_netd: there are packages_modules_Connectivity, frame" in none.err


def test_patches_of_all_projects_or_none(world: World, tmp_path: Path) -> None:
    made = tmp_path / "made"
    rewrite(world, KERNEL, TCP, "send(40);", "send_later(40);")
    assert world.drwa("patches", "-o", str(made)).code == 1
    assert not made.exists()
    write(made / "frameworks_base/0001-old.patch", "")
    aosp = world.trees[:2]
    full = world.run("patches", *aosp, "-o", str(made))
    assert full.code == 2
    assert "0001-old.patch is there: name an empty folder" in full.err
    assert [path.name for path in made.iterdir()] == ["frameworks_base"]


def test_patches_of_an_unknown_line(world: World, tmp_path: Path) -> None:
    done = world.run("patches", "--line", "6.13", "-o", str(tmp_path / "made"))
    assert done.code == 2
    assert "--line 6.13: there are 6.12, 6.1" in done.err
    assert not (tmp_path / "made").exists()


# Latin-1
CAFE = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("folder", ["kernel-6.12", "kernel src", CAFE])
def test_a_kernel_in_a_folder_of_its_git_tree(world: World, folder: str) -> None:
    """As vendors publish theirs, beside other folders."""
    kernel = world.top / KERNEL
    (kernel / folder).mkdir()
    for name in ("Makefile", "Kconfig", "net"):
        (kernel / name).rename(kernel / folder / name)
    write(kernel / "build.sh", "make\n")
    commit(kernel, "Everything")
    before = world.snapshot()
    trees = [*world.trees[:2], "--kernel", str(kernel / folder)]
    applied = world.run("apply", *trees)
    assert applied.code == 0, applied.err
    assert (kernel / folder / "net/drwa/law.c").exists()
    status = world.run("status", *trees, "--json").report["projects"]
    assert [project["applied"] for project in status] == ["fully", "fully", "fully"]
    assert world.run("revert", *trees).code == 0
    assert world.snapshot() == before


@pytest.mark.parametrize("name", [CAFE, 'a:b"\\c', "linux 6"])
def test_a_tree_of_any_name(world: World, name: str) -> None:
    kernel = world.top / name
    (world.top / KERNEL).rename(kernel)
    before = small_trees.snapshot(kernel)
    for command, words in ("apply", "2 patches applied"), ("status", "fully applied"):
        done = world.run(command, "--kernel", str(kernel))
        assert done.code == 0, done.err
        assert words in done.out
    assert world.run("revert", "--kernel", str(kernel)).code == 0
    assert small_trees.snapshot(kernel) == before


def test_sources_are_in_utf_8_whatever_the_locale(world: World, tmp_path: Path) -> None:
    law = world.series("kernel/src/net/drwa/law.c")
    write(law, "/* λ */\n" + law.read_text())
    plain = ("env", "LC_ALL=C", "PYTHONCOERCECLOCALE=0", sys.executable, "-X", "utf8=0")
    done = world.run("apply", *world.trees, prefix=plain)
    assert done.code == 0, done.err
    assert (world.top / KERNEL / "net/drwa/law.c").read_bytes() == law.read_bytes()
    assert states(world) == ["fully", "fully", "fully"]


def test_host_b_leaves_connectivity_alone(world: World) -> None:
    report = world.drwa("apply", "--host", "B", "--json").report
    assert [project["name"] for project in report["projects"]] == ["frameworks_base", "kernel"]
    assert states(world) == ["none", "fully", "fully"]


def test_missing_project_is_named_and_left_out(world: World) -> None:
    shutil.rmtree(world.top / BASE)
    applied = world.drwa("apply", "--android", "15")
    assert applied.code == 0
    assert "frameworks/base: not in this tree, left out" in applied.out
    assert world.drwa("status", "--android", "15", "--json").report["missing"] == [
        "frameworks/base"
    ]


@pytest.mark.parametrize("command", ["check", "apply"])
def test_what_the_host_is_made_of_has_to_be_there(world: World, command: str) -> None:
    shutil.rmtree(world.top / MODULE)
    before = everything(world.top)
    refused = world.drwa(command)
    assert refused.code == 2
    assert "packages/modules/Connectivity is not in" in refused.err
    assert "what host A is made of: sync it, or use --host B" in refused.err
    assert everything(world.top) == before
    assert world.drwa(command, "--host", "B").code == 0


def test_the_rest_comes_out_where_the_host_is_gone(world: World) -> None:
    world.drwa("apply")
    shutil.rmtree(world.top / MODULE)
    assert world.drwa("status").code == 0
    assert world.drwa("revert").code == 0
    assert world.drwa("status", "--json").report["projects"][0]["applied"] == "none"


# The base has moved.


def test_moved_base(world: World) -> None:
    """A series is made for the tree as it is."""
    module = world.top / MODULE
    replace_line(module / SERVICE, 2, "    more();\n" * 7)
    replace_line(module / SERVICE, 25, "    reconnect(19);\n")
    commit(module, "More")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0
    assert "the base has moved" not in applied.out
    assert f"{SERVICE}:27: what the policy is told: after `connect(20);`" in applied.out
    assert states(world)[0] == "fully"
    world.drwa("revert")
    assert world.snapshot() == before


@pytest.mark.parametrize(
    ("number", "text", "how"),
    [
        (2, "    more();\n" * 7, "applied at an offset"),
        (18, "    reconnect(18);\n", "merged 3-way"),
    ],
)
def test_moved_base_of_a_half_applied_series(
    world: World, number: int, text: str, how: str
) -> None:
    """It is made for the commit before it."""
    module = world.top / MODULE
    git(module, "am", "--quiet", world.made()[0])
    replace_line(module / SERVICE, number, text)
    commit(module, "More")
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert f"0002-calls: the base has moved, {how}" in applied.out
    assert text in (module / SERVICE).read_text()
    assert world.drwa("status").code == 0
    assert world.drwa("apply").out.count("all patches are there already") == 3
    assert world.drwa("revert").code == 0
    assert text in (module / SERVICE).read_text()
    assert states(world) == ["none", "none", "none"]


def test_the_rest_that_does_not_fit(world: World) -> None:
    module = world.top / MODULE
    git(module, "am", "--quiet", world.made()[0])
    (module / SERVICE).write_text("all is new\n")
    commit(module, "New")
    done = world.drwa("apply")
    assert done.code == 1
    assert f"0002-calls does not apply: {SERVICE}:" in done.err
    assert "are there: run `drwa revert`, then `drwa apply`" in done.err


def test_every_conflict_is_named(world: World) -> None:
    for path in world.top / KERNEL / TCP, world.top / MODULE / SERVICE:
        path.write_text("all is new\n")
    commit(world.top / KERNEL, "New")
    commit(world.top / MODULE, "New")
    report = world.drwa("apply", "--json").report
    assert report["exit"] == 1
    assert len(report["conflicts"]) == 2
    assert f"{SERVICE}: what the policy is told: not found" in report["conflicts"][0]


def test_shallow_clone(world: World, tmp_path: Path) -> None:
    module = world.top / MODULE
    git(module, "am", "--quiet", world.made()[0])
    replace_line(module / SERVICE, 18, "    reconnect(18);\n")
    commit(module, "Rename")
    git(tmp_path, "clone", "--quiet", "--depth=1", module.as_uri(), str(tmp_path / "shallow"))
    shutil.rmtree(module)
    (tmp_path / "shallow").rename(module)
    assert world.drwa("apply").code == 0
    assert states(world)[0] == "fully"


# What is there already.


def test_git_am_is_known_by_patch_id(world: World) -> None:
    git(world.top / MODULE, "am", "--quiet", *world.made())
    status = world.drwa("status", "--json")
    assert status.code == 1
    module, *others = status.report["projects"]
    assert (module["applied"], set(module["patches"].values())) == ("fully", {"applied"})
    assert [project["applied"] for project in others] == ["none", "none"]
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]


def test_the_rest_of_a_half_applied_series(world: World) -> None:
    module = world.top / MODULE
    git(module, "am", "--quiet", world.made()[0])
    status = world.drwa("status")
    assert status.code == 1
    assert f"{module}: partly applied" in status.out
    assert "0002-calls: not applied" in status.out
    applied = world.drwa("apply")
    assert applied.code == 0
    assert "1 of 2 patches are there already" in applied.out
    assert states(world)[0] == "fully"


def test_squashed_series_is_known_by_content(world: World) -> None:
    module = world.top / MODULE
    original = git(module, "rev-parse", "HEAD^{tree}")
    git(module, "apply", "--index", *world.made())
    commit(module, "All at once")
    assert states(world)[0] == "fully"
    assert "applied by hand, without a commit of its own" in world.drwa("status").out
    assert "all patches are there already" in world.drwa("apply").out
    assert world.drwa("revert").code == 0
    assert git(module, "rev-parse", "HEAD^{tree}") == original
    assert states(world)[0] == "none"


def test_half_a_patch_applied_by_hand(world: World) -> None:
    module = world.top / MODULE
    write(module / POLICY, (DEVICE / "drwa").read_text())
    commit(module, "Something of that name")
    done = world.drwa("apply")
    assert done.code == 1
    assert f"{POLICY} already exists" in done.err
    git(module, "revert", "--no-edit", "HEAD")
    git(module, "apply", f"--include={SETTING}", "--index", world.made()[0])
    part = commit(module, "A part")
    done = world.drwa("apply")
    assert done.code == 1
    assert "a part of it is there already: undo what was applied by hand" in done.err
    assert states(world)[0] == "partly"
    assert f"lines of the series remain: {SETTING}: `set(0);`, of commit {part[:12]}" in (
        world.drwa("revert").err
    )


@pytest.mark.parametrize("gone", ["", "    tellDrwa();\n"])
def test_hooks_without_their_files_are_not_put_twice(world: World, gone: str) -> None:
    """The second patch came first, or a part of it."""
    module = world.top / MODULE
    git(module, "apply", "--index", world.made()[1])
    if gone:
        write(module / SERVICE, (module / SERVICE).read_text().replace(gone, ""))
    commit(module, "A part")
    done = world.drwa("apply")
    assert done.code == 0, done.err
    assert ("1 of 2 patches are there already" in done.out) == (not gone)
    assert states(world) == ["fully", "fully", "fully"]
    assert re.findall(r"\w+Drwa", (module / SERVICE).read_text()) == ["tellDrwa", "dumpDrwa"]


def test_revert_leaves_what_was_there_before(world: World) -> None:
    """A line that the series adds is there before it."""
    module = world.top / MODULE
    replace_line(module / SERVICE, 5, "    connect(5);\n    dumpDrwa();\n")
    commit(module, "Upstream")
    before = world.snapshot()
    assert world.drwa("apply").code == 0
    assert (module / SERVICE).read_text().count("dumpDrwa") == 2
    assert states(world)[0] == "fully"
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def amend(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--amend", "--no-edit")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("follows", [False, True])
def test_revert_takes_no_line_that_was_amended_in(world: World, follows: bool) -> None:
    """Links and removed files among them."""
    module = str(world.top / MODULE)
    before = world.snapshot()[module]
    assert world.drwa("apply").code == 0
    base, kernel = world.top / BASE, world.top / KERNEL
    (base / OLD).unlink()
    (base / LINK).unlink()
    (base / LINK).symlink_to("Drwa.java")
    replace_line(base / CARRIER, 3, "    mine(3);\n")
    amended = amend(base)
    write(kernel / "mine.c", "mine\n")
    amend(kernel)
    if follows:
        for folder in base, kernel:
            write(folder / "notes.txt", "mine\n")
            commit(folder, "Notes")
    assert "the commit was edited since" in world.drwa("status").out
    reverted = world.drwa("revert")
    assert reverted.code == 0, reverted.err
    assert f"{amended[:12]} was amended with {CARRIER}: `-" in reverted.out
    assert ("other commits follow" in reverted.out) == follows
    assert states(world) == ["none", "none", "none"]
    assert "DRWA" not in (base / CARRIER).read_text()
    assert "    mine(3);\n" in (base / CARRIER).read_text()
    assert not (base / OLD).exists()
    assert (base / LINK).readlink() == Path("Drwa.java")
    assert (kernel / "mine.c").read_text() == "mine\n"
    assert "drwa" not in (kernel / TCP).read_text()
    assert world.snapshot()[module] == before
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]


@pytest.mark.parametrize("version", ["this", "another"])
def test_revert_refuses_what_it_cannot_part(world: World, version: str) -> None:
    """A line of DRWA's became another one, or what was amended is of another version."""
    clean = world.snapshot()
    assert world.drwa("apply").code == 0
    module = world.top / MODULE
    if version == "this":
        text = (module / SERVICE).read_text()
        write(module / SERVICE, text.replace("dumpDrwa();", "dumpDrwa(mine);"))
    else:
        replace_line(module / SERVICE, 5, "    mine(5);\n")
        places = world.series(CALLS)
        write(places, places.read_text().replace("tellDrwa", "askDrwa"))
    amended = amend(module)
    before = world.snapshot()
    refused = world.drwa("revert")
    assert refused.code == 1
    name = "packages_modules_Connectivity/15/0002-calls"
    assert f"{name}: commit {amended[:12]} was amended, and may hold lines of" in refused.err
    assert f"git rebase --interactive {amended[:12]}~; or take back all of it" in refused.err
    assert ("the DRWA that applied it" in refused.err) == (version == "another")
    assert world.snapshot() == before
    # As it says
    git(module, "revert", "--no-edit", amended[:12])
    assert world.drwa("revert").code == 0
    assert states(world) == ["none", "none", "none"]
    assert git(module, "diff", clean[str(module)]["refs"].split()[0], "HEAD") == ""


def test_a_rebase_amends_nothing(world: World) -> None:
    """The lines around a patch are new, and its own are all that its commit has."""
    module = world.top / MODULE
    assert world.drwa("apply").code == 0
    git(module, "checkout", "--quiet", "-b", "next", "HEAD~2")
    replace_line(module / SERVICE, 18, "    reconnect(18);\n")
    base = commit(module, "Upstream")
    git(module, "rebase", "--quiet", "next", "main")
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert git(module, "rev-parse", "HEAD").strip() == base


def test_what_was_amended_to_nothing(world: World) -> None:
    """And another commit follows."""
    kernel = world.top / KERNEL
    source = (kernel / TCP).read_text()
    assert world.drwa("apply").code == 0
    git(kernel, "checkout", "HEAD~", "--", TCP)
    git(kernel, "commit", "--quiet", "--amend", "--no-edit", "--allow-empty")
    write(kernel / "notes.txt", "mine\n")
    commit(kernel, "Notes")
    reverted = world.drwa("revert")
    assert reverted.code == 0, reverted.err
    assert (kernel / TCP).read_text() == source
    assert states(world) == ["none", "none", "none"]


def test_revert_of_a_squash_takes_nothing_that_was_there_before(world: World) -> None:
    module = world.top / MODULE
    git(module, "apply", *world.made())
    whole = (module / SERVICE).read_text()
    write(module / SERVICE, whole.replace("    tellDrwa();\n", ""))
    git(module, "commit", "--quiet", "--message=Upstream", "--", SERVICE)
    write(module / SERVICE, whole)
    commit(module, "All at once")
    assert states(world)[0] == "fully"
    before = world.snapshot()
    refused = world.drwa("revert")
    assert refused.code == 1
    assert "0002-calls did not come in one commit" in refused.err
    assert f"{SERVICE}:" in refused.err
    assert world.snapshot() == before


def split(folder: Path, name: str, old: str, new: str, after: bool) -> None:
    """Parts the last commit: what a text has in place of another one comes in one of its own."""
    whole = (folder / name).read_text()
    messages = [git(folder, "log", "-1", "--format=%B"), "A part"]
    git(folder, "reset", "--quiet", "HEAD~")
    git(folder, "checkout", "--quiet", "--", name)
    text = (folder / name).read_text().replace(old, new)
    for content in whole.replace(new, old) if after else text, whole:
        write(folder / name, content)
        commit(folder, messages.pop(0 if after else -1))


@pytest.mark.parametrize("after", [False, True])
def test_revert_leaves_no_part_of_a_split_commit(world: World, after: bool) -> None:
    module = world.top / MODULE
    original = git(module, "rev-parse", "HEAD^{tree}")
    assert world.drwa("apply").code == 0
    line = "    dumpDrwa();\n"
    at = "    connect(49);\n"
    split(module, SERVICE, at, line + at, after)
    part = git(module, "rev-parse", "HEAD" if after else "HEAD~").strip()
    before = world.snapshot()
    refused = world.drwa("revert")
    assert refused.code == 1
    words = f"lines of the series remain: {SERVICE}: `dumpDrwa();`, of commit {part[:12]}: revert"
    assert words in refused.err
    assert world.snapshot() == before
    # What git takes out alone
    last = git(module, "rev-parse", "HEAD~" if after else "HEAD").strip()
    policy = git(module, "rev-list", "HEAD", "--grep=Add the policy").strip()
    git(module, "revert", "--no-edit", last, policy)
    assert states(world)[0] == "partly"
    assert "of commit" in world.drwa("revert").err
    git(module, "revert", "--no-edit", part)
    assert world.drwa("revert").code == 0
    assert states(world) == ["none", "none", "none"]
    assert git(module, "rev-parse", "HEAD^{tree}") == original


IN_THE_LAW = """\
[[place]]
what = "more law"
file = "net/drwa/law.c"
after = "law(3);"
text = "more_drwa();"
"""


@pytest.mark.parametrize("how", ["fixup", "squash", "last two"])
def test_a_squash_that_keeps_a_trailer_comes_out(world: World, how: str) -> None:
    """As of git rebase --interactive; a later patch changes what an earlier one adds."""
    kernel = world.top / KERNEL
    more = world.series("kernel/series/0003-more")
    write(more / "message", "tcp: more of the law\n")
    write(more / "places.toml", IN_THE_LAW)
    tree = git(kernel, "rev-parse", "HEAD^{tree}")
    assert world.drwa("apply").code == 0
    count = 1 if how == "last two" else 2
    messages = git(kernel, "log", f"-{count + 1}", "--reverse", "--format=%B")
    git(kernel, "reset", "--quiet", "--soft", f"HEAD~{count}")
    message = ["--message", messages] if how == "squash" else ["--no-edit"]
    git(kernel, "commit", "--quiet", "--amend", *message)
    write(kernel / "notes.txt", "mine\n")
    commit(kernel, "Notes")
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("apply").out.count("all patches are there already") == 3
    reverted = world.drwa("revert")
    assert reverted.code == 0, reverted.err
    assert states(world) == ["none", "none", "none"]
    (kernel / "notes.txt").unlink()
    commit(kernel, "No notes")
    assert git(kernel, "rev-parse", "HEAD^{tree}") == tree


def test_a_claim_without_its_content_is_told(world: World) -> None:
    """The hunk of a file was rejected, and the commit made without it."""
    world.drwa("apply")
    kernel = world.top / KERNEL
    git(kernel, "checkout", "HEAD~", "--", TCP)
    git(kernel, "commit", "--quiet", "--amend", "--no-edit", "--allow-empty")
    status = world.drwa("status")
    assert status.code == 1
    assert f"{kernel}: partly applied" in status.out
    assert f"kernel/0002-hooks: {TCP} lacks `send(drwa(40));`" in status.out
    doctor = world.drwa("doctor").out
    assert f"BAD     {kernel}: partly patched; kernel/0002-hooks: {TCP} lacks" in doctor


MORE_HOOKS = """
[[place]]
what = "what was sent"
file = "net/ipv4/tcp_output.c"
function = "send_all"
after = "send(50);"
text = "sent_drwa();"
"""


def test_a_squashed_kernel_series_is_known_and_comes_out(world: World) -> None:
    """Though its user has git blame look past it."""
    kernel = world.top / KERNEL
    places = world.series("kernel/series/0002-hooks/places.toml")
    write(places, places.read_text() + MORE_HOOKS)
    (kernel / TCP).chmod(0o755)
    commit(kernel, "As vendors have it")
    tree = git(kernel, "rev-parse", "HEAD^{tree}")
    assert world.drwa("apply").code == 0
    git(kernel, "reset", "--quiet", "--soft", "HEAD~2")
    git(kernel, "commit", "--quiet", "--message", "All at once")
    write(world.top / "ignored", git(kernel, "rev-parse", "HEAD"))
    git(kernel, "config", "blame.ignoreRevsFile", str(world.top / "ignored"))
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("apply").out.count("all patches are there already") == 3
    assert world.drwa("revert").code == 0
    assert git(kernel, "rev-parse", "HEAD^{tree}") == tree


def one_commit(folder: Path) -> None:
    shutil.rmtree(folder / ".git")
    git(folder, "init", "--quiet")
    commit(folder, "As released")


OPTION = """
[[place]]
what = "the option"
file = "Kconfig"
before = "# all options"
text = '''
config DRWA

'''
"""


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_kernel_with_a_short_history(world: World, depth: int) -> None:
    """A vendor's drop of a patched kernel, or a clone of so many commits of one."""
    kernel = world.top / KERNEL
    places = world.series("kernel/series/0001-law/places.toml")
    write(places, places.read_text() + OPTION)
    tree = git(kernel, "rev-parse", "HEAD^{tree}")
    assert world.drwa("apply").code == 0
    assert (kernel / "Kconfig").read_text() == "config DRWA\n\n# all options\n"
    if depth:
        clone = world.top / "clone"
        git(world.top, "clone", "--quiet", f"--depth={depth}", kernel.as_uri(), str(clone))
        shutil.rmtree(kernel)
        clone.rename(kernel)
    else:
        one_commit(kernel)
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("apply").out.count("all patches are there already") == 3
    reverted = world.drwa("revert")
    assert reverted.code == 0, reverted.err
    assert git(kernel, "rev-parse", "HEAD^{tree}") == tree


def test_what_cannot_be_told_is_no_guess(world: World) -> None:
    """Two statements become one, and the history does not tell which it was."""
    kernel = world.top / KERNEL
    places = world.series("kernel/series/0002-hooks/places.toml")
    one = 'replace = "send(40);"'
    both = 'replace = ["send_once(40);", "send(40);"]'
    write(places, places.read_text().replace(one, both))
    before = world.snapshot()
    source = (kernel / TCP).read_text()
    assert world.drwa("apply").code == 0
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before
    assert world.drwa("apply").code == 0
    one_commit(kernel)
    before = world.snapshot()
    assert states(world) == ["fully", "fully", "fully"]
    refused = world.drwa("revert")
    assert refused.code == 1
    words = f"{TCP}: what is sent: it was `send_once(40);` or `send(40);`: get older commits"
    assert words in refused.err
    assert f"or leave only what your tree had in {places}" in refused.err
    assert world.snapshot() == before
    made = world.top / "guessed"
    words = f"guessed: {TCP}: what is sent: it was `send_once(40);` or"
    assert words in world.drwa("patches", "-o", str(made)).out
    write(places, places.read_text().replace(both, one))
    assert world.drwa("revert").code == 0
    assert (kernel / TCP).read_text() == source


@pytest.mark.parametrize("name", [BASE, MODULE])
def test_a_squashed_series_is_known_and_comes_out(world: World, name: str) -> None:
    folder = world.top / name
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    base = git(folder, "rev-parse", "HEAD").strip()
    assert world.drwa("apply").code == 0
    git(folder, "reset", "--quiet", "--soft", base)
    git(folder, "commit", "--quiet", "--message", "All at once")
    write(folder / "notes.txt", "mine\n")
    commit(folder, "Notes")
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("apply").out.count("all patches are there already") == 3
    assert world.drwa("revert").code == 0
    (folder / "notes.txt").unlink()
    commit(folder, "No notes")
    assert git(folder, "rev-parse", "HEAD^{tree}") == tree


def test_a_file_that_the_clone_lacks_is_in_nobodys_way(world: World) -> None:
    kernel = world.top / KERNEL
    write(kernel / "firmware.bin", "firmware\n")
    commit(kernel, "Firmware")
    blob = git(kernel, "rev-parse", "HEAD:firmware.bin").strip()
    git(kernel, "update-index", "--skip-worktree", "firmware.bin")
    (kernel / "firmware.bin").unlink()
    (kernel / ".git/objects" / blob[:2] / blob[2:]).unlink()
    before = world.snapshot()
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def assert_in_and_out(world: World) -> None:
    """The series goes in whole, and nothing of it stays."""
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_a_partial_clone_offline(world: World, tmp_path: Path) -> None:
    """git would fetch old blobs for a look at old commits, where there is nobody to ask."""
    module = world.top / MODULE
    for text in ("1", "2"):
        replace_line(module / SERVICE, 5, f"    more({text});\n")
        commit(module, text)
    git(module, "config", "uploadpack.allowFilter", "true")
    options = ["--quiet", "--filter=blob:none", f"file://{module}"]
    git(tmp_path, "clone", *options, str(tmp_path / "partial"))
    shutil.rmtree(module)
    (tmp_path / "partial").rename(module)
    assert git(module, "config", "remote.origin.promisor") == "true\n"
    assert_in_and_out(world)


@pytest.mark.parametrize(
    ("android", "words"),
    [
        ("fifteen", "--android fifteen: name a release by its number, as 15"),
        ("14", "is Android 15 (frameworks/base/core/java/android/os/Build.java says API level 35"),
    ],
)
def test_a_release_that_cannot_be_meant(world: World, android: str, words: str) -> None:
    before = world.snapshot()
    refused = world.drwa("apply", "--android", android)
    assert refused.code == 2
    assert words in refused.err
    assert world.snapshot() == before


def configurations(world: World, *names: str) -> None:
    for name in names:
        write(world.top / KERNEL / "arch/arm64/configs" / name, "CONFIG_NET=y\n")
    commit(world.top / KERNEL, "Configuration")


@pytest.mark.parametrize("broken", [False, True])
def test_compiled_ahead_of_any_commit(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    build_tools(tmp_path / "tools", monkeypatch, "net/ipv4/a.c:1: error: no\n" if broken else "")
    configurations(world, "gki_defconfig")
    before = world.snapshot()
    done = world.drwa("apply", "--compile")
    if broken:
        assert done.code == 1
        assert "net/ipv4/tcp_output.o fails: net/ipv4/a.c:1: error: no" in done.err
        assert world.snapshot() == before
    else:
        assert done.code == 0, done.err
        assert "compiled 1 objects for arm64, gki_defconfig, " in done.out
        assert states(world) == ["fully", "fully", "fully"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # Qualcomm's wrapper of the compiler, after the warnings that it forbids
        (
            "a.c:1: warning: unused\n" * 20 + "error, forbidden warning: a.c:1\nmake: ***\n",
            "tcp_output.o fails: error, forbidden warning: a.c:1",
        ),
        # Nobody but make knows, and it tells of each object then.
        (
            "make[2]: *** No rule to make target 'a.c', needed by 'a'.\n"
            + "".join(f"make: Target '{n}.o' not remade because of errors.\n" for n in range(20)),
            "tcp_output.o fails: make[2]: *** No rule to make target 'a.c', needed by 'a'.",
        ),
        (
            'drivers/Kconfig:239: can\'t open file "drivers/kernelsu/Kconfig"\n',
            'can\'t open file "drivers/kernelsu/Kconfig": is a submodule not checked out?',
        ),
        # Samsung's, of a default that a variable of build_kernel.sh decides
        (
            "drivers/gpu/arm/Kconfig:26: syntax error\n",
            "syntax error: does the tree's own build script set a variable? export that, too",
        ),
        # 6.12's reader of DWARF, of each file that includes it
        (
            "scripts/a/a.h:6:10: fatal error: 'dwarf.h' file not found\n1 error generated.\n" * 6,
            "tcp_output.o fails: scripts/a/a.h:6:10: fatal error: 'dwarf.h' file not found: the "
            "build's own programs need that: libelf-dev, libssl-dev or libdw-dev?",
        ),
    ],
)
def test_compile_tells_the_cause(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    build_tools(tmp_path / "tools", monkeypatch, said)
    configurations(world, "gki_defconfig")
    assert told in world.drwa("apply", "--compile").err


def test_compile_takes_kunit_with_the_tests(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the tree's configuration can have it."""
    build_tools(tmp_path / "tools", monkeypatch)
    configurations(world, "defconfig")
    suite = "net/ipv4/tcp_drwa_test.c"
    write(world.series(f"kernel/src/{suite}"), "/* A suite */\n")
    write(world.series("kernel/series/0003-kunit/message"), "tcp: tests\n")
    write(world.series("kernel/series/0003-kunit/places.toml"), f'files = ["{suite}"]\n')
    assert "compiled 1 objects" in world.drwa("check", "--compile").out
    assert "compiled 2 objects" in world.drwa("check", "--compile", "--with-tests").out
    make = tmp_path / "tools/make"
    gone = "*olddefconfig) sed -i /KUNIT/d $out/.config ;;"
    make.write_text(make.read_text().replace("*olddefconfig) ;;", gone))
    assert world.drwa("check", "--compile").code == 0
    done = world.drwa("check", "--compile", "--with-tests")
    assert done.code == 1
    assert "leaves no CONFIG_KUNIT=y, CONFIG_TCP_DRWA_KUNIT_TEST=y" in done.err


def test_compile_takes_the_only_configuration(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_tools(tmp_path / "tools", monkeypatch)
    configurations(world, "vendor/phone_defconfig")
    assert "for arm64, vendor/phone_defconfig, " in world.drwa("check", "--compile").out


def test_compile_gives_numbers_that_nobody_gave(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor's Kconfig may have some without a default, of which a build asks its user."""
    build_tools(tmp_path / "tools", monkeypatch)
    configurations(world, "defconfig")
    write(world.top / KERNEL / "Kconfig", "config VENDOR_LINE\n")
    commit(world.top / KERNEL, "Vendor")
    said = world.drwa("check", "--compile").out
    assert "compiled 1 objects for arm64, defconfig with CONFIG_VENDOR_LINE=0, " in said
    write(world.top / KERNEL / "Kconfig", "config VENDOR_LINE\nconfig VENDOR_FROM_1\n")
    commit(world.top / KERNEL, "Vendor, too")
    done = world.drwa("check", "--compile")
    assert done.code == 2
    assert "defconfig, has no value for CONFIG_VENDOR_FROM_1, and cannot have 0" in done.err


# What a wrapper that ends a build at any warning does not get to see
UNWRAPPED = """\
case $* in *DISABLE_WRAPPER=1*) ;; *) exit 6;; esac
case $* in *.o) echo 'net/ipv4/tcp.c:1: warning: theirs' >&2
echo "$PWD/net/ipv4/tcp_drwa.c:2:3: warning: ours" >&2 ;; esac
"""


def test_compile_leaves_out_a_wrapper_that_can_be_switched_off(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_tools(tmp_path / "tools", monkeypatch)
    write(tmp_path / "tools/make", MAKE % UNWRAPPED)
    configurations(world, "gki_defconfig")
    assert world.drwa("check", "--compile").code == 1
    wrapper = "ifndef DISABLE_WRAPPER\nCC = $(srctree)/scripts/gcc-wrapper.py clang\nendif\n"
    write(world.top / KERNEL / "Makefile", MAKEFILE + wrapper)
    commit(world.top / KERNEL, "Wrapper")
    done = world.drwa("check", "--compile")
    assert done.code == 0, done.err
    assert "CROSS_COMPILE=aarch64-linux-gnu- DISABLE_WRAPPER=1; scripts/gcc-wrapper.py" in done.out
    assert "would refuse net/ipv4/tcp_drwa.c:2:3: warning: ours" in done.out
    assert "theirs" not in done.out


@pytest.mark.parametrize(
    ("variable", "value", "compiler"),
    [("LLVM", "1", "clang"), ("CROSS_COMPILE", "/opt/bin/arm64-", "/opt/bin/arm64-gcc")],
)
def test_compile_names_the_compiler_where_a_wrapper_cannot_be_switched_off(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    compiler: str,
) -> None:
    build_tools(tmp_path / "tools", monkeypatch)
    monkeypatch.setenv(variable, value)
    write(tmp_path / "tools/make", MAKE % f"case $* in *CC={compiler}*) ;; *) exit 6;; esac")
    configurations(world, "gki_defconfig")
    wrapper = "CC = $(PYTHON) $(srctree)/scripts/gcc-wrapper.py $(REAL_CC)\n"
    write(world.top / KERNEL / "Makefile", MAKEFILE + wrapper)
    commit(world.top / KERNEL, "Wrapper")
    done = world.drwa("check", "--compile")
    assert done.code == 0, done.err
    assert f"CC={compiler}" in done.out


@pytest.mark.parametrize("names", [(), ("a_defconfig", "vendor/b_defconfig")])
def test_compile_asks_for_a_configuration(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """A kernel's make would look for defconfig without end."""
    build_tools(tmp_path / "tools", monkeypatch)
    if names:
        configurations(world, *names)
    done = world.drwa("check", "--compile")
    assert done.code == 2
    found = f"it has {', '.join(names)}" if names else "it has none"
    assert f"{found}: copy your configuration to .config" in done.err


def test_a_link_in_place_of_a_file_is_refused(world: World) -> None:
    path = world.top / KERNEL / "net/ipv4/tcp_output.c"
    path.unlink()
    path.symlink_to("/somewhere/tcp_output.c")
    commit(world.top / KERNEL, "Link")
    done = world.drwa("check")
    assert done.code == 2
    assert f"{path} is a symbolic link to /somewhere/tcp_output.c: name the tree" in done.err


def test_a_file_in_lfs_is_called_so(world: World) -> None:
    """A commit has its pointer, in which no place is."""
    path = world.top / KERNEL / "net/ipv4/tcp_output.c"
    pointer = f"oid sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\nsize 1\n"
    write(path, f"version https://git-lfs.github.com/spec/v1\n{pointer}")
    commit(world.top / KERNEL, "LFS")
    before = world.snapshot()
    for command in "check", "apply":
        done = world.drwa(command)
        assert done.code == 2
        assert f"{path} is in Git LFS: take it out (git lfs untrack)" in " ".join(done.err.split())
    assert world.snapshot() == before


IGNORED = """
[[place]]
what = "what is built"
file = "tests/.gitignore"
optional = true
end_of = ""
text = "tcp_drwa"
"""


def test_a_link_in_place_of_a_test_is_left_out(world: World) -> None:
    """What it leads to may be another's, and outside of the tree."""
    places = world.series("kernel/series/0002-hooks/places.toml")
    needs = 'needs = ["tests/Makefile"]\nfiles = ["net/drwa/test.c"]\n'
    write(places, needs + places.read_text() + IGNORED)
    write(world.series("kernel/src/net/drwa/test.c"), "test\n")
    tests = world.top / KERNEL / "tests"
    tests.mkdir()
    for name, target in ("Makefile", "/all/Makefile"), (".gitignore", "../all/.gitignore"):
        (tests / name).symlink_to(target)
    commit(world.top / KERNEL, "Links")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    what = "tests/.gitignore: what is built"
    assert f"left out: {what}: it is a symbolic link to ../all/.gitignore" in applied.out
    assert (tests / ".gitignore").readlink() == Path("../all/.gitignore")
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before
    refused = world.drwa("check", "--with-tests")
    assert refused.code == 2
    assert f"{tests}/.gitignore is a symbolic link to ../all/.gitignore: name the" in refused.err


def test_compile_says_what_it_lacks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = world.top / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(shutil.which("git") or "")
    (tools / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tools))
    done = world.run("apply", *world.trees, "--compile", prefix=(sys.executable,))
    assert done.code == 2
    assert "--compile needs make, flex, bison, bc: install that, or leave it out" in done.err
    assert states(world) == ["none", "none", "none"]


def test_uncommitted_half_is_refused_by_name(world: World) -> None:
    git(world.top / MODULE, "apply", *world.made())
    done = world.drwa("apply")
    assert done.code == 1
    assert f"has uncommitted changes: {SERVICE}: commit them" in done.err


def test_edited_commit_and_later_changes_are_told(world: World) -> None:
    world.drwa("apply")
    module = world.top / MODULE
    write(module / SERVICE, (module / SERVICE).read_text().replace("dumpDrwa", "dumpAll"))
    git(module, "commit", "--all", "--amend", "--no-edit", "--quiet")
    kernel = world.top / KERNEL
    write(kernel / "net/drwa/law.c", "no law\n")
    commit(kernel, "Lawless")
    status = world.drwa("status")
    assert "0002-calls: applied in part" in status.out
    assert f"{SERVICE} lacks `dumpDrwa();`" in status.out
    assert "kernel/0001-law: later commits changed its lines" in status.out
    refused = world.drwa("apply")
    assert refused.code == 1
    assert f"{SERVICE} lacks `dumpDrwa();`: put that in by hand, or run" in refused.err
    reverted = world.drwa("revert")
    assert reverted.code == 1
    assert "kernel/0001-law cannot be taken back, later commits changed its lines" in reverted.err


def test_uncommitted_changes_are_told_by_status(world: World) -> None:
    world.drwa("apply")
    (world.top / KERNEL / TCP).write_text("mine\n")
    status = world.drwa("status")
    assert f"{TCP}: changed by hand, not committed" in status.out
    assert world.drwa("status", "--json").report["projects"][2]["uncommitted"] == [TCP]


def test_another_version_has_to_be_taken_out_first(world: World) -> None:
    world.drwa("apply")
    places = world.series(CALLS)
    write(places, places.read_text().replace("tellDrwa", "askDrwa"))
    assert states(world)[0] == "another version"
    done = world.drwa("apply")
    assert done.code == 1
    assert "has another version of the series: run `drwa revert` first" in done.err
    assert world.drwa("revert").code == 0
    assert world.drwa("apply").code == 0
    assert "askDrwa" in (world.top / MODULE / SERVICE).read_text()


@pytest.mark.parametrize("names", [["DrwaAnew.java"], ["DrwaAnew.java", "DrwaBnew.java"]])
def test_another_version_with_other_files(world: World, names: list[str]) -> None:
    world.drwa("apply")
    sources = world.series("frameworks/drwa")
    for name, old in zip(names, sorted(sources.iterdir()), strict=False):
        old.rename(sources / name)
    places = world.series(CALLS)
    write(places, places.read_text().replace('"connect(20);"', '"connect(21);"'))
    assert states(world)[0] == "another version"
    done = world.drwa("apply")
    assert "has another version of the series: run `drwa revert` first" in done.err
    assert world.drwa("revert").code == 0
    assert world.drwa("apply").code == 0
    assert states(world)[0] == "fully"


def test_revert_below_other_commits(world: World) -> None:
    module = world.top / MODULE
    world.drwa("apply")
    replace_line(module / SERVICE, 5, "    mine(5);\n")
    mine = commit(module, "Mine")
    done = world.drwa("revert")
    assert done.code == 0
    assert "other commits follow the series: added commits that take it back" in done.out
    assert git(module, "rev-parse", "HEAD~2").strip() == mine
    text = (module / SERVICE).read_text()
    assert "mine(5)" in text and "Drwa" not in text
    assert not (module / POLICY).exists()
    assert states(world) == ["none", "none", "none"]
    assert world.drwa("revert").out.count("nothing to take out") == 3
    assert world.drwa("apply").code == 0
    assert states(world)[0] == "fully"
    assert "mine(5)" in (module / SERVICE).read_text()


@pytest.mark.parametrize("reference", ["false", "true"])
def test_git_revert_is_known(world: World, reference: str) -> None:
    """With a commit's whole name, and as `git revert --reference` writes it."""
    world.drwa("apply")
    git(world.top / BASE, "config", "revert.reference", reference)
    git(world.top / BASE, "revert", "--no-edit", "HEAD")
    assert states(world) == ["fully", "none", "fully"]
    git(world.top / BASE, "revert", "--no-edit", "HEAD")
    assert states(world) == ["fully", "fully", "fully"]
    git(world.top / BASE, "revert", "--no-edit", "HEAD")
    assert world.drwa("apply").code == 0
    assert "key(DRWA)" in (world.top / BASE / CARRIER).read_text()


# What is refused: (what to spoil, the words of the one line, the exit code).


def dirty(world: World) -> None:
    (world.top / BASE / CARRIER).write_text("mine\n")


def staged(world: World) -> None:
    dirty(world)
    git(world.top / BASE, "add", CARRIER)


def in_the_way(world: World) -> None:
    write(world.top / MODULE / POLICY, "mine\n")


def link_in_the_way(world: World) -> None:
    (world.top / "elsewhere").mkdir()
    (world.top / KERNEL / "net/drwa").symlink_to(world.top / "elsewhere")


def file_in_the_way(world: World) -> None:
    write(world.top / KERNEL / "net/drwa", "mine\n")


def sparse(world: World) -> None:
    git(world.top / KERNEL, "sparse-checkout", "set", "--cone", "net/ipv4")


def rebasing(world: World) -> None:
    (world.top / BASE / ".git/rebase-merge").mkdir()


def not_git(world: World) -> None:
    shutil.rmtree(world.top / BASE / ".git")


def damaged_git(world: World) -> None:
    (world.top / BASE / ".git/HEAD").unlink()


def hidden_edit(world: World) -> None:
    git(world.top / BASE, "update-index", "--assume-unchanged", CARRIER)
    dirty(world)


def incomplete_checkout(world: World) -> None:
    shutil.rmtree(world.series(MODULE_SERIES))


def empty_repository(world: World) -> None:
    shutil.rmtree(world.top / BASE / ".git")
    git(world.top / BASE, "init", "--quiet")


def part_of_another(world: World) -> None:
    shutil.rmtree(world.top / BASE / ".git")
    git(world.top / "aosp", "init", "--quiet")
    commit(world.top / "aosp", "All in one")


def old_release(world: World) -> None:
    write(world.top / BASE / "core/java/android/os/Build.java", BUILD_13)
    commit(world.top / BASE, "Android 13")


def no_kernel(world: World) -> None:
    (world.top / KERNEL / "Makefile").unlink()


def index_locked(world: World) -> None:
    (world.top / KERNEL / ".git/index.lock").touch()


def no_tree(world: World) -> None:
    shutil.rmtree(world.top / "aosp")


def empty_tree(world: World) -> None:
    shutil.rmtree(world.top / "aosp")
    (world.top / "aosp").mkdir()


BUILD_13 = "public static final int TIRAMISU = 33;\n"


@pytest.mark.parametrize(
    ("spoil", "words", "code"),
    [
        (dirty, f"has uncommitted changes: {CARRIER}: commit them or put them away", 1),
        (staged, f"has uncommitted changes: {CARRIER}: commit them or put them away", 1),
        (in_the_way, "is in the way of the series: move it away", 1),
        (link_in_the_way, "/net/drwa is in the way of the series: move it away", 1),
        (file_in_the_way, "/net/drwa is in the way of the series: move it away", 1),
        (sparse, "/net/drwa/law.c is not checked out (a sparse tree?): check it out", 1),
        (rebasing, "a rebase is under way: finish or abort it", 1),
        (index_locked, "index.lock exists: another git is at work there", 1),
        (hidden_edit, f"{CARRIER} is marked assume-unchanged or skip-worktree: git update-", 1),
        (damaged_git, ".git is damaged, or not yours to read: `git -C", 2),
        (incomplete_checkout, "Connectivity describes no patch: check this repository", 1),
        (not_git, "is no git tree: get it with `repo sync` or git clone", 2),
        (empty_repository, "has no commit: check out a branch first", 2),
        (part_of_another, "is a part of the git tree", 2),
        (no_kernel, "holds no kernel source, for it lacks Makefile: name", 2),
        (no_tree, "no such folder: name the root of an AOSP tree", 2),
        (empty_tree, "does not tell its Android release", 2),
        (old_release, "is Android of another API level (frameworks/base", 77),
    ],
)
def test_refused(world: World, spoil: Callable[[World], None], words: str, code: int) -> None:
    spoil(world)
    before = everything(world.top)
    for command in "check", "apply":
        done = world.drwa(command)
        assert done.code == code
        assert words in done.err
        assert done.err.count("\n") <= 2
        assert "Traceback" not in done.err
    # Objects that nothing refers to may stay.
    after = {name: content for name, content in everything(world.top).items() if name in before}
    assert after == before


def test_a_sparse_tree_that_has_the_folders(world: World) -> None:
    git(world.top / KERNEL, "sparse-checkout", "set", "--cone", "net")
    assert_in_and_out(world)


def test_untracked_files_elsewhere_may_lie_about(world: World) -> None:
    write(world.top / MODULE / "notes.txt", "mine\n")
    assert world.drwa("apply").code == 0
    assert world.drwa("revert").code == 0
    assert (world.top / MODULE / "notes.txt").read_text() == "mine\n"


def test_usage(world: World) -> None:
    for words in (
        [],
        ["apply"],
        ["applly", *world.trees],
        ["apply", "--host", "C", *world.trees],
        ["apply", "--adb", *world.trees],
        ["status", "--compile", *world.trees],
        ["patches", *world.trees],
        ["apply", "-o", "folder", *world.trees],
        ["patches", "-o", "folder"],
        ["patches", "--line", "6.12", "-o", "folder", *world.trees],
        ["apply", "--line", "6.12"],
        ["apply", "--project", "frameworks_base", *world.trees],
    ):
        done = world.run(*words)
        assert done.code == 2
        assert "usage: drwa" in done.err
        told = world.run(*words, "--json")
        assert (told.code, told.report["exit"]) == (2, 2)
        assert told.report["error"] in done.err
    assert world.run("--help").code == 0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("applly", "'applly' is unknown: did you mean apply?"),
        ("statu", "'statu' is unknown: did you mean status?"),
        ("apply --kernal .", "'--kernal' is unknown: did you mean --kernel?"),
        ("apply --host Z", "invalid choice: 'Z' (choose from"),
        ("apply --adb", "error: say which tree"),
    ],
)
def test_did_you_mean(capsys: pytest.CaptureFixture[str], words: str, meant: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize(("host", "path"), [("A", "modules/Connectivity"), ("B", "system/bpf")])
def test_patches_for_a_release_alone_take_its_trees(
    capsys: pytest.CaptureFixture[str], host: str, path: str
) -> None:
    """Android's lines are not here; a tested kernel's source is."""

    def said(words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(f"{words} --host {host}".split())
        assert ended.value.code == 2
        err = capsys.readouterr().err
        assert all(len(line) <= 200 for line in err.splitlines())
        return " ".join(err.split())

    told = said("patches -o out --android 15")
    assert "say which tree: --aosp DIR, --kernel DIR" in told
    assert "--line L will do. The patches for Android 15 have lines of AOSP's, so it takes" in told
    paths = told.rpartition("PATH is one of ")[2].strip().split(", ")
    assert [each for each in paths if each.endswith(path)]
    assert "frameworks/base" in paths
    assert ("system/bpf" in paths) == (host == "B")
    assert "PATH" not in said("patches -o out") + said("patches -o out --android 99")
    assert "--line" not in said("check --android 15").partition("error")[2]


def test_messages_have_short_lines() -> None:
    """Each part on a line of its own, and a word that is longer than a line stays whole."""
    long = "/".join(["folder"] * 40)
    told = _told(f"{'place ' * 50}\n\nsee {long}\nand")
    lines = told.splitlines()
    assert [len(line) <= 200 for line in lines] == [True, True, True, False, True]
    assert [line.startswith("    ") for line in lines] == [False, True, True, True, True]
    assert " ".join(told.split()) == f"{'place ' * 50}see {long} and"


def test_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a copy without history, and of a clone, wherever git is led."""
    monkeypatch.setenv("GIT_DIR", str(world.top / KERNEL / ".git"))
    done = world.run("--version")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(
        r"drwa \d+\.\d+\nAndroid 1\d.*; Linux 4\.19 and newer, .*6\.12.*\n", done.out
    )
    top = world.series("")
    monkeypatch.delenv("GIT_DIR")
    git(top, "init", "--quiet")
    commit(top, "all")
    head = git(top, "rev-parse", "--short=12", "HEAD").strip()
    monkeypatch.setenv("GIT_DIR", str(world.top / KERNEL / ".git"))
    assert world.run("--version").out.startswith(f"drwa 1.0, {head}\n")


def test_next_is_a_page_with_the_makefile_lines(world: World) -> None:
    for host, page in ("A", "rom-builder.md"), ("B", "gms-oem.md"):
        done = world.drwa("apply", "--host", host)
        assert re.search(rf"^next: .*, see \S+/device/doc/{page}, then", done.out, re.MULTILINE)
        assert world.drwa("revert", "--host", host).code == 0


def test_branch_and_linked_worktree_and_detached_head(world: World, tmp_path: Path) -> None:
    kernel = world.top / KERNEL
    git(kernel, "checkout", "--quiet", "-b", "topic")
    git(kernel, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    before = git(kernel, "rev-parse", "HEAD")
    linked = ["--kernel", str(tmp_path / "linked")]
    assert world.run("apply", *linked).code == 0
    assert world.run("status", *linked, "--json").report["projects"][0]["applied"] == "fully"
    assert git(kernel, "rev-parse", "topic") == before
    assert world.run("apply", "--kernel", str(kernel)).code == 0
    assert git(kernel, "rev-parse", "topic") == git(tmp_path / "linked", "rev-parse", "HEAD")
    assert git(kernel, "branch", "--show-current") == "topic\n"
    assert world.run("revert", *linked).code == 0
    assert git(tmp_path / "linked", "rev-parse", "HEAD") == before


def test_kleaf_checkout(world: World) -> None:
    (world.top / "workspace").mkdir()
    (world.top / KERNEL).rename(world.top / "workspace/common")
    done = world.run("apply", "--kernel", str(world.top / "workspace"))
    assert done.code == 0
    assert str(world.top / "workspace/common") in done.out


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("build/make/core/version_defaults.mk", "  PLATFORM_SDK_VERSION := 34\n", "14"),
        (
            "build/release/build_config/ap2a.scl",
            '    value("RELEASE_PLATFORM_SDK_VERSION", "34"),\n',
            "14",
        ),
        (
            "build/release/flag_values/ap3a/RELEASE_PLATFORM_SDK_VERSION.textproto",
            'value: {\n  string_value: "35"\n}\n',
            "15",
        ),
        (
            "packages/modules/Connectivity/staticlibs/netd/aidl_api/netd_aidl_interface/17/x",
            "",
            "16",
        ),
        (
            "packages/modules/Connectivity/staticlibs/netd/aidl_api/netd_aidl_interface/11/x",
            "",
            "13 or older",
        ),
        (
            "packages/modules/Connectivity/staticlibs/netd/aidl_api/netd_aidl_interface/99/x",
            "",
            "newer than all known",
        ),
        (
            "packages/modules/Connectivity/bpf/loader/netbpfload.rc",
            "# 2026 2 36 1 0 # Android 16 QPR2\n\n# 2025 2 35 0 0 # an earlier one\n",
            "16",
        ),
        ("build/make/core/version_defaults.mk", "  PLATFORM_SDK_VERSION := 38\n", "newer than all"),
        (f"packages/modules/Connectivity/{SERVICE}", "", "13 or older"),
        ("frameworks/libs/net/common/netd/aidl_api/netd_aidl_interface/9/x", "", "13 or older"),
    ],
)
def test_android_release(world: World, tmp_path: Path, name: str, text: str, release: str) -> None:
    write(tmp_path / "aosp" / name, text)
    done = world.run("check", "--aosp", str(tmp_path / "aosp"), "--json")
    if release in ("14", "13 or older"):  # There is no series for those.
        assert done.code == 77
        assert f"is Android {release}" in done.report["error"]
    else:
        assert done.code == 2
        assert re.search(r"name the root of a tree$|is no git tree", done.report["error"])
    assert detect_android(tmp_path / "aosp").name.startswith(release)


@pytest.mark.parametrize("android", [None, "17"])
def test_a_newer_release_gets_the_nearest_series(world: World, android: str | None) -> None:
    if android is None:
        build = world.top / BASE / "core/java/android/os/Build.java"
        build.write_text("public static final int LATER = 39;\n")
        commit(world.top / BASE, "Later")
    else:
        (world.top / BASE / "core/java/android/os/Build.java").unlink()
        commit(world.top / BASE, "No level")
    before = world.snapshot()
    options = ["--android", android] if android else []
    done = world.drwa("apply", *options)
    assert done.code == 0, done.err
    name = android or "newer than all known"
    assert f"Android {name}: nobody has tried the series there; that of 15 is the" in done.out
    assert world.drwa("status", *options, "--json").report["projects"][0]["applied"] == "fully"
    assert world.drwa("revert", *options).code == 0
    assert world.snapshot() == before


def test_what_nobody_has_tried_holds_up_nothing(world: World) -> None:
    """Where its place is, it goes in like others."""
    table = world.series("frameworks/releases.toml")
    head = "15.frameworks_base]"
    table.write_text(table.read_text().replace(head, f"{head}\nuntried = true"))
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    carrier = world.top / BASE / CARRIER
    carrier.write_text(carrier.read_text().replace("key(30);", "key(31);"))
    commit(world.top / BASE, "Another key")
    before = world.snapshot()
    done = world.drwa("apply")
    assert done.code == 0, done.err
    words = f"left out: no place for {CARRIER}: the keys: not found: after `key(30);`"
    assert f"{world.top / BASE}: {words}" in done.out
    assert states(world) == ["fully", "none", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before
    table.write_text(table.read_text().replace("untried = true", ""))
    assert world.drwa("apply").code == 1


def test_lunched_release_counts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "build/release"
    flag = "RELEASE_PLATFORM_SDK_VERSION"
    write(folder / "build_config/ap2a.scl", f'value("{flag}", "34"),\n')
    write(folder / f"flag_values/ap3a/{flag}.textproto", 'string_value: "35"\n')
    for config, release in ("ap2a", "14"), ("ap3a", "15"):
        monkeypatch.setenv("TARGET_RELEASE", config)
        assert detect_android(tmp_path).name == release


def shadow_git(folder: Path, monkeypatch: pytest.MonkeyPatch, ahead: str) -> None:
    """Puts a git into PATH that runs something ahead of the real one."""
    write(folder / "git", f'#!/bin/sh\n{ahead}\nexec {shutil.which("git")} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["check"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(world: World, words: list[str]) -> None:
    """As with `drwa status | head -1`."""
    wanted = world.run(*words, *world.trees).code
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [world.program, *words, *world.trees], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (wanted, b"")


def test_a_reader_that_leaves_ends_no_apply(world: World) -> None:
    """Neither of what it says nor of what it complains of."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [world.program, "apply", *world.trees]
    done = subprocess.run(command, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert states(world) == ["fully"] * 3


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_report_that_finds_no_room_is_told(world: World, options: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [world.program, "apply", *world.trees, *options]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "drwa: all was done; the report could not be written\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert states(world) == ["fully"] * 3


def test_slow_git_is_named_and_gets_all_its_input(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(plumbing, "PROGRESS_S", 0.05)
    shadow_git(tmp_path, monkeypatch, "sleep 0.2")
    # More than a pipe takes while nobody reads.
    text = numbered("line", 10_000).encode()
    hashed = plumbing.open_repository(world.top / KERNEL).git("hash-object", "--stdin", text=text)
    assert hashed.decode().strip() == hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()
    assert f"drwa: {world.top / KERNEL}: git hash-object, " in capsys.readouterr().err


def test_older_pythons_understand_the_entry() -> None:
    source = (DEVICE / "drwa").read_text()
    ast.parse(source, feature_version=(3, 7))
    assert source.index("version_info") < source.index("import main")


def test_ctrl_c_while_the_entry_loads_the_rest() -> None:
    source = (DEVICE / "drwa").read_text()
    assert source.index("signal.SIG_DFL") < source.index("import main")


def test_nohup(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hangup interrupts it, unless it was told not to mind."""
    shadow_git(tmp_path, monkeypatch, "kill -HUP $PPID")
    # The tests themselves may run under nohup.
    minding = ("env", "--default-signal=HUP")
    assert world.run("status", *world.trees, prefix=minding).code == 130
    assert world.run("status", *world.trees, prefix=("nohup",)).code == 0


def test_patches_do_not_depend_on_the_checkout(world: World, tmp_path: Path) -> None:
    """Whatever core.autocrlf says."""
    shutil.copy(DEVICE.parent / ".gitattributes", world.top / "drwa")
    git(world.top / "drwa", "init", "--quiet")
    commit(world.top / "drwa", "As published")
    clone = tmp_path / "clone"
    options = ["--quiet", "--config=core.autocrlf=true"]
    git(tmp_path, "clone", *options, f"{world.top}/drwa", str(clone))
    assert b"\r\n" in (clone / CALLS).read_bytes()
    shutil.move(clone, world.top / "clone")
    made = []
    for each in "drwa", "clone":
        program, folder = f"{world.top}/{each}/device/drwa", tmp_path / f"made-{each}"
        command = [sys.executable, program, "patches", *world.trees, "-o", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        made.append({path.name: path.read_bytes() for path in folder.rglob("*.patch")})
    assert len(made[0]) == 5
    assert made[0] == made[1]


def test_settings_of_an_alias(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `git -c diff.noprefix=true drwa`, where an alias runs this."""
    before = world.snapshot()
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'diff.noprefix'='true'")
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_entry_runs_without_site_packages(world: World) -> None:
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
        check=False,
    )
    if done.returncode:
        pytest.skip("/usr/bin/python3 is older than 3.11")
    ran = world.run("check", *world.trees, prefix=("/usr/bin/python3", "-S"))
    assert ran.code == 0


# As an older Python would: it has neither the version nor all modules.
OLDER = """\
import runpy, sys
sys.version_info = (3, 10, 12)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", ["drwa", "check-kmi", "check-trees", "matrix"])
def test_an_older_python_is_told(name: str) -> None:
    program = str(DEVICE / name)
    done = subprocess.run(
        [sys.executable, "-c", OLDER, program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"{name}: needs Python 3.11 or newer: run it as python3.11 {program}\n"
