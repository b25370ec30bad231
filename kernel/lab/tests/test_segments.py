# SPDX-License-Identifier: GPL-2.0-only
"""What the machine that counts instructions has to have printed."""

import pytest

from drwalab import cost
from drwalab.guest import GuestError

SAID = "".join(
    f"# cost {direction} {state} 1000 {1000 * (20_000 + more)}\n"
    for more, state in enumerate(cost.STATES)
    for direction in ("down", "up")
)
SAID += "".join(
    f"# cost udp {state} 1000 {1000 * (10_000 + more)}\n"
    for more, state in enumerate(cost.UDP_STATES)
)
SAID += "".join(
    f"# cost up {qdisc}_{mbit} 1000 {1000 * (mbit + more)}\n"
    for more, qdisc in enumerate(cost.UPLINKS)
    for mbit in cost.UPLINK_MBIT
)


def test_table() -> None:
    found = cost.measured(SAID)
    assert found["down", "pair"].each == 20_003
    table = cost._segments_table(found).splitlines()
    assert table[-3] == "| the pair at the interface, λ = 1.25 | 20,003 | +3 | 20,003 | +3 |"
    udp = cost._udp_table(found).splitlines()
    assert udp[-3] == "| the same with `--aqm on` | 10,002 | +2 |"
    uplink = cost._uplink_table(found).splitlines()
    assert uplink[-3:] == [
        "| fq_codel | 25 | – | 16 | – |",
        "| tbf of 15/16 of that, fq_codel in it | 26 | +1 | 17 | +1 |",
        "| the gate, fq_codel in it | 27 | +2 | 18 | +2 |",
    ]


def test_what_is_missing_is_told() -> None:
    with pytest.raises(GuestError, match="measured no up series, up pair, udp aqm, up gate_16:"):
        lines = [
            x
            for x in SAID.splitlines()
            if not x.startswith(
                ("# cost up series", "# cost up pair ", "# cost up gate_16", "# cost udp aqm")
            )
        ]
        cost.measured("\n".join(lines))


def test_what_a_run_is_made_of() -> None:
    said = (
        "# packets ./drwa.bpf.o: data in 781, ACK out 661, ACK in 710, data out 664, UDP in 352, "
        "held in 715\n"
    )
    with pytest.raises(GuestError, match="told nothing of"):
        cost.parts(said)
    said += "# packets parts: interface 136, array 12, headers 65, flow 102, clock 1049\n"
    table = cost._parts_table(cost.parts(said)).splitlines()
    assert len(table) == 2 + len(cost.PROGRAM_PARTS)
    assert table[2] == "| data that comes | 781 |"
    assert table[-1] == "| reading the clock | 1,049 |"


def test_the_most_of_any_line_is_judged() -> None:
    lines = {"6.12": {"drwa_ingress": 19_000}, "6.1": {"drwa_ingress": 49_000}}
    table = cost._verifier_table(lines, {"drwa_ingress": 8841})
    assert table.splitlines()[-1] == "| drwa_ingress | 19,000 | 49,000 | 4.9% | 8,841 |"
