# SPDX-License-Identifier: GPL-2.0-only
"""drwa-bpf, the loader: what it attaches, tells, refuses and leaves behind."""

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conftest import Ended, Script
from drwalab import kernels
from drwalab.kernels import KernelError

pytestmark = [pytest.mark.guest, pytest.mark.lines]

KERNELS = ("6.12", "6.1")

Loader = Callable[..., Ended]

SETUP = """\
[ ! -d /sys/fs/cgroup ] || mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
ip link add wwan0 type dummy
bpf() { # prints what it says, and how it ends
	./drwa-bpf "$@" && code=0 || code=$?
	echo "[$code]"
}
attach() {
	bpf attach --object ./drwa.bpf.o "$@"
}
pins() {
	echo "pins: $(ls -A /sys/fs/bpf | tr '\\n' ' ')"
}
"""

# A connection over lo, 20 ms away, that gets some data and then nothing.
SILENT = """\
import socket, subprocess, sys
def clamp():
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)
def get(n):
    while n:
        n -= len(client.recv(n))
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
for _ in range(40):
    server.sendall(bytes(60000))
    get(60000)
print("governed", clamp(), flush=True)
subprocess.run(sys.argv[1:], check=True)
print("after", clamp(), flush=True)
"""


# For Python: how many entries the map of sockets has.
ENTRIES = """\
import ctypes, socket, struct, time
BPF, MAP_GET_NEXT_KEY, OBJ_GET = 321, 4, 7
def bpf(command, *words):
    attributes = struct.pack(f"{len(words)}Q", *words).ljust(128, b"\\0")
    return ctypes.CDLL(None).syscall(BPF, command, attributes, len(attributes))
def entries():
    path = ctypes.create_string_buffer(b"/sys/fs/bpf/drwa/drwa_socks")
    found = bpf(OBJ_GET, ctypes.addressof(path))
    assert found >= 0
    key, following, last, count = ctypes.c_uint64(), ctypes.c_uint64(), 0, 0
    while not bpf(MAP_GET_NEXT_KEY, found, last, ctypes.addressof(following)):
        key.value, last, count = following.value, ctypes.addressof(key), count + 1
    return count
"""

# Some that never connect, with an option of their own, and some that do.
SOCKETS = f"""\
{ENTRIES}
sockets = [socket.socket() for _ in range(50)]
for each in sockets:
    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(10):
    sockets += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
print("open", entries())
for each in sockets:
    each.close()
listener.close()
time.sleep(1)
print("closed", entries())
"""


# Many that live for a few bytes, one after the other; half of them end by a reset. It needs a
# function entries() and a listener.
SHORT = """\
import socket, struct, time
def tell():
    time.sleep(1)
    words = dict(line.split(":") for line in open("/proc/meminfo"))
    print("entries", entries(), "slab_kb", words["Slab"].split()[0], flush=True)
RESET = struct.pack("ii", 1, 0)
for number in range(100_001):
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    server.sendall(bytes(100))
    client.recv(100)
    if number % 2:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()
    server.close()
    if number in (10_000, 100_000):
        tell()
"""

