# SPDX-License-Identifier: Apache-2.0
"""The record of what real trees say, the matrix made of it, and real trees if there are any."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import small_trees
from small_trees import (
    DEVICE,
    KERNEL,
    MODULE,
    SERVICE,
    TCP,
    Done,
    World,
    commit,
    everything,
    git,
    replace_line,
    snapshot,
    write,
)

from drwatool.described import read_series

template = small_trees.template
world = small_trees.world

TOP = DEVICE.parent

TESTS_XML = """\
<testsuite>
<testcase name="test_boot[6.12-drwa]"/>
<testcase name="test_speed[6.12]"><failure/></testcase>
<testcase name="test_more[6.12]"><skipped/></testcase>
<testcase name="test_other"/>
</testsuite>
"""


def program(world: World, name: str, *arguments: str) -> Done:
    command = [sys.executable, str(world.series("device") / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def change_law(world: World) -> None:
    law = world.series("kernel") / "src/net/drwa/law.c"
    law.write_text(f"{law.read_text()}int drwa_more;\n")


def page(world: World) -> str:
    return (world.series("device") / "doc/support-matrix.md").read_text()


def listed(world: World, name: str) -> list[dict[str, str]]:
    with (world.series("device") / f"doc/{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_trees_are_tried_recorded_and_only_read(world: World) -> None:
    before = everything(world.top / "aosp"), everything(world.top / KERNEL)
    assert program(world, "matrix").code == 0
    assert "| 15 | A | – | – |" in page(world)
    tried = program(world, "check-trees", "--record", *world.trees)
    assert tried.code == 0, tried.err
    assert (everything(world.top / "aosp"), everything(world.top / KERNEL)) == before
    assert program(world, "matrix", "--check").code == 1
    assert program(world, "matrix").code == 0
    assert program(world, "matrix", "--check").code == 0
    assert "| 15 | A | – | applied |" in page(world)
    assert "| 15 | B | – | applied |" in page(world)
    tree = {(row["project"], row["for"]): row["tree"] for row in listed(world, "trees")}
    assert tree["kernel", "Linux 6.12"].startswith("main ")
    assert tree["system_netd", "Android 15"] == "no series"
    assert "| 6.12 | Debian's linux-source-6.12 | android16-6.12 |" in page(world)


def test_trees_whose_kernel_is_as_it_was(world: World) -> None:
    """This one has no netd, either."""
    tried = program(world, "check-trees", "--record", f"--aosp={world.top / 'aosp'}")
    assert tried.code == 0, tried.err
    assert program(world, "matrix").code == 0
    assert "| Android | `--host` | Linux 6.1 | Linux 6.12 | kernel: none, nor netd |" in page(world)
    assert "| 15 | B | – | – | applied |" in page(world)


def test_changed_series_voids_the_record(world: World) -> None:
    program(world, "check-trees", "--record", *world.trees)
    program(world, "matrix")
    change_law(world)
    stale = program(world, "matrix", "--check")
    assert stale.code == 1
    assert "support-matrix.md" in stale.err
    assert stale.err.endswith(": run device/matrix\n")
    program(world, "matrix")
    assert "| 15 | A | – | earlier |" in page(world)


def test_conflict_is_no_record(world: World) -> None:
    replace_line(world.top / KERNEL / TCP, 44, "\tsend_later(40);\n")
    commit(world.top / KERNEL, "Another way")
    tried = program(world, "check-trees", "--record", *world.trees)
    assert tried.code == 1
    assert TCP in tried.err
    assert not (world.series("device") / "results/trees.json").exists()


def test_kernels_alone_are_tried_recorded_and_only_read(world: World) -> None:
    """A folder of a work tree, a git directory that lacks a file, and a kernel that is refused."""
    inside, bare, other = (world.top / name for name in ("phone", "bare.git", "other"))
    for name in ("net/a.c", "Kconfig", "gpu/b.c"):
        write(world.top / KERNEL / "drivers" / name, "x\n")
    commit(world.top / KERNEL, "Drivers")
    shutil.copytree(
        world.top / KERNEL, inside / "kernel-6.12", ignore=shutil.ignore_patterns(".git")
    )
    git(inside, "init", "--quiet", "--initial-branch=main")
    commit(inside, "As published")
    git(world.top, "clone", "--quiet", "--bare", KERNEL, str(bare))
    write(world.top / KERNEL / "a b[1].bin", "firmware\n")
    lacked = commit(world.top / KERNEL, "Firmware")
    git(bare, "fetch", "--quiet", "origin", "main:main")
    blob = git(bare, "rev-parse", f"{lacked}:a b[1].bin").strip()
    (bare / "objects" / blob[:2] / blob[2:]).unlink()
    shutil.copytree(world.top / KERNEL, other)
    replace_line(other / TCP, 44, "\tsend_later(40);\n")
    commit(other, "Another way")
    kernels = inside / "kernel-6.12", bare, other
    before = [everything(path) for path in (inside, bare, other)]
    options = [f"--kernel=somebody/{path.name}={path}" for path in kernels]
    assert program(world, "check-trees", "--record", *options).code == 1
    assert [everything(path) for path in (inside, bare, other)] == before
    results = json.loads((world.series("device") / "results/kernels.json").read_text())
    good = dict.fromkeys(("check", "apply", "status", "doctor", "revert"), 0)
    expected = {
        "bare.git": ("", good, 1),
        "kernel-6.12": ("kernel-6.12", good, 0),
        "other": ("", {"check": 1}, 0),
    }
    for result in results:
        assert result["version"] == "6.12.8"
        assert result["identical"]
        name = result["tree"].removeprefix("somebody/")
        assert (result["folder"], result["steps"], result["absent"]) == expected.pop(name)
        for text in result["told"]:
            assert text.startswith(f"check: the series has no place: {TCP}: what is sent: not fou")
    assert not expected
    assert program(world, "matrix").code == 0
    assert "| 6.12 | 3 | 2 | 0 | 0 |\n| all | 3 | 2 | 0 | 0 |\n" in page(world)
    bare_row, inside_row, other_row = listed(world, "kernels")
    assert bare_row == inside_row | {"kernel": "somebody/bare.git", "commit": lacked[:12]}
    assert (bare_row["cycle"], bare_row["source"], bare_row["told"]) == ("whole", "checkout", "")
    assert other_row["cycle"] == "check refused"
    assert other_row["told"].startswith("check: the series has no place: ")


def test_modules_alone_are_tried_recorded_and_only_read(world: World) -> None:
    """Three commits of one: the release, an earlier one, and one that has no place."""
    module = world.top / MODULE
    write(module / "staticlibs/netd/aidl_api/netd_aidl_interface/15/INetd.aidl", "")
    good = commit(module, "Android 15")
    replace_line(module / SERVICE, 20, "    reconnect(20);\n")
    moved = commit(module, "Another way")
    netd = module / "staticlibs/netd/aidl_api/netd_aidl_interface"
    (netd / "15").rename(netd / "12")
    git(module, "checkout", "--quiet", "-b", "older")
    older = commit(module, "Android 13")
    git(module, "checkout", "--quiet", good)
    before = everything(module)
    options = [f"--module=rom/module={module}{at}" for at in ("", f"@{moved}", "@older")]
    assert program(world, "check-trees", "--record", *options).code == 1
    assert everything(module) == before
    results = json.loads((world.series("device") / "results/modules.json").read_text())
    found = {each["commit"]: each for each in results}
    assert found.keys() == {each[:12] for each in (good, moved, older)}
    assert all(each["identical"] and each["tree"] == "rom/module" for each in results)
    whole = dict.fromkeys(("check", "apply", "status", "graph", "revert"), 0)
    assert (found[good[:12]]["steps"], found[good[:12]]["told"]) == (whole, [])
    assert found[moved[:12]]["steps"] == {"check": 1}
    assert found[moved[:12]]["told"][0].startswith("check: packages/modules/Connectivity: the ")
    assert (found[older[:12]]["steps"], found[older[:12]]["ref"]) == ({"check": 77}, "older")
    assert program(world, "check-trees", "--record", f"--module=rom/module={module}").code == 0
    assert len(json.loads((world.series("device") / "results/modules.json").read_text())) == 3
    assert program(world, "matrix").code == 0
    assert "| Android 15 | 2 | 1 | 0 | 1 |\n| all | 3 | 1 | 1 | 1 |\n" in page(world)
    cycles = {row["commit"]: row["cycle"] for row in listed(world, "modules")}
    assert cycles[older[:12]] == "check refused by name"


@pytest.mark.parametrize("broken", [False, True])
def test_a_modules_graph_is_checked(world: World, broken: bool) -> None:
    module = world.top / MODULE
    write(module / "staticlibs/netd/aidl_api/netd_aidl_interface/15/INetd.aidl", "")
    library = 'cc_library { name: "drwa-x" }\n'
    write(module / "Android.bp", library)
    if broken:
        write(world.series("device") / "Android.bp", library)
    commit(module, "Android 15")
    done = program(world, "check-trees", "--record", f"--module={module}")
    assert done.code == int(broken), done.err
    (result,) = json.loads((world.series("device") / "results/modules.json").read_text())
    assert result["steps"]["graph"] == int(broken)
    assert result["steps"]["revert"] == 0
    assert len(result["told"]) == int(broken)


def test_excerpts_do_for_kernels_alone(world: World) -> None:
    for name in ("drivers/net/a.c", "include/net/b.h"):
        write(world.top / KERNEL / name, "x\n")
    source = commit(world.top / KERNEL, "More")
    options = "--record", "--excerpt", f"--kernel={world.top / KERNEL}"
    assert program(world, "check-trees", *options).code == 0
    (result,) = json.loads((world.series("device") / "results/kernels.json").read_text())
    assert result["commit"] == source[:12]
    assert result["steps"] == dict.fromkeys(("check", "apply", "status", "doctor", "revert"), 0)
    program(world, "matrix")
    assert "| 6.12 | 1 | 0 | 1 | 0 |" in page(world)
    assert program(world, "check-trees", "--compile", *options).code == 2


def test_how_much_is_of_an_earlier_series_is_said(world: World) -> None:
    kernels = [f"--kernel=somebody/{name}={world.top / KERNEL}" for name in ("one", "other")]

    def said(*tried: str) -> list[str]:
        if tried:
            assert program(world, "check-trees", "--record", "--excerpt", *tried).code == 0
        assert program(world, "matrix").code == 0
        return re.findall(r"(\w+) of these results are of earlier patches", page(world))

    assert said(*kernels) == []
    change_law(world)
    assert said() == ["All"]
    assert said(kernels[1]) == ["Some"]
    assert said(kernels[0]) == []


def test_no_kernel_is_told(world: World) -> None:
    shutil.rmtree(world.top / KERNEL / "net")
    commit(world.top / KERNEL, "An overlay")
    options = "--record", f"--kernel={world.top / KERNEL}"
    assert program(world, "check-trees", *options).code == 1
    (result,) = json.loads((world.series("device") / "results/kernels.json").read_text())
    assert result["steps"] == {"check": 2}
    assert result["told"][0].startswith("check: the tree holds no kernel source, for it lacks net")


def test_compiled_once_stays_known(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the work tree, which has a configuration that is in no commit."""
    small_trees.build_tools(tmp_path / "tools", monkeypatch)
    write(world.top / KERNEL / ".config", "CONFIG_NET=y\n")
    options = "--record", f"--kernel={world.top / KERNEL}"
    assert program(world, "check-trees", "--compile", *options).code == 0
    assert program(world, "check-trees", *options).code == 0
    assert program(world, "check-trees", "--excerpt", *options).code == 0
    (result,) = json.loads((world.series("device") / "results/kernels.json").read_text())
    assert not result["excerpt"]
    assert result["steps"]["compile"] == 0
    assert result["compiled"].startswith("compiled 1 objects for arm64, .config, ")
    program(world, "matrix")
    assert "| 6.12 | 1 | 1 | 0 | 1 |" in page(world)


