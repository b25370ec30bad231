# SPDX-License-Identifier: GPL-2.0-only
"""Links that were logged elsewhere, as delivery opportunities in mahimahi's format.

csv   a time in seconds and a rate in kbit/s in each row, as drive-test tools export them. A rate
      holds until the next row's time, the last one for as long as the one before it.
pps   a time in ms in each line, when a packet of 1500 bytes crossed: what Cellsim reads.
pcap  packets that came to the phone. It has what crossed and not what could have, so the download
      has to keep the link busy.

A trace begins with the first time of its log, and ends with its last opportunity.
"""

import csv
import statistics
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

from drwalab.traces import MAX_OPPORTUNITIES, OPPORTUNITY_BYTES, TraceError

KINDS = ("csv", "pps", "pcap")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".pps": "pps", ".pcap": "pcap", ".cap": "pcap"}
_OPPORTUNITY_BITS = OPPORTUNITY_BYTES * 8
_LONGEST_S = 1_000_000

# How a capture begins: the byte order of its numbers, and the parts of a second.
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
# Bytes in front of IP, by link type; of Ethernet with a tag, 4 more.
_NULL, _ETHERNET, _RAW, _SLL, _SLL2 = 0, 1, (12, 14, 101), 113, 276
_LINK_BYTES = {_NULL: 4, _ETHERNET: 14, **dict.fromkeys(_RAW, 0), _SLL: 16, _SLL2: 20}
_TAGS = (b"\x81\x00", b"\x88\xa8")


# Of a row, and how to mend it
WANTED = (
    ("time in s", "convert it, or name the column by --time-column"),
    ("rate in kbit/s", "write 0 for none, or name the column by --rate-column"),
)
# As GPRS has; who logs LTE in Mbit/s is far below.
SLOW_KBPS = 100


@dataclass(frozen=True)
class Columns:
    """Which columns of a CSV: a name of its head, or a number from 1 on."""

    time: str = "1"
    rate: str = "2"


def kind_of(path: Path) -> str:
    """The kind that a file's name tells; raises TraceError."""
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise TraceError(f"{path}: its name tells no kind: choose one by --kind {'|'.join(KINDS)}")
    return kind


def opportunities(path: Path, kind: str, columns: Columns, to: str | None = None) -> list[int]:
    """The opportunities of a log, in ms; raises TraceError with one line that names the file."""
    try:
        if kind == "csv":
            times = list(_of_rates(_rates(path, columns), path))
        elif kind == "pps":
            times = list(_of_lines(path))
        else:
            times = list(_of_packets(path, to))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    if not times or not times[-1]:
        raise TraceError(f"{path}: less than {OPPORTUNITY_BYTES} bytes cross, or all at once")
    return times


def doubts(path: Path, columns: Columns) -> Iterator[str]:
    """Sentences on a CSV that was taken, and may not be meant so."""
    rates = _rates(path, columns)
    gaps = [(after - before, before) for (before, _), (after, _) in pairwise(rates)]
    length, since = max(gaps)
    if length > 2 * statistics.median(gap for gap, _ in gaps):
        yield f"{path}: no row for {length:g} s after {since:g} s: its rate holds meanwhile"
    if statistics.mean(rate for _, rate in rates) < SLOW_KBPS:
        yield f"{path}: less than {SLOW_KBPS} kbit/s in the mean: are the rates in kbit/s?"


