# SPDX-License-Identifier: GPL-2.0-only
"""The programs' selftest, kernel/bpf/selftest.sh, in guests."""

import re

import pytest

from conftest import Script
from drwalab import kernels
from drwalab.kernels import BPF_DIR, SELFTEST_COMMON, KernelError
from test_kselftest import Tap, compiled

pytestmark = [pytest.mark.guest, pytest.mark.lines]

SCRIPT = BPF_DIR / "selftest.sh"
(NAMES,) = re.findall(r'^tests="([^"]*)"', SCRIPT.read_text(), re.MULTILINE)
# KASAN, lockdep and kmemleak see many turns.
CYCLES = {"6.12 bpf": 20, "6.1 bpf": 20, "7.3 bpf": 20, "6.12 debug": 1000}

# BPF_COMPLEXITY_LIMIT_INSNS: what the verifier follows of a program
VERIFIER_LIMIT = 1_000_000


@pytest.fixture(scope="module", params=list(CYCLES))
def said(
    request: pytest.FixtureRequest, script: Script, tmp_path_factory: pytest.TempPathFactory
) -> str:
    try:
        made = kernels.bpf()
    except KernelError as e:
        pytest.skip(str(e))
    tool = compiled("tcp_drwa", tmp_path_factory.mktemp("selftest"))
    files = [SCRIPT, SELFTEST_COMMON, made / "drwa-bpf", made / "drwa.bpf.o", tool]
    text = f"""\
export DRWA_CYCLES={CYCLES[request.param]} DRWA_STORM_S=0.5
./selftest.sh || :
"""
    return script(text, *request.param.split(), files).console


def tap(said: str) -> Tap:
    """The report on each test, by its name."""
    found = re.findall(r"^((?:not )?ok \d+ (\w+).*)", said, re.MULTILINE)
    return {name: line for line, name in found}


@pytest.mark.parametrize("name", NAMES.split())
def test_selftest(said: str, name: str) -> None:
    """Here nothing may be skipped."""
    assert re.fullmatch(rf"ok \d+ {name}", tap(said).get(name, "no report"))


def test_the_verifier_is_far_from_its_limit(said: str) -> None:
    """5 %: no line is near refusing the programs, and no phone waits for them at boot."""
    counts = re.findall(r'"verified_instructions": (\d+)', said)
    assert len(counts) == 2
    assert 1000 < max(map(int, counts)) <= VERIFIER_LIMIT // 20
