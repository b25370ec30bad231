# SPDX-License-Identifier: Apache-2.0
"""The record of what real trees say, the matrix made of it, and real trees if there are any."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import small_trees
from small_trees import DEVICE, KERNEL, TCP, Done, World, commit, everything, replace_line, write

template = small_trees.template
world = small_trees.world

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


def page(world: World) -> str:
    return (world.series("device") / "doc/support-matrix.md").read_text()


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
    assert "| kernel | Linux 6.12 | main " in page(world)
    assert "| 6.12 | Debian's linux-source-6.12 | android16-6.12 |" in page(world)
    assert "| system_netd | Android 15 | no series |" in page(world)


def test_changed_series_voids_the_record(world: World) -> None:
    program(world, "check-trees", "--record", *world.trees)
    program(world, "matrix")
    message = world.series("kernel") / "series/0001-law/message"
    message.write_text(message.read_text().replace("tcp:", "tcp: all"))
    stale = program(world, "matrix", "--check")
    assert stale.code == 1
    assert "support-matrix.md is out of date: run device/matrix" in stale.err
    program(world, "matrix")
    assert "| 15 | A | – | applied, an earlier series |" in page(world)


def test_conflict_is_no_record(world: World) -> None:
    replace_line(world.top / KERNEL / TCP, 44, "\tsend_later(40);\n")
    commit(world.top / KERNEL, "Another way")
    tried = program(world, "check-trees", "--record", *world.trees)
    assert tried.code == 1
    assert TCP in tried.err
    assert not (world.series("device") / "results/trees.json").exists()


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
