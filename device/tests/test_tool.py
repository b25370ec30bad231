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
    MODULE,
    OLD,
    POLICY,
    SERVICE,
    TCP,
    World,
    commit,
    everything,
    git,
    numbered,
    replace_line,
    write,
)

from drwatool import git as plumbing

template = small_trees.template
world = small_trees.world


def states(world: World) -> list[str]:
    return [project["applied"] for project in world.drwa("status", "--json").report["projects"]]


def series_of(world: World, name: str) -> list[str]:
    return [str(path) for path in sorted(world.series(name).glob("*.patch"))]


MODULE_SERIES = "frameworks/patches/packages_modules_Connectivity/15"


def test_apply_status_revert_leave_the_same_bytes(world: World) -> None:
    before = world.snapshot()
    assert states(world) == ["none", "none", "none"]
    applied = world.drwa("apply")
    assert (applied.code, applied.err) == (0, "")
    assert states(world) == ["fully", "fully", "fully"]
    assert "tellDrwa" in (world.top / MODULE / SERVICE).read_text()
    assert (world.top / MODULE / "tests/drwa.sh").stat().st_mode & 0o111
    assert not (world.top / BASE / OLD).exists()
    assert (world.top / BASE / LINK).readlink() == Path("Drwa.java")
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
    assert log[0] == "Builder|Call the policy|Signed-off-by: A <a@example.org>"
    assert log[1] == "Drwa-Series: packages_modules_Connectivity/15/0002-Call-the-policy"
    assert log[2].startswith("Drwa-Patch-Id: ")
    assert git(world.top / MODULE, "log", "-1", "--format=%(trailers:key=Drwa-Series)")


def test_the_same_base_gives_the_same_commits(world: World, tmp_path: Path) -> None:
    shutil.copytree(world.top, tmp_path / "other", symlinks=True)
    other = World(tmp_path / "other")
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


@pytest.mark.parametrize("version", ["5.4", "6.6", "7.9"])
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
    kernel_of(world, "4.19")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert "kernel 4.19: left out: the series needs Linux 5.4 or newer" in applied.out
    assert states(world) == ["fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before
    alone = world.run("apply", "--kernel", str(world.top / KERNEL))
    assert alone.code == 77
    assert "is Linux 4.19 (its Makefile says 4.19.3): the series needs Linux 5.4" in alone.err


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
    path = world.top / KERNEL / TCP
    write(path, path.read_text().replace(old, new))
    commit(world.top / KERNEL, "Another way")
    before = world.snapshot()
    for command in "check", "apply":
        done = world.drwa(command)
        assert done.code == 1
        assert f"the series has no place: {TCP}: what is sent: " in done.err
        assert words in done.err
        assert world.snapshot() == before
    assert states(world) == ["none", "none", "none"]


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


def test_a_kernel_in_a_folder_of_its_git_tree(world: World) -> None:
    """As vendors publish theirs, beside other folders."""
    kernel = world.top / KERNEL
    (kernel / "kernel-6.12").mkdir()
    for name in ("Makefile", "Kconfig", "net"):
        (kernel / name).rename(kernel / "kernel-6.12" / name)
    write(kernel / "build.sh", "make\n")
    commit(kernel, "Everything")
    before = world.snapshot()
    trees = [*world.trees[:2], "--kernel", str(kernel / "kernel-6.12")]
    assert world.run("apply", *trees).code == 0
    assert (kernel / "kernel-6.12/net/drwa/law.c").exists()
    status = world.run("status", *trees, "--json").report["projects"]
    assert [project["applied"] for project in status] == ["fully", "fully", "fully"]
    assert world.run("revert", *trees).code == 0
    assert world.snapshot() == before


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


def test_moved_base_offset(world: World) -> None:
    module = world.top / MODULE
    replace_line(module / SERVICE, 2, "    more();\n" * 7)
    commit(module, "More")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0
    assert "0002-Call-the-policy: the base has moved, applied at an offset" in applied.out
    assert states(world)[0] == "fully"
    world.drwa("revert")
    assert world.snapshot() == before


def test_moved_base_three_way(world: World) -> None:
    module = world.top / MODULE
    replace_line(module / SERVICE, 18, "    reconnect(18);\n")
    commit(module, "Rename")
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert "0002-Call-the-policy: the base has moved, merged 3-way" in applied.out
    text = (module / SERVICE).read_text()
    assert "reconnect(18)" in text and "tellDrwa" in text
    status = world.drwa("status")
    assert status.code == 0
    assert "0002-Call-the-policy: applied, merged 3-way" in status.out
    assert world.drwa("apply").out.count("all patches are there already") == 3
    world.drwa("revert")
    assert world.snapshot() == before


def test_every_conflict_is_named(world: World) -> None:
    for path in world.top / KERNEL / TCP, world.top / MODULE / SERVICE:
        path.write_text("all is new\n")
    commit(world.top / KERNEL, "New")
    commit(world.top / MODULE, "New")
    report = world.drwa("apply", "--json").report
    assert report["exit"] == 1
    assert len(report["conflicts"]) == 2
    assert f"{SERVICE}:19" in report["conflicts"][0]


def test_shallow_clone_is_told_why_nothing_was_merged(world: World, tmp_path: Path) -> None:
    module = world.top / MODULE
    replace_line(module / SERVICE, 18, "    reconnect(18);\n")
    commit(module, "Rename")
    git(tmp_path, "clone", "--quiet", "--depth=1", module.as_uri(), str(tmp_path / "shallow"))
    shutil.rmtree(module)
    (tmp_path / "shallow").rename(module)
    done = world.drwa("apply")
    assert done.code == 1
    assert "git fetch --unshallow" in done.err


# What is there already.


def test_git_am_is_known_by_patch_id(world: World) -> None:
    git(world.top / MODULE, "am", "--quiet", *series_of(world, MODULE_SERIES))
    status = world.drwa("status", "--json")
    assert status.code == 1
    module, *others = status.report["projects"]
    assert (module["applied"], set(module["patches"].values())) == ("fully", {"applied"})
    assert [project["applied"] for project in others] == ["none", "none"]
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]


