# SPDX-License-Identifier: GPL-2.0-only
"""The phone's uplink: its qdisc, and the modem behind it (guest/net/sched/lab_modem.h)."""

from dataclasses import dataclass

from drwalab import units

# What may stand before the modem; doc/reference.md explains each.
GATE = "drwa"
SCHEMES = ("pfifo", "rmnet", "fq_codel", "autorate", "qcut-b", "qcut-d", GATE)
# Those that --modem-bearers takes: the others read a modem of one queue.
BELOW_MQ = ("pfifo", "fq_codel", GATE)
# As guest/net/sched/lab_modem.h has.
BEARERS = ("2",)
# Those that --uplink-target concerns.
WITH_TARGET = ("qcut-d", GATE)

# What an upload is sent over.
UPLOAD_KINDS = ("tcp", "quic", "quic-duplex")
# What a probe's answer has of the probe: all of it, or nothing that could be recognised.
PROBE_KINDS = ("echo", "opaque")


@dataclass(frozen=True)
class Uplink:
    """A modem with a queue of its own, and what the phone does about it.

    Without target_us a scheme has its own; without report_us grants depend on nothing. It answers
    its driver within told_us how much it still takes, but for hidden_bytes; without told_us never.
    With several bearers, each has a queue of the interface's and one of the modem's own.
    """

    scheme: str
    target_us: int | None
    firmware_bytes: int
    grant_us: int
    report_us: int | None
    told_us: int | None = None
    hidden_bytes: int = 0
    bearers: int = 1

    @property
    def label(self) -> str:
        if self.target_us is None:
            return f"uplink {self.scheme}"
        return f"uplink {self.scheme} {units.show_time(self.target_us)}"

    def words(self) -> list[str]:
        """The options that repeat it."""
        words = ["--uplink-scheme", self.scheme]
        if self.target_us is not None:
            words += ["--uplink-target", units.show_time(self.target_us)]
        words += ["--firmware", units.show_bytes(self.firmware_bytes)]
        words += ["--grant", units.show_time(self.grant_us)]
        if self.report_us is not None:
            words += ["--grant-report", units.show_time(self.report_us)]
        if self.told_us is not None:
            words += ["--modem-tells", units.show_time(self.told_us)]
        if self.hidden_bytes:
            words += ["--modem-hides", units.show_bytes(self.hidden_bytes)]
        if self.bearers > 1:
            words += ["--modem-bearers", str(self.bearers)]
        return words
