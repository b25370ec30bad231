# SPDX-License-Identifier: Apache-2.0
"""netd's part on the lab's kernels: their own knob, and their own inet_diag with a download."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import building
from drwalab import guest, kernels

pytestmark = pytest.mark.guest

RATE_MBPS = 4.0
BASE_RTT_MS = 40

SCRIPT = f"""
set -e
for host in server phone; do
	ip netns add $host
	ip -n $host link set lo up
done
ip link add srv0 netns server gso_max_segs 1 type veth peer name rmnet0 netns phone
ip -n server addr add 10.0.0.1/24 dev srv0
ip -n phone addr add 10.0.0.2/24 dev rmnet0
ip -n phone link add dummy0 type dummy
ip -n server link set srv0 up
ip -n phone link set rmnet0 up
half='delay {BASE_RTT_MS // 2}ms'
tc -n server qdisc add dev srv0 root netem rate {RATE_MBPS}mbit $half limit 1000
tc -n phone qdisc add dev rmnet0 root netem $half

phone() {{ ip netns exec phone "$@"; }}
ip netns exec server python3 server.py &
sleep 1

download() {{
	ip netns exec phone python3 phone.py &
	downloading=$!
	sleep 10
}}
watch() {{ # file
	# A shell lets what it starts in the background ignore SIGINT.
	ip netns exec phone env --default-signal=INT ./drwactl --json watch --interval=2000 > "$1" &
	watching=$!
	sleep 5
	kill -INT $watching
	wait $watching || echo "watch: exit $?"
	echo "$1 $(tr '\\n' ' ' < "$1")"
}}
download
phone ./drwa_kernel_test --gtest_color=no || :
watch stock
phone sh -c 'mount -t tracefs tracefs /sys/kernel/tracing; ./drwactl modem'
kill $downloading
# Until the queue is empty
sleep 10
phone ./drwactl set rmnet0=125@100 dummy0=200@100
download
watch governed
phone ./drwactl show dummy0
phone ./drwactl show rmnet0
refused() {{ ! phone "$@"; }}
refused ./drwactl set rmnet0=0 nosuch0=150
refused setpriv --reuid 65534 --clear-groups ./drwactl set rmnet0=0
phone setpriv --reuid 65534 --clear-groups ./drwactl show dummy0
echo end of the script
"""

SERVER = """
import contextlib
import socket
with socket.create_server(("10.0.0.1", 5001)) as listener:
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            while True:
                connection.sendall(bytes(65536))
"""

# The SYN of the first connection waits for ARP.
PHONE = """
import socket
socket.create_connection(("10.0.0.1", 5001)).close()
connection = socket.create_connection(("10.0.0.1", 5001))
while connection.recv(65536):
    pass
"""


@pytest.fixture(scope="module", params=["6.12", pytest.param("6.1", marks=pytest.mark.lines)])
def line(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture(scope="module")
def console(line: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the script printed in a guest."""
    try:
        kernel = kernels.find(line, "drwa")
    except kernels.KernelMissing as e:
        pytest.skip(str(e))
    folder = tmp_path_factory.mktemp("guest")
    (folder / "server.py").write_text(SERVER)
    (folder / "phone.py").write_text(PHONE)
    files = [*folder.iterdir(), building.make("drwactl"), building.make("drwa_kernel_test")]
    ended = guest.run_script(SCRIPT, kernel, kernels.agent(), files)
    said = (ended / "console").read_text()
    shutil.rmtree(ended)
    assert "\nend of the script\n" in said, said
    return said[: said.index("end of the script")]


@pytest.mark.parametrize(
    "name", building.gtest_names(Path(__file__).with_name("DrwaKernelTest.cpp"))
)
def test_controller(console: str, name: str) -> None:
    assert f"[       OK ] {name} (" in console, console


