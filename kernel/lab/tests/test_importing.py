# SPDX-License-Identifier: GPL-2.0-only
"""`lab trace import`: logs of other tools become traces."""

import struct
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Lab
from drwalab import importing, traces
from drwalab.importing import Columns
from drwalab.traces import TraceError

Write = Callable[[str, str | bytes], Path]
PHONE, SERVER = "10.0.0.2", "198.51.100.7"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def imported(path: Path, columns: Columns | None = None, to: str | None = None) -> list[int]:
    return importing.opportunities(path, importing.kind_of(path), columns or Columns(), to)


@pytest.mark.parametrize(
    "text",
    [
        "0,12000\n1,0\n2,6000\n",
        "time,rate\n0,12000\n\n1,0\n2,6000\n",
        "\ufeffSeconds;kbit/s\r\n100,0;12000,0\r\n101,0;0\r\n102,0;6000\r\n",
        "# a drive\n0\t12000\n1\t0\n2\t6000\n",
    ],
)
def test_rates(write: Write, text: str) -> None:
    """One packet each ms, none for a second, one each 2 ms for as long as the row before."""
    times = imported(write("drive.csv", text))
    assert times == [*range(1, 1001), *range(2002, 3001, 2)]


def test_columns(write: Write) -> None:
    path = write("drive.csv", "id,lat,s,DL kbit/s\nx,52.1,7,12000\ny,52.2,7.5,12000\n")
    assert imported(path, Columns("s", "DL kbit/s")) == list(range(1, 1001))
    assert imported(path, Columns("3", "4")) == list(range(1, 1001))
    with pytest.raises(TraceError, match="no column 'UL': the first line has 'id', 'lat'"):
        imported(path, Columns("s", "UL"))


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 20_000)), min_size=2, max_size=6).filter(
        lambda rows: sum(length * rate for length, rate in rows) > 1000
    )
)
def test_so_much_crosses_as_the_rates_say(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float]]
) -> None:
    """By the end of each row, but for one opportunity and the rounding to a ms."""
    path = tmp_path_factory.getbasetemp() / "rates.csv"
    at, bits, text = 1e6, 0.0, ""
    due: list[tuple[float, float]] = []
    rows[-1] = (rows[-2][0], rows[-1][1])
    for length, rate in rows:
        text += f"{at!r},{rate!r}\n"
        at, bits = at + length, bits + length * rate * 1000
        due.append(((at - 1e6) * 1000, bits))
    path.write_text(text)
    if bits < 12100:
        return
    times = imported(path)
    assert times == sorted(times)
    assert abs(len(times) - bits / 12000) <= 1
    for end_ms, end_bits in due:
        assert abs(sum(time <= end_ms for time in times) - end_bits / 12000) <= 3


def test_packet_times(write: Write) -> None:
    """They count from the first one on, and may have parts."""
    assert imported(write("x.pps", "1000\n1000\n1004.4\n\n1020\n")) == [0, 0, 4, 20]


def capture(packets: list[tuple[float, bytes]], link: int = 101, magic: str = "<us") -> bytes:
    order, parts = magic[0], {"us": 10**6, "ns": 10**9}[magic[1:]]
    number = {10**6: 0xA1B2C3D4, 10**9: 0xA1B23C4D}[parts]
    data = struct.pack(f"{order}IHHiIII", number, 2, 4, 0, 0, 65535, link)
    for time, packet in packets:
        kept = packet[:96]
        whole, part = divmod(round(time * parts), parts)
        data += struct.pack(f"{order}4I", whole, part, len(kept), len(packet)) + kept
    return data


def ip(to: str, size: int) -> bytes:
    address = ip_address(to)
    if address.version == 4:
        head = bytes([0x45]) + bytes(15) + address.packed
    else:
        head = bytes([0x60]) + bytes(23) + address.packed
    return head.ljust(size, b"\0")


@pytest.mark.parametrize("magic", ["<us", ">us", "<ns", ">ns"])
@pytest.mark.parametrize(
    ("link", "front"),
    [
        (101, b""),
        (1, bytes(12) + b"\x08\x00"),
        (1, bytes(12) + b"\x81\x00\x00\x05\x08\x00"),
        (113, bytes(16)),
        (276, bytes(20)),
    ],
)
@pytest.mark.parametrize(("phone", "server"), [(PHONE, SERVER), ("2001:db8::2", "2001:db8::1")])
def test_packets(
    write: Write, magic: str, link: int, front: bytes, phone: str, server: str
) -> None:
    """What comes to the phone, whole packets of 1500 bytes; what goes up does not count."""
    sent = [(5.0, phone, 1500), (5.0104, phone, 750), (5.015, server, 1500), (5.02, phone, 3000)]
    packets = [(time, front + ip(to, size)) for time, to, size in sent]
    path = write("drive.pcap", capture(packets, link, magic))
    assert imported(path) == [0, 20, 20]
    assert imported(path, to=phone) == [0, 20, 20]
    with pytest.raises(TraceError, match="all at once"):
        imported(path, to=server)


