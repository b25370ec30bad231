# SPDX-License-Identifier: GPL-2.0-only
"""The loader of the tc programs, on the kernel that runs: each test in name spaces of its own."""

import json
import os
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from objects import changed, why_not

BPF = Path(__file__).resolve().parents[1]
FAILED, WRONG, CANNOT = 1, 2, 77

# A network, and a BPF file system, that nobody else sees
PRELUDE = """\
set -eu
mount -t bpf bpf /sys/fs/bpf
bpf() { "$OUT/drwa-bpf" --object "$OUT/drwa.bpf.o" "$@"; }
wwan() { ip link add "$1" type veth peer name "p$1" && ip link set "$1" up; }
filters() { for at in ingress egress; do tc filter show dev "$1" $at; done | grep -c drwa_ || :; }
tcx() { # how many programs an interface's own lists have, of Linux 6.6
    python3 -c "
import ctypes, os, socket, struct, sys
BPF, QUERY, INGRESS, EGRESS = {'x86_64': 321, 'aarch64': 280}[os.uname().machine], 16, 46, 47
count = 0
for hook in INGRESS, EGRESS:
    attributes = struct.pack('6IQQ', socket.if_nametoindex(sys.argv[1]), hook, *[0] * 6)
    attributes = ctypes.create_string_buffer(attributes.ljust(128, bytes(1)), 128)
    if not ctypes.CDLL(None).syscall(BPF, QUERY, attributes, 128):
        count += struct.unpack_from('I', attributes, 24)[0]
print(count)
" "$1"
}
programs() { echo $(($(filters "$1") + $(tcx "$1"))); }
qdisc() { tc qdisc show dev "$1" | grep -c clsact || :; }
waits() { # until what is so
    for _ in $(seq 100); do
        if eval "$1"; then return 0; fi
        sleep 0.05
    done
    echo "never: $1" >&2
    return 1
}
"""


# To an interface's own lists, which Linux has since 6.6, and as filters
WAYS = ["", "--priority 1"]
HAS_TCX = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 6)


# What a map holds: the value of each entry, in hexadecimal
DUMP = """\
dump() { # its name, and the length of its keys
    python3 -c "
import ctypes, os, struct, sys
BPF = {'x86_64': 321, 'aarch64': 280}[os.uname().machine]
LOOKUP, NEXT_KEY, OBJ_GET, INFO = 1, 4, 7, 15
def bpf(command, *words):
    attributes = struct.pack(f'{len(words)}Q', *words).ljust(128, bytes(1))
    return ctypes.CDLL(None).syscall(BPF, command, attributes, len(attributes))
name, length = sys.argv[1:]
path = ctypes.create_string_buffer(f'/sys/fs/bpf/drwa/{name}'.encode())
there = bpf(OBJ_GET, ctypes.addressof(path))
assert there >= 0
# struct bpf_map_info: type, id, size of keys and of values
info = ctypes.create_string_buffer(16)
assert not bpf(INFO, there | len(info) << 32, ctypes.addressof(info))
key, last = ctypes.create_string_buffer(int(length)), 0
value = ctypes.create_string_buffer(struct.unpack('4I', info)[3])
while not bpf(NEXT_KEY, there, last, ctypes.addressof(key)):
    last = ctypes.addressof(key)
    if not bpf(LOOKUP, there, last, ctypes.addressof(value)):
        print(value.raw.hex())
" "$@"
}
# Of connections, with those that status does not tell
entries() { dump drwa_flows 8 | wc -l; }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bpf")
    subprocess.run(["make", "--silent", f"--directory={BPF}", f"OUT={out}"], check=True)
    return out


@pytest.fixture(autouse=True)
def bpf() -> None:
    why = why_not()
    if why:
        pytest.skip(why)


def run(built: Path, script: str, seconds: int = 120) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--net", "--mount", "--pid", "--kill-child", "sh", "-c", PRELUDE + script]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env={"OUT": str(built), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def said(built: Path, script: str, seconds: int = 120) -> str:
    done = run(built, script, seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_is_installed_and_taken_out(built: Path, tmp_path: Path) -> None:
    """The command looks for its object where that is, also if it was made for another place."""
    make = ["make", "--silent", f"--directory={BPF}", f"OUT={built}", f"DESTDIR={tmp_path}"]
    subprocess.run([*make, "install", "PREFIX=/usr"], check=True)
    command = tmp_path / "usr/sbin/drwa-bpf"
    assert "/usr/lib/drwa/drwa.bpf.o" in subprocess.check_output([command, "-h"], text=True).split()
    assert "=/usr/sbin/" in (tmp_path / "usr/lib/systemd/system/drwa-bpf.service").read_text()
    subprocess.run([*make, "uninstall", "PREFIX=/usr"], check=True)
    assert not [each for each in tmp_path.rglob("*drwa*")]
    # To take out what is not there is no error.
    subprocess.run([*make, "uninstall", "PREFIX=/usr"], check=True)
    # Made again, it is not compiled again.
    subprocess.run(make, check=True)
    made = (built / "drwa-bpf").stat().st_mtime_ns
    subprocess.run(make, check=True)
    assert (built / "drwa-bpf").stat().st_mtime_ns == made


@pytest.mark.parametrize("way", WAYS)
def test_comes_and_goes(built: Path, way: str) -> None:
    script = f"""\
wwan wwan0
bpf attach --interface wwan0 {way}
echo $(programs wwan0) $(qdisc wwan0)
bpf status --json
bpf detach
echo $(programs wwan0) $(qdisc wwan0) $(ls /sys/fs/bpf | grep -c drwa)
"""
    before, status, after = said(built, script).splitlines()
    assert (before, after) == ("2 0" if HAS_TCX and not way else "2 1", "0 0 0")
    found = json.loads(status)
    (dev,) = found["interfaces"]
    assert (dev["interface"], dev["lambda"], dev["attached"]) == ("wwan0", 1.25, True)
    assert found["connections"] == []
    assert [p["program"] for p in found["programs"]] == ["drwa_ingress", "drwa_egress"]


def test_names_are_quoted(built: Path) -> None:
    script = """\
wwan 'ww"\\0'
bpf attach --interface 'ww"\\0'
bpf status --json
"""
    (dev,) = json.loads(said(built, script))["interfaces"]
    assert dev["interface"] == 'ww"\\0'


def test_detaches_one(built: Path) -> None:
    script = """\
for i in 0 1 2; do wwan wwan$i; bpf attach --interface wwan$i; done
bpf detach --interface wwan1
for i in 0 1 2; do echo $(programs wwan$i); done
bpf status --interface wwan1 || echo $?
bpf status --interface wwan2 | grep -c ^wwan
"""
    assert said(built, script).splitlines() == ["2", "0", "2", "1", "1"]


def test_takes_away_what_is_gone(built: Path) -> None:
    """README.md's two steps, the first of which ends watch."""
    script = """\
wwan wwan0
"$OUT/drwa-bpf" watch --interface 'ww*' --object "$OUT/drwa.bpf.o" >/dev/null &
watch=$!
waits '[ $(programs wwan0) = 2 ]'
kill $watch
wait $watch
bpf detach
echo $? $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
"""
    assert said(built, script) == "0 0 0\n"


