# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own unit tests under the debug flavour: of the law and its binding,
tcp_drwa_core_test.c and tcp_drwa_test.c, and of the uplink's, drwa_up_test.c, which is a module."""

import re
from pathlib import Path

import pytest

from conftest import SRC, Script
from drwalab.kernels import TEST_MODULE
from test_module import module_of

pytestmark = pytest.mark.guest


def cases(source: Path) -> list[str]:
    return re.findall(r"KUNIT_CASE\((\w+)\)", source.read_text())


LAW_CASES = cases(SRC / "net" / "ipv4" / "tcp_drwa_core_test.c")
CASES = cases(SRC / "net" / "ipv4" / "tcp_drwa_test.c")
GATE_CASES = cases(SRC / "net" / "sched" / "drwa_up_test.c")


def reported(kmsg: str) -> list[tuple[str, str]]:
    return sorted(re.findall(r"^<6> *((?:not )?ok) \d+ (\w+)", kmsg, re.MULTILINE))


@pytest.mark.lines
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_kunit(script: Script, kernel: str) -> None:
    """Every case is reported, and as passed; the guest's kernel has nothing to add."""
    done = script(":", kernel, "debug", parameters="kunit.enable=1 kunit.filter_glob=tcp_drwa*")
    assert len(LAW_CASES) > 20 and len(CASES) > 20
    every = ("tcp_drwa_core", *LAW_CASES, "tcp_drwa", *CASES)
    assert reported(done.kmsg) == sorted(("ok", name) for name in every)


@pytest.mark.lines
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_kunit_of_the_gate(script: Script, kernel: str) -> None:
    module = module_of(kernel, "debug").replace("drwa.ko", TEST_MODULE)
    parameters = "kunit.enable=1 kunit.filter_glob=drwa_up*"
    done = script(f"insmod {module}", kernel, "debug", parameters=parameters)
    assert len(GATE_CASES) == 13
    expected = [("ok", "drwa_up"), *(("ok", case) for case in GATE_CASES)]
    assert reported(done.kmsg) == sorted(expected)
