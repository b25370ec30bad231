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
    files = [SCRIPT, SELFTEST_COMMON, compiled("tcp_drwa", folder), tc_part(folder)]
    text = f"""\
export DRWA_CYCLES={CYCLES[request.param]} DRWA_STORM_S=0.5
./{SCRIPT.name} || :
"""
    if flavour != "drwa":
        text = f"cp {module_of(line, flavour).replace('drwa.ko', 'sch_drwa_up.ko')} .\n" + text
    return tap(script(text, line, flavour, files).console)


@pytest.mark.parametrize("name", NAMES.split())
def test_selftest(report: Tap, name: str) -> None:
    """Here nothing may be skipped."""
    assert re.fullmatch(rf"ok \d+ {name}", report.get(name, "no report"))


# An upload holds the gate shut; beside it, one flow of UDP mixes sizes, as QUIC does that also
# downloads, and one of short packets alone is a call.
MIXED = """\
set -e
for name in server phone modem; do ip netns add $name; done
ip link add srv0 netns server type veth peer name m1 netns modem
ip link add cell0 netns phone type veth peer name m0 netns modem
set -- server srv0 78 1 modem m1 78 2 modem m0 77 1 phone cell0 77 2
while [ $# != 0 ]; do
    ip -n $1 link set $2 gso_max_segs 1 up
    ip -n $1 addr add 10.$3.0.$4/24 dev $2
    shift 4
done
ip -n server route add default via 10.78.0.2
ip -n phone route add default via 10.77.0.1
ip netns exec modem sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip netns exec modem tc qdisc add dev m1 root netem rate 10mbit delay 40ms limit 400
ip netns exec phone tc qdisc replace dev cell0 root handle 1: drwa_up
cat >ends.py <<'END'
import socket, struct, sys, threading, time

SERVER = "10.78.0.1"
SIZES = {5001: (1200, 40), 5002: (40,)}


def take(port):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((SERVER, port))
    end.settimeout(6)
    highest, late, waits = -1, 0, []
    try:
        while True:
            number, sent_s = struct.unpack("!Id", end.recv(2000)[:12])
            late += number < highest
            highest = max(highest, number)
            waits.append(time.monotonic() - sent_s)
    except TimeoutError:
        print(f"{port} late {late} of {len(waits)} mean_ms {sum(waits) / len(waits) * 1e3:.0f}")


def swallow():
    listening = socket.create_server((SERVER, 5000))
    upload, _ = listening.accept()
    while upload.recv(1 << 16):
        pass


def send(port):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((SERVER, port))
    for number in range(600):
        size = SIZES[port][number % len(SIZES[port])]
        end.send(struct.pack("!Id", number, time.monotonic()).ljust(size, bytes(1)))
        if number % 8 == 7:
            time.sleep(0.03)


def upload():
    end = socket.create_connection((SERVER, 5000))
    until = time.monotonic() + 6
    while time.monotonic() < until:
        end.send(bytes(1 << 14))


work = {"server": [swallow], "phone": [upload]}
calls = [threading.Thread(target=each) for each in work[sys.argv[1]]]
if sys.argv[1] == "phone":
    for call in calls:
        call.start()
    time.sleep(2)
calls += [
    threading.Thread(target=take if sys.argv[1] == "server" else send, args=(port,))
    for port in SIZES
]
for call in calls:
    if not call.ident:
        call.start()
for call in calls:
    call.join()
END
ip netns exec server python3 ends.py server >said &
sleep 1
ip netns exec phone python3 ends.py phone
wait
cat said
"""


def test_no_packet_overtakes_another_of_its_flow(script: Script) -> None:
    said = script(MIXED, "6.12", "drwa").console
    found = {
        int(port): (int(late), int(count), int(wait_ms))
        for port, late, count, wait_ms in re.findall(
            r"(\d+) late (\d+) of (\d+) mean_ms (\d+)", said
        )
    }
    assert sorted(found) == [5001, 5002], said
    (mixed_late, mixed, mixed_ms), (call_late, call, call_ms) = found[5001], found[5002]
    assert mixed > 500 and call > 500
    assert (mixed_late, call_late) == (0, 0)
    # The gate was shut, and who is short alone did not wait there.
    assert mixed_ms > call_ms + 2