def looks(console: str, name: str) -> list[dict[str, Any]]:
    """rmnet0 with the download, as `drwactl watch` saw it in each of its looks before Ctrl-C."""
    found = re.search(rf"^{name} (.*)$", console, re.MULTILINE)
    assert found is not None
    decoder = json.JSONDecoder()
    values, text = [], found[1].strip()
    while text:
        interfaces, end = decoder.raw_decode(text)
        assert [one["interface"] for one in interfaces] == ["dummy0", "rmnet0"]
        assert interfaces[0]["connections"] == []
        assert len(interfaces[1]["connections"]) == 1
        values.append(interfaces[1])
        text = text[end:].strip()
    return values


def test_watch(console: str, line: str) -> None:
    stock, governed = (
        [look["connections"][0] for look in looks(console, name)] for name in ("stock", "governed")
    )
    assert len(stock) == len(governed) == 2
    for look in stock + governed:
        assert look["remote"] == "10.0.0.1:5001"
        assert look["rate_bps"] == pytest.approx(RATE_MBPS * 1e6, rel=0.15)
        assert look["window_is_limit"] == (line == "6.1")
        assert look["min_rtt_us"] == pytest.approx(BASE_RTT_MS * 1000, rel=0.2)
        assert look["queue_min_us"] <= look["queue_max_us"]
    if line != "6.1":
        path_bytes = RATE_MBPS * 1e6 / 8 * BASE_RTT_MS / 1000
        assert governed[-1]["window_bytes"] < 2 * path_bytes
        assert governed[-1]["queue_max_us"] < stock[-1]["queue_max_us"] / 4
    assert "watch: exit" not in console


def test_counters(console: str) -> None:
    """What the kernel counts while it is on: a round for each RTT, nearly all of a short queue."""
    off, on = looks(console, "stock"), looks(console, "governed")
    assert off[0]["counters"] == off[1]["counters"]
    before, after = (look["counters"] for look in on)
    assert [look["queue"] for look in off + on] == [0, 0, 100, 100]
    starts_us = after["bin_start_us"]
    assert starts_us[:3] == [0, 1024, 2048]
    new = {
        name: [b - a for a, b in zip(before[name], after[name], strict=True)]
        for name in ("delay_rounds", "rtt_rounds")
    }
    rounds = after["rounds"] - before["rounds"]
    # In the two seconds between the looks
    assert rounds == pytest.approx(2000 / BASE_RTT_MS, rel=0.5)
    for bins in new.values():
        assert len(bins) == len(starts_us)
        assert 0.8 * rounds <= sum(bins) <= rounds
    assert sum(new["delay_rounds"][: starts_us.index(32768)]) > 0.9 * sum(new["delay_rounds"])
    assert new["rtt_rounds"][starts_us.index(32768)] > 0.9 * sum(new["rtt_rounds"])
    assert after["capped"] > before["capped"]


def test_modem(console: str) -> None:
    """The lab's own driver is built in, and so is what hears it; its links use no BQL."""
    assert (
        "\ndfc_flow_ind=yes dfc_adjust_grant=yes dfc_flow_check=yes rmnet_qmap_send=yes "
        "drwa_up_dfc=yes\n" in console
    )
    # The far end is in another name space, whose numbers are others.
    for name in "dummy0", "rmnet0":
        assert re.search(rf"^{name} queues=\d+ bql=none$", console, re.MULTILINE)


def test_set(console: str) -> None:
    """The last lines: λ and the queue as set, and as before after what was refused."""
    lines = console.splitlines()
    assert lines[-3:] == [
        "drwactl: Cannot read lambda of nosuch0: No such device",
        "drwactl: Cannot set lambda of rmnet0: Permission denied",
        "dummy0 lambda=200 queue=100",
    ]
    shown = lines[lines.index("dummy0 lambda=200 queue=100") : -3]
    assert shown[1] == "rmnet0 lambda=125 queue=100"
    assert re.fullmatch(r"  connections=\d+ rounds=\d+ capped=\d+", shown[2])
    assert re.fullmatch(r"  queueing delay: p50<\d+\.\dms p95<\S+ p99\S+", shown[3])
    assert re.fullmatch(r"  RTT without it: p50<65\.5ms p95\S+ p99\S+", shown[4])
