# SPDX-License-Identifier: GPL-2.0-only
"""Links that serve in bursts, and links whose rate jumps, as lists in mahimahi's format.

They are known by a word, with numbers apart from each other by slashes:

bursts:SEED/ON/GAP/RATE
    Bursts of ON, in which packets are spread evenly, then a GAP in which nothing crosses; RATE is
    the mean over both. ON and GAP are times in whole ms, or spans such as 5ms-15ms that each one is
    drawn from, uniformly: a scheduler that takes turns between phones, evenly or at random.

tdd:PATTERN/RATE and tdd-up:PATTERN/RATE
    The downlink and the uplink of a carrier that sends and receives in turn. The pattern has a
    letter for each slot: D down, U up, S special, of which SPECIAL_DOWN of 14 symbols carry data
    down and none does up. RATE is the mean over the pattern. Patterns of NR have slots of 0.5 ms
    (30 kHz); 3GPP TS 38.213, 11.1, with the periods of TS 38.331's TDD-UL-DL-ConfigCommon: DDDSU,
    2.5 ms, and DDDSUDDSUU, 2.5 ms twice. Those of LTE have subframes of 1 ms: LTE1 and LTE2 are
    uplink-downlink configurations of TS 36.211, table 4.2-2, of which a subframe S is special
    subframe configuration 7 of table 4.2-1.

drive:SEED
    A 5G drive: a rate for each second, drawn from a log-normal with DRIVE_MEDIAN_MBPS and
    DRIVE_SIGMA, that of the drives of Raca et al. (MMSys 2020; nrlink.py has it), and held between
    DRIVE_MIN_MBPS and DRIVE_MAX_MBPS. Nothing is left of one second's rate in the next one's, where
    those drives forget half of it.

A trace counts in ms, so that what a slot of 0.5 ms carries comes at the end of its ms.

Radios that sleep (DRX) depend on the traffic, which a trace cannot: `lab run --drx`.
"""

from collections.abc import Callable
from fractions import Fraction
from random import Random

from drwalab import units
from drwalab.ltelink import PACKET_BYTES, exp, normal

LTE_PATTERNS = {"LTE1": "DSUUDDSUUD", "LTE2": "DSUDDDSUDD"}
SYMBOLS = 14
SPECIAL_DOWN = 10

DRIVE_MEDIAN_MBPS = 20.0
DRIVE_SIGMA = 1.2
DRIVE_MIN_MBPS = 10.0
DRIVE_MAX_MBPS = 250.0


class LinkError(ValueError):
    """A word that is no link."""


def _rng(seed: str) -> Random:
    if not (seed.isascii() and seed.isdigit()):
        raise LinkError(f"'{seed}' is no seed")
    return Random(int(seed))


def _rate_bps(text: str) -> int:
    rate = units.parse_rate_bps(text)
    if not rate:
        raise LinkError(f"'{text}' is no rate")
    return rate


def _span_ms(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    found = [units.parse_time_us(each) for each in ([low, high] if dash else [low])]
    if any(us % 1000 or not us for us in found) or found[0] > found[-1]:
        raise LinkError(f"'{text}' is no time in ms, or no span of two")
    return found[0] // 1000, found[-1] // 1000


def _draw(rng: Random, span: tuple[int, int]) -> int:
    """A whole number of the span, both ends included; randint() may differ between releases."""
    low, high = span
    return low + int(rng.random() * (high - low + 1))


def _spread(packets: int, from_ms: int, length_ms: int) -> list[int]:
    """So many packets evenly over these ms, of which the first one ends one ms later."""
    return [from_ms + 1 + i * length_ms // packets for i in range(packets)]


def _bursts(seconds: int, seed: str, on: str, gap: str, rate: str) -> list[int]:
    rng, on_ms, gap_ms, bps = _rng(seed), _span_ms(on), _span_ms(gap), _rate_bps(rate)
    times: list[int] = []
    start, due = 0, 0
    while start < seconds * 1000:
        length, silence = _draw(rng, on_ms), _draw(rng, gap_ms)
        # Bits thousandfold, so that nothing is rounded.
        due += bps * (length + silence)
        packets, due = divmod(due, PACKET_BYTES * 8 * 1000)
        times += _spread(packets, start, length)
        start += length + silence
    return times


def _tdd(seconds: int, pattern: str, rate: str, up: bool = False) -> list[int]:
    letters = LTE_PATTERNS.get(pattern, pattern)
    slots_in_ms = 1 if pattern in LTE_PATTERNS else 2
    down = {"D": SYMBOLS, "S": SPECIAL_DOWN, "U": 0}
    weights = {"D": 0, "S": 0, "U": SYMBOLS} if up else down
    if not letters or set(letters) - set(weights):
        raise LinkError(f"'{pattern}' is no pattern of D, S and U, nor {', '.join(LTE_PATTERNS)}")
    symbols = sum(weights[letter] for letter in letters)
    if not symbols:
        raise LinkError(f"'{pattern}' has no slot for this way")
    packets_in_ms = Fraction(_rate_bps(rate), PACKET_BYTES * 8 * 1000)
    # What a symbol of this way carries, so that the mean over the pattern is the rate.
    of_symbol = packets_in_ms * len(letters) / slots_in_ms / symbols
    times: list[int] = []
    due = Fraction(0)
    for slot in range(seconds * 1000 * slots_in_ms):
        due += weights[letters[slot % len(letters)]] * of_symbol
        packets = int(due)
        due -= packets
        times += [slot // slots_in_ms + 1] * packets
    return times


def _tdd_up(seconds: int, pattern: str, rate: str) -> list[int]:
    return _tdd(seconds, pattern, rate, up=True)


def _drive(seconds: int, seed: str) -> list[int]:
    rng = _rng(seed)
    times: list[int] = []
    for second in range(seconds):
        mbps = DRIVE_MEDIAN_MBPS * exp(DRIVE_SIGMA * normal(rng))
        mbps = min(DRIVE_MAX_MBPS, max(DRIVE_MIN_MBPS, mbps))
        times += _spread(int(mbps * 1e6 / 8 / PACKET_BYTES), second * 1000, 1000)
    return times


_KINDS: dict[str, tuple[Callable[..., list[int]], str]] = {
    "bursts": (_bursts, "SEED/ON/GAP/RATE"),
    "tdd": (_tdd, "PATTERN/RATE"),
    "tdd-up": (_tdd_up, "PATTERN/RATE"),
    "drive": (_drive, "SEED"),
}
FORMS = tuple(f"{kind}:{form}" for kind, (_, form) in _KINDS.items())


def is_link(word: str) -> bool:
    return word.partition(":")[0] in _KINDS


def opportunities(word: str, seconds: int) -> list[int]:
    """Times in ms, one per 1500-byte packet that can cross, ending with the period of the link."""
    kind, _, rest = word.partition(":")
    make, form = _KINDS.get(kind, (None, ""))
    numbers = rest.split("/")
    if make is None:
        raise LinkError(f"'{word}' is none of {', '.join(FORMS)}")
    if len(numbers) != form.count("/") + 1:
        raise LinkError(f"'{word}' is not {kind}:{form}")
    try:
        found = make(seconds, *numbers)
    except ValueError as e:
        raise LinkError(f"'{word}': {e}") from e
    end = seconds * 1000
    return [*(time for time in found if time <= end), end]