def test_pins_do_not_outlive_their_use(built: Path) -> None:
    """Of a modem that was unplugged before watch ended, or before another attach, which could be of
    another version."""
    script = """\
wwan wwan0
"$OUT/drwa-bpf" watch --interface 'ww*' --object "$OUT/drwa.bpf.o" >/dev/null &
watch=$!
waits '[ $(programs wwan0) = 2 ]'
ip link del wwan0
kill $watch
wait $watch
echo $(ls /sys/fs/bpf | grep -c drwa)
wwan wwan0
bpf attach --interface wwan0
ip link del wwan0
wwan wwan0
bpf attach --interface wwan0 --object /nowhere 2>/dev/null || echo $?
bpf attach --interface wwan0
wwan wwan1
bpf attach --interface wwan1 --object /nowhere
bpf status | grep -c '^wwan'
"""
    assert said(built, script).splitlines() == ["0", str(FAILED), "2"]


# Counters as another version could have them
OTHER_PIN = """\
other_pin() {
    rm /sys/fs/bpf/drwa/drwa_counts
    python3 -c "
import ctypes, os, struct
BPF = {'x86_64': 321, 'aarch64': 280}[os.uname().machine]
CREATE, PIN, ARRAY = 0, 6, 2
def bpf(command, words):
    return ctypes.CDLL(None).syscall(BPF, command, words.ljust(128, bytes(1)), 128)
made = bpf(CREATE, struct.pack('4I', ARRAY, 4, 8192, 64))
path = ctypes.create_string_buffer(b'/sys/fs/bpf/drwa/drwa_counts')
assert not bpf(PIN, struct.pack('QI', ctypes.addressof(path), made))
"
}
"""


@pytest.mark.parametrize("way", [*WAYS, "--priority 7"])
def test_pins_of_another_version(built: Path, way: str) -> None:
    """It says what to do, which takes all away; and where nobody is attached, does that itself."""
    script = f"""\
{OTHER_PIN}
wwan wwan0
wwan wwan1
bpf attach --interface wwan0 {way}
other_pin
bpf status 2>&1 || echo $?
bpf attach --interface wwan1 2>&1 || echo $?
bpf detach
echo $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
bpf attach --interface wwan0 {way}
other_pin
ip link del wwan0
bpf attach --interface wwan1
programs wwan1
"""
    why = "drwa-bpf: programs of another version are attached: drwa-bpf detach"
    assert said(built, script).splitlines() == [why, "1", why, "1", "0 0", "2"]


def test_sets(built: Path) -> None:
    script = """\
wwan wwan0
wwan wwan1
bpf attach --interface wwan0 --queue 7
bpf attach --interface wwan1 --queue 7 --lambda 2
bpf set --interface wwan0 --lambda 0
bpf status --json
"""
    devs = {d["interface"]: d for d in json.loads(said(built, script))["interfaces"]}
    assert [devs[name]["lambda"] for name in ("wwan0", "wwan1")] == [0, 2]
    assert {d["queue"] for d in devs.values()} == {7}


def test_leaves_a_queue(built: Path) -> None:
    """The first of it, too; the others keep it, and what it knows."""
    script = f"""\
{DUMP}
for i in 0 1 2; do wwan wwan$i; bpf attach --interface wwan$i --queue 7; done
for number in 0 7 8 0; do
    bpf set --interface wwan0 --queue $number
    dump drwa_devs 4
done
"""
    # struct drwa_dev
    devs = [struct.unpack_from("4I", bytes.fromhex(line)) for line in said(built, script).split()]
    for i, first in enumerate([0, 7, 8, 0]):
        queues: dict[int, set[int]] = {}
        for _, number, _, queue in devs[3 * i : 3 * i + 3]:
            queues.setdefault(number, set()).add(queue)
        assert set(queues) == {first, 7}
        assert len(queues[7]) == 1
        assert first == 7 or queues[first].isdisjoint(queues[7])
    # One that is alone in its queue stays there.
    (eight,) = {queue for _, number, _, queue in devs[6:9] if number == 8}
    assert eight == next(queue for _, number, _, queue in devs[9:] if number == 0)


def test_udp_is_held_where_asked_for(built: Path) -> None:
    script = """\
wwan wwan0
wwan wwan1
bpf attach --interface wwan0 --aqm on
bpf attach --interface wwan1
bpf set --interface wwan1 --aqm tunnels
bpf status --json
bpf status | grep -c 'aqm .*: 0 flows held, 0 packets dropped.* queue in ms: not known'
bpf set --interface wwan0 --aqm off
bpf attach --interface wwan1
bpf status --json
"""
    lines = said(built, script).splitlines()
    first, count, second = json.loads(lines[0]), lines[1], json.loads(lines[2])
    how = {d["interface"]: d["aqm"] for d in first["interfaces"]}
    assert how == {"wwan0": "on", "wwan1": "tunnels"}
    nothing = {"flows": 0, "dropped": 0, "deaf": 0, "tunnels": 0}
    assert all(d["udp"] == nothing and d["lambda"] == 1.25 for d in first["interfaces"])
    assert {d["delay_ms"] for d in first["interfaces"]} == {None}
    assert count == "2"
    # Neither λ nor an attach that does not say so changes it.
    how = {d["interface"]: d["aqm"] for d in second["interfaces"]}
    assert how == {"wwan0": "off", "wwan1": "tunnels"}


def test_anothers_qdisc_stays(built: Path) -> None:
    script = """\
wwan wwan0
tc qdisc add dev wwan0 clsact
bpf attach --interface wwan0 --priority 1
bpf detach
echo $(qdisc wwan0)
"""
    assert said(built, script) == "1\n"


def test_ones_own_qdisc_stays_for_others(built: Path) -> None:
    script = """\
wwan wwan0
bpf attach --interface wwan0 --priority 1
tc filter add dev wwan0 egress prio 9 protocol ip u32 match ip protocol 17 0xff flowid 1:1
bpf detach
echo $(programs wwan0) $(qdisc wwan0) $(tc filter show dev wwan0 egress | grep -c u32)
"""
    assert said(built, script).startswith("0 1 ")


def test_a_priority_that_is_taken(built: Path) -> None:
    """Nothing is left, and it says what to do."""
    script = """\
wwan wwan0
tc qdisc add dev wwan0 clsact
tc filter add dev wwan0 egress prio 1 protocol ip u32 match ip protocol 17 0xff flowid 1:1
bpf attach --interface wwan0 --priority 1 2>&1 && exit 1 || echo $?
echo $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
bpf attach --interface wwan0 --priority 2
echo $(programs wwan0)
"""
    why, code, left, then = said(built, script).splitlines()
    assert "give another --priority" in why
    assert (code, left, then) == ("1", "0 0", "2")


# A program that lets all pass, in an interface's list
ANOTHER = """\
another() {
    python3 -c "
import ctypes, os, socket, struct, sys
BPF = {'x86_64': 321, 'aarch64': 280}[os.uname().machine]
LOAD, ATTACH, SCHED_CLS, INGRESS = 5, 8, 3, 46
def bpf(command, *words):
    attributes = ctypes.create_string_buffer(b''.join(words), 128)
    return ctypes.CDLL(None).syscall(BPF, command, attributes, 128)
code = ctypes.create_string_buffer(struct.pack('BBhiBBhi', 0xb7, 0, 0, -1, 0x95, 0, 0, 0))
words = struct.pack('IIQQ', SCHED_CLS, 2, *map(ctypes.addressof, (code, code)))
program = bpf(LOAD, words)
index = socket.if_nametoindex(sys.argv[1])
assert not bpf(ATTACH, struct.pack('4I', index, program, INGRESS, 0))
" "$1"
}
"""