# For LD_PRELOAD: a signal follows the call of libbpf's with the number that is told.
SIGNALS = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
static int calls;
#define FOLLOWED(type, name, parameters, arguments) \\
type name parameters \\
{ \\
	static type (*real) parameters; \\
	real = dlsym(RTLD_NEXT, #name); \\
	type ret = real arguments; \\
	if (++calls == atoi(getenv("SIGNAL_AFTER"))) \\
		raise(atoi(getenv("SIGNAL"))); \\
	return ret; \\
}
FOLLOWED(int, bpf_object__load, (void *object), (object))
FOLLOWED(int, bpf_object__pin_maps, (void *object, const char *path), (object, path))
FOLLOWED(void *, bpf_program__attach_cgroup, (void *program, int cgroup), (program, cgroup))
FOLLOWED(int, bpf_link__pin, (void *link, const char *path), (link, path))
"""


@pytest.fixture(scope="module")
def loader(script: Script) -> Loader:
    """As script(), with the loader beside the script and on an unpatched kernel."""

    def boot(text: str, kernel: str, flavour: str = "bpf", more: Sequence[Path] = ()) -> Ended:
        try:
            folder = kernels.bpf()
        except KernelError as e:
            pytest.skip(str(e))
        files = [folder / "drwa-bpf", folder / "drwa.bpf.o", *more]
        return script(SETUP + text, kernel, flavour, files)

    return boot


@pytest.mark.parametrize("kernel", KERNELS)
def test_from_attach_to_detach(loader: Loader, kernel: str) -> None:
    said = loader(
        """
attach --interface wwan0 --lambda 1.25 --queue 7
attach --interface lo --lambda 3
bpf set --interface wwan0 --lambda 1.5
echo; ./drwa-bpf status --json; echo
bpf status
ip link del wwan0
bpf set --interface lo --lambda 0
echo; ./drwa-bpf status --json; echo
bpf detach
pins
bpf status
""",
        kernel,
    ).console
    both, one = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    shown = {each["interface"]: (each["lambda"], each["queue"]) for each in both["interfaces"]}
    assert shown == {"wwan0": (1.5, 7), "lo": (3.0, 0)}
    assert [(each["interface"], each["lambda"]) for each in one["interfaces"]] == [("lo", 0.0)]
    assert re.findall(r"\[(\d+)\]", said) == ["0", "0", "0", "0", "0", "0", "1"]
    assert "pins: \n" in said
    assert "drwa-bpf: nothing is attached" in said


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        ("attach --interface wwan1", 2, "--interface 'wwan1': there is none"),
        ("attach --interface wwan0 --lambda 0.99", 2, "--lambda '0.99': give 1.00 to 10.00"),
        ("attach --interface wwan0 --lambda 10.01", 2, "--lambda '10.01': give 1.00 to 10.00"),
        ("attach --interface wwan0 --lambda x", 2, "--lambda 'x': give 1.00 to 10.00"),
        ("attach --interface wwan0 --queue -1", 2, "--queue '-1': give 0 to 2147483647"),
        ("attach --interface wwan0 --cgroup /none", 2, "--cgroup '/none': No such file"),
        # The maps are pinned by then.
        ("attach --interface wwan0 --cgroup /proc", 1, "cannot attach to /proc"),
        ("attach --interface wwan0 --object /none", 1, "/none: No such file"),
        ("bpf set --interface wwan0 --lambda 2", 1, "nothing is attached"),
        ("bpf detach", 1, "nothing is attached"),
        ("setpriv --reuid=1000 ./drwa-bpf status || echo [$?]", 77, "run it as root"),
    ],
)
def test_refuses_in_a_line(loader: Loader, command: str, code: int, line: str) -> None:
    said = loader(f"{command}\npins\n", "6.12").console.splitlines()
    errors = [each for each in said if each.startswith("drwa-bpf: ")]
    assert len(errors) == 1
    assert errors[0].startswith(f"drwa-bpf: {line}")
    assert f"[{code}]" in said
    assert "pins: " in said


def test_refuses_a_kernel_without_cgroup_bpf(loader: Script) -> None:
    said = loader("attach --interface wwan0\n", "6.12", "base").console
    assert "drwa-bpf: this kernel has no CONFIG_CGROUP_BPF" in said
    assert "[77]" in said


def test_refuses_to_be_the_second_governor(loader: Script) -> None:
    knob = "/proc/sys/net/ipv4/conf/wwan0/tcp_drwa_lambda"
    said = loader(f"echo 125 > {knob}\nattach --interface wwan0\n", "6.12", "drwa").console
    assert f"drwa-bpf: this kernel governs wwan0 itself: write 0 to {knob} first" in said
    assert "[1]" in said


def test_is_for_one_network_name_space(loader: Script) -> None:
    """Interfaces have the same numbers in another one."""
    said = loader(
        """
attach --interface lo
unshare --net ./drwa-bpf set --interface lo --lambda 2 || echo "[$?]"
bpf status
""",
        "6.12",
    ).console
    assert "drwa-bpf: the programs are attached for another network name space" in said
    assert re.findall(r"\[(\d+)\]", said) == ["0", "1", "0"]
    assert re.search(r"^lo +1\.25 ", said, re.MULTILINE)


def test_cleans_up_after_one_that_was_killed(loader: Script) -> None:
    said = loader(
        """
attach --interface lo
mkdir /sys/fs/bpf/drwa-999999
bpf detach
pins
""",
        "6.12",
    ).console
    assert "pins: \n" in said


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("how", ["detach", "set --interface lo --lambda 0"])
def test_silent_connections_are_let_go(loader: Loader, how: str, kernel: str) -> None:
    """The clamp of one that sends nothing more goes at detach."""
    said = loader(
        f"""
tc qdisc add dev lo root netem delay 20ms
attach --interface lo
cat > silent.py <<'PYTHON'
{SILENT}PYTHON
python3 silent.py ./drwa-bpf {how}
""",
        kernel,
    ).console
    governed, after = (
        int(clamp) for clamp in re.findall(r"^(?:governed|after) (\d+)$", said, re.M)
    )
    assert governed < 1 << 20
    assert (after >= 1 << 30) == (how == "detach")


def test_detaches_from_many_interfaces(loader: Script) -> None:
    """Of forty in a table of 64 chains some share one, whose entries a write turns round."""
    said = loader(
        """
attach --interface wwan0
for n in $(seq 40); do
    ip link add many$n type dummy
    ./drwa-bpf set --interface many$n --lambda 1
done
bpf status
bpf detach
pins
""",
        "6.12",
    )
    assert said.console.count("many") == 40
    assert "[0]\n[0]\npins: \n" in said.console


@pytest.mark.parametrize("kernel", KERNELS)
def test_options_of_more_than_a_page_pass(loader: Loader, kernel: str) -> None:
    """What cgroup/setsockopt programs see of an option has one page."""
    option = "socket.SOL_SOCKET, socket.SO_KEEPALIVE, bytes([1]) + bytes(8191)"
    said = loader(
        f"""
attach --interface lo
python3 -c 'import socket; s = socket.socket(); s.setsockopt({option}); print(
	"kept", s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))'
