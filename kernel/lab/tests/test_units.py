# SPDX-License-Identifier: GPL-2.0-only
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drwalab import units


@pytest.mark.parametrize(
    ("text", "us"),
    [("50ms", 50_000), ("1.5s", 1_500_000), ("7us", 7), ("2 min", 120_000_000), ("0s", 0)],
)
def test_times(text: str, us: int) -> None:
    assert units.parse_time_us(text) == us


@pytest.mark.parametrize(
    ("text", "bps"),
    [("10mbit", 10**7), ("800kbit", 800_000), ("0.5Gbit", 5 * 10**8), ("9bit", 9)],
)
def test_rates(text: str, bps: int) -> None:
    assert units.parse_rate_bps(text) == bps


@pytest.mark.parametrize(
    ("text", "count"),
    [("1500kB", 1_500_000), ("64KiB", 65536), ("262144", 262144), ("2MB", 2 * 10**6), ("1B", 1)],
)
def test_sizes(text: str, count: int) -> None:
    assert units.parse_bytes(text) == count


def test_percent_and_hundredths() -> None:
    assert units.parse_percent_ppm("1%") == 10_000
    assert units.parse_percent_ppm("0.0001%") == 1
    assert units.parse_hundredths("1.5") == 150
    assert units.parse_hundredths("10") == 1000


@pytest.mark.parametrize(
    "text", ["", "50", "ms", "-1ms", "1e3ms", "0.5us", "50mm", "50ms x", "50mbit", "٣ms"]
)
def test_wrong_times(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}'"):
        units.parse_time_us(text)


# tc's mbps are bytes and everyone else's are bits: neither is taken.
@pytest.mark.parametrize("text", ["10mbps", "10M", "-1mbit", "0.5bit"])
def test_wrong_rates(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}'"):
        units.parse_rate_bps(text)


@pytest.mark.parametrize("text", ["1", "101%", "-1%", "1%%"])
def test_wrong_percents(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}'"):
        units.parse_percent_ppm(text)


@pytest.mark.parametrize("text", ["", "x", "1.555", "-1", "1,5", "nan"])
def test_wrong_hundredths(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}'"):
        units.parse_hundredths(text)


def test_signed_quantities() -> None:
    assert [units.parse_ppm(text) for text in ("500ppm", "-500 ppm", "+1ppm")] == [500, -500, 1]
    assert [units.parse_signed_ms(text) for text in ("-200ms", "1.5s")] == [-200, 1500]
    assert [units.show_signed_ms(ms) for ms in (-200, 1500)] == ["-200ms", "1.5s"]
    assert units.parse_ppm(units.show_ppm(-500)) == -500
    for text in ("500", "0.5ppm", "ppm", "--5ppm"):
        with pytest.raises(ValueError, match=f"'{text}'"):
            units.parse_ppm(text)
    for text in ("0ms", "500us", "-0ms"):
        with pytest.raises(ValueError, match=f"'{text}'"):
            units.parse_signed_ms(text)


WHOLE = st.integers(min_value=0, max_value=10**15)


@given(WHOLE)
def test_what_is_shown_reads_the_same(value: int) -> None:
    assert units.parse_time_us(units.show_time(value)) == value
    assert units.parse_rate_bps(units.show_rate(value)) == value
    assert units.parse_bytes(units.show_bytes(value)) == value
    assert units.parse_hundredths(units.show_hundredths(value % 10_000)) == value % 10_000
    ppm = value % 1_000_001
    assert units.parse_percent_ppm(units.show_percent(ppm)) == ppm


def test_shown_in_the_unit_that_suits() -> None:
    assert units.show_time(150_000) == "150ms"
    assert units.show_time(1_500_000) == "1.5s"
    assert units.show_rate(4_500_000) == "4.5mbit"
    assert units.show_bytes(1_500_000) == "1.5MB"
    assert units.show_bytes(262_144) == "262.144kB"
    assert units.show_percent(10_000) == "1%"