@pytest.mark.skipif(not HAS_TCX, reason="Linux has such lists since 6.6")
def test_from_filters_to_the_list_and_back(built: Path) -> None:
    """Another's program stays in the list, and what an attach left there goes with the next."""
    script = f"""\
{ANOTHER}
wwan wwan0
another wwan0
for way in "--priority 1" "" "" "--priority 3"; do
    bpf attach --interface wwan0 $way
    echo $(tcx wwan0) $(filters wwan0) $(qdisc wwan0)
done
bpf attach --interface wwan0
rm -r /sys/fs/bpf/drwa
bpf attach --interface wwan0
bpf status | grep -c again || echo $(tcx wwan0)
bpf detach
echo $(tcx wwan0)
"""
    expected = ["1 2 1", "3 0 0", "3 0 0", "1 2 1", "0", "3", "1"]
    assert said(built, script).splitlines() == expected


def test_attaches_again(built: Path) -> None:
    """To an interface whose qdisc somebody took away."""
    script = """\
wwan wwan0
bpf attach --interface wwan0 --priority 1
tc qdisc del dev wwan0 clsact
bpf status | grep wwan0
bpf attach --interface wwan0 --priority 1
bpf attach --interface wwan0 --priority 1 --lambda 3
echo $(programs wwan0)
bpf status | grep wwan0
"""
    lost, count, there = said(built, script).splitlines()
    assert "attach again" in lost
    assert count == "2"
    assert "3.00" in there and "attach again" not in there


def test_kinds_of_links(built: Path) -> None:
    """Raw IP, and one whose packets cannot be read."""
    script = """\
ip tuntap add wwan0 mode tun
bpf attach --interface wwan0
echo $(programs wwan0)
ip link add can0 type vcan 2>/dev/null || { echo 77; exit 0; }
bpf attach --interface can0 2>/dev/null || echo $?
"""
    assert said(built, script).split() == ["2", str(CANNOT)]


def test_the_series_governs(built: Path, tmp_path: Path) -> None:
    """A kernel that has a λ of its own for the interface: two laws on one queue are none."""
    knob = tmp_path / "wwan0"
    knob.mkdir()
    (knob / "tcp_drwa_lambda").write_text("125\n")
    script = f"""\
wwan wwan0
mount --bind {tmp_path} /proc/sys/net/ipv4/conf
bpf attach --interface wwan0 2>&1 || echo $?
echo $(programs wwan0)
echo 0 >{knob}/tcp_drwa_lambda
bpf attach --interface wwan0
bpf set --interface wwan0 --lambda 2
echo 125 >{knob}/tcp_drwa_lambda
bpf set --interface wwan0 --lambda 3 2>/dev/null || echo $?
"""
    why, *codes = said(built, script).splitlines()
    assert "this kernel governs wwan0 itself" in why
    assert codes == ["1", "0", "1"]


def test_another_name_space(built: Path) -> None:
    script = """\
wwan wwan0
bpf attach --interface wwan0
export OUT
unshare --net sh -c 'ip link add wwan0 type veth peer name p0
"$OUT/drwa-bpf" attach --interface wwan0 --object "$OUT/drwa.bpf.o" 2>&1' || echo $?
"""
    assert said(built, script).splitlines() == [
        "drwa-bpf: the programs are attached in another network name space",
        "1",
    ]


@pytest.mark.parametrize("may", ["", "setpriv --bounding-set=-sys_ptrace "])
def test_mounts_of_ones_own(built: Path, may: str) -> None:
    """Pins would end with the command: it says what to do in its place, even if it may not look at
    the first process.
    """
    script = """\
mount -t proc proc /proc
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip netns add phone
ip -n phone link add wwan0 type veth peer name p0
MAYsh -c 'ip netns exec phone "$OUT/drwa-bpf" attach --interface wwan0 --object \
    "$OUT/drwa.bpf.o" 2>&1 || echo $?'
nsenter --net=/run/netns/phone "$OUT/drwa-bpf" attach --interface wwan0 --object "$OUT/drwa.bpf.o"
nsenter --net=/run/netns/phone "$OUT/drwa-bpf" status | grep -c ^wwan0
"""
    why, code, there = said(built, script.replace("MAY", may)).splitlines()
    assert "nsenter --net=/run/netns/NAME" in why
    assert (code, there) == (str(CANNOT), "1")


@pytest.mark.parametrize("way", [*WAYS, "--priority 7"])
def test_detaches_without_pins(built: Path, way: str) -> None:
    """Another's filter stays."""
    script = f"""\
wwan wwan0
tc qdisc add dev wwan0 clsact
tc filter add dev wwan0 egress prio 9 protocol ip u32 match ip protocol 17 0xff flowid 1:1
bpf attach --interface wwan0 {way}
rm -r /sys/fs/bpf/drwa
bpf detach
echo $(programs wwan0) $(tc filter show dev wwan0 egress | grep -c 'u32.*flowid')
"""
    assert said(built, script) == "0 1\n"


# An interface on another one, and the kernel's list of both
STACKED = """\
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf
wwan wwan0
ip link add link wwan0 name wwan0.33 type macvlan mode bridge 2>/dev/null || exit 77
ip link add br0 type bridge 2>/dev/null || exit 77
ip link set wwan0.33 master br0
"""


def test_one_of_a_stack(built: Path) -> None:
    """Of those whose packets are the same."""
    script = f"""\
{STACKED}
for first in wwan0 wwan0.33 br0; do
    bpf attach --interface $first
    for second in wwan0 wwan0.33 br0; do
        bpf attach --interface $second 2>&1 || echo $?
    done
    bpf detach
done
"$OUT/drwa-bpf" watch --interface 'ww*' --object "$OUT/drwa.bpf.o" 2>&1 &
watch=$!
waits '[ $(programs wwan0) = 2 ]'
sleep 1
programs wwan0.33
kill $watch
wait $watch
"""
    done = run(built, script)
    if done.returncode == 77:
        pytest.skip("this kernel has no such interfaces")
    assert done.returncode == 0, done.stderr
    told = "drwa-bpf: {} has the packets of {}, which is governed: "
    names = ["wwan0", "wwan0.33", "br0"]
    expected = [line for a in names for b in names if a != b for line in (told.format(b, a), "1")]
    expected += ["wwan0 is governed", told.format("wwan0.33", "wwan0"), "0", "wwan0 is let go"]
    lines = [re.sub("governed: .*", "governed: ", line) for line in done.stdout.splitlines()]
    assert lines == expected


def test_an_interface_that_is_gone(built: Path) -> None:
    script = """\
wwan wwan0
wwan wwan1
bpf attach --interface wwan0
bpf attach --interface wwan1 --lambda 3
ip link del wwan0
bpf status --json
bpf set --interface wwan1 --lambda 2
bpf detach
ls /sys/fs/bpf | grep -c drwa || :
"""
    status, left = said(built, script).splitlines()
    devs = [(each["interface"], each["lambda"]) for each in json.loads(status)["interfaces"]]
    assert devs == [("wwan1", 3.0)]
    assert left == "0"