""",
        kernel,
    ).console
    assert "kept 1" in said


@pytest.mark.parametrize("kernel", KERNELS)
def test_closed_sockets_are_forgotten(loader: Loader, kernel: str) -> None:
    said = loader(
        f"""
attach --interface lo
cat > sockets.py <<'PYTHON'
{SOCKETS}PYTHON
python3 sockets.py
""",
        kernel,
    ).console
    assert re.findall(r"^(?:open|closed) (\d+)$", said, re.M) == ["70", "0"]


def test_short_connections_take_no_memory(loader: Script) -> None:
    """Of 100,000 nothing is kept; what the kernel has for all its objects stays as it was."""
    said = loader(
        f"""
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
attach --interface lo
cat > short.py <<'PYTHON'
{ENTRIES}
listener = socket.create_server(("127.0.0.1", 0))
{SHORT}PYTHON
python3 short.py
""",
        "6.12",
    ).console
    found = re.findall(r"^entries (\d+) slab_kb (\d+)$", said, re.M)
    (few, before_kb), (many, after_kb) = [(int(a), int(b)) for a, b in found]
    assert few <= 2
    assert many <= 2
    assert after_kb < before_kb + 512


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_signal_at_any_step_leaves_nothing(loader: Loader, kernel: str, tmp_path: Path) -> None:
    """Of an attach's ten calls of libbpf, one loads, one pins the maps, two are of each program."""
    library = tmp_path / "signals.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
        input=SIGNALS,
        text=True,
        check=True,
    )
    said = loader(
        """
for signal in 1 2 15; do
	for after in 1 2 3 4 5 6 7 8 9 10; do
		SIGNAL=$signal SIGNAL_AFTER=$after LD_PRELOAD=./signals.so attach --interface lo
		pins
	done
done
attach --interface lo
pins
""",
        kernel,
        more=[library],
    ).console
    expected = [line for n in (1, 2, 15) for line in [f"[{128 + n}]", "pins:"] * 10]
    told = [line.strip() for line in said.splitlines() if line.startswith(("[", "pins:"))]
    assert told == [*expected, "[0]", "pins: drwa"]
