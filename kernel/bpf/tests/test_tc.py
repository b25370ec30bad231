# SPDX-License-Identifier: GPL-2.0-only
"""The pair of tc programs: what Linux 4.14 takes, and what packets may happen to them."""

import re
import runpy
import struct
import subprocess
from pathlib import Path

import pytest

from objects import (
    BPF,
    KERNEL,
    MAP_ADDRESS,
    Section,
    changed,
    core_bytes,
    for_host,
    relocations,
    sections,
    visited,
    why_not,
)

PROGRAMS = {"tc/ingress", "tc/egress"}
FUZZ_SEED, FUZZ_COUNT = 1, 200_000

# What 4.14 has: BPF_MAXINSNS and BPF_COMPLEXITY_LIMIT_INSNS, ...
INSTRUCTIONS, VISITED = 4096, 131_072
# ... of enum bpf_map_type: hash, array, hash of the least recently used, ...
MAP_TYPES = {1, 2, 9}
# ... of its helpers: map_lookup_elem, map_update_elem, map_delete_elem, ktime_get_ns,
# skb_store_bytes, l4_csum_replace, skb_load_bytes, ...
HELPERS = {1, 2, 3, 5, 9, 11, 26}
# ... of struct __sk_buff, ...
FIELDS = {"len", "protocol", "ifindex", "ingress_ifindex"}
# ... and of classes of instructions, all but jumps by halves of registers (JMP32).
JMP32 = 6
ALU32, STX = 4, 3
XADD = 0xC0
ARSH = 0xC0
CALL, EXIT, JUMP, LD_64 = 0x80, 0x90, 5, 0x18


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled with all warnings as errors."""
    out = tmp_path_factory.mktemp("bpf")
    command = ["make", f"--directory={BPF}", f"OUT={out}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def object_sections(built: Path) -> list[Section]:
    return sections(built / "drwa.bpf.o")


def instructions(data: bytes) -> list[tuple[int, int, int, int]]:
    """Code, registers, offset and constant of each."""
    return list(struct.iter_unpack("<BBhi", data))


@pytest.fixture(scope="module")
def programs(
    object_sections: list[Section],
) -> dict[str, list[tuple[int, int, int, int]]]:
    found = {s.name: instructions(s.data) for s in object_sections if s.name in PROGRAMS}
    assert set(found) == PROGRAMS
    (text,) = (s for s in object_sections if s.name == ".text")
    assert not text.data
    return found


def test_other_byte_order(tmp_path: Path) -> None:
    """A big-endian router's programs compile, and are short enough."""
    command = ["make", f"--directory={BPF}", f"OUT={tmp_path}", "BPF_TARGET=bpfeb"]
    subprocess.run([*command, str(tmp_path / "drwa.bpf.o")], check=True, capture_output=True)
    assert (tmp_path / "drwa.bpf.o").read_bytes()[5] == 2
    found = {s.name: len(s.data) / 8 for s in sections(tmp_path / "drwa.bpf.o")}
    assert all(500 < found[name] <= INSTRUCTIONS for name in PROGRAMS)


def test_they_are_short_enough(
    programs: dict[str, list[tuple[int, int, int, int]]],
) -> None:
    for name, code in programs.items():
        assert 500 < len(code) <= INSTRUCTIONS, name


def test_they_call_old_helpers_alone(
    programs: dict[str, list[tuple[int, int, int, int]]],
) -> None:
    """And no function of their own, which has a source register of 1."""
    for name, code in programs.items():
        calls = [(regs >> 4, c) for op, regs, _, c in code if op == CALL | JUMP]
        assert calls
        assert {source for source, _ in calls} == {0}, name
        assert {helper for _, helper in calls} <= HELPERS, name


def loops(code: list[tuple[int, int, int, int]]) -> bool:
    """Whether a jump leads back to what led to it."""
    seen = [0] * len(code)  # 1: on the way, 2: left for good
    way = [(0, iter(_next(code, 0)))]
    seen[0] = 1
    while way:
        at, following = way[-1]
        to = next(following, None)
        if to is None:
            seen[at] = 2
            way.pop()
        elif seen[to] == 1:
            return True
        elif not seen[to]:
            seen[to] = 1
            way.append((to, iter(_next(code, to))))
    return False


def _next(code: list[tuple[int, int, int, int]], at: int) -> list[int]:
    op, _, offset, _ = code[at]
    if op & 7 != JUMP or op & 0xF0 == CALL:
        # The load of a map's address takes two.
        return [at + (2 if op == LD_64 else 1)]
    if op & 0xF0 == EXIT:
        return []
    return [at + 1 + offset] if op & 0xF0 == 0 else [at + 1, at + 1 + offset]


def test_they_have_no_loop(
    programs: dict[str, list[tuple[int, int, int, int]]],
) -> None:
    for name, code in programs.items():
        assert not loops(code), name
    back = [(0xB7, 0, 0, 0), (0x15, 0, -2, 0), (0x95, 0, 0, 0)]
    assert loops(back)