def test_many_interfaces(built: Path) -> None:
    """Of forty in a table of 64 chains some share one, whose entries a write turns round."""
    script = """\
for n in $(seq 40); do wwan many$n; bpf attach --interface many$n --lambda 1; done
bpf status | grep -c ^many
bpf detach
for n in $(seq 40); do programs many$n; done | sort -u
ls /sys/fs/bpf | grep -c drwa || :
"""
    assert said(built, script).splitlines() == ["40", "0", "0"]


def test_needs_root(built: Path) -> None:
    script = "wwan wwan0; chmod 755 $OUT; setpriv --reuid=1000 $OUT/drwa-bpf status 2>&1 || echo $?"
    assert said(built, script).splitlines() == ["drwa-bpf: run it as root", str(CANNOT)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("", WRONG),
        ("attach", WRONG),
        ("attach --interface wwan9", WRONG),
        ("attach --interface wwan0 --lambda 0.5", WRONG),
        ("attach --interface wwan0 --lambda x", WRONG),
        ("attach --interface wwan0 --queue -1", WRONG),
        ("attach --interface wwan0 --priority 0", WRONG),
        ("set --interface wwan0", WRONG),
        ("attach --interface wwan0 --aqm yes", WRONG),
        ("attach --interface wwan0 --clients no", WRONG),
        ("attach --interface wwan0 --aqm on --probe 192.0.2.1", WRONG),
        ("watch --interface wwan0 --probe 192.0.2.1", WRONG),
        ("watch --interface wwan0 --aqm on --probe example.org", WRONG),
        ("set --interface wwan0 --lambda 2", FAILED),
        ("status", FAILED),
        ("detach --interface wwan0", FAILED),
        ("attach --interface wwan0 --object /nowhere", FAILED),
    ],
)
def test_wrong_options(built: Path, options: str, code: int) -> None:
    done = run(built, f"wwan wwan0\nbpf {options}")
    assert done.returncode == code
    assert done.stderr


@pytest.mark.parametrize(("words", "what"), [("foo", "foo"), ("attach wwan0", "wwan0")])
def test_names_the_word_that_it_does_not_know(built: Path, words: str, what: str) -> None:
    told = run(built, f"bpf {words}").stderr
    assert f"drwa-bpf: '{what}' is no command" in told
    assert "Usage" not in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("atach --interface wwan0", "'atach' is unknown: did you mean attach?"),
        ("atach wwan0", "'atach' is unknown: did you mean attach?"),
        ("st", "'st' is unknown: did you mean set or status?"),
        ("status --jsno", "'--jsno' is unknown: did you mean --json?"),
        ("attach --lamda=2 --interface wwan0", "'--lamda=2' is unknown: did you mean --lambda?"),
        ("attach --pr 2", "'--pr' is unknown: did you mean --probe or --priority?"),
        ("status --json=1", "'--json=1' is unknown: did you mean --json?"),
        ("status --yaml", "'--yaml' is unknown; see --help"),
        ("status --json -jxh", "'-x' is unknown; see --help"),
        ("attach --interface", "'--interface' lacks its value"),
        ("attach -i", "'-i' lacks its value"),
    ],
)
def test_did_you_mean(built: Path, words: str, told: str) -> None:
    done = run(built, f"bpf {words}")
    assert (done.returncode, done.stderr) == (WRONG, f"drwa-bpf: {told}\n")


def test_tells_of_itself(built: Path) -> None:
    script = "bpf --help | head -n 1; bpf -h | head -n 1; bpf --version; bpf -V"
    help_, same, version, same_version = said(built, script).splitlines()
    assert help_ == same
    assert help_.startswith("Usage: drwa-bpf attach --interface NAME ")
    assert version == same_version
    assert version.startswith("drwa-bpf ")


def test_can_be_killed(built: Path) -> None:
    """At any instant: the next command finds nothing that is not whole."""
    script = """\
wwan wwan0
for ms in 1 2 4 8 16 32 64 128; do
    for signal in KILL TERM; do
        timeout -s $signal 0.$(printf %03d $ms) "$OUT/drwa-bpf" attach --interface wwan0 \
            --object "$OUT/drwa.bpf.o" || :
        bpf attach --interface wwan0 --lambda 2
        test $(programs wwan0) = 2
        bpf detach
        echo $(programs wwan0) $(qdisc wwan0) $(ls /sys/fs/bpf | grep -c drwa)
    done
done
"""
    lines = said(built, script).splitlines()
    assert len(lines) == 16
    # Whose qdisc it is is not known any more.
    assert {line[0] + line[-1] for line in lines} == {"00"}