def test_half_a_packet_at_the_end(write: Write) -> None:
    packets = [(n / 100, ip(PHONE, 1500)) for n in range(3)]
    assert imported(write("x.pcap", capture(packets)[:-10])) == [0, 10]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", "0\n", "its name tells no kind: choose one by --kind"),
        ("x.csv", "", "empty"),
        ("x.csv", "s,kbit/s\n", "two rows at least"),
        ("x.csv", "0,1000\n", "two rows at least"),
        ("x.csv", "0,1000\n1,fast\n", "line 2 has no rate in kbit/s: 'fast': write 0 for none"),
        ("x.csv", "0,1000\n1\n", "line 2 has no rate"),
        ("x.csv", "0,1000\n1,-5\n", "line 2 has no rate"),
        ("x.csv", "0,1000\nnoon,5\n", "line 2 has no time in s: 'noon': convert it"),
        ("x.csv", "0,1000\n2,5\n2,6\n", "line 3 is no later than the one before, 2 and 2 s"),
        ("x.csv", "0\n1\n", "no column '2'"),
        ("x.csv", "0,0\n1,0\n", "less than 1500 bytes cross"),
        ("x.csv", "0,nan\n1,1000\n2,1000\n3,inf\n", "line 4 has no rate"),
        ("x.csv", "0,1\n2000000,1\n", "longer than 1000000 s"),
        ("x.csv", "0,900000000\n1,900000000\n", "are its rates in kbit/s"),
        ("x.csv", b"\xff\xfe\x00", "no text, so no CSV"),
        ("x.pps", "", "less than 1500 bytes cross"),
        ("x.pps", "5\n4\n", "line 2 goes back in time, 5 to 4 ms"),
        ("x.pps", "5\nsix\n", "line 2 is no time in ms: 'six'"),
        ("x.pps", "7\n7\n", "all at once"),
        ("x.pcap", "text", "no capture of tcpdump's"),
        ("x.pcap", b"\x0a\x0d\x0d\x0a" + bytes(40), "editcap -F pcap"),
        ("x.pcap", capture([], 105), "link type 105 is unknown"),
        ("x.pcap", capture([(0.0, b"\0" * 60)]), "no IP packet"),
    ],
)
def test_wrong_logs(write: Write, name: str, content: str | bytes, message: str) -> None:
    path = write(name, content)
    with pytest.raises(TraceError, match=message) as error:
        imported(path)
    assert str(path) in str(error.value)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """A trace, or one line that says why not."""
    path = tmp_path_factory.getbasetemp() / "any"
    for start in (b"", b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x65\0\0\0"):
        path.write_bytes(start + data)
        for kind in importing.KINDS:
            try:
                times = importing.opportunities(path, kind, Columns())
            except TraceError as error:
                assert "\n" not in str(error)
            else:
                assert times == sorted(times)
                assert times[-1] > 0


def test_command(write: Write, lab: Lab, tmp_path: Path) -> None:
    log, trace = write("drive.csv", "s,kbit/s\n0,8000\n1,4000\n"), tmp_path / "drive.down"
    done = lab("trace import", str(log), str(trace))
    assert done.code == 0
    assert done.out == lab("trace info", str(trace)).out
    assert "mean rate      6.00 Mb/s" in done.out
    assert len(traces.load(trace).times_ms) == 1000
    assert done.err == ""
    doubtful = lab("trace import", str(write("x.csv", "0,8\n1,4\n2,9\n9,4\n")), str(trace))
    assert doubtful.code == 0
    assert "no row for 7 s after 2 s: its rate holds meanwhile" in doubtful.err
    assert "less than 100 kbit/s in the mean: are the rates in kbit/s?" in doubtful.err
    for words, message in (
        ("--kind wav", "--kind: 'wav' is unknown: choose from csv, pps, pcap"),
        ("--kind pcap", "no capture"),
        ("--rate-column 3", "no column '3'"),
    ):
        failed = lab(f"trace import {words}", str(log), str(trace))
        assert (failed.code, failed.err.count("\n")) == (2, 1)
        assert message in failed.err
    assert lab("trace import", str(log), str(tmp_path / "none/x")).code == 2
    failed = lab(
        "trace import --kind pcap --to here",
        str(write("y", capture([(0.0, ip(PHONE, 60))]))),
        str(trace),
    )
    assert "--to: 'here' is no IP address" in failed.err
    assert lab("trace import", str(tmp_path / "none.csv"), str(trace)).code == 2
