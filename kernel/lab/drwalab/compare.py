# SPDX-License-Identifier: GPL-2.0-only
"""Results side by side: which belong together, what they are measured against, the verdict."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drwalab import units
from drwalab.results import SCHEMA, Result, geometric_mean, of_idle
from drwalab.uplink import GATE

NUMBERS = ("goodput_mbps", "utilisation", "retransmits", "zero_windows")
UPLOADS_OVER = {"quic": " over QUIC", "quic-duplex": " over QUIC that also downloads"}
PARTS = ("config", "rtt_ms", "flows", "objects", "series", "provenance")

# Everything that a scheme is not responsible for: two runs compare only when these agree.
# Of a link that changes more often, a label has the first and the last change.
MAX_EVENTS_TOLD = 4
LINK_KEYS = (
    "rate_bps",
    "trace",
    "base_rtt_ms",
    "buffer_bytes",
    "uplink_rate_bps",
    "uplink_trace",
    "uplink_buffer_bytes",
    "firmware_bytes",
    "grant_ms",
    "grant_report_ms",
    "modem_tells_ms",
    "modem_hides_bytes",
    "modem_bearers",
    "flows",
    "flow_gap_s",
    "duration_s",
    "initcwnd",
    "loss",
    "uplink_loss",
    "reorder",
    "duplicate",
    "ack_thin",
    "downlink_ack_thin",
    "promotion",
    "drx",
    "reader",
    "sockets",
    "upload",
    "uploads",
    "upload_kind",
    "upload_lie_ms",
    "neighbours",
    "client",
    "client_rtt_ms",
    "client_jitter_ms",
    "client_nat",
    "second",
    "clock_ppm",
    "clock_tick_ms",
    "syn_scale",
    "strip_timestamps",
    "gro_ms",
    "tso",
    "upload_tso",
    "ipv6",
    "events",
    "objects",
    "keep_alive",
    "push",
    "arrival",
    "think_s",
    "probe_interval_ms",
    "probe_kind",
)


class ResultError(Exception):
    """A file that is not a result of the lab."""


def load(paths: Iterable[Path]) -> list[Result]:
    """The results in these files, each of which holds one result or a list of them."""
    results: list[Result] = []
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as e:
            raise ResultError(f"{path}: {e.strerror}") from e
        except ValueError as e:
            raise ResultError(f"{path}: not JSON") from e
        found = content if isinstance(content, list) else [content]
        if not found:
            raise ResultError(f"{path}: holds no result")
        for result in found:
            check(result, str(path))
        results += found
    return results


def check(result: object, where: str) -> None:
    """Raise ResultError unless this looks like one result of `lab run`."""
    if not isinstance(result, dict) or result.get("schema") != SCHEMA:
        raise ResultError(f"{where}: not a result of `lab run --json` ({SCHEMA})")
    for key in ("name", "scheme", *NUMBERS, *PARTS):
        if key not in result:
            raise ResultError(f"{where}: result without {key}")


@dataclass(frozen=True)
class Run:
    """One result under a name that no other run on the same link has."""

    name: str
    result: Result

    @property
    def goodput(self) -> float:
        """The downloads', or the uploads' where there is nothing else."""
        if not self.result["flows"] and self.result.get("upload_goodput_mbps"):
            return float(self.result["upload_goodput_mbps"])
        return float(self.result["goodput_mbps"])

    def rtt(self, key: str) -> float | None:
        value = self.result["rtt_ms"].get(key)
        return None if value is None else float(value)

    @property
    def idle_p95(self) -> float | None:
        """The least p95 RTT that the link allows."""
        value = self.result["rtt_ms"]["idle"]["p95"]
        return None if value is None else float(value)


@dataclass(frozen=True)
class Comparison:
    """Runs over the same link: the baseline among them, and the one that the verdict is about."""

    label: str
    runs: list[Run]
    baseline: Run
    subject: Run | None


def compare(results: Sequence[Result]) -> list[Comparison]:
    """One comparison per link, in the order in which the links first appear."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(_link_key(result), []).append(result)
    return [_comparison(group) for group in groups.values()]


def _link_key(result: Result) -> str:
    config, provenance = result["config"], result["provenance"]
    link = [config.get(key) for key in LINK_KEYS]
    link += [provenance.get(key) for key in ("trace_sha256", "uplink_trace_sha256", "seed")]
    return json.dumps(link)