# For LD_PRELOAD: a signal follows the call of libbpf's with the number that is told.
SIGNALS = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
static int calls;
#define FOLLOWED(name, parameters, arguments) \\
int name parameters \\
{ \\
	int (*real) parameters = (int (*) parameters)dlsym(RTLD_NEXT, #name); \\
	int ret = real arguments; \\
	if (++calls == atoi(getenv("SIGNAL_AFTER"))) \\
		raise(atoi(getenv("SIGNAL"))); \\
	return ret; \\
}
FOLLOWED(bpf_object__load, (void *object), (object))
FOLLOWED(bpf_object__pin_maps, (void *object, const char *path), (object, path))
FOLLOWED(bpf_object__pin_programs, (void *object, const char *path), (object, path))
FOLLOWED(bpf_tc_hook_create, (void *hook), (hook))
FOLLOWED(bpf_tc_attach, (const void *hook, void *options), (hook, options))
FOLLOWED(bpf_prog_attach, (int fd, int to, int how, unsigned flags), (fd, to, how, flags))
FOLLOWED(bpf_tc_detach, (const void *hook, const void *options), (hook, options))
FOLLOWED(bpf_prog_detach2, (int fd, int to, int how), (fd, to, how))
"""


# For LD_PRELOAD: libbpf since 1.3 knows the programs' sections, and what they may be attached to.
LATER_LIBBPF = """\
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <stdio.h>
struct bpf_object *bpf_object__open_file(const char *path, const struct bpf_object_open_opts *how)
{
	struct bpf_object *(*real)(const char *, const struct bpf_object_open_opts *) =
		(void *)dlsym(RTLD_NEXT, "bpf_object__open_file");
	struct bpf_object *object = real(path, how);
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
		bpf_program__set_expected_attach_type(program, 46);
	return object;
}
int bpf_object__load(struct bpf_object *object)
{
	int (*real)(struct bpf_object *) = (void *)dlsym(RTLD_NEXT, "bpf_object__load");
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
		printf("%d\\n", bpf_program__expected_attach_type(program));
	return real(object);
}
"""


def preloaded(source: str, folder: Path) -> Path:
    """A library for LD_PRELOAD."""
    library = folder / "preloaded.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    return library


def test_the_kernel_is_told_no_attach_type(built: Path, tmp_path: Path) -> None:
    """Which Linux before 4.17 would refuse."""
    script = f"""\
wwan wwan0
LD_PRELOAD={preloaded(LATER_LIBBPF, tmp_path)} "$OUT/drwa-bpf" attach --interface wwan0 \
    --object "$OUT/drwa.bpf.o"
programs wwan0
"""
    assert said(built, script).splitlines() == ["0", "0", "2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_signal_at_any_step(built: Path, tmp_path: Path, way: str) -> None:
    """It ends an attach whose programs are not pinned yet, without a trace; a later one is done."""
    library = preloaded(SIGNALS, tmp_path)
    script = f"""\
wwan wwan0
for signal in 1 2 15; do
    for after in 1 2 3 4 5 6; do
        SIGNAL=$signal SIGNAL_AFTER=$after LD_PRELOAD={library} "$OUT/drwa-bpf" attach \
            --interface wwan0 {way} --object "$OUT/drwa.bpf.o" && code=0 || code=$?
        echo $code $(programs wwan0) $(ls /sys/fs/bpf | grep drwa)
        [ $code != 0 ] || bpf detach
    done
done
"""
    expected = [
        line for signal in (1, 2, 15) for line in [f"{128 + signal} 0"] * 3 + ["0 2 drwa"] * 3
    ]
    assert said(built, script).splitlines() == expected


def test_a_detach_that_does_not_end(built: Path, tmp_path: Path) -> None:
    """A signal that can wait does; after one that cannot, no window is written."""
    library = preloaded(SIGNALS, tmp_path)
    script = f"""\
wwan wwan0
for way in '' '--priority 1'; do
    for signal in 2 15; do
        bpf attach --interface wwan0 $way
        SIGNAL=$signal SIGNAL_AFTER=1 LD_PRELOAD={library} "$OUT/drwa-bpf" detach
        echo $? $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
    done
    bpf attach --interface wwan0 $way
    SIGNAL=9 SIGNAL_AFTER=1 LD_PRELOAD={library} "$OUT/drwa-bpf" detach 2>/dev/null || echo $?
    programs wwan0
    bpf status --json
    bpf attach --interface wwan0 $way
    SIGNAL=9 SIGNAL_AFTER=2 LD_PRELOAD={library} "$OUT/drwa-bpf" detach 2>/dev/null || :
    bpf detach
    echo $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
done
"""
    lines = said(built, script).splitlines()
    assert len(lines) == 12
    for first in 0, 6:
        *waits, killed, left, status, after = lines[first : first + 6]
        assert waits == ["0 0 0"] * 2
        assert (killed, left, after) == ("137", "1", "0 0")
        (dev,) = json.loads(status)["interfaces"]
        assert (dev["lambda"], dev["attached"]) == (0, False)


def test_watch(built: Path) -> None:
    """A modem that appears, is renamed, is replugged, or loses its filters."""
    script = """\
"$OUT/drwa-bpf" watch --interface 'ww*' --lambda 1.5 --priority 1 \
    --object "$OUT/drwa.bpf.o" >watch.log &
watch=$!
wwan wwan0
waits '[ $(programs wwan0) = 2 ]'
bpf status | grep -c '^wwan0 *1.50'
wwan eth7
ip link set wwan0 down
ip link set wwan0 name wwp0s1
ip link set wwp0s1 up
sleep 0.3
echo $(programs wwp0s1) $(programs eth7)
ip link set wwp0s1 name modem
waits '[ $(programs modem) = 0 ]'
ip link set modem name wwan1
waits '[ $(programs wwan1) = 2 ]'
ip link del wwan1
wwan wwan0
waits '[ $(programs wwan0) = 2 ]'
tc qdisc del dev wwan0 clsact
waits '[ $(programs wwan0) = 2 ]'
kill $watch
wait $watch && echo $?
echo $(programs wwan0) $(ls /sys/fs/bpf | grep -c drwa)
cat watch.log
"""
    # In a folder of its own
    done = said(built, f"cd {built}\n{script}").splitlines()
    assert done[:4] == ["1", "2 0", "0", "0 0"]
    assert done[4] == "wwan0 is governed"
    assert done[-1] == "wwan0 is let go"


def test_watch_waits_with_what_failed(built: Path) -> None:
    """An attach that fails makes events of its own."""
    script = """\
wwan wwan0
tc qdisc add dev wwan0 clsact
tc filter add dev wwan0 egress prio 1 protocol ip u32 match ip protocol 17 0xff flowid 1:1
"$OUT/drwa-bpf" watch --interface 'ww*' --priority 1 --object "$OUT/drwa.bpf.o" 2>errors &
sleep 10
wc -l <errors
tc filter del dev wwan0 egress prio 1
ip link set wwan0 mtu 1400
waits '[ $(programs wwan0) = 2 ]'
"""
    # In a folder of its own
    errors, governed = said(built, f"cd {built}\n{script}").splitlines()
    assert 1 <= int(errors) <= 2
    assert governed == "wwan0 is governed"


def test_watch_beside_another_one(built: Path) -> None:
    """Whose end takes the programs away, of which nobody is told."""
    script = """\
wwan wwan0
"$OUT/drwa-bpf" watch --interface 'ww*' --object "$OUT/drwa.bpf.o" >/dev/null &
waits '[ $(programs wwan0) = 2 ]'
"$OUT/drwa-bpf" watch --interface 'ww*' --lambda 2 --object "$OUT/drwa.bpf.o" >/dev/null &
second=$!
waits 'bpf status | grep -q "^wwan0 *2.00"'
kill $second
wait $second
sleep 10
waits '[ $(programs wwan0) = 2 ]'
bpf status | grep -c '^wwan0 *1.25'
"""
    assert said(built, script) == "1\n"


# A server, and interfaces to it by their numbers
NET = """\
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip netns add server
link() {
    ip link add wwan$1 type veth peer name srv$1 netns server
    ip addr add 10.77.$1.2/24 dev wwan$1
    ip link set wwan$1 up
    ip -n server addr add 10.77.$1.1/24 dev srv$1
    ip -n server link set srv$1 up
}
"""

# A server behind the interface, until the test ends, and what it sends: all there is, or 1000 bytes
SERVER = (
    NET
    + """\
link 0
ip link set lo up
serve() {
    ip netns exec server python3 -c "
import socket, sys
with socket.create_server(('10.77.0.1', 5001), backlog=1000) as s:
    while True:
        with s.accept()[0] as c:
            c.sendall(bytes(1000))
            while sys.argv[1] == 'all':
                c.sendall(bytes(65536))
" $1 &
    waits 'ip netns exec server ss -ltn | grep -q 5001'
}
bad_sums() { for where in "" "ip netns exec server"; do $where nstat -asz TcpInCsumErrors; done |
    awk '/Csum/ { n += $2 } END { print n }'; }
"""
)


# UDP of as much as is judged, in two seconds
STREAM = """\
ip netns exec server python3 -c "
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.77.0.1', 443))
for i in range(2000):
    s.sendto(bytes([64 + 63 * (i < 9)]) + bytes(1199), ('10.77.0.2', 50000))
    time.sleep(0.001)
"
"""


@pytest.mark.parametrize("probe", ["10.77.0.1", "fd77::1"])
def test_echoes_while_udp_comes_alone(built: Path, probe: str) -> None:
    """And none before; the answers tell a delay, which is none here. As the service may."""
    counter = "Icmp6InEchos" if ":" in probe else "IcmpInEchos"
    unit = (BPF / "drwa-bpf.service").read_text()
    (allowed,) = re.findall("^CapabilityBoundingSet=(.*)", unit, re.MULTILINE)
    bounds = ",".join(["-all", *(f"+{name[4:].lower()}" for name in allowed.split())])
    script = f"""\
{SERVER}
ip addr add fd77::2/64 dev wwan0 nodad
ip -n server addr add fd77::1/64 dev srv0 nodad
setpriv --no-new-privs --bounding-set={bounds} \
    "$OUT/drwa-bpf" watch -i wwan0 --aqm on --probe {probe} -o "$OUT/drwa.bpf.o" >/dev/null &
waits '[ $(programs wwan0) = 2 ]'
echoes() {{ ip netns exec server nstat -asz {counter} | awk '/Echos/ {{ print $2 }}'; }}
sleep 0.6
echoes
began=$(date +%s)
{STREAM}
bpf status --json
echoes
echo $(($(date +%s) - began))
bpf status
bpf detach
"""
    before, text, during, seconds, _, _, line = said(built, script).splitlines()[:7]
    assert before == "0"
    assert 3 <= int(during) <= 4 * (int(seconds) + 1)
    (interface,) = json.loads(text)["interfaces"]
    assert interface["udp"] == {"flows": 1, "dropped": 0, "deaf": 0, "tunnels": 0}
    assert 0 <= interface["delay_ms"] < 100
    assert re.search(r"; queue in ms: [\d.]+$", line)


def test_echoes_while_interfaces_change(built: Path) -> None:
    script = f"""\
{SERVER}
"$OUT/drwa-bpf" watch -i wwan0 --aqm on --probe 10.77.0.1 -o "$OUT/drwa.bpf.o" >/dev/null &
waits '[ $(programs wwan0) = 2 ]'
while :; do ip link set wwan0 alias now-$(date +%N); sleep 0.05; done &
{STREAM}
ip netns exec server nstat -asz IcmpInEchos | awk '/Echos/ {{ print $2 }}'
"""
    assert int(said(built, script)) >= 3


def test_echoes_that_may_not_be_sent(built: Path) -> None:
    """It says so, once."""
    script = f"""\
{SERVER}
setpriv --bounding-set=-net_raw "$OUT/drwa-bpf" watch -i wwan0 --aqm on --probe 10.77.0.1 \
    -o "$OUT/drwa.bpf.o" >/dev/null &
waits '[ $(programs wwan0) = 2 ]'
{STREAM}
bpf detach
"""
    done = run(built, script)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "drwa-bpf: no echoes for --probe: Operation not permitted\n"


def test_counts_what_it_leaves_alone(built: Path) -> None:
    """Of a connection that began before, and of UDP."""
    script = """\
serve all
python3 -c "
import os, socket, time
c = socket.create_connection(('10.77.0.1', 5001))
open('begun', 'w').close()
while os.path.exists('begun'):
    time.sleep(0.05)
n = 0
while n < 2000000:
    n += len(c.recv(1 << 20))
" &
reader=$!
waits '[ -e begun ]'
bpf attach --interface wwan0
rm begun
wait $reader
ip netns exec server python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100):
    s.sendto(bytes(1000), ('10.77.0.2', 9))