def test_their_instructions_are_old(
    programs: dict[str, list[tuple[int, int, int, int]]],
) -> None:
    """Atomic additions fetch nothing, and no 32 bit register is shifted with its sign."""
    for name, code in programs.items():
        for op, _, _, constant in code:
            assert op & 7 != JMP32, name
            assert not (op & 7 == ALU32 and op & 0xF0 == ARSH), name
            if op & 7 == STX and op & 0xE0 == XADD:
                assert constant == 0, name


def test_their_maps_are_old(object_sections: list[Section]) -> None:
    source = (BPF / "drwa.bpf.c").read_text()
    kinds = {"HASH": 1, "ARRAY": 2, "LRU_HASH": 9}
    found = re.findall(r"^DRWA_MAP\(\w+, (\w+),", source, re.MULTILINE)
    assert len(found) > 4
    assert {kinds.get(kind) for kind in found} <= MAP_TYPES
    # Nothing of global data, which is a map, too.
    assert not [
        s.name for s in object_sections if s.name in (".data", ".bss", ".rodata") and s.data
    ]


def test_fields_of_packets_are_old() -> None:
    source = (BPF / "drwa.bpf.c").read_text()
    assert set(re.findall(r"\bskb->(\w+)", source)) == FIELDS


def test_they_need_no_types(object_sections: list[Section]) -> None:
    """No relocation but of maps, and none by BTF (CO-RE)."""
    found = relocations(object_sections, PROGRAMS)
    assert set(found) == {MAP_ADDRESS}
    assert len(found) > 8
    assert core_bytes(object_sections) == 0


def test_the_layout_is_what_readers_of_the_maps_have(tmp_path: Path) -> None:
    """cts_tests/kernel/governors.py"""
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stdio.h>\n#include "drwa.h"\n'
        'int main(void) { printf("%zu", sizeof(struct drwa_dev)); }\n'
    )
    size = subprocess.check_output(
        [for_host(source, tmp_path / "layout", f"-I{KERNEL / 'tests/include'}")], text=True
    )
    readers = runpy.run_path(str(KERNEL.parent / "cts_tests/kernel/governors.py"))
    assert int(size) == readers["DEV"].size


@pytest.fixture
def bpf() -> None:
    why = why_not()
    if why:
        pytest.skip(why)


@pytest.mark.usefixtures("bpf")
def test_the_verifier_follows_few(built: Path) -> None:
    """Of this machine's kernel; old ones see more, since they give up fewer paths."""
    found = visited(built / "drwa.bpf.o")
    assert set(found) == {"drwa_ingress", "drwa_egress"}
    assert 1000 < min(found.values())
    assert max(found.values()) <= VISITED // 4, found


def packets_program(built: Path, name: str) -> Path:
    source = Path(__file__).with_name(f"{name}.c")
    # Behind the kernel's headers for user space
    headers = f"-idirafter{KERNEL / 'tests/include'}"
    return for_host(source, built / name, headers, "-lbpf")


@pytest.fixture(scope="module")
def fuzz(built: Path) -> Path:
    return packets_program(built, "fuzz_packets")


@pytest.mark.usefixtures("bpf")
def test_what_a_packet_costs_is_told(built: Path) -> None:
    """All kinds of packets, by the program that the design page names."""
    program = packets_program(built, "time_packets")
    told = subprocess.check_output([str(program), str(built / "drwa.bpf.o")], text=True)
    kinds = re.findall(r"(\w+ ?\w+) \d+", told)
    assert kinds[:6] == ["data in", "ACK out", "ACK in", "data out", "UDP in", "held in"]
    assert kinds[6:] == ["interface", "array", "headers", "flow", "clock"]


@pytest.fixture(scope="module")
def exchanges(built: Path) -> dict[str, int]:
    program = packets_program(built, "exchanges")
    told = subprocess.check_output([str(program), str(built / "drwa.bpf.o")], text=True)
    return {what: int(n) for what, n in re.findall("(.+): (.+)", told)}


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("what", ["SYN", "SYN ACK"])
def test_a_syn_that_was_sent_again_tells_no_rtt(exchanges: dict[str, int], what: str) -> None:
    """What comes then may answer the first one."""
    assert exchanges[f"{what} 1"] > 0
    assert (exchanges[f"{what} 2"], exchanges[f"{what} 3"]) == (0, 0)


@pytest.mark.usefixtures("bpf")
def test_an_rtt_is_half_a_tick_less(exchanges: dict[str, int]) -> None:
    assert exchanges["shorter at least"] <= 500 <= exchanges["shorter at most"]


@pytest.mark.usefixtures("bpf")
def test_an_ack_that_nobody_reads_for_is_part_of_an_rtt(exchanges: dict[str, int]) -> None:
    """By an eighth, as the mean of eight; any path has ACKs that wait for a second segment."""
    assert exchanges["ACK of two"] == 0
    assert exchanges["ACK of five"] >= 20_000 // 8


@pytest.mark.usefixtures("bpf")
def test_an_ack_of_a_lone_segment_is_no_part_of_an_rtt(exchanges: dict[str, int]) -> None:
    """It waits for the next segment, which a slow link takes long for."""
    assert exchanges["ACK of one in two"] > 0
    assert exchanges["ACK of one"] == 0


