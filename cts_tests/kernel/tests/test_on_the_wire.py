# SPDX-License-Identifier: Apache-2.0
"""The kernel-side tests, ../drwa_test.py, in guests whose kernel is the phone's."""

import importlib
import shutil
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from drwalab import guest, kernels

pytestmark = pytest.mark.guest

KERNEL_TESTS = Path(__file__).resolve().parents[1]
MODULE = "drwa_test"

# How the programs come; governors.py attaches them to the tests' interfaces.
ATTACH = """\
mount -t bpf bpf /sys/fs/bpf
export DRWA_TC_LOADER='./drwa-bpf --object ./drwa.bpf.o'
"""

# What a test says that needs something that a line, or a flavour, has not
LACKING = {"5.10": "no /proc/sys/net/ipv4/tcp_shrink_window", "bpf": "not of the BPF programs: "}

# The name of each test that did not pass, and what it said
Report = dict[str, str]


def names() -> Iterator[str]:
    """The tests as Android's runner finds them."""
    sys.path.insert(0, str(KERNEL_TESTS))
    found = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(MODULE))
    sys.path.pop(0)
    for suite in found:
        assert isinstance(suite, unittest.TestSuite)
        for test in suite:
            assert isinstance(test, unittest.TestCase)
            yield test.id().removeprefix(f"{MODULE}.")


NAMES = list(names())


def run(line: str, flavour: str) -> Report:
    """What became of each test in a guest, "" for those that passed."""
    try:
        kernel = kernels.find(line, flavour)
    except kernels.KernelMissing as e:
        pytest.skip(str(e))
    options = '-c /dev/null -p no:cacheprovider --rootdir="$TMPDIR" --junitxml=report.xml'
    # This machine may have no tun, nor a node for the guest's.
    script = (
        "mount -t devtmpfs devtmpfs /dev\nexport DRWA_VIRTUAL_TIME=1\n"
        f"'{sys.executable}' -B -m pytest {options} --color=no --tb=short {MODULE}.py || :\n"
    )
    files = [KERNEL_TESTS / f"{name}.py" for name in (MODULE, "governors", "tun_peer")]
    if flavour == "bpf":
        files += [kernels.bpf() / name for name in ("drwa-bpf", "drwa.bpf.o")]
        script = ATTACH + script
    folder = guest.run_script(script, kernel, kernels.agent(), files)
    said = (folder / "console").read_text(errors="replace")
    assert (folder / "report.xml").exists(), said
    cases = list(ElementTree.parse(folder / "report.xml").iter("testcase"))
    shutil.rmtree(folder)
    results = {}
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        problems = [child for child in case if child.tag in ("failure", "error", "skipped")]
        results[name] = "\n".join(f"{p.get('message')}\n{p.text or ''}" for p in problems)
    return results


OTHERS = ("5.10 drwa", "6.1 drwa", "7.3 drwa", "6.1 bpf", "6.12 bpf", "7.3 bpf")


@pytest.fixture(
    scope="module",
    params=["6.12 drwa", *(pytest.param(name, marks=pytest.mark.lines) for name in OTHERS)],
)
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def report(kernel: str) -> Report:
    return run(*kernel.split())


@pytest.mark.parametrize("name", NAMES)
def test_on_the_wire(kernel: str, report: Report, name: str) -> None:
    """Here nothing may be skipped but what the kernel cannot have."""
    said = report[name]
    if any(said.startswith(LACKING[each]) for each in kernel.split() if each in LACKING):
        pytest.skip(said.splitlines()[0])
    assert said == ""


def test_all_is_reported(report: Report) -> None:
    assert len(NAMES) > 70
    assert sorted(report) == sorted(NAMES)


def test_a_kernel_without_the_knob_is_the_reason() -> None:
    """As on a phone whose kernel lacks DRWA."""
    skipped = run("6.12", "base")
    assert sorted(skipped) == sorted(NAMES)
    assert all("this kernel lacks DRWA: no /proc/sys/net/ipv4/conf/" in s for s in skipped.values())