def test_compiled_without_the_submodules_of_a_snapshot(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them lies behind a link, as KernelSU's does."""
    small_trees.build_tools(tmp_path / "tools", monkeypatch)
    make = tmp_path / "tools/make"
    lacks = """\
for file in drivers/ksu/Kconfig drivers/hwid/Kconfig; do
	[ -f $file ] || { echo "a:1: can't open file \\"$file\\"" >&2; exit 1; }
done
"""
    make.write_text(make.read_text().replace("\n", f"\n{lacks}", 1))
    kernel = world.top / KERNEL
    write(kernel / "arch/arm64/configs/defconfig", "CONFIG_NET=y\n")
    write(kernel / "drivers/Kconfig", "")
    (kernel / "drivers/ksu").symlink_to("../KernelSU/kernel")
    commit(kernel, "A submodule")
    bare = tmp_path / "bare"
    git(world.top, "clone", "--quiet", "--bare", str(kernel), str(bare))
    options = "--record", "--compile", f"--kernel={bare}"
    assert program(world, "check-trees", *options).code == 0
    (result,) = json.loads((world.series("device") / "results/kernels.json").read_text())
    assert result["identical"]
    assert result["compiled"].endswith(
        "; empty, in place of a submodule: KernelSU/kernel/Kconfig, drivers/hwid/Kconfig"
    )
    options = "--record", "--compile", f"--kernel={kernel}"
    tried = program(world, "check-trees", *options)
    assert tried.code == 1, "a tree of work is nobody's to complete"


def test_build_graph_is_checked(world: World) -> None:
    write(world.series("device") / "Android.bp", 'cc_library { name: "a", shared_libs: ["b"] }')
    tried = program(world, "check-trees", "--record", *world.trees)
    assert tried.code == 1
    assert "vendor/drwa/device/Android.bp:1: a: shared_libs names b, which no" in tried.err
    assert not (world.series("device") / "results/trees.json").exists()


def test_tests_are_counted(world: World) -> None:
    write(world.series("out") / "tests.xml", TESTS_XML)
    report = "<testsuite><testcase name='a'/></testsuite>"
    write(world.series("out") / "frameworks/android-35/surefire-reports/TEST-a.xml", report)
    assert program(world, "matrix", "--tests").code == 0
    assert "| Linux 6.12 | 1 passed, 1 failed |" in page(world)
    assert "| Android 15 | 1 passed, 0 failed |" in page(world)


def test_report_older_than_the_series_is_not_counted(world: World) -> None:
    report = world.series("out") / "tests.xml"
    write(report, TESTS_XML)
    changed = (world.series("kernel") / "series/0001-law/message").stat().st_mtime
    os.utime(report, (changed - 1, changed - 1))
    counted = program(world, "matrix", "--tests")
    assert f"{report} is older than the series for Linux 6.12: not counted" in counted.err
    assert "| Linux 6.12 | – |" in page(world)


def test_real_trees(tmp_path: Path) -> None:
    trees = {name: os.environ.get(name) for name in ("AOSP", "KERNEL")}
    if not all(trees.values()):
        pytest.skip("AOSP=DIR KERNEL=DIR name no real trees")
    options = [f"--{name.lower()}={path}" for name, path in trees.items()]
    command = [sys.executable, str(DEVICE / "check-trees"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Of a vendor's change, and of what doc/by-hand.md says to write: file, text that is there, text in
# its place; step, text of its places.toml, text in its place.
BY_HAND = {
    "function": (
        "net/ipv4/tcp_input.c",
        "tcp_data_queue(struct sock",
        "vendor_data_queue(struct sock",
        "0006-hooks",
        'function = "tcp_data_queue"',
        'function = ["tcp_data_queue", "vendor_data_queue"]',
    ),
    "statement": (
        "net/ipv4/tcp.c",
        "\ttp->rcv_rtt_last_tsecr = 0;\n",
        "\tvendor_forget_rtt(tp);\n",
        "0002-state",
        'after = "tp->rcv_rtt_last_tsecr = 0;"',
        'after = ["tp->rcv_rtt_last_tsecr = 0;", "vendor_forget_rtt(tp);"]',
    ),
    "text": (
        "net/ipv4/tcp_input.c",
        "\t\t\ttcp_event_data_recv(sk, skb);\n",
        "\t\t\tvendor_data_recv(tp, skb);\n",
        "0006-hooks",
        'after = "tcp_event_data_recv(sk, skb);"\n'
        'text = "tcp_drwa_data_recv(sk, TCP_SKB_CB(skb)->seq);"',
        '[[place.form]]\nafter = "tcp_event_data_recv(sk, skb);"\n'
        'text = "tcp_drwa_data_recv(sk, TCP_SKB_CB(skb)->seq);"\n'
        '[[place.form]]\nafter = "vendor_data_recv(tp, skb);"\n'
        'text = "tcp_drwa_data_recv((struct sock *)tp, TCP_SKB_CB(skb)->seq);"',
    ),
    "twice": (
        "net/ipv4/tcp_minisocks.c",
        "newtp->pred_flags = 0;\n",
        "newtp->pred_flags = 0;\n\tvendor_child(newtp);\n\tnewtp->pred_flags = 0;\n",
        "0002-state",
        'after = "newtp->pred_flags = 0;"',
        'times = [1, 2]\nafter = "newtp->pred_flags = 0;"',
    ),
}


def files_at_places(source: Path) -> tuple[str, list[str]]:
    """A kernel's tree, which may be a folder of its git tree, and what the series looks at."""
    listed = git(source, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    (prefix,) = (
        path.removesuffix("net/ipv4/tcp_input.c")
        for path in listed
        if f"/{path}".endswith("/net/ipv4/tcp_input.c")
    )
    steps = read_series(TOP / "kernel/series", TOP / "kernel/src")
    wanted = {"Kconfig", "Makefile"}
    for step in steps:
        wanted |= {*step.needs, *step.headers}
        for place in step.places:
            asked = (condition.removeprefix("!").partition(": ")[0] for condition in place.when)
            wanted |= {place.file, *asked}
    return f"HEAD:{prefix}", sorted(wanted & {path.removeprefix(prefix) for path in listed})


def test_by_hand_is_what_the_page_says() -> None:
    page = (DEVICE / "doc/by-hand.md").read_text()
    (row,) = re.findall(r"^\| the function under another name \|.*`(.*)`", page, re.MULTILINE)
    assert BY_HAND["function"][5] == row
    (row,) = re.findall(r"^\| another statement \|.*`(.*)`", page, re.MULTILINE)
    for of_page, here in ("the one that is there;", 1), ("yours;", 2):
        row = row.replace(of_page, BY_HAND["statement"][here].strip())
    assert BY_HAND["statement"][5] == row
    (row,) = re.findall(r"^\| the statement twice \| `(.*?)`", page, re.MULTILINE)
    assert BY_HAND["twice"][5] == f"{row}\n{BY_HAND['twice'][4]}"


@pytest.mark.parametrize("change", BY_HAND)
def test_by_hand_on_real_kernels(tmp_path: Path, change: str) -> None:
    """What the page says, on such a change in each of them; of each, the files at the places."""
    kernels = os.environ.get("KERNELS")
    if not kernels:
        pytest.skip("KERNELS=DIR:DIR names no git trees of kernels")
    name, old, new, step, described, written = BY_HAND[change]
    for number, source in enumerate(kernels.split(":")):
        build, kernel = tmp_path / f"build{number}", tmp_path / f"kernel{number}"
        for part in "device", "kernel", "frameworks":
            shutil.copytree(TOP / part, build / "vendor/drwa" / part, symlinks=True)
        kernel.mkdir()
        root, paths = files_at_places(Path(source))
        git(Path(source), "archive", f"--output={tmp_path}/{number}.tar", root, *paths)
        subprocess.run(["tar", "-xf", f"{tmp_path}/{number}.tar", "-C", kernel], check=True)
        text = (kernel / name).read_text()
        assert text.count(old) in (1, 2)
        write(kernel / name, text.replace(old, new))
        git(kernel, "init", "--quiet")
        git(kernel, "config", "gc.auto", "0")
        commit(kernel, "As the vendor has it")
        before = snapshot(kernel)

        def drwa(command: str, build: Path = build, kernel: Path = kernel) -> Done:
            arguments = ["vendor/drwa/device/drwa", command, "--kernel", str(kernel)]
            done = subprocess.run(arguments, cwd=build, capture_output=True, text=True, check=False)
            return Done(done.returncode, done.stdout, done.stderr)

        refused = drwa("check")
        assert (refused.code, snapshot(kernel)) == (1, before)
        found = re.search(r"the series has no place: \S+: (.*?): ", refused.err)
        assert found, refused.err
        search = f'grep -rn "{found[1]}" vendor/drwa/*/series'
        listed = subprocess.run(search, cwd=build, shell=True, capture_output=True, text=True)
        places = build / f"vendor/drwa/kernel/series/{step}/places.toml"
        assert f"{places.relative_to(build)}:" in listed.stdout
        text = places.read_text()
        assert text.count(described) == 1
        write(places, text.replace(described, written))
        for command in "apply", "status", "doctor":
            done = drwa(command)
            assert done.code == 0, f"{source}: {command}: {done.out}{done.err}"
            assert command != "status" or "fully applied" in done.out
        assert drwa("revert").code == 0
        assert snapshot(kernel) == before


def test_a_record_holds_whatever_comments_and_messages_say(world: World) -> None:
    """Of a series' text alone: code in C, and places, are what a tree gets."""
    asked = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from drwatool import trees\n"
        "from drwatool.described import sources_of\n"
        "from drwatool.series import series_digest\n"
        "print(series_digest(sources_of(*trees.described_in(trees.KERNEL_PROJECT))))\n"
    )

    def digest() -> str:
        command = [sys.executable, "-c", asked, str(world.series("device"))]
        return subprocess.check_output(command, text=True)

    kernel = world.series("kernel")
    law, message = kernel / "src/net/drwa/law.c", kernel / "series/0001-law/message"
    before = digest()
    law.write_text(f"/* Another word. */\n{law.read_text()}")
    message.write_text(f"{message.read_text()}Another word.\n")
    assert digest() == before
    change_law(world)
    now = digest()
    assert now != before
    places = kernel / "series/0002-hooks/places.toml"
    places.write_text(f"{places.read_text()}\n# Another word.\n")
    assert digest() != now