"
bpf status --json
"""
    # In a folder of its own
    (dev,) = json.loads(said(built, f"cd {built}\n{SERVER}{script}"))["interfaces"]
    alone = dev["ungoverned_bytes"]
    assert alone["unknown"] > 100_000
    assert 100 * 1028 <= alone["not_tcp"] < 120_000
    # Of UDP, what is beyond TCP's headers
    assert dev["came_bytes"] > 0.9 * alone["unknown"] + 100 * 956


# What comes over a server's interfaces
LINKS = (
    NET
    + """\
come() { # thousands of bytes, over which
    ip netns exec server python3 -c "
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
thousands, which = map(int, sys.argv[1:])
for _ in range(thousands):
    s.sendto(bytes(1044), (f'10.77.{which}.2', 9))
    time.sleep(0.0002)
" $1 $2
    dump drwa_queues 4 | head -n 1
}
"""
)


def test_a_queue_goes_on_counting(built: Path) -> None:
    """Where its modem is plugged in anew, its filters were away, or an interface joins that brought
    more; what comes through a tunnel came before, and counts once.
    """
    script = f"""\
{DUMP}{LINKS}
for i in 0 1 2; do link $i; done
# Each goes on from its first packet.
for i in 0 1; do bpf attach --interface wwan$i --queue 7 --priority 1; come 1 $i >/dev/null; done
come 2000 0
come 1000 1
ip link del wwan0
link 0
bpf attach --interface wwan0 --queue 7
come 1000 0
come 1000 1
bpf attach --interface wwan2
come 4000 2
bpf set --interface wwan2 --queue 7
come 1000 2
tc qdisc del dev wwan1 clsact
come 2000 0
bpf attach --interface wwan1 --queue 7 --priority 1
come 1000 1
bpf status --json
"""
    *queues, text = said(built, script).splitlines()
    # struct drwa_queue, in thousands
    came = [struct.unpack_from("Q", bytes.fromhex(line))[0] / 1000 for line in queues]
    assert came == pytest.approx([2000, 2000, 3000, 3000, 3000, 4000, 5000, 6000], rel=0.01)
    # What was counted of each is as it was.
    devs = {dev["interface"]: dev["came_bytes"] / 1000 for dev in json.loads(text)["interfaces"]}
    assert devs == pytest.approx({"wwan0": 3000, "wwan1": 3000, "wwan2": 5000}, rel=0.01)


# For LD_PRELOAD: a command follows each write to a map.
WRITES = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int bpf_map_update_elem(int fd, const void *key, const void *value, unsigned long long flags)
{
	int (*real)(int, const void *, const void *, unsigned long long) =
		(void *)dlsym(RTLD_NEXT, "bpf_map_update_elem");
	int ret = real(fd, key, value, flags);
	unsetenv("LD_PRELOAD");
	return system(getenv("COMMAND")) ? -1 : ret;
}
"""


@pytest.mark.parametrize("command", ["set", "attach"])
def test_a_packet_while_the_queue_changes(built: Path, tmp_path: Path, command: str) -> None:
    """It brings nothing of the old queue's into the new one."""
    (tmp_path / "sends").write_text(
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(bytes(1000), ('10.77.1.2', 9))\n"
    )
    script = f"""\
{DUMP}{LINKS}
for i in 0 1; do link $i; done
bpf attach --interface wwan0 --queue 7
come 1000 0 >/dev/null
bpf attach --interface wwan1 --queue 7
come 1 1 >/dev/null
COMMAND='ip netns exec server python3 {tmp_path / "sends"}' \
    LD_PRELOAD={preloaded(WRITES, tmp_path)} "$OUT/drwa-bpf" {command} --interface wwan1 --queue 8
come 1 1 >/dev/null
dump drwa_queues 4
"""
    queues = said(built, script).split()
    # struct drwa_queue
    first, second = (struct.unpack_from("Q", bytes.fromhex(queue))[0] for queue in queues[:2])
    assert first > 1_000_000
    assert 1000 < second < 10_000


# A client of this machine's
CLIENT = """\
ip netns add client
ip link add lan0 type veth peer name wl0 netns client
ip addr add 10.78.0.1/24 dev lan0
ip link set lan0 up
ip -n client addr add 10.78.0.2/24 dev wl0
ip -n client link set wl0 up
ip -n client route add default via 10.78.0.1
ip -n server route add default via 10.77.0.2
echo 1 >/proc/sys/net/ipv4/ip_forward
"""