def test_the_rest_of_a_half_applied_series(world: World) -> None:
    module = world.top / MODULE
    git(module, "am", "--quiet", series_of(world, MODULE_SERIES)[0])
    status = world.drwa("status")
    assert status.code == 1
    assert f"{module}: partly applied" in status.out
    assert "0002-Call-the-policy: not applied" in status.out
    applied = world.drwa("apply")
    assert applied.code == 0
    assert "1 of 2 patches are there already" in applied.out
    assert states(world)[0] == "fully"


def test_squashed_series_is_known_by_content(world: World) -> None:
    module = world.top / MODULE
    original = git(module, "rev-parse", "HEAD^{tree}")
    git(module, "apply", "--index", *series_of(world, MODULE_SERIES))
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
    text = git(module, "apply", "--include=tests/*", "--index", series_of(world, MODULE_SERIES)[0])
    assert text == ""
    commit(module, "A part")
    done = world.drwa("apply")
    assert done.code == 1
    assert "a part of it is there already: undo what was applied by hand" in done.err


def commands_of_the_page() -> list[str]:
    """The two blocks of device/doc/rom-builder.md, "Merging by hand"."""
    page = (DEVICE / "doc/rom-builder.md").read_text().partition("### Merging by hand\n")[2]
    blocks = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    assert len(blocks) == 2
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]


