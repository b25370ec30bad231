# SPDX-License-Identifier: GPL-2.0-only
"""What the series, the BPF programs and the uplink's gate cost a phone's CPU, and the verifier of
each kernel line.

A segment's cost is that of a paced stream, the same whatever governs it, on an emulated x86-64
machine whose clock tells a nanosecond for each instruction: the time that the CPU does not sleep.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from drwalab import errors, guest, kernels, machine, output
from drwalab.kernels import KernelMissing
from drwalab.sources import read_lines

# BPF_COMPLEXITY_LIMIT_INSNS
VERIFIER_LIMIT = 1_000_000
STATES = {
    "nothing": "neither",
    "series": "the series, λ = 1.25",
    "pair_off": "the pair at the interface, λ = 0",
    "pair": "the pair at the interface, λ = 1.25",
    "pair_filters": "the same as filters",
    "filters": "filters that do nothing",
}
UDP_STATES = {
    "nothing": "neither",
    "pair": "the pair at the interface, λ = 1.25",
    "aqm": "the same with `--aqm on`",
    "pair_filters": "the pair as filters, λ = 1.25",
    "filters": "filters that do nothing",
}
# What time_packets names
PROGRAM_PARTS = {
    "data in": "data that comes",
    "ACK out": "its ACK, which goes",
    "data out": "data that goes",
    "ACK in": "its ACK, which comes",
    "UDP in": "a datagram that comes",
    "held in": "the same with `--aqm on`",
    "interface": "finding the interface's entry, by its index",
    "array": "… a queue, or the counters, in an array",
    "flow": "… a connection's entry, by a digest of 8 bytes",
    "headers": "reading the headers of IP and TCP",
    "clock": "reading the clock",
}
# What stands before the modem, and the Mb/s of the way up, of which the stream would have 20
UPLINKS = {
    "fq_codel": "fq_codel",
    "tbf": "tbf of 15/16 of that, fq_codel in it",
    "gate": "the gate, fq_codel in it",
}
UPLINK_MBIT = (25, 16)
_MEASURED = re.compile(r"^# cost (\w+) (\w+) (\d+) (\d+)$", re.MULTILINE)
_PACKETS = re.compile(r"^# packets [^:\n]*: (.*)$", re.MULTILINE)
_PROGRAMS = re.compile(r"^# programs (\[.*\])$", re.MULTILINE)
_STATUS = """\
ip link add wwan0 type dummy
./drwa-bpf attach --interface wwan0 --object ./drwa.bpf.o
echo "# programs $(./drwa-bpf status --json | sed 's/.*"programs": \\(.*\\)}$/\\1/')"
"""


@dataclass(frozen=True)
class Stream:
    """Of one direction: segments with data, and the instructions of all that the CPU did."""

    segments: int
    instructions: int

    @property
    def each(self) -> float:
        return self.instructions / self.segments


Streams = dict[tuple[str, str], Stream]


def measured(console: str) -> Streams:
    """What the machine printed, by direction and state; raises GuestError if some is missing."""
    found = {
        (direction, state): Stream(int(segments), int(instructions))
        for direction, state, segments, instructions in _MEASURED.findall(console)
    }
    wanted = [(direction, state) for state in STATES for direction in ("down", "up")]
    wanted += [("udp", state) for state in UDP_STATES]
    wanted += [("up", f"{qdisc}_{mbit}") for mbit in UPLINK_MBIT for qdisc in UPLINKS]
    missing = [" ".join(one) for one in wanted if one not in found]
    if missing:
        raise guest.GuestError(f"the machine measured no {', '.join(missing)}:\n{console[-2000:]}")
    return found


def parts(console: str) -> dict[str, int]:
    """Instructions of a program's run and of what is in it, as time_packets named them."""
    found = {
        name: int(count)
        for line in _PACKETS.findall(console)
        for name, _, count in (one.rpartition(" ") for one in line.split(", "))
    }
    missing = PROGRAM_PARTS.keys() - found.keys()
    if missing:
        raise guest.GuestError(f"the machine told nothing of {missing}:\n{console[-2000:]}")
    return found


def _programs(console: str) -> list[dict[str, Any]]:
    found = _PROGRAMS.search(console)
    if not found:
        raise guest.GuestError(f"the programs did not load:\n{console[-2000:]}")
    programs: list[dict[str, Any]] = json.loads(found[1])
    return programs


def verified(line: str) -> dict[str, int]:
    """Instructions that the verifier of a line followed, by program; the kernel must be built."""
    made = kernels.bpf()
    files = [made / "drwa-bpf", made / "drwa.bpf.o"]
    folder = guest.run_script(_STATUS, kernels.find(line, "bpf"), kernels.agent(), files)
    console = (folder / "console").read_text(errors="replace")
    shutil.rmtree(folder)
    return {each["program"]: each["verified_instructions"] for each in _programs(console)}