def _comparison(results: list[Result]) -> Comparison:
    runs = [Run(n, r) for n, r in zip(_names(results), results, strict=True)]
    stock = [r for r in runs if r.result["scheme"] == "stock"]
    plain = [r for r in stock if r.result.get("cc") == "cubic" and not r.result.get("aqm")]
    baseline = [*plain, *stock, *runs][0]
    return Comparison(link_label(results[0]), runs, baseline, _subject(runs, baseline))


def _names(results: list[Result]) -> list[str]:
    names = [str(r["name"]) for r in results]
    if len(set(names)) < len(names):
        kernels = [f"{r['config'].get('kernel')} {r['config'].get('flavour')}" for r in results]
        if len(set(kernels)) > 1:
            names = [f"{n} ({k})" for n, k in zip(names, kernels, strict=True)]
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique


def _subject(runs: list[Run], baseline: Run) -> Run | None:
    """The run to speak about: the uplink's gate, else the default DRWA algorithm, else Algorithm 1,
    else any other.

    Of several, the one with the least p95 RTT among those that keep 95 % of the baseline's
    goodput; when none does, the one with the highest goodput.
    """
    others = [r for r in runs if r is not baseline]
    gated = [r for r in others if r.result["config"].get("uplink_scheme") == GATE]
    others = gated or others
    for family in ("drwa", "drwa-classic", None):
        members = [r for r in others if family is None or r.result["scheme"] == family]
        if members:
            keep = [r for r in members if r.goodput >= 0.95 * baseline.goodput]
            if keep:
                return min(keep, key=lambda r: r.rtt("p95") or float("inf"))
            return max(members, key=lambda r: r.goodput)
    return None


@dataclass(frozen=True)
class Mean:
    """A scheme over all links of a base RTT: geometric means of its ratios."""

    base_rtt_ms: float
    name: str
    links: int
    goodput_of_baseline: float | None
    mean_of_idle: float | None
    p95_of_idle: float | None


def means(comparisons: Sequence[Comparison]) -> list[Mean]:
    """Each scheme over the links of each base RTT, as they come."""
    found: dict[tuple[float, str], list[tuple[Run, Run]]] = {}
    for comparison in comparisons:
        for run in comparison.runs:
            key = (float(run.result["config"]["base_rtt_ms"]), run.name)
            found.setdefault(key, []).append((run, comparison.baseline))
    return [
        Mean(
            base_rtt_ms,
            name,
            len(pairs),
            geometric_mean([r.goodput / b.goodput for r, b in pairs if b.goodput]),
            *(
                geometric_mean([x for r, _ in pairs if (x := of_idle(r.result, key))])
                for key in ("mean", "p95")
            ),
        )
        for (base_rtt_ms, name), pairs in found.items()
    ]


def mbps(value: float) -> str:
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"


