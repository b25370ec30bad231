# SPDX-License-Identifier: Apache-2.0
"""What netd_patches/src compiles to on Debian, and what it does there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import building
import fuzz_netd

SRC = building.NETD / "src" / "server"
SOURCES = sorted(SRC.glob("drwa/*Test.cpp"))
FRAMEWORKS = building.NETD.parent / "frameworks"
HOOKS = building.NETD / "series/0002-drwa-hooks/places.toml"
# Of the tests that run once for each of some values, the number of values.
PARAMETERS = {"ThisKernelTest.ReadsAConnection": 2}
# All of them take seconds. A controller that opens a file too few waits for ever on a test's pipe.
UNIT_TESTS_S = 180
FUZZ_RUNS = {
    "DrwaControllerFuzzer": 3000,
    "DrwaSocketsFuzzer": 50000,
    "DrwaUplinkFuzzer": 20000,
}

Results = dict[str, str]


def run(*command: str | Path) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What became of each unit test, by its name: its failures, "" when there are none."""
    report = tmp_path_factory.mktemp("gtest") / "report.json"
    try:
        done = subprocess.run(
            [building.make("drwa_test"), f"--gtest_output=json:{report}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=UNIT_TESTS_S,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"no end within {UNIT_TESTS_S} s: {(error.stdout or b'')[-4000:]!r}")
    # A sanitizer ends the program before it reports.
    assert report.exists(), done.stdout[-4000:]
    return {
        f"{suite['name']}.{case['name']}": "\n".join(
            failure["failure"] for failure in case.get("failures", [])
        )
        or ("" if case["result"] == "COMPLETED" else case["result"])
        for suite in json.loads(report.read_text())["testsuites"]
        for case in suite["testsuite"]
    }


@pytest.mark.parametrize("name", building.gtest_names(*SOURCES))
def test_unit(results: Results, name: str) -> None:
    assert results[name] == ""


def test_every_unit_test_ran(results: Results) -> None:
    with_values = sum(
        len(re.findall(r"^TEST_P\(", source.read_text(), re.MULTILINE)) for source in SOURCES
    )
    assert with_values == len(PARAMETERS)
    assert len(results) == len(building.gtest_names(*SOURCES)) + sum(PARAMETERS.values())


@pytest.mark.parametrize("family", range(2))
def test_unit_with_this_kernel(results: Results, family: int) -> None:
    found = results[f"Families/ThisKernelTest.ReadsAConnection/{family}"]
    if found == "SKIPPED":
        pytest.skip("this machine has no loopback of the family")
    assert found == ""


def test_thread_safety() -> None:
    building.make("thread-safety")


@pytest.mark.parametrize("name", list(fuzz_netd.FUZZERS))
def test_fuzz(name: str, tmp_path: Path) -> None:
    """From the corpus that longer runs left."""
    corpus = fuzz_netd.CORPUS / name
    assert len(list(corpus.iterdir())) > 20
    executions, _ = fuzz_netd.fuzz(name, f"-runs={FUZZ_RUNS[name]}", tmp_path, corpus)
    assert executions == FUZZ_RUNS[name]


def test_builds_in_a_folder_with_a_space(tmp_path: Path) -> None:
    for folder in "netd_patches", "cts_tests/e2e/netd":
        shutil.copytree(building.TOP / folder, tmp_path / "a b" / folder)
    script = "import building; building.make('drwa_netd')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "a b" / "netd_patches" / "tests",
        env=os.environ | {"MAKEFLAGS": "--dry-run"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_range_is_the_kernels() -> None:
    header = building.NETD.parent / "kernel" / "src" / "include" / "linux" / "tcp_drwa.h"
    kernel = dict(re.findall(r"#define DRWA_LAMBDA_(MIN|MAX)\s+(\d+)", header.read_text()))
    controller = (SRC / "drwa" / "DrwaController.h").read_text()
    assert f"kMinLambda = {kernel['MIN']};" in controller
    assert f"kMaxLambda = {kernel['MAX']};" in controller


def fields(text: str, struct: str, pattern: str) -> list[tuple[str, str]]:
    """The bits and the names of a structure's numbers, as the pattern finds them."""
    body = re.search(rf"struct {struct} \{{(.*?)^\}};", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    found = re.findall(pattern, body[1], re.MULTILINE)
    return [(bits, name.replace("_", "").lower()) for bits, name in found]


def test_maps_are_the_programs(tmp_path: Path) -> None:
    """netd writes them without the programs' header, which has another license."""
    kernel = building.NETD.parent / "kernel"
    theirs = (kernel / "bpf" / "drwa.h").read_text()
    header = (SRC / "drwa" / "DrwaBpf.h").read_text()
    programs = (SRC / "drwa" / "DrwaPrograms.h").read_text()
    for struct, ours in ("drwa_dev", "DrwaBpfDev"), ("drwa_counts", "DrwaBpfCounts"):
        wanted = fields(theirs, struct, r"^\t__u(\d+)\t(\w+)(?:\[DRWA_BINS\])?;")
        assert len(wanted) > 5
        assert fields(header, ours, r"^    uint(\d+)_t (\w+)(?:\[kBins\])?;") == wanted
    numbers = dict(re.findall(r"#define DRWA_(BINS|DEVS)\s+(\d+)", theirs))
    assert f"kBins = {numbers['BINS']};" in header
    assert f"kPlaces = {numbers['DEVS']};" in programs
    limits = dict(
        re.findall(
            r"#define DRWA_LAMBDA_(MIN|MAX)\s+(\d+)",
            (kernel / "src/include/linux/tcp_drwa.h").read_text(),
        )
    )
    assert f"kMinLambda = {limits['MIN']};" in programs
    assert f"kMaxLambda = {limits['MAX']};" in programs
    knobs = "frameworks/drwa/src/com/android/server/connectivity/DrwaBpfKnobs.java"
    (priority,) = re.findall(r"short PRIORITY = (\d+);", (building.TOP / knobs).read_text())
    assert f"kPriority = {priority};" in header
    state, rest = (int(n) for n in re.findall(r"uint8_t (?:state|rest)\[(\d+)\];", header))
    between = fields(header, "DrwaBpfQueue", r"^    uint(32)_t (\w+);")
    assert between == [("32", "delayus"), ("32", "delaysetus")]
    (old,) = re.findall(r"kDelayOldUs = (\d+);", programs)
    layout = {
        "sizeof(struct drwa_queue)": state + 8 + rest,
        "offsetof(struct drwa_queue, delay_us)": state,
        "offsetof(struct drwa_queue, delay_set_us)": state + 4,
        "DRWA_SECOND_US": old,
    }
    source = tmp_path / "queue.c"
    types = "".join(f"typedef __{name} {name};\n" for name in ("u8", "u16", "u32", "s32", "u64"))
    source.write_text(
        f"#include <stdbool.h>\n#include <stddef.h>\n#include <linux/types.h>\n{types}"
        '#include "drwa.h"\n'
        + "".join(f'_Static_assert({what} == {n}, "queue");\n' for what, n in layout.items())
    )
    includes = [f"-I{kernel / 'bpf'}", f"-I{kernel / 'src/include'}"]
    run("gcc", "-fsyntax-only", *includes, "-idirafter", kernel / "tests/include", source)


def test_uplink_is_the_kernels() -> None:
    """The option, its range, and what the statistics begin with."""
    path = building.NETD.parent / "kernel" / "src" / "include" / "uapi" / "linux" / "drwa_up.h"
    kernel = path.read_text()
    header = (SRC / "drwa" / "DrwaUplink.h").read_text()
    source = (SRC / "drwa" / "DrwaUplink.cpp").read_text()
    options = re.findall(r"^\t_*(TCA_DRWA_UP_\w+)", kernel, re.MULTILINE)
    assert f"kTarget = {options.index('TCA_DRWA_UP_TARGET')};" in source
    assert f"kMux = {options.index('TCA_DRWA_UP_MUX')};" in source
    phases = re.findall(r"^\tDRWA_UP_(\w+),", kernel, re.MULTILINE)
    told = re.search(r"kPhases\[\] = \{(.*?)\}", source, re.DOTALL)
    assert told is not None
    assert re.findall(r'"(\w+)"', told[1]) == [phase.lower() for phase in phases]
    limits = dict(re.findall(r"#define DRWA_UP_TARGET_(MIN|MAX)_US\s+(\d+)", kernel))
    ours = dict(re.findall(r"k(Min|Max)TargetMs = (\d+);", header))
    assert int(limits["MIN"]) <= 1000 * int(ours["Min"])
    assert 1000 * int(ours["Max"]) <= int(limits["MAX"])

    wanted = fields(kernel, "tc_drwa_up_xstats", r"^\t__u(\d+)\t(\w+);")
    read = fields(header, "DrwaUpStats", r"^    uint(\d+)_t (\w+);")
    assert len(read) > 5
    assert read == wanted[: len(read)]
