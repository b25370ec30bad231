# SPDX-License-Identifier: GPL-2.0-only
"""The knob, from a shell in the guest, and what the kernel reports of a governed connection."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import LINES, Run
from drwalab import network, schemes

pytestmark = pytest.mark.guest

SHORT: dict[str, Any] = {"rate": "10mbit", "base_rtt": "20ms", "duration": "6s"}

# Each line ends the guest with its own text when it does not hold. A line that begins with ! would
# not: `sh -e` goes on whatever becomes of it.
SCRIPT = """
phone() { ip netns exec phone "$@"; }
fails() { if "$@"; then echo "succeeds: $*"; exit 1; fi; }
conf=/proc/sys/net/ipv4/conf
knob=$conf/rmnet0/tcp_drwa_lambda
is() { [ "$(phone cat "$1")" = "$2" ] || { echo "$1 is $(phone cat "$1"), not $2"; exit 1; }; }
writes() { phone sh -c "echo '$1' > $knob" || { echo "refuses $1"; exit 1; }; is $knob "$2"; }
refuses() {
	before=$(phone cat $knob)
	fails phone sh -c "/bin/echo '$1' > $knob" 2>error
	grep -q 'Invalid argument' error || { cat error; exit 1; }
	is $knob "$before"
}
"""

CHECKS = {
    "range": """
is $knob 0
for good in 100 101 150 999 1000 0; do writes $good $good; done
writes ' 250 ' 250
for bad in -1 1 50 99 1001 2147483647 99999999999 text 1.5 150x; do refuses "$bad"; done
""",
    "owner": """
writes 150 150
[ "$(phone stat -c '%a %u %g' $knob)" = '644 0 0' ]
other="setpriv --reuid 65534 --regid 65534 --clear-groups"
[ "$(phone $other cat $knob)" = 150 ]
fails phone $other sh -c "echo 0 > $knob" 2>error
grep -q 'Permission denied' error
is $knob 150
""",
    "one for each interface": """
phone ip link add dummy0 type dummy
is $conf/dummy0/tcp_drwa_lambda 0
writes 150 150
is $conf/dummy0/tcp_drwa_lambda 0
for none in lo all default; do fails phone test -e $conf/$none/tcp_drwa_lambda; done
phone test -e $conf/all/forwarding
""",
    "follows a new name": """
phone ip link add dummy0 type dummy
phone sh -c "echo 200 > $conf/dummy0/tcp_drwa_lambda"
phone ip link set dummy0 name other0
is $conf/other0/tcp_drwa_lambda 200
fails phone test -e $conf/dummy0
phone ip link add dummy0 type dummy
is $conf/dummy0/tcp_drwa_lambda 0
""",
    "no name, no knob": """
phone ip link add dummy0 type dummy
phone sh -c "echo 200 > $conf/dummy0/tcp_drwa_lambda"
if phone ip link set dummy0 name all; then
	fails phone grep '^all ' /proc/net/tcp_drwa
	phone ip link set all name dummy0
	is $conf/dummy0/tcp_drwa_lambda 0
else
	is $conf/dummy0/tcp_drwa_lambda 200
fi
""",
    "one queue": """
phone ip link add dummy0 type dummy
is $conf/rmnet0/tcp_drwa_queue 0
for each in rmnet0 dummy0; do phone sh -c "echo 7 > $conf/$each/tcp_drwa_queue"; done
for bad in -1 2147483648 text 1.5; do
	fails phone sh -c "/bin/echo '$bad' > $conf/dummy0/tcp_drwa_queue" 2>error
	grep -q 'Invalid argument' error
	is $conf/dummy0/tcp_drwa_queue 7
done
[ "$(phone stat -c '%a %u %g' $conf/dummy0/tcp_drwa_queue)" = '644 0 0' ]
phone ip link set dummy0 name other0
is $conf/other0/tcp_drwa_queue 7
phone ip link del other0
is $conf/rmnet0/tcp_drwa_queue 7
""",
    "rivals": """
phone ip link add dummy0 type dummy
is $conf/rmnet0/tcp_drwa_rivals 1
for good in 0 1 0; do
	phone sh -c "echo $good > $conf/dummy0/tcp_drwa_rivals"
	is $conf/dummy0/tcp_drwa_rivals $good
done
for bad in -1 2 4294967297 text 0.5; do
	fails phone sh -c "/bin/echo '$bad' > $conf/dummy0/tcp_drwa_rivals" 2>error
	grep -q 'Invalid argument' error
	is $conf/dummy0/tcp_drwa_rivals 0
done
[ "$(phone stat -c '%a %u %g' $conf/dummy0/tcp_drwa_rivals)" = '644 0 0' ]
is $conf/rmnet0/tcp_drwa_rivals 1
phone ip link set dummy0 name other0
is $conf/other0/tcp_drwa_rivals 0
""",
    "what it does": """