def ms(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def whole_ms(value: float | None) -> str:
    """Milliseconds for a sentence: no more digits than a reader needs."""
    return ms(value) if value is None or value < 10 else f"{value:.0f}"


def change(value: float | None, reference: float | None) -> str:
    """A relative difference with its sign, such as −12 %."""
    if value is None or not reference:
        return "–"
    percent = (value / reference - 1.0) * 100.0
    text = f"{abs(percent):.1f}" if abs(percent) < 9.95 else f"{abs(percent):.0f}"
    if float(text) == 0.0:
        return "±0 %"
    return f"{'+' if percent > 0 else '−'}{text} %"


def verdict(comparison: Comparison) -> str:
    """What the subject keeps of the baseline's goodput, at which delay; and who does better."""
    base, subject = comparison.baseline, comparison.subject
    before = base.rtt("p95")
    rest = f"(idle link {whole_ms(base.idle_p95)} ms)"
    if subject is None:
        reached = f"{base.name} reaches {mbps(base.goodput)} Mb/s"
        return f"{reached} at a p95 RTT of {whole_ms(before)} ms {rest}."
    objects = not base.result["flows"] and base.result["objects"]["count"]
    if objects:
        times = [r.result["objects"]["mean_fct_ms"] for r in (subject, base)]
        text = f"{subject.name} fetches an object in {whole_ms(times[0])} ms in the mean"
        text += f" ({base.name}: {whole_ms(times[1])} ms)"
    elif base.goodput > 0:
        share = subject.goodput / base.goodput * 100
        verb = "reaches" if share >= 100 else "keeps" if share >= 90 else "keeps only"
        text = f"{subject.name} {verb} {_percent(share)} of {base.name}’s goodput"
        text += f" ({mbps(subject.goodput)} of {mbps(base.goodput)} Mb/s)"
    else:
        text = f"{subject.name} reaches {mbps(subject.goodput)} Mb/s ({base.name}: none)"
    p95 = subject.rtt("p95")
    if p95 is None or before is None:
        return f"{text}; the RTT under load was not measured."
    if p95 == before:
        text += f" at the same p95 RTT of {whole_ms(p95)} ms {rest}"
    else:
        verb = "cuts" if p95 < before else "raises"
        text += f" and {verb} the p95 RTT from {whole_ms(before)} to {whole_ms(p95)} ms {rest}"
    better = [
        (other, r)
        for r in comparison.runs
        if r.goodput >= subject.goodput and (other := r.rtt("p95")) is not None and other < p95
    ]
    if better and not objects:
        delay, best = min(better, key=lambda pair: pair[0])
        text += f"; {best.name} does better on both counts"
        text += f" ({mbps(best.goodput)} Mb/s, {whole_ms(delay)} ms)"
    return text + "."


def plainly(comparison: Comparison) -> str:
    """The verdict for who never heard of goodput; empty where it is about no download's queue."""
    base, subject = comparison.baseline, comparison.subject
    if subject is None or not base.result["flows"] or base.goodput <= 0:
        return ""
    p95, before = subject.rtt("p95"), base.rtt("p95")
    if p95 is None or before is None or p95 >= before:
        return ""
    share = subject.goodput / base.goodput * 100
    return (
        f"With {subject.name}, 95 of 100 pings beside the download take at most {_duration(p95)} "
        f"instead of {_duration(before)}, at {_percent(share)} of {base.name}’s speed."
    )


def _duration(ms: float) -> str:
    """Two digits of seconds, or whole ms."""
    return f"{ms / 1000:#.2g} s" if ms >= 100 else f"{whole_ms(ms)} ms"


def overall_verdict(comparisons: Sequence[Comparison]) -> str:
    """The verdict of the only link, or the range over all links."""
    if len(comparisons) == 1:
        return verdict(comparisons[0])
    names = {c.subject.result["scheme"] for c in comparisons if c.subject}
    shares, ratios = [], []
    for c in comparisons:
        p95, before = (c.subject.rtt("p95"), c.baseline.rtt("p95")) if c.subject else (None, None)
        if c.subject and c.baseline.goodput and p95 is not None and before:
            shares.append(c.subject.goodput / c.baseline.goodput * 100)
            ratios.append(p95 / before * 100)
    if len(names) != 1 or len(shares) != len(comparisons):
        return f"Results on {len(comparisons)} links, each with its own verdict below."
    stock = all(c.baseline.result["scheme"] == "stock" for c in comparisons)
    return (
        f"On {len(comparisons)} links, {names.pop()} keeps {_range(shares)} of "
        f"{'stock' if stock else 'the baseline'}’s goodput at {_range(ratios)} of its p95 RTT."
    )


def _percent(value: float) -> str:
    """Whole percents, but never a rounding up to 100."""
    return f"{value:.1f} %" if 99 <= value < 101 else f"{value:.0f} %"


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _client_label(c: dict[str, Any]) -> str:
    whose = "every second flow" if c["client"] == "half" else "all"
    jitter = f" ± {c['client_jitter_ms']:g}" if c["client_jitter_ms"] else ""
    nat = ", NAT" if c["client_nat"] else ""
    return f"{whose} to a client {c['client_rtt_ms']:g}{jitter} ms behind the phone{nat}"


def link_label(result: Result) -> str:
    """The link and the load in a line."""
    c = result["config"]
    parts = [_path_label(c, ""), f"base RTT {c['base_rtt_ms']:g} ms", _buffer_label(c, "")]
    if c.get("uplink_rate_bps") or c.get("uplink_trace"):
        queue = _modem_label(c) if c.get("firmware_bytes") else _buffer_label(c, "uplink_")
        parts.append(f"uplink {_path_label(c, 'uplink_')} with a {queue}")
    flows = c["flows"]
    parts.append(f"{flows} flow{'' if flows == 1 else 's'}")
    if c.get("flow_gap_s"):
        parts[-1] += f" {c['flow_gap_s']:g} s apart"
    parts.append(f"{c['duration_s']:g} s")
    for harm, text in (
        ("loss", "loss"),
        ("uplink_loss", "loss on the way up"),
        ("reorder", "reordered"),
        ("duplicate", "duplicated"),
    ):
        if c.get(harm):
            parts.append(f"{c[harm] * 100:g} % {text}")
    if c.get("ack_thin"):
        parts.append(f"one ACK of {c['ack_thin']}")
    if c.get("downlink_ack_thin"):
        parts.append(f"one of an upload's ACKs of {c['downlink_ack_thin']}")
    if c.get("promotion"):
        parts.append(f"promotion {c['promotion']}")
    if c.get("drx"):
        parts.append(f"DRX {c['drx']}")
    if c.get("reader", "fast") != "fast":
        parts.append(f"reader {c['reader']}")
    if c.get("sockets"):
        parts.append(c["sockets"])
    if c.get("initcwnd"):
        parts.append(f"initial window of {c['initcwnd']} segments")
    if c.get("upload"):
        parts.append(_uploads_label(c))
    if c.get("objects"):
        sizes = " ".join(units.show_bytes(size) for size in c["objects"])
        when = " on one connection" if c.get("keep_alive") else ""
        when += ", unasked" if c.get("push") else ""
        if c.get("arrival") == "poisson":
            when = f", Poisson, {c['think_s']:g} s apart in the mean"
        parts.append(f"objects of {sizes}{when}")
    parts += [f"beside {neighbour}" for neighbour in c.get("neighbours") or []]
    if c.get("client"):
        parts.append(_client_label(c))
    if c.get("second"):
        parts.append(f"every second flow over {c['second']}")
    if c.get("clock_ppm"):
        parts.append(f"server's clock {c['clock_ppm']:+d} ppm")
    if c.get("clock_tick_ms", 1) != 1:
        parts.append(f"server's ticks of {c['clock_tick_ms']:g} ms")
    if c.get("syn_scale") is not None:
        parts.append(f"the phone's SYNs with a scale of {c['syn_scale']}")
    if c.get("strip_timestamps"):
        parts.append("SYNs without their timestamps")
    if c.get("gro_ms") is not None:
        parts.append(f"GRO of {c['gro_ms']:g} ms")
    if c.get("tso"):
        parts.append("TSO")
    if c.get("upload_tso"):
        parts.append("TSO of uploads")
    if c.get("probe_kind", "echo") != "echo":
        parts.append(f"{c['probe_kind']} probes")
    if c.get("ipv6"):
        parts.append("IPv6")
    events = [str(e) for e in c.get("events") or []]
    if len(events) > MAX_EVENTS_TOLD:
        events = [f"{len(events)} changes from {events[0]} to {events[-1]}"]
    return ", ".join([*parts, *events])


def _modem_label(config: dict[str, Any]) -> str:
    label = (
        f"modem of {config['firmware_bytes'] / 1000:g} kB, grants after {config['grant_ms']:g} ms"
    )
    if config.get("grant_report_ms"):
        label += f" of what is reported each {config['grant_report_ms']:g} ms"
    if config.get("modem_tells_ms"):
        label += f", told within {config['modem_tells_ms']:g} ms"
    if config.get("modem_hides_bytes"):
        label += f" but for {config['modem_hides_bytes'] / 1000:g} kB"
    if config.get("modem_bearers"):
        label += f", {config['modem_bearers']} bearers"
    return label


def _uploads_label(config: dict[str, Any]) -> str:
    count = config.get("uploads", 1)
    kind = UPLOADS_OVER.get(str(config.get("upload_kind")), "")
    label = f"an own upload{kind}" if count == 1 else f"{count} own uploads{kind}"
    if config.get("upload_lie_ms"):
        label += f" whose server's clock lies by {config['upload_lie_ms']} ms"
    return label


def _path_label(config: dict[str, Any], prefix: str) -> str:
    rate = config.get(f"{prefix}rate_bps")
    return f"{rate / 1e6:g} Mb/s" if rate else str(config.get(f"{prefix}trace"))


def _buffer_label(config: dict[str, Any], prefix: str) -> str:
    return f"buffer of {config[f'{prefix}buffer_bytes'] / 1000:g} kB"