def _segments_table(found: Streams) -> str:
    rows = [
        "| governed by | received segment with its share of ACKs | more | sent segment | more |",
        "| --- | --: | --: | --: | --: |",
    ]
    for state, title in STATES.items():
        cells = []
        for direction in ("down", "up"):
            each, none = found[direction, state].each, found[direction, "nothing"].each
            cells.append(f"{each:,.0f} | {'–' if state == 'nothing' else f'{each - none:+,.0f}'}")
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _udp_table(found: Streams) -> str:
    rows = ["| governed by | received datagram | more |", "| --- | --: | --: |"]
    none = found["udp", "nothing"].each
    for state, title in UDP_STATES.items():
        each = found["udp", state].each
        more = "–" if state == "nothing" else f"{each - none:+,.0f}"
        rows.append(f"| {title} | {each:,.0f} | {more} |")
    return "\n".join(rows)


def _parts_table(found: dict[str, int]) -> str:
    rows = ["| a run of the programs for, and in it | instructions |", "| --- | --: |"]
    return "\n".join(
        rows + [f"| {title} | {found[part]:,} |" for part, title in PROGRAM_PARTS.items()]
    )


def _uplink_table(found: Streams) -> str:
    heads = " | ".join(f"sent segment, {mbit} Mb/s | more" for mbit in UPLINK_MBIT)
    rows = [f"| before the modem | {heads} |", f"| --- {'| --: | --: ' * len(UPLINK_MBIT)}|"]
    for qdisc, title in UPLINKS.items():
        cells = []
        for mbit in UPLINK_MBIT:
            each, none = found["up", f"{qdisc}_{mbit}"].each, found["up", f"fq_codel_{mbit}"].each
            more = "–" if qdisc == "fq_codel" else f"{each - none:+,.0f}"
            cells.append(f"{each:,.0f} | {more}")
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _verifier_table(lines: dict[str, dict[str, int]], jited: dict[str, int]) -> str:
    rows = [
        f"| program | {' | '.join(lines)} | of the limit | compiled, bytes |",
        f"| --- | {'--: | ' * len(lines)}--: | --: |",
    ]
    for program, size in jited.items():
        counts = [each[program] for each in lines.values()]
        cells = " | ".join(f"{count:,}" for count in counts)
        rows.append(f"| {program} | {cells} | {max(counts) / VERIFIER_LIMIT:.1%} | {size:,} |")
    return "\n".join(rows)


def cost(
    kernel: Annotated[
        str, typer.Option(metavar="LINE", help="Kernel line of the emulated machine.")
    ] = "6.12",
    record: Annotated[Path | None, output.record_option("cost.md")] = None,
) -> None:
    """Count instructions per segment with the series, the BPF programs and the uplink's gate."""
    console = Console(stderr=True)
    with errors.reported():
        with console.status("") as status:
            progress = kernels.Progress(console, status)
            said = machine.run(kernel, "cost", 0, progress)
            lines = {}
            for line in read_lines():
                try:
                    lines[line] = verified(line)
                except KernelMissing as e:
                    progress(f"verifier of {line}: not asked, {e}")
        found = measured(said)
        jited = {each["program"]: each["jited_bytes"] for each in _programs(said)}
        tables = [_segments_table(found), _udp_table(found), _uplink_table(found)]
        tables.append(_parts_table(parts(said)))
        if lines:
            tables.append(_verifier_table(lines, jited))
        print("\n\n".join(tables))
        if record:
            output.write_whole(record / "cost.md", _document(kernel, found, tables))


def _document(kernel: str, found: Streams, tables: list[str]) -> str:
    segments, build = found["down", "nothing"].segments, kernels.find(kernel, "cost")
    return f"""\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# cost
Instructions on x86-64 (Linux {kernel}, programs compiled) for a segment of a stream of 20 Mb/s,
paced by its sender, over a path of 40 ms; server, phone and applications together, which cost the
same in each row. {segments:,} segments a row; an emulated machine whose clock counts instructions.

{tables[0]}

The same for a datagram of 1,200 bytes of a download over UDP, at the same rate, with no queue to
drop for:

{tables[1]}

The same for an upload behind a modem's queue that nobody sees, 40 ms on the way up: the stream
leaves a part of 25 Mb/s, so that the gate has nothing to hold, and would fill 16 Mb/s. There, with
fq_codel alone all waits in the modem; tbf holds it before, as the gate does, and knows the rate.

{tables[2]}

A run of the programs by itself, without the hook that calls them, on a connection that is governed,
with no round at its end, no new timestamp and no window to lower:

{tables[3]}

Instructions that the verifier followed, of {VERIFIER_LIMIT:,} that it would:

{tables[4] if len(tables) > 4 else "No kernel of flavour bpf was built."}

Kernel: {kernels.told_patches(build.release, build.patch_ids)}.\
{kernels.told_sources(programs=True, gate=True)}
Repeat it with `kernel/lab/lab cost --record kernel/lab/results`.
"""