def test_merging_by_hand_as_the_page_says(world: World) -> None:
    """In a tree that lacks the files that the series was made from, beside a line of its own."""
    module = world.top / MODULE
    shutil.rmtree(module / ".git")
    replace_line(module / SERVICE, 20, "    connect(20);\n    oem(20);\n")
    git(module, "init", "--quiet", "--initial-branch=main")
    before_commit = commit(module, "As the vendor has it")
    before = world.snapshot()
    done = world.drwa("apply")
    assert done.code == 1
    patch = series_of(world, MODULE_SERIES)[1]
    advice = "or merge this patch by hand as device/doc/rom-builder.md says"
    assert f"{advice}: git am --reject {patch}\n" in done.err
    (world.top / "aosp/vendor").mkdir()
    (world.top / "aosp/vendor/drwa").symlink_to(world.top / "drwa")
    environment = os.environ | {
        "GIT_COMMITTER_NAME": "Builder",
        "GIT_COMMITTER_EMAIL": "builder@example.org",
    }
    first, second = commands_of_the_page()

    def shell(commands: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", commands],
            cwd=world.top / "aosp",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    three_way = shell(first.replace("--reject", "-3"))
    assert (
        "lacks necessary blobs to fall back on 3-way merge" in three_way.stdout + three_way.stderr
    )
    git(module, "am", "--abort")
    git(module, "reset", "--quiet", "--hard", before_commit)
    assert shell(first).returncode != 0
    rejected = module / f"{SERVICE}.rej"
    assert "+    tellDrwa();" in rejected.read_text()
    text = (module / SERVICE).read_text()
    assert "dumpDrwa" in text and "tellDrwa" not in text
    write(module / SERVICE, text.replace("    oem(20);\n", "    oem(20);\n    tellDrwa();\n"))
    rejected.unlink()
    start = first[: first.index("git am")]
    merged = shell(f"set -e\n{start}{second}")
    assert merged.returncode == 0, merged.stderr
    assert states(world) == ["fully", "none", "none"]
    assert "0002-Call-the-policy: applied, and the commit was edited since" in (
        world.drwa("status").out
    )
    assert world.drwa("apply").code == 0
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def upstreams_own_line(world: World) -> Path:
    """A line that the series adds is there before it."""
    module = world.top / MODULE
    replace_line(module / SERVICE, 49, "    dumpDrwa();\n")
    commit(module, "Upstream")
    return module


def test_revert_leaves_what_was_there_before(world: World) -> None:
    module = upstreams_own_line(world)
    before = world.snapshot()
    git(module, "am", "--quiet", "-3", *series_of(world, MODULE_SERIES))
    assert "tellDrwa" in (module / SERVICE).read_text()
    assert states(world)[0] == "fully"
    assert "the commit was edited since" in world.drwa("status").out
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


def test_revert_of_a_squash_takes_nothing_that_was_there_before(world: World) -> None:
    module = upstreams_own_line(world)
    assert world.drwa("apply").code == 0
    git(module, "reset", "--quiet", "--soft", "HEAD~2")
    git(module, "commit", "--quiet", "--message", "All at once")
    assert states(world)[0] == "fully"
    before = world.snapshot()
    refused = world.drwa("revert")
    assert refused.code == 1
    assert "0002-Call-the-policy did not come in one commit" in refused.err
    assert f"{SERVICE}:" in refused.err
    assert world.snapshot() == before


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


def test_a_squashed_kernel_series_is_known_and_comes_out(world: World) -> None:
    kernel = world.top / KERNEL
    (kernel / TCP).chmod(0o755)
    commit(kernel, "As vendors have it")
    tree = git(kernel, "rev-parse", "HEAD^{tree}")
    assert world.drwa("apply").code == 0
    git(kernel, "reset", "--quiet", "--soft", "HEAD~2")
    git(kernel, "commit", "--quiet", "--message", "All at once")
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("apply").out.count("all patches are there already") == 3
    assert world.drwa("revert").code == 0
    assert git(kernel, "rev-parse", "HEAD^{tree}") == tree


def test_the_series_that_fits_best_is_named(world: World) -> None:
    releases = world.series("frameworks/releases.toml")
    of_15 = "[releases.15.packages_modules_Connectivity]\n"
    others = of_15 + '[releases.15.packages_modules_Connectivity.others]\n"15-r1" = {}\n'
    write(releases, releases.read_text().replace(of_15, others))
    for name in series_of(world, MODULE_SERIES):
        text = Path(name).read_text().replace("DrwaController", "DrwaPolicy")
        write(world.series(f"{MODULE_SERIES}-r1") / Path(name).name, text)
    module = world.top / MODULE
    write(module / POLICY, "another\n")
    replace_line(module / SERVICE, 20, "    connect(20, always);\n")
    (module / ".git").rename(world.top / "git")
    git(module, "init", "--quiet")
    commit(module, "Without the blobs for a merge")
    refused = world.drwa("check")
    assert refused.code == 1
    assert f"{MODULE_SERIES}-r1/0002-Call-the-policy.patch" in refused.err
    assert POLICY not in refused.err


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
    before = world.snapshot()
    applied = world.drwa("apply")
    assert applied.code == 0, applied.err
    assert states(world) == ["fully", "fully", "fully"]
    assert world.drwa("revert").code == 0
    assert world.snapshot() == before


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


MAKE = """\
#!/bin/sh
for word; do case $word in O=*) out=${word#O=};; esac; done
[ -f net/ipv4/tcp_output.c ] && [ -f Makefile ] || exit 3
[ ! -e .config ] || exit 4
case $* in
*olddefconfig) ;;
*defconfig) echo CONFIG_NET=y > "$out/.config" ;;
*net/ipv4/tcp_output.o) grep -q 'drwa(40)' net/ipv4/tcp_output.c || exit 5 ;;
esac
%s
"""


@pytest.mark.parametrize("broken", [False, True])
def test_compiled_ahead_of_any_commit(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    tools = tmp_path / "tools"
    for name in ("flex", "bison", "bc", "aarch64-linux-gnu-gcc"):
        write(tools / name, "#!/bin/sh\n")
    fail = "case $* in *.o) echo 'net/ipv4/a.c:1: error: no' >&2; exit 1;; esac"
    write(tools / "make", MAKE % (fail if broken else ""))
    for path in tools.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    write(world.top / KERNEL / "arch/arm64/configs/gki_defconfig", "CONFIG_NET=y\n")
    commit(world.top / KERNEL, "Configuration")
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
    git(world.top / MODULE, "apply", *series_of(world, MODULE_SERIES))
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
    assert "0002-Call-the-policy: applied in part" in status.out
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
    patch = Path(series_of(world, MODULE_SERIES)[1])
    patch.write_text(patch.read_text().replace("tellDrwa", "askDrwa"))
    assert states(world)[0] == "another version"
    done = world.drwa("apply")
    assert done.code == 1
    assert "has another version of the series: run `drwa revert` first" in done.err
    assert world.drwa("revert").code == 0
    assert world.drwa("apply").code == 0
    assert "askDrwa" in (world.top / MODULE / SERVICE).read_text()


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


def test_git_revert_is_known(world: World) -> None:
    world.drwa("apply")
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
        (rebasing, "a rebase is under way: finish or abort it", 1),
        (index_locked, "index.lock exists: another git is at work there", 1),
        (hidden_edit, f"{CARRIER} is marked assume-unchanged or skip-worktree: git update-", 1),
        (damaged_git, ".git is damaged, or not yours to read: `git -C", 2),
        (incomplete_checkout, "Connectivity/15 holds no patches: check this repository", 2),
        (not_git, "is no git tree: get it with `repo sync` or git clone", 2),
        (empty_repository, "has no commit: check out a branch first", 2),
        (part_of_another, "is a part of the git tree", 2),
        (no_kernel, "holds no kernel source: name the folder that has its Makefile", 2),
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
    ):
        done = world.run(*words)
        assert done.code == 2
        assert "usage: drwa" in done.err
    assert world.run("--help").code == 0


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
            "of another release",
        ),
        (f"packages/modules/Connectivity/{SERVICE}", "", "13 or older"),
        ("frameworks/libs/net/common/netd/aidl_api/netd_aidl_interface/9/x", "", "13 or older"),
    ],
)
def test_android_release(world: World, tmp_path: Path, name: str, text: str, release: str) -> None:
    write(tmp_path / "aosp" / name, text)
    done = world.run("check", "--aosp", str(tmp_path / "aosp"), "--json")
    # Either there are no projects, or no series for that release.
    assert done.code in (2, 77)
    if release != "15":
        assert done.code == 77 or release in ("14", "16")
        assert f"is Android {release}" in done.report["error"]
    else:
        assert done.report["error"].endswith("name the root of a tree")


def test_lunched_release_counts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from drwatool.trees import detect_android

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


def test_patches_are_checked_out_as_they_are(world: World, tmp_path: Path) -> None:
    """Whatever core.autocrlf says."""
    shutil.copy(DEVICE.parent / ".gitattributes", world.top / "drwa")
    git(world.top / "drwa", "init", "--quiet")
    commit(world.top / "drwa", "As published")
    clone = tmp_path / "clone"
    options = ["--quiet", "--config=core.autocrlf=true"]
    git(tmp_path, "clone", *options, f"{world.top}/drwa", str(clone))
    for name in series_of(world, MODULE_SERIES):
        path = Path(name)
        assert (clone / path.relative_to(world.top / "drwa")).read_bytes() == path.read_bytes()


def test_entry_runs_without_site_packages(world: World) -> None:
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
        check=False,
    )
    if done.returncode:
        pytest.skip("/usr/bin/python3 is older than 3.11")
    ran = world.run("check", *world.trees, prefix=("/usr/bin/python3", "-S"))
    assert ran.code == 0