def _rates(path: Path, columns: Columns) -> list[tuple[float, float]]:
    """Seconds and kbit/s of each row."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: no text, so no CSV") from error
    kept = [(n, line) for n, line in enumerate(lines, start=1) if line.strip(" \t;,")]
    kept = [(n, line) for n, line in kept if not line.lstrip().startswith("#")]
    if not kept:
        raise TraceError(f"{path}: empty")
    separator = next((c for c in "\t;," if c in kept[0][1]), ",")
    rows = list(csv.reader((line for _, line in kept), delimiter=separator, skipinitialspace=True))
    head = [cell.strip() for cell in rows[0]]
    places = [_place(path, head, column) for column in (columns.time, columns.rate)]
    found: list[tuple[float, float]] = []
    for (number, _), row in zip(kept, rows, strict=True):
        cells = [row[place].strip() if place < len(row) else "" for place in places]
        values = [_number(cell, separator) for cell in cells]
        if number == kept[0][0] and None in values:
            continue
        for value, cell, (what, advice) in zip(values, cells, WANTED, strict=True):
            if value is None or value < 0:
                raise TraceError(f"{path}: line {number} has no {what}: '{cell[:20]}': {advice}")
        seconds, kbps = values
        assert seconds is not None
        assert kbps is not None
        if found and seconds <= found[-1][0]:
            raise TraceError(
                f"{path}: line {number} is no later than the one before, "
                f"{found[-1][0]:g} and {seconds:g} s"
            )
        found.append((seconds, kbps))
    if len(found) < 2:
        raise TraceError(f"{path}: two rows at least, or nobody knows for how long a rate holds")
    return found


def _place(path: Path, head: list[str], column: str) -> int:
    # A head is no number, but without one the first row has them.
    if column.isdecimal():
        if 0 < int(column) <= len(head):
            return int(column) - 1
    elif column in head:
        return head.index(column)
    shown = ", ".join(f"'{name[:20]}'" for name in head[:12])
    raise TraceError(f"{path}: no column '{column}': the first line has {shown}")


def _number(cell: str, separator: str) -> float | None:
    """A number, with a comma for its point where that is no separator."""
    try:
        value = float(cell if separator == "," else cell.replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None


def _of_rates(rates: list[tuple[float, float]], path: Path) -> Iterator[int]:
    start = rates[0][0]
    lengths = [after - before for (before, _), (after, _) in pairwise(rates)]
    lengths.append(lengths[-1])
    _check_length(path, sum(lengths))
    # Rates are in bits a millisecond.
    if sum(rate * 1000 * length for (_, rate), length in zip(rates, lengths, strict=True)) > (
        MAX_OPPORTUNITIES * _OPPORTUNITY_BITS
    ):
        raise TraceError(f"{path}: too much for a trace: are its rates in kbit/s, its times in s?")
    # What has not made an opportunity yet, in bits; rounding must not cost the last one.
    due = 0.0
    for (seconds, rate), length in zip(rates, lengths, strict=True):
        begin, bits = (seconds - start) * 1000, rate * length * 1000
        crossed = int((due + bits) / _OPPORTUNITY_BITS + 1e-9)
        for k in range(1, crossed + 1):
            yield round(begin + max(k * _OPPORTUNITY_BITS - due, 0) / rate)
        due += bits - crossed * _OPPORTUNITY_BITS


def _of_lines(path: Path) -> Iterator[int]:
    first: float | None = None
    last = 0.0
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        value = _number(text, ",")
        if value is None or value < 0:
            raise TraceError(f"{path}: line {number} is no time in ms: '{text[:20]}'")
        if first is None:
            first = value
        if value < last:
            raise TraceError(f"{path}: line {number} goes back in time, {last:g} to {value:g} ms")
        last = value
        _check_length(path, (value - first) / 1000)
        yield round(value - first)


def _of_packets(path: Path, to: str | None) -> Iterator[int]:
    packets = list(_packets(path))
    if not packets:
        raise TraceError(f"{path}: no IP packet")
    received: Counter[bytes] = Counter()
    for _, destination, size in packets:
        received[destination] += size
    if to is None:
        phone = received.most_common(1)[0][0]
    else:
        try:
            phone = ip_address(to).packed
        except ValueError:
            raise TraceError(f"--to: '{to}' is no IP address") from None
        if phone not in received:
            raise TraceError(f"{path}: no packet to {to}")
    came = sorted((time, size) for time, destination, size in packets if destination == phone)
    _check_length(path, came[-1][0] - came[0][0])
    due = 0
    for time, size in came:
        due += size
        crossed, due = divmod(due, OPPORTUNITY_BYTES)
        for _ in range(crossed):
            yield round((time - came[0][0]) * 1000)


def _packets(path: Path) -> Iterator[tuple[float, bytes, int]]:
    """Time in s, destination and bytes of each IP packet of a capture."""
    data = path.read_bytes()
    if data[:4] == _PCAPNG:
        raise TraceError(f"{path}: pcapng: convert it by editcap -F pcap {path} NEW.pcap")
    if data[:4] not in _MAGIC or len(data) < 24:
        raise TraceError(f"{path}: no capture of tcpdump's (pcap)")
    order, parts = _MAGIC[data[:4]]
    link = struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF
    if link not in _LINK_BYTES:
        raise TraceError(f"{path}: link type {link} is unknown: capture at the phone's interface")
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            return
        seconds, part, kept, size = struct.unpack_from(f"{order}4I", data, at)
        packet = data[at + 16 : at + 16 + kept]
        # The last packet of a capture that was killed
        if len(packet) < kept:
            return
        at += 16 + kept
        skip = _LINK_BYTES[link]
        while link == _ETHERNET and packet[skip - 2 : skip] in _TAGS:
            skip += 4
        if (destination := _destination(packet[skip:])) is not None:
            yield seconds + part / parts, destination, size - skip


def _destination(packet: bytes) -> bytes | None:
    """The address that an IP packet is for; its header is enough."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        return packet[16:20]
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        return packet[24:40]
    return None


def _check_length(path: Path, seconds: float) -> None:
    if seconds > _LONGEST_S:
        raise TraceError(f"{path}: longer than {_LONGEST_S} s: in which unit are its times?")