# Who sends and who reads until the end, and who gets as much of UDP as is judged
PEERS = {
    "sends": """\
import socket, threading
def send(c):
    while True:
        c.sendall(bytes(65536))
with socket.create_server(('10.77.0.1', 5001)) as s:
    while True:
        threading.Thread(target=send, args=(s.accept()[0],)).start()
""",
    "reads": """\
import socket
c = socket.create_connection(('10.77.0.1', 5001))
while c.recv(1 << 20):
    pass
""",
    "asks": """\
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 50000))
s.settimeout(5)
for _ in range(400):
    s.sendto(bytes(9), ('10.77.0.1', int(sys.argv[1])))
    s.recv(2000)
""",
    "answers": """\
import socket, sys
port, kind = map(int, sys.argv[1:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.77.0.1', port))
while True:
    s.sendto(bytes([kind]) + bytes(1199), s.recvfrom(9)[1])
""",
}


def test_clients_stand_aside_where_asked_for(built: Path, tmp_path: Path) -> None:
    """Of TCP and UDP, and while a connection goes on; what is the machine's own does not. Of both
    it is governed when clients are again, but for a client's VPN."""
    for name, text in PEERS.items():
        (tmp_path / name).write_text(text)
    script = """\
for each in sends "answers 443 64" "answers 444 4"; do ip netns exec server python3 $each & done
waits '[ $(ip netns exec server ss -ltuHn | wc -l) = 3 ]'
bpf attach --interface wwan0 --aqm on --clients off
ip netns exec client python3 reads &
for port in 443 444; do ip netns exec client python3 asks $port; done
waits 'bpf status | grep -q "^10.77.*client .*aside: client"'
bpf status --json
python3 reads &
python3 asks 443
waits 'bpf status --json | grep -q "flows.: 1, .*udp.: {.flows.: 1,"'
bpf status --json
bpf set --interface wwan0 --clients on
waits 'bpf status --json | grep -q "flows.: 2, "'
for port in 443 444; do ip netns exec client python3 asks $port; done
bpf status --json
"""
    text = said(built, f"cd {tmp_path}\n{SERVER}{CLIENT}{script}")
    alone, beside, on = map(json.loads, text.splitlines())
    (dev,) = alone["interfaces"]
    assert dev["clients"] == "off"
    assert (dev["flows"], dev["rounds"], dev["capped"], dev["udp"]["flows"]) == (0, 0, 0, 0)
    assert dev["ungoverned_bytes"]["clients"] > 100_000
    assert dev["ungoverned_bytes"]["unknown"] == 0
    states = {c["forwarded"]: c["state"] for c in beside["connections"]}
    assert states[True] == "aside: client" != states[False]
    (dev,) = on["interfaces"]
    assert (dev["clients"], dev["aqm"]) == ("on", "on")
    assert (dev["udp"]["flows"], dev["udp"]["tunnels"]) == (2, 1)
    assert "aside: client" not in {c["state"] for c in on["connections"]}


def test_a_client_falls_silent(built: Path) -> None:
    """As where hardware takes a connection after its first packets; the phone's own is no client,
    and a client that sends hears ACKs.
    """
    script = """\
ip netns exec server python3 -c "
import socket
with socket.create_server(('10.77.0.1', 5001)) as s:
    kept = []
    while True:
        kept.append(s.accept()[0])
        kept[-1].sendall(bytes(1000))
" &
waits 'ip netns exec server ss -ltn | grep -q 5001'
bpf attach --interface wwan0
talk() { # 1: it sends all the time; where
    bytes=$1
    shift
    "$@" python3 -c "
import socket, sys, time
c = socket.create_connection(('10.77.0.1', 5001))
c.recv(1000, socket.MSG_WAITALL)
while True:
    c.sendall(bytes(int(sys.argv[1])))
    time.sleep(0.1)
" $bytes &
}
talk 0 env
talk 0 ip netns exec client
talk 1 ip netns exec client
waits '[ $(bpf status | grep -c 10.77.0.1:5001) = 3 ]'
bpf status --json
sleep 5.5
bpf status --json
"""
    early, late = map(json.loads, said(built, SERVER + CLIENT + script).splitlines())
    (before, after) = (
        sorted((c["forwarded"], c["state"].startswith("silent")) for c in each["connections"])
        for each in (early, late)
    )
    assert before == [(False, False), (True, False), (True, False)]
    assert after == [(False, False), (True, False), (True, True)]


def test_connections_that_ended_are_forgotten(built: Path) -> None:
    """By FIN of both, or by a reset."""
    script = """\
bpf attach --interface wwan0
serve 1000
python3 -c "
import os, socket, struct, time
for number in range(20):
    c = socket.create_connection(('10.77.0.1', 5001))
    assert len(c.recv(2000, socket.MSG_WAITALL)) == 1000
    if number % 2:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    c.close()
kept = socket.create_connection(('10.77.0.1', 5001))
open('open', 'w').close()
while os.path.exists('open'):
    time.sleep(0.05)
kept.close()
" &
waits '[ -e open ]'
waits '[ $(entries) = 1 ]'
bpf status --json
rm open
waits '[ $(entries) = 0 ]'
"""
    # In a folder of its own
    status = said(built, f"cd {built}\n{SERVER}{DUMP}{script}")
    assert len(json.loads(status)["connections"]) == 1


# Ten connections that end by FIN, one that the server resets, and one that is refused, which is no
# signed one: that takes signed resets alone
ENDING = """\
import socket, struct, sys
kind, who = sys.argv[1:]
def make():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262 if kind == 'mptcp' else 0)
    if kind == 'signed':
        other = socket.inet_aton('10.77.0.1' if who == 'client' else '10.77.0.2')
        # struct tcp_md5sig, by TCP_MD5SIG
        name = struct.pack('=HH4s', socket.AF_INET, 0, other)
        s.setsockopt(socket.IPPROTO_TCP, 14, struct.pack('=128sHHI80s', name, 0, 3, 0, b'key'))
    return s
if who == 'server':
    listening = make()
    listening.bind(('10.77.0.1', 5001))
    listening.listen()
for number in range(11):
    if who == 'server':
        c = listening.accept()[0]
        c.sendall(bytes(1000))
        # Once it has come
        assert c.recv(1)
        if number == 10:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    else:
        c = make()
        c.connect(('10.77.0.1', 5001))
        assert len(c.recv(1000, socket.MSG_WAITALL)) == 1000
        c.sendall(bytes(1))
        try:
            assert not c.recv(1)
        except ConnectionResetError:
            assert number == 10
    c.close()
if who == 'client' and kind != 'signed':
    try:
        make().connect(('10.77.0.1', 5002))
        raise AssertionError
    except ConnectionRefusedError:
        pass
"""


@pytest.mark.parametrize(("kind", "left"), [("plain", 2), ("signed", 1), ("mptcp", 2)])
def test_connections_end(built: Path, tmp_path: Path, kind: str, left: int) -> None:
    """Those that are aside, too. Resets, after which nothing is sent, leave entries that nobody is
    told of.
    """
    (tmp_path / "ending").write_text(ENDING)
    script = f"""\
bpf attach --interface wwan0
ip netns exec server python3 ending {kind} server &
waits 'ip netns exec server ss -ltn | grep -q 5001'
python3 ending {kind} client
waits '[ $(entries) = {left} ]'
bpf status --json
"""
    status = json.loads(said(built, f"cd {tmp_path}\n{SERVER}{DUMP}{script}", 30))
    assert status["connections"] == []
    (dev,) = status["interfaces"]
    alone = dev["ungoverned_bytes"]
    found = {key: alone[key] for key in ("unknown", "signed", "mptcp") if alone[key]}
    assert found == ({} if kind == "plain" else {kind: 11_000})