[ -z "$(phone cat /proc/net/tcp_drwa)" ]
writes 125 125
phone sh -c "echo 7 > $conf/rmnet0/tcp_drwa_queue"
bins='[0-9]*\\(,[0-9]*\\)\\{13\\}'
line="^rmnet0 lambda=125 queue=7 sockets=0 rounds=0 capped=0 delay_us=$bins rtt_us=$bins"
line="$line rivals=1\\$"
phone grep "$line" /proc/net/tcp_drwa
writes 0 0
phone grep '^rmnet0 lambda=0 queue=7 ' /proc/net/tcp_drwa
""",
    "nothing of who was never on": """
phone ip link add dummy0 type dummy
for value in 0 -1; do phone sh -c "/bin/echo $value > $conf/dummy0/tcp_drwa_lambda" || :; done
phone sh -c "echo 0 > $conf/dummy0/tcp_drwa_queue; echo 1 > $conf/dummy0/tcp_drwa_rivals"
fails phone grep '^dummy0 ' /proc/net/tcp_drwa
writes 150 150
fails phone grep -v '^rmnet0 ' /proc/net/tcp_drwa
fails phone grep '^rmnet0 ' /proc/1/net/tcp_drwa
""",
    "goes with the interface": """
phone ip link add dummy0 type dummy
phone sh -c "echo 200 > $conf/dummy0/tcp_drwa_lambda"
phone grep '^dummy0 lambda=200 ' /proc/net/tcp_drwa
phone ip link del dummy0
fails phone test -e $conf/dummy0
fails phone grep '^dummy0 ' /proc/net/tcp_drwa
phone ip link add dummy0 type dummy
is $conf/dummy0/tcp_drwa_lambda 0
phone sh -c "echo 200 > $conf/dummy0/tcp_drwa_lambda"
phone ip link set dummy0 netns router
fails phone test -e $conf/dummy0
[ "$(ip netns exec router cat $conf/dummy0/tcp_drwa_lambda)" = 0 ]
""",
    "goes with the name space": """
ip netns add short
ip -n short link add dummy0 type dummy
ip netns exec short sh -c "echo 300 > $conf/dummy0/tcp_drwa_lambda"
ip netns exec short sh -c "echo 7 > $conf/dummy0/tcp_drwa_queue"
ip netns del short
""",
}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fails false", ""),
        ("fails test -e /", "succeeds: test -e /\n"),
        ("for each in / /nosuch; do fails test -e $each; done", "succeeds: test -e /\n"),
        ("is /dev/null ''", ""),
        ("is /dev/null x", "/dev/null is , not x\n"),
        ("knob=/dev/null; writes 1 1", "/dev/null is , not 1\n"),
        ("knob=/dev/null; refuses 1", "succeeds: phone sh -c /bin/echo '1' > /dev/null\n"),
    ],
)
def test_a_line_that_does_not_hold_ends_the_script(line: str, said: str, tmp_path: Path) -> None:
    """Without a guest: its shell, and this machine for a phone."""
    script = f'{SCRIPT}\nphone() {{ "$@"; }}\n{line}\necho end\n'
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == ((1, said) if said else (0, "end\n"))


@pytest.mark.parametrize("kernel", LINES)
@pytest.mark.parametrize("name", list(CHECKS))
def test_knob(run: Run, monkeypatch: pytest.MonkeyPatch, name: str, kernel: str) -> None:
    original = network.setup_script
    monkeypatch.setattr(network, "setup_script", lambda r: original(r) + SCRIPT + CHECKS[name])
    run("stock", **SHORT | {"duration": "1s"}, kernel=kernel)


@pytest.mark.parametrize("kernel", LINES)
@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("scheme", ["drwa", "drwa-classic"])
def test_governed(run: Run, scheme: str, kernel: str, ipv6: bool) -> None:
    """Rounds in the tracepoint, counters in /proc/net/tcp_drwa, and a queue that shows it."""
    stock = run("stock", **SHORT, kernel=kernel, ipv6=ipv6)
    assert stock["drwa"] is None or not stock["drwa"]["t_s"]
    assert set(stock["counters"].values()) == {0}
    governed = run(scheme, **SHORT, kernel=kernel, ipv6=ipv6)
    rounds = governed["drwa"]
    assert governed["counters"]["sockets"] == 1
    assert governed["counters"]["rounds"] == len(rounds["t_s"]) > 20
    assert governed["counters"]["capped"] > 100
    assert set(rounds["flow"]) == {0}
    assert min(rounds["path_ms"]) == pytest.approx(20, abs=3)
    assert governed["rtt_ms"]["p50"] == pytest.approx(governed["lambda"] * 20, rel=0.2)
    assert governed["rtt_ms"]["p50"] < stock["rtt_ms"]["p50"] / 2


def test_static_limit_does_not_bind(run: Run) -> None:
    """Neither the buffer nor, at the SYN, the window scale: this path holds 3.75 MB."""
    given: dict[str, Any] = {"rate": "100mbit", "base_rtt": "300ms", "duration": "15s"}
    limits = "static:2MiB"
    limit = schemes.find(limits).rmem[2]
    static = run(limits, **given, buffer="8MB")
    governed = run("drwa", **given, buffer="8MB", limits=limits)
    assert max(static["series"]["rwnd_bytes"]) <= limit
    assert max(governed["series"]["rwnd_bytes"]) > 2 * limit
    assert governed["series"]["goodput_mbps"][-1] > 90
