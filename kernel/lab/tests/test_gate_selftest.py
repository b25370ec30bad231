# SPDX-License-Identifier: GPL-2.0-only
"""The selftest of the uplink's gate, kernel/module/selftest_uplink.sh, in guests."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import Script
from drwalab.kernels import MODULE_DIR, SELFTEST_COMMON
from drwalab.sources import KERNEL_DIR
from test_bpf_selftest import tap
from test_kselftest import Tap, compiled
from test_module import module_of

SCRIPT = MODULE_DIR / "selftest_uplink.sh"
ORDER = MODULE_DIR / "order.py"
(NAMES,) = re.findall(r'^tests="([^"]*)"', SCRIPT.read_text(), re.MULTILINE)
# Built into drwa's kernel, a module of the others; KASAN, lockdep and kmemleak see many turns.
CYCLES = {"6.12 drwa": 5, "6.12 module": 20, "6.1 module": 20, "6.12 module-debug": 1000}

pytestmark = pytest.mark.guest


def tc_part(folder: Path) -> Path:
    """What makes tc know the qdisc."""
    part = folder / "q_drwa_up.so"
    gcc = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    uapi = KERNEL_DIR / "src" / "include" / "uapi"
    source = MODULE_DIR / "tc" / "q_drwa_up.c"
    subprocess.run([*gcc, f"-I{uapi}", "-o", part, source], check=True)
    return part


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(key, marks=[] if key == "6.12 drwa" else [pytest.mark.lines]) for key in CYCLES
    ],
)
def report(
    request: pytest.FixtureRequest, script: Script, tmp_path_factory: pytest.TempPathFactory
) -> Tap:
    line, flavour = request.param.split()
    folder = tmp_path_factory.mktemp("selftest")
    files = [SCRIPT, ORDER, SELFTEST_COMMON, compiled("tcp_drwa", folder), tc_part(folder)]
    text = f"""\
export DRWA_CYCLES={CYCLES[request.param]} DRWA_STORM_S=0.5
./{SCRIPT.name} || :
"""
    if flavour != "drwa":
        gate, dfc = (
            module_of(line, flavour).replace("drwa.ko", name)
            for name in ("sch_drwa_up.ko", "drwa_up_dfc.ko")
        )
        text = f"cp {gate} {dfc} .\n" + text
    return tap(script(text, line, flavour, files).console)


@pytest.mark.parametrize("name", NAMES.split())
def test_selftest(report: Tap, name: str) -> None:
    """Here nothing may be skipped."""
    assert re.fullmatch(rf"ok \d+ {name}", report.get(name, "no report"))
