# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own unit tests, net/ipv4/tcp_drwa_test.c, under the debug flavour."""

import re

import pytest

from conftest import SRC, Script

pytestmark = pytest.mark.guest

CASES = re.findall(r"KUNIT_CASE\((\w+)\)", (SRC / "net" / "ipv4" / "tcp_drwa_test.c").read_text())


@pytest.mark.lines
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_kunit(script: Script, kernel: str) -> None:
    """Every case is reported, and as passed; the guest's kernel has nothing to add."""
    done = script(":", kernel, "debug", parameters="kunit.enable=1 kunit.filter_glob=tcp_drwa*")
    reported = re.findall(r"^<6> *((?:not )?ok) \d+ (\w+)", done.kmsg, re.MULTILINE)
    assert len(CASES) > 20
    suites = [("ok", "tcp_drwa_core"), ("ok", "tcp_drwa")]
    assert sorted(reported) == sorted([*suites, *(("ok", case) for case in CASES)])