# What a connection's ACKs offer, by the server's end of the link, until there is a file "done" and
# they offer little: how far the right edge ever moved back, how much was offered at most, and at
# last. "wide" is there once it was much.
OFFERS = """\
import os, socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.bind(('srv0', 0))
s.settimeout(10)
scale = back = widest = last = 0
edge = None
while not os.path.exists('done') or last > 99999:
    packet = s.recv(2000)[14:]
    if packet[9] != 6 or packet[12:16] != socket.inet_aton('10.77.0.2'):
        continue
    tcp = packet[20:]
    flags, window = struct.unpack('!BH', tcp[13:16])
    acked, = struct.unpack('!I', tcp[8:12])
    if flags & 2:
        # MSS, SACK, timestamps, NOP, and the scale
        scale = tcp[39]
        continue
    last = window << scale
    widest = max(widest, last)
    if last > 200000:
        open('wide', 'w').close()
    moved = (acked + last - (acked + last if edge is None else edge) + 2**31) % 2**32 - 2**31
    back = max(back, -moved)
    edge = (acked + last) % 2**32
print(back, widest, last)
"""


def downloading(attach: str, folder: Path) -> str:
    """A script's beginning: a download that is governed, and whose offers are watched."""
    (folder / "offers").write_text(OFFERS)
    before = """\
# A busy machine takes longer to fill the queue.
governed() { for _ in 1 2 3; do waits "bpf status | grep -q '10.77.* hold'" && return; done; }
ip netns exec server tc qdisc add dev srv0 root tbf rate 20mbit burst 15k latency 300ms
ip netns exec server python3 offers >offered &
sniffer=$!
serve all
"""
    after = """\
python3 -c "
import socket
c = socket.create_connection(('10.77.0.1', 5001))
while c.recv(1 << 20):
    pass
" &
governed
sleep 1
rm -f wide
"""
    return f"cd {folder}\n{SERVER}{before}{attach}{after}"


# The version before's programs begin anew where this is 0.
FORMER = (
    (
        "if (p->counts->joined != joined) {",
        "if (!p->counts->began_us) {\n\t\tp->counts->began_us = clock_us();",
    ),
    ("seen &= (s32)(acked - f->edge) <= 0;", ""),
)


@pytest.mark.parametrize("version", ["this", "former"])
def test_the_right_edge_after_filters_were_away(built: Path, tmp_path: Path, version: str) -> None:
    """Nothing of what was offered meanwhile is taken back, by programs of the version before that
    stayed when drwa-bpf was installed anew, either.
    """
    if version == "former":
        changed(tmp_path, *FORMER)
        built = Path(shutil.copy2(built / "drwa-bpf", tmp_path)).parent
    script = """\
tc qdisc del dev wwan0 clsact
waits '[ -e wide ]'
bpf attach --interface wwan0 --priority 1
governed
sleep 2
touch done
wait $sniffer
cat offered
"""
    attach = "bpf attach --interface wwan0 --priority 1\n"
    offered = said(built, downloading(attach, tmp_path) + script, 60)
    back, widest, last = map(int, offered.split())
    assert widest > 200_000 > 2 * last
    assert back == 0


def test_the_window_as_the_queue_changes(built: Path, tmp_path: Path) -> None:
    """The connection is governed as before: the next ACK offers nothing that the kernel would."""
    attach = """\
ip link add wwan1 type veth peer name srv1
bpf attach --interface wwan1 --queue 7
bpf attach --interface wwan0
"""
    script = """\
for queue in 7 8 7; do
    bpf set --interface wwan0 --queue $queue
    sleep 0.3
    [ ! -e wide ] && echo narrow
done
bpf set --interface wwan0 --lambda 0
waits '[ -e wide ]' && echo wide
kill $sniffer
"""
    said_so = said(built, downloading(attach, tmp_path) + script, 60)
    assert said_so.split() == ["narrow"] * 3 + ["wide"]


def test_a_connection_that_outlives_its_modem(built: Path) -> None:
    """It is the new interface's, and governed there."""
    script = """\
"$OUT/drwa-bpf" watch --interface wwan0 --object "$OUT/drwa.bpf.o" >/dev/null &
waits '[ $(programs wwan0) = 2 ]'
ip netns exec server python3 -c "
import socket
with socket.create_server(('', 5001)) as s:
    c = s.accept()[0]
    while True:
        c.sendall(bytes(65536))
" &
waits 'ip netns exec server ss -ltn | grep -q 5001'
ip netns exec server tc qdisc add dev srv0 root tbf rate 20mbit burst 15k latency 300ms
python3 -c "
import socket
c = socket.create_connection(('10.77.0.1', 5001))
while c.recv(1 << 20):
    pass
" &
waits 'bpf status | grep -q "^10.77"'
ip link del wwan0
link 0
waits 'bpf status | grep -q "^10.77.* \\(start\\|hold\\|drain\\)"'
bpf status --json
"""
    found = json.loads(said(built, SERVER + script))
    (dev,), (connection,) = found["interfaces"], found["connections"]
    assert connection["ifindex"] == dev["ifindex"]


@pytest.mark.long
def test_a_thousand_cycles(built: Path) -> None:
    """Under a download, whose bytes all arrive."""
    script = """\
serve all
python3 -c "
import pathlib, socket, sys
c = socket.create_connection(('10.77.0.1', 5001))
n = 0
while not pathlib.Path('/run/netns/done').exists():
    data = c.recv(1 << 20)
    assert data and not data.strip(bytes(1))
    n += len(data)
print(n)
" &
reader=$!
for _ in $(seq 1000); do
    bpf attach --interface wwan0
    bpf detach
done
touch /run/netns/done
wait $reader
rm /run/netns/done
echo $(programs wwan0) $(qdisc wwan0) $(ls /sys/fs/bpf | grep -c drwa)
bad_sums
"""
    begun = time.monotonic()
    came, left, bad = said(built, SERVER + script, 1800).splitlines()
    assert int(came) > 1_000_000 * (time.monotonic() - begun)
    assert (left, bad) == ("0 0 0", "0")


@pytest.mark.long
def test_many_short_connections(built: Path) -> None:
    """A hundred thousand, of which none is still known but the last ones."""
    script = """\
bpf attach --interface wwan0
serve 1000
echo 1 >/proc/sys/net/ipv4/tcp_tw_reuse
python3 -c "
import socket
for _ in range(100000):
    with socket.create_connection(('10.77.0.1', 5001)) as c:
        assert len(c.recv(2000, socket.MSG_WAITALL)) == 1000
"
bad_sums
bpf status --json
"""
    bad, status = said(built, SERVER + script, 1800).splitlines()
    assert bad == "0"
    found = json.loads(status)
    assert len(found["connections"]) < 10
    (dev,) = found["interfaces"]
    assert dev["came_bytes"] > 90_000_000
    assert dev["ungoverned_bytes"]["unknown"] == 0
