# SPDX-License-Identifier: GPL-2.0-only
"""The control law, kernel/src/net/ipv4/tcp_drwa_core.c, in this process."""

import ctypes
import functools
import tempfile
from pathlib import Path

import builds

DELAY, CLASSIC = 0, 1
START, HOLD, DRAIN = 0, 1, 2
MSS = 1448
# No story has so many rounds: a loop waits for what never comes.
MOST_ROUNDS = 50_000
U32 = 1 << 32


@functools.cache
def library() -> ctypes.CDLL:
    """The law with its undefined behaviour trapped; drwa_...() and the functions of state.c."""
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "core.so"
        flags = ["-O1", *builds.WARNINGS, *builds.INCLUDES, "-shared", "-fPIC"]
        flags += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
        builds.run(["gcc", *flags, builds.CORE, builds.TESTS / "state.c", "-o", output])
        loaded = ctypes.CDLL(str(output))
    loaded.drwa_due.restype = loaded.count_due.restype = ctypes.c_bool
    return loaded


class Link:
    """struct drwa_link"""

    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(library().link_size())
        # Bytes that came over it, whosever they are, and whether anybody counts them
        self.came = U32 - 1_000_000
        # Bytes of uploads
        self.sent = 0
        self.counts = True

    @property
    def target_us(self) -> int:
        return int(library().link_target_us(self.memory)) % U32

    @property
    def silence_us(self) -> int:
        return int(library().link_silence_us(self.memory)) % U32

    @property
    def rivals(self) -> bool:
        """Whether more than a quarter of what came was nobody's."""
        return int(library().link_others(self.memory)) > 255 // 4


class Law:
    """One connection: a clock in us, the next byte expected, and struct drwa."""

    def __init__(self, law: int, lambda_: int, link: Link | None = None) -> None:
        self.memory = ctypes.create_string_buffer(library().state_size())
        self.link = link or Link()
        # The sender has a clock
        self.stamps = True
        self.now_us, self.rcv_nxt = U32 - 5_000_000, U32 - 100_000
        self.counted = self.rcv_nxt
        self.rounds = 0
        library().drwa_reset(self.memory, law)
        library().state_set_lambda(self.memory, lambda_)

    def _member(self, name: str) -> int:
        return int(library()[f"state_{name}"](self.memory)) % U32

    @property
    def wnd(self) -> int:
        return self._member("wnd")

    @property
    def rtt_us(self) -> int:
        return self._member("rtt_us")

    @property
    def path_us(self) -> int:
        return self._member("path_us")

    @property
    def lambda_(self) -> int:
        return self._member("lambda")

    @property
    def phase(self) -> int:
        return self._member("phase")

    @property
    def rival(self) -> bool:
        return bool(self._member("rival"))

    @property
    def clock(self) -> bool:
        """Whether it believes that the sender has one."""
        return bool(self._member("clock"))

    def receive(self, us: int, size: int, burst_us: int | None = None) -> None:
        """So long brings so many bytes, a segment at a time, evenly or in its last burst_us."""
        from_us = self.now_us + us - (us if burst_us is None else burst_us)
        self.now_us += us
        self.rcv_nxt += size
        segments = -(-size // MSS)
        library().hear_evenly(
            self.link.memory, from_us % U32, (self.now_us - from_us) % U32, segments
        )

    def sample(self, rtt_us: int, owd_us: int = 0) -> None:
        now_us, owd_us = self.now_us % U32, owd_us % U32
        if self.rtt_us:
            library().drwa_sample(self.memory, rtt_us, owd_us)
        else:
            rcv_nxt = self.rcv_nxt % U32
            library().drwa_start(self.memory, now_us, rcv_nxt, rtt_us, owd_us, self.stamps)

    def due(self) -> bool:
        return bool(library().drwa_due(self.memory, self.link.memory, self.now_us % U32))

    def round(self, mss: int = MSS) -> int:
        """Ends the round, and counts the link's bytes if that is due."""
        self.rounds += 1
        assert self.rounds < MOST_ROUNDS
        now_us, rcv_nxt = self.now_us % U32, self.rcv_nxt % U32
        self.link.came += self.rcv_nxt - self.counted
        library().credit(self.link.memory, (self.rcv_nxt - self.counted) % U32)
        self.counted = self.rcv_nxt
        library().drwa_round(self.memory, self.link.memory, now_us, rcv_nxt, mss)
        if self.link.counts and library().count_due(self.memory, self.link.memory, now_us):
            came = self.link.came % U32
            sent = self.link.sent % U32
            library().drwa_count(self.link.memory, now_us, self.rtt_us, came, sent)
        return self.wnd
