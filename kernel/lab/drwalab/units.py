# SPDX-License-Identifier: GPL-2.0-only
"""Quantities with units on the command line, read into integers and written back the same way.

And what is said of a name that nobody knows.

Every parser raises ValueError with a text that can follow the option's name. Arithmetic is exact,
so that a value that is written and read again stays what it was.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches

_NUMBER = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Zµ%]*)")

_TIME_US = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000}
_RATE_BPS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


# Of a message with all names; longer ones say how many more there are.
MAX_CHOICES = 110


def instead_of(text: str, known: Iterable[str]) -> str:
    """What a user may have meant by an unknown name, or else all names."""
    names = list(known)
    # Numbers are alike by chance.
    near = get_close_matches(text, names, n=2) if re.search("[a-z]", text) else []
    if near:
        return f"did you mean {' or '.join(near)}?"
    told = names
    while len(", ".join(told)) > MAX_CHOICES:
        told = told[:-1]
    more = f" and {len(names) - len(told)} more, see --help" if told != names else ""
    return f"choose from {', '.join(told)}{more}"


def _parse(text: str, units: dict[str, int], example: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or match[2].lower() not in units:
        names = ", ".join(unit for unit in units if unit.isascii() and unit)
        raise ValueError(f"'{text}' is not a number with a unit ({names}), such as {example}")
    value = Decimal(match[1]) * units[match[2].lower()]
    if value < 0:
        raise ValueError(f"'{text}' is negative")
    if value != value.to_integral_value():
        raise ValueError(f"'{text}' is finer than the smallest unit")
    return int(value)


def parse_time_us(text: str) -> int:
    """Microseconds in a text such as 50ms."""
    return _parse(text, _TIME_US, "50ms")


def parse_rate_bps(text: str) -> int:
    """Bits per second in a text such as 10mbit."""
    return _parse(text, _RATE_BPS, "10mbit")


def parse_bytes(text: str) -> int:
    """Bytes in a text such as 1500kB (1000) or 64KiB (1024); bytes when it has no unit."""
    return _parse(text, _BYTES, "1500kB")


def parse_percent_ppm(text: str) -> int:
    """Parts per million in a text such as 1%."""
    ppm = _parse(text, {"%": 10_000}, "1%")
    if ppm > 1_000_000:
        raise ValueError(f"'{text}' is more than 100%")
    return ppm


def parse_ppm(text: str) -> int:
    """Signed parts per million in a text such as -500ppm."""
    match = re.fullmatch(r"([+-]?[0-9]+) ?ppm", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a whole number of ppm, such as -500ppm")
    return int(match[1])


def parse_signed_ms(text: str) -> int:
    """Signed milliseconds in a text such as -200ms or 1s."""
    sign, size = (-1, text.strip()[1:]) if text.strip().startswith("-") else (1, text)
    ms, rest = divmod(parse_time_us(size), 1000)
    if rest or not ms:
        raise ValueError(f"'{text}' is no whole number of ms, or 0")
    return sign * ms


def parse_hundredths(text: str) -> int:
    """Hundredths in a text such as 1.5."""
    match = re.fullmatch(r"[0-9]+(?:\.[0-9]{1,2})?", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a number with at most two decimals, such as 1.5")
    return int(Decimal(match[0]) * 100)


def _shown(value: int, units: list[tuple[str, int]]) -> str:
    """In the largest unit that leaves a whole number, or at most three decimals."""
    for name, factor in units:
        if value >= factor and value * 1000 % factor == 0:
            return f"{Decimal(value) / factor:f}{name}"
    return f"{value}{units[-1][0]}"


def show_time(us: int) -> str:
    return _shown(us, [("s", 1_000_000), ("ms", 1_000), ("us", 1)])


def show_ppm(ppm: int) -> str:
    return f"{ppm}ppm"


def show_signed_ms(ms: int) -> str:
    return ("-" if ms < 0 else "") + show_time(abs(ms) * 1000)


def show_rate(bps: int) -> str:
    return _shown(bps, [("mbit", 10**6), ("kbit", 10**3), ("bit", 1)])


def show_bytes(count: int) -> str:
    return _shown(count, [("MB", 10**6), ("kB", 10**3), ("B", 1)])


def show_percent(ppm: int) -> str:
    return f"{Decimal(ppm) / 10_000:f}%"


def show_hundredths(value: int) -> str:
    return f"{value / 100:.2f}"
