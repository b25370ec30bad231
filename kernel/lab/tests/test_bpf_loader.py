# SPDX-License-Identifier: GPL-2.0-only
"""drwa-bpf on kernels of its own: those that take the programs, and those that do not.

What the loader does on any of them is tested on the kernel that runs, in kernel/bpf/tests.
"""

import json
import re
from collections.abc import Callable

import pytest

from conftest import Ended, Script
from drwalab import kernels
from drwalab.kernels import KernelError

pytestmark = pytest.mark.guest

Loader = Callable[..., Ended]

SETUP = """\
ip link add wwan0 type dummy
bpf() { # prints what it says, and how it ends
	./drwa-bpf "$@" && code=0 || code=$?
	echo "[$code]"
}
attach() {
	bpf attach --object ./drwa.bpf.o "$@"
}
"""


@pytest.fixture(scope="module")
def loader(script: Script) -> Loader:
    """As script(), with the loader beside the script and on an unpatched kernel."""

    def boot(text: str, kernel: str, flavour: str = "bpf") -> Ended:
        try:
            folder = kernels.bpf()
        except KernelError as e:
            pytest.skip(str(e))
        return script(SETUP + text, kernel, flavour, [folder / "drwa-bpf", folder / "drwa.bpf.o"])

    return boot


@pytest.mark.lines
@pytest.mark.parametrize("kernel", ["6.12", "6.1", "7.3"])
def test_from_attach_to_detach(loader: Loader, kernel: str) -> None:
    said = loader(
        """
ip link add wwan1 type dummy
attach --interface wwan0 --queue 7
attach --interface wwan1 --lambda 3
bpf set --interface wwan0 --lambda 1.5
echo; ./drwa-bpf status --json; echo
bpf status
ip link del wwan0
bpf set --interface wwan1 --lambda 0
echo; ./drwa-bpf status --json; echo
bpf detach
echo "left: $(ls -A /sys/fs/bpf) $(tc filter show dev wwan1 ingress)"
bpf status
""",
        kernel,
    ).console
    both, one = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    shown = {each["interface"]: (each["lambda"], each["queue"]) for each in both["interfaces"]}
    assert shown == {"wwan0": (1.5, 7), "wwan1": (3.0, 0)}
    assert [(each["interface"], each["lambda"]) for each in one["interfaces"]] == [("wwan1", 0.0)]
    assert re.findall(r"\[(\d+)\]", said) == ["0", "0", "0", "0", "0", "0", "1"]
    assert "left:  \n" in said
    assert "drwa-bpf: nothing is attached" in said


def test_refuses_a_kernel_without_programs(loader: Loader) -> None:
    """In a line, and nothing is left."""
    said = loader("attach --interface wwan0\n", "6.12", "base").console
    errors = [line for line in said.splitlines() if line.startswith("drwa-bpf: ")]
    assert len(errors) == 1
    assert "[77]" in said


def test_refuses_to_be_the_second_governor(loader: Loader) -> None:
    knob = "/proc/sys/net/ipv4/conf/wwan0/tcp_drwa_lambda"
    said = loader(f"echo 125 > {knob}\nattach --interface wwan0\n", "6.12", "drwa").console
    assert f"drwa-bpf: this kernel governs wwan0 itself: write 0 to {knob} first" in said
    assert "[1]" in said
