# SPDX-License-Identifier: Apache-2.0
"""netd's part for kernels without DRWA, on one: its own maps, programs and filters."""

import shutil
from pathlib import Path

import pytest

import building
from drwalab import guest, kernels

pytestmark = pytest.mark.guest

# drwa-bpf loads the programs. What the platform's loader pins is a file of the same maps.
SCRIPT = """
set -e
ip link show dummy0 > /dev/null 2>&1 || ip link add dummy0 type dummy
ip link set dummy0 up
ip addr add 192.0.2.1/24 dev dummy0
ip neigh add 192.0.2.2 dev dummy0 lladdr 02:00:00:00:00:02 nud permanent
./drwa-bpf attach --interface dummy0 --object ./drwa.bpf.o
cd /sys/fs/bpf
for map in devs queues counts; do
	ln drwa/drwa_$map map_drwa_drwa_$map
done
for hook in ingress egress; do
	ln drwa/drwa_$hook prog_drwa_schedcls_${hook}_drwa
done
cd - > /dev/null
./drwa-bpf detach
tc qdisc del dev dummy0 clsact 2> /dev/null || :
./drwa_programs_kernel_test --gtest_color=no || :
echo end of the script
"""


@pytest.fixture(scope="module", params=["6.12", pytest.param("6.1", marks=pytest.mark.lines)])
def console(request: pytest.FixtureRequest) -> str:
    """What the script printed in a guest."""
    try:
        kernel = kernels.find(request.param, "bpf")
    except kernels.KernelMissing as e:
        pytest.skip(str(e))
    made = kernels.bpf()
    files = [made / "drwa-bpf", made / "drwa.bpf.o", building.make("drwa_programs_kernel_test")]
    ended = guest.run_script(SCRIPT, kernel, kernels.agent(), files)
    said = (ended / "console").read_text()
    shutil.rmtree(ended)
    assert "\nend of the script\n" in said, said
    return said


@pytest.mark.parametrize(
    "name", building.gtest_names(Path(__file__).with_name("DrwaProgramsKernelTest.cpp"))
)
def test_programs(console: str, name: str) -> None:
    assert f"[       OK ] {name} (" in console, console