@pytest.mark.usefixtures("bpf")
def test_a_queue_is_part_of_an_rtt(exchanges: dict[str, int]) -> None:
    """More than that is told by no clock of milliseconds, and would have UDP dropped.

    A segment that answers is one of its own RTT, however fast the queue grows.
    """
    assert exchanges["queue"] > 20_000
    assert exchanges["ticks of 4 ms"] == 0
    assert exchanges["queue that grows"] > 600_000


def fuzzed(fuzz: Path, program: Path) -> subprocess.CompletedProcess[str]:
    command = [str(fuzz), str(program), str(FUZZ_SEED), str(FUZZ_COUNT)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("bpf")
def test_packets(built: Path, fuzz: Path) -> None:
    """Nothing but windows changes, no right edge moves back, and all packets go on."""
    done = fuzzed(fuzz, built / "drwa.bpf.o")
    assert done.returncode == 0, done.stdout + done.stderr
    sent, lowered, dropped = map(int, re.findall(r"(\d+) (?:sent|windows|dropped)", done.stdout))
    assert sent > FUZZ_COUNT / 6
    assert lowered > FUZZ_COUNT / 25
    assert dropped > FUZZ_COUNT / 2000


# What the test above is to notice: text of the programs, and what stands in its place
BROKEN = {
    "filters that were away": ("lambda_of(f, dev) && seen", "lambda_of(f, dev)"),
    "segments that went another way": ("seen &= (s32)(acked - f->edge) <= 0;", ";"),
    "a law from before that": ("resume(f, counts, s);", ";"),
    "the right edge": ("if ((s32)left > (s32)cap)", "if (0)"),
    "what was offered": ("f->edge = acked + (units << scale);", ";"),
    "rounding": ("(cap + (1 << scale) - 1) >> scale", "cap >> scale"),
    "no scale": ("if (!f->scales || !s->scales)", "if (0)"),
    "the checksum": ("s->tcp->window,\n", "0,\n"),
    "a larger window": ("cap < units &&", "cap != units &&"),
    "off": ("if (governed && cap)", "if (cap)"),
    "the verdict": ("return TC_ACT_UNSPEC;", "return 0;"),
    "fragments": ("0x3fff", "0x1fff"),
    "IPv4's options": ("(h->v4.version_words & 15) * 4", "20"),
    "TCP behind them": ("s->whole &= header == sizeof(h->v4);", ";"),
    "IPv6 that is short": (
        "s->whole = !bpf_skb_load_bytes(skb, l2, &h->v6,",
        "s->whole = 1 | !bpf_skb_load_bytes(skb, l2, &h->v6,",
    ),
    "signatures": (
        "(f->answered || f->passive) && !f->aside",
        "(f->answered || f->passive)",
    ),
    "unread options": ("s->aside = DRWA_UNREAD", "s->aside = 0"),
    "another's SYN ACK": ("> U16_MAX)", "> ~0U)"),
    "drops without being asked": (
        "if (p.dev->aqm && p.dev->lambda &&",
        "if (p.dev->lambda &&",
    ),
    "drops while off": ("if (p.dev->aqm && p.dev->lambda &&", "if (p.dev->aqm &&"),
    "tunnels": ("dev->aqm != DRWA_AQM_TUNNELS))", "false))"),
    "another's echo": (" ||\n\t    echo.id != dev->echo)", ")"),
    "WireGuard": ("first[0] - 1U < 4 &&", "first[0] - 1U < 3 &&"),
    "OpenVPN": ("ack[0] == 1 &&", "ack[0] == 2 &&"),
    "OpenVPN's tls-crypt": ("!(number[0] | number[1] | number[2])", "number[0] > 255"),
    "QUIC that began before": (
        "\t\tis_openvpn(skb, s->at + UDP_BYTES));",
        "\t\t(is_openvpn(skb, s->at + UDP_BYTES) || skb->len));",
    ),
    "IPsec": ("port == bpf_htons(PORT_IPSEC) ||", "port == 0 ||"),
    "calls": (
        "if (!aqm_is_bulk(u, now_us, bytes))\n\t\treturn false;",
        "aqm_is_bulk(u, now_us, bytes);",
    ),
    "another CPU's clock": (
        "now_us - stamp_us + DRWA_SECOND_US < old_us + DRWA_SECOND_US",
        "now_us - stamp_us < old_us",
    ),
    "another flow's place": ("f && drwa_same(&f->key, key) ? f : NULL", "f"),
    "another datagrams' place": ("!u || !drwa_same(&u->key, s->key)", "!u"),
    "RST": ("(TCPHDR_ACK | TCPHDR_RST)) == TCPHDR_ACK", "TCPHDR_ACK) == TCPHDR_ACK"),
}


@pytest.mark.long
@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("what", BROKEN)
def test_packets_notice(what: str, fuzz: Path, tmp_path: Path) -> None:
    broken = changed(tmp_path, BROKEN[what])
    done = fuzzed(fuzz, broken)
    assert done.returncode == 1, done.stdout + done.stderr
