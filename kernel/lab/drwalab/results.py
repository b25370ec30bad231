# SPDX-License-Identifier: GPL-2.0-only
"""From what the guest recorded to the result of a run, a dict that README.md explains.

Nothing in a result depends on the host, on the time of day or on where files are, so that the same
command gives the same bytes.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drwalab import __version__, quicstacks
from drwalab.kernels import Kernel
from drwalab.network import PROGRAMS
from drwalab.spec import GOVERNED, PACED, SAMPLE_US, Link, Neighbour, RunSpec

SCHEMA = "drwa-lab-run/2"

Result = dict[str, Any]
Records = dict[str, npt.NDArray[np.int64]]

_ROUND = re.compile(r"(\d+)\.(\d{6}): tcp_drwa_round: (.*)")


def read(folder: Path, spec: RunSpec, kernel: Kernel) -> Result:
    """The result of the run whose guest wrote into this folder."""
    records = read_raw(folder / "raw")
    start_us = int(records["t"][0, 0])
    received, rwnd_bytes, flows = _downloads(records, spec)
    neighbours, others = _neighbours(records, spec)
    capacity = _capacity_bytes(spec, spec.down, "rate")
    up_capacity = _capacity_bytes(spec, spec.up, "uplink-rate") if spec.up else None
    delivered, drops = (int(x) for x in records["d"][0, 1:3])
    counters = tcp_counters((folder / "netstat").read_text())
    probes = delays(records, spec.duration_us)
    uploaded, uploads = _uploads(records, spec)
    firmware, firmware_bytes = _firmware(records, spec)
    return {
        "schema": SCHEMA,
        "name": spec.name,
        "scheme": spec.scheme.name,
        "lambda": _or_none(spec.lambda_hundredths, 100),
        "limits": spec.scheme.limits,
        "cc": spec.cc,
        "aqm": spec.aqm,
        "config": _config(spec),
        "goodput_mbps": round(int(received.sum()) * 8 / spec.duration_us, 6),
        "rtt_ms": _rtt(records, probes),
        "up_ms": _statistics(_way_up(records)[:, 1] / 1e3, (50, 95, 99)),
        "flows": flows,
        "jain": jain(received[_first_with_all(spec) :].sum(axis=0)),
        "objects": _objects(records, spec),
        "segments": _segments(records, spec),
        "utilisation": round(delivered / float(capacity.sum()), 6) if capacity.any() else None,
        "retransmits": sum(flow["retransmits"] for flow in flows),
        "zero_windows": counters["TCPToZeroWindowAdv"],
        "upload_goodput_mbps": _sum_mbps(uploaded, spec),
        "uploads": uploads,
        "firmware": firmware,
        "neighbours": neighbours,
        "fair_share": fair_share(received, others, spec),
        "queue_drops": drops,
        "series": {
            "interval_s": SAMPLE_US / 1e6,
            "t_s": _rounded(np.arange(1, len(capacity) + 1) * SAMPLE_US / 1e6, 1),
            "goodput_mbps": _rounded(received.sum(axis=1) * 8 / SAMPLE_US, 4),
            "flow_goodput_mbps": [_rounded(flow * 8 / SAMPLE_US, 4) for flow in received.T],
            "neighbour_goodput_mbps": [_rounded(each * 8 / SAMPLE_US, 4) for each in others.T],
            "rwnd_bytes": [int(x) for x in rwnd_bytes.sum(axis=1)],
            "link_mbps": _rounded(capacity * 8 / SAMPLE_US, 4),
            "uplink_mbps": None
            if up_capacity is None
            else _rounded(up_capacity * 8 / SAMPLE_US, 4),
            "upload_goodput_mbps": [_rounded(each * 8 / SAMPLE_US, 4) for each in uploaded.T],
            "firmware_bytes": firmware_bytes,
            "rtt": {
                "t_s": _rounded(probes[:, 0] / 1e6, 6),
                "ms": _rounded(probes[:, 1] / 1e3, 3),
                "lost_t_s": _rounded(probes[probes[:, 2] == 0, 0] / 1e6, 6),
            },
            "up": {
                "t_s": _rounded(_way_up(records)[:, 0] / 1e6, 6),
                "ms": _rounded(_way_up(records)[:, 1] / 1e3, 3),
            },
        },
        "drwa": _rounds(folder / "trace", records, start_us),
        "counters": drwa_counters(folder / "tcp_drwa") or programs_counters(folder / PROGRAMS),
        "provenance": {
            "kernel_release": kernel.release,
            "debian_version": kernel.debian_version,
            "kernel_key": kernel.key,
            "patch_ids": kernel.patch_ids,
            "trace_sha256": spec.down.trace.sha256 if spec.down.trace else None,
            "uplink_trace_sha256": spec.up.trace.sha256 if spec.up and spec.up.trace else None,
            "stacks": quicstacks.versions([each.kind for each in spec.neighbours]),
            "seed": spec.seed,
            "lab_version": __version__,
            "command": spec.command(),
        },
    }


def add_idle(result: Result, idle: Result) -> None:
    """Put the delay of the idle link, which is the least that any load can have, beside the run's.

    The idle run is that of RunSpec.idle().
    """
    result["rtt_ms"]["idle"] = {key: idle["rtt_ms"][key] for key in ("mean", "p50", "p95")}


def of_idle(result: Result, key: str) -> float | None:
    """The run's mean, p50 or p95 RTT in those of the idle link; none without probes."""
    own, idle = result["rtt_ms"][key], result["rtt_ms"]["idle"][key]
    return None if own is None or not idle else float(own / idle)


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """The mean of ratios, in which twice and half cancel; none of nothing."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else None


def dump(results: Sequence[Result]) -> str:
    """JSON text: one object for one result, else a list."""
    content = results[0] if len(results) == 1 else list(results)
    return json.dumps(content, ensure_ascii=False) + "\n"


def goodput_between(result: Result, from_s: float, to_s: float) -> list[float]:
    """Mean goodput of each download in a part of the run, in Mb/s."""
    # A sample stands for the interval that ends with it.
    end_s = np.array(result["series"]["t_s"])
    part = (end_s > from_s + 0.05) & (end_s < to_s + 0.05)
    flows = np.array(result["series"]["flow_goodput_mbps"]).reshape(-1, len(end_s))[:, part]
    return [float(x) for x in flows.mean(axis=1)] if part.any() else [0.0] * len(flows)


def rtt_between(result: Result, from_s: float, to_s: float) -> npt.NDArray[np.float64]:
    """RTT of the probes that were sent in a part of the run, in ms; see delays() for lost ones."""
    sent_s = np.array(result["series"]["rtt"]["t_s"])
    rtt_ms = np.array(result["series"]["rtt"]["ms"], dtype=np.float64)
    return rtt_ms[(sent_s >= from_s) & (sent_s < to_s)]


def settled(result: Result, from_s: float) -> tuple[float, float | None]:
    """Goodput in Mb/s and mean RTT in ms of a run's part from this second on."""
    end_s = result["config"]["duration_s"]
    rtt = rtt_between(result, from_s, end_s)
    mean = float(rtt.mean()) if len(rtt) else None
    return sum(goodput_between(result, from_s, end_s)), mean


def read_raw(path: Path) -> Records:
    """Each kind of record as a table, with a row per line."""
    rows: dict[str, list[list[int]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        kind, *values = line.split()
        rows[kind].append([int(value) for value in values])
    widths = {"p": 3, "l": 2, "n": 3, "b": 1, "s": 5, "o": 3, "v": 3, "f": 2, "r": 3}
    widths |= {"u": 3, "x": 3, "y": 2, "m": 3, "c": 4}
    records = {kind: np.array(values, dtype=np.int64) for kind, values in rows.items()}
    for kind, width in widths.items():
        records.setdefault(kind, np.empty((0, width), dtype=np.int64))
    return records


def _rounded(values: npt.NDArray[Any], decimals: int) -> list[float]:
    return [float(x) for x in np.round(values.astype(np.float64), decimals)]


def _or_none(value: int | None, divisor: int) -> float | None:
    return None if value is None else value / divisor


def _config(spec: RunSpec) -> dict[str, Any]:
    up, modem = spec.up, spec.uplink
    return {
        "kernel": spec.kernel,
        "flavour": spec.flavour,
        "rate_bps": spec.down.rate_bps,
        "trace": spec.down.trace.path.name if spec.down.trace else None,
        "base_rtt_ms": spec.base_rtt_us / 1e3,
        "buffer_bytes": spec.down.buffer_bytes,
        "uplink_rate_bps": up.rate_bps if up else None,
        "uplink_trace": up.trace.path.name if up and up.trace else None,
        "uplink_buffer_bytes": up.buffer_bytes if up and not modem else None,
        "uplink_scheme": modem.scheme if modem else None,
        "uplink_target_ms": _or_none(modem.target_us, 1000) if modem else None,
        "firmware_bytes": modem.firmware_bytes if modem else None,
        "grant_ms": modem.grant_us / 1e3 if modem else None,
        "grant_report_ms": _or_none(modem.report_us, 1000) if modem else None,
        "modem_tells_ms": _or_none(modem.told_us, 1000) if modem else None,
        "modem_hides_bytes": modem.hidden_bytes if modem else None,
        "modem_bearers": modem.bearers if modem and modem.bearers > 1 else None,
        "loss": spec.loss_ppm / 1e6,
        "reorder": spec.reorder_ppm / 1e6,
        "duplicate": spec.duplicate_ppm / 1e6,
        "ack_thin": spec.ack_thin or None,
        "promotion": str(spec.promotion) if spec.promotion else None,
        "drx": str(spec.drx) if spec.drx else None,
        "flows": spec.flows,
        "flow_gap_s": spec.flow_gap_us / 1e6,
        "reader": str(spec.reader),
        "sockets": shlex.join(spec.sockets.words()),
        "duration_s": spec.duration_us / 1e6,
        "upload": spec.uploads > 0,
        "uploads": spec.uploads,
        "upload_kind": spec.upload_kind if spec.uploads else None,
        "upload_cc": spec.upload_cc if spec.uploads and spec.upload_kind == "tcp" else None,
        "upload_lie_ms": spec.upload_lie_ms or None,
        "uplink_loss": spec.uplink_loss_ppm / 1e6,
        "downlink_ack_thin": spec.downlink_ack_thin or None,
        "probe_kind": spec.probe_kind,
        "objects": list(spec.object_bytes),
        "keep_alive": spec.keep_alive,
        "push": spec.push,
        "arrival": spec.arrival,
        "think_s": spec.think_us / 1e6,
        "probe_interval_ms": spec.probe_us / 1e3,
        "events": [str(event) for event in spec.events],
        "neighbours": [str(neighbour) for neighbour in spec.neighbours],
        "client": spec.client.load if spec.client else None,
        "client_rtt_ms": spec.client.rtt_us / 1e3 if spec.client else None,
        "client_jitter_ms": spec.client.jitter_us / 1e3 if spec.client else None,
        "client_nat": spec.client.nat if spec.client else None,
        "second": spec.second,
        "clock_ppm": spec.clock.ppm,
        "clock_tick_ms": spec.clock.tick_us / 1e3,
        "syn_scale": spec.syn_scale,
        "strip_timestamps": spec.strip_timestamps,
        "gro_ms": _or_none(spec.gro_us, 1000),
        "tso": spec.tso,
        "upload_tso": spec.upload_tso,
        "ipv6": spec.ipv6,
        "shape_bps": spec.shape_bps or None,
        "initcwnd": spec.initcwnd or None,
    }


def _downloads(
    records: Records, spec: RunSpec
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[dict[str, Any]]]:
    """Per interval (row) and download: bytes received and the window; and each one's totals."""
    intervals = spec.duration_us // SAMPLE_US
    samples = records["s"].reshape(intervals, spec.flows, 5)
    received = np.diff(samples[:, :, 2], axis=0, prepend=0)
    flows = [
        {
            "goodput_mbps": round(int(total) * 8 / (spec.duration_us - start_us), 6),
            "retransmits": int(retransmits),
            "reads": int(reads),
            "start_s": start_us / 1e6,
            "end": _end(number, spec),
        }
        for (number, start_us), total, (_, retransmits, reads) in zip(
            ((number, number * spec.flow_gap_us) for number in range(spec.flows)),
            received.sum(axis=0),
            records["r"],
            strict=True,
        )
    ]
    return received, samples[:, :, 3], flows


def _end(number: int, spec: RunSpec) -> str:
    """Where a download ends: on the phone, or on a client of its hotspot."""
    if not spec.client or (spec.client.load == "half" and number % 2 == 0):
        return "phone"
    return "client"


def _neighbours(
    records: Records, spec: RunSpec
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """Each neighbour's totals; and bytes received per interval (row) and neighbour."""
    intervals = spec.duration_us // SAMPLE_US
    samples = records["n"].reshape(intervals, len(spec.neighbours), 3)
    received = np.diff(samples[:, :, 2], axis=0, prepend=0)
    paced = {int(number): list(map(int, counts)) for number, *counts in records["c"]}
    totals = [
        {
            "kind": each.kind,
            "start_s": each.at_us / 1e6,
            "end_s": _end_us(each, spec) / 1e6,
            "goodput_mbps": round(int(total) * 8 / (_end_us(each, spec) - each.at_us), 6),
            **_losses(*paced.get(number, ())),
        }
        for number, (each, total) in enumerate(
            zip(spec.neighbours, received.sum(axis=0), strict=True)
        )
    ]
    return totals, received


def _losses(sent: int = 0, arrived: int = 0, received: int = 0) -> dict[str, int | None]:
    """Of a call's or a game's packets: those lost in all, and those that the phone dropped."""
    if not sent:
        return {"lost": None, "dropped": None}
    return {"lost": sent - received, "dropped": arrived - received}


def _end_us(neighbour: Neighbour, spec: RunSpec) -> int:
    if neighbour.for_us is None:
        return spec.duration_us
    return min(spec.duration_us, neighbour.at_us + neighbour.for_us)


# Until the company has settled.
SHARED_AFTER_US = 5_000_000


def fair_share(
    received: npt.NDArray[np.int64], others: npt.NDArray[np.int64], spec: RunSpec
) -> float | None:
    """What a download gets of a fair part of all that the phone gets, beside its neighbours.

    From five seconds after the last of all has started until the first neighbour ends; none without
    downloads, neighbours, or such a time. Who takes what it needs and no more is no neighbour here.
    """
    rivals = [i for i, each in enumerate(spec.neighbours) if each.kind not in (*GOVERNED, *PACED)]
    if not rivals or not spec.flows:
        return None
    starts_us = [spec.neighbours[i].at_us for i in rivals] + [(spec.flows - 1) * spec.flow_gap_us]
    first = (max(starts_us) + SHARED_AFTER_US) // SAMPLE_US
    last = min(_end_us(spec.neighbours[i], spec) for i in rivals) // SAMPLE_US
    own = received[first:last].sum()
    total = own + others[first:last, rivals].sum()
    if first >= last or not total:
        return None
    parts = spec.flows + len(rivals)
    return round(float(own / spec.flows / (total / parts)), 6)


def _first_with_all(spec: RunSpec) -> int:
    """The interval in which the last download starts."""
    return max(0, spec.flows - 1) * spec.flow_gap_us // SAMPLE_US


def jain(goodput: Sequence[float] | npt.NDArray[Any]) -> float | None:
    """Jain's fairness index; none without several flows that got something."""
    values = np.asarray(goodput, dtype=np.float64)
    if len(values) < 2 or not values.any():
        return None
    return round(float(values.sum() ** 2 / (len(values) * (values**2).sum())), 6)


def _statistics(values: npt.NDArray[np.float64], percentiles: Sequence[int]) -> dict[str, Any]:
    if not len(values):
        return {"mean": None} | {f"p{p}": None for p in percentiles}
    points = np.percentile(values, percentiles, method="linear")
    stats = {"mean": round(float(values.mean()), 3)}
    return stats | {f"p{p}": round(float(x), 3) for p, x in zip(percentiles, points, strict=True)}


def delays(records: Records, end_us: int) -> npt.NDArray[np.int64]:
    """Each probe's instant of sending and RTT, in us, and 1 where it was answered, by sending.

    A probe without an answer has cost whoever waits for it at least the time until the first answer
    to anything sent later: its RTT is that of the next answered probe and the time between the two.
    After the last one answered, probes may be on their way when the run ends. Those that have
    waited for longer than that one did count with the time they waited; of the others nothing is
    known.
    """
    answered = records["p"][np.argsort(records["p"][:, 2])]
    lost = records["l"]
    following = np.searchsorted(answered[:, 2], lost[:, 1])
    overtaken = following < len(answered)
    answer_us = np.full(len(lost), end_us)
    answer_us[overtaken] = answered[following[overtaken], :2].sum(axis=1)
    waited_us = answer_us - lost[:, 0]
    known = overtaken | (waited_us > (answered[-1, 1] if len(answered) else 0))
    late = np.column_stack([lost[:, 0], waited_us, np.zeros(len(lost), np.int64)])[known]
    there = np.column_stack([answered[:, :2], np.ones(len(answered), np.int64)])
    found = np.concatenate([there, late])
    return found[np.argsort(found[:, 0], kind="stable")]


def _rtt(records: Records, probes: npt.NDArray[np.int64]) -> dict[str, Any]:
    lost = int((probes[:, 2] == 0).sum())
    return {
        "base": round(int(records["b"].min()) / 1e3, 3),
        **_statistics(probes[:, 1] / 1e3, (50, 95, 99)),
        "count": len(probes) - lost,
        "lost": lost,
    }


def _objects(records: Records, spec: RunSpec) -> dict[str, Any]:
    objects = records["o"]
    times, sizes = objects[:, 1] / 1e3, objects[:, 2]
    by_size = [
        {"size_bytes": size, "count": int((sizes == size).sum()), **_fct(times[sizes == size])}
        for size in sorted(set(spec.object_bytes))
    ]
    return {
        "count": len(objects),
        "unfinished": int(records["w"][0, 0]),
        **_fct(times),
        "by_size": by_size,
        "fct_ms": _rounded(times, 3),
        "size_bytes": [int(x) for x in sizes],
        "start_s": _rounded(objects[:, 0] / 1e6, 6),
    }


def _segments(records: Records, spec: RunSpec) -> dict[str, Any] | None:
    if spec.reader.kind != "burst":
        return None
    segments = records["v"]
    times = segments[:, 1] / 1e3
    return {
        "count": len(segments),
        **_fct(times),
        "fct_ms": _rounded(times, 3),
        "start_s": _rounded(segments[:, 0] / 1e6, 6),
    }


def _fct(times_ms: npt.NDArray[np.float64]) -> dict[str, Any]:
    stats = _statistics(times_ms, (95,))
    return {"mean_fct_ms": stats["mean"], "p95_fct_ms": stats["p95"]}


def _uploads(records: Records, spec: RunSpec) -> tuple[npt.NDArray[np.int64], list[dict[str, Any]]]:
    """Bytes received per interval (row) and upload; and each one's totals."""
    intervals = spec.duration_us // SAMPLE_US
    samples = records["x"].reshape(intervals, spec.uploads, 3)
    totals = [
        {"goodput_mbps": round(int(total) * 8 / spec.duration_us, 6), "retransmits": int(lost)}
        for _, total, lost in records["u"]
    ]
    return np.diff(samples[:, :, 2], axis=0, prepend=0), totals


def _sum_mbps(received: npt.NDArray[np.int64], spec: RunSpec) -> float | None:
    if not received.shape[1]:
        return None
    return round(int(received.sum()) * 8 / spec.duration_us, 6)


def _way_up(records: Records) -> npt.NDArray[np.int64]:
    """Of each answered probe, by its number: when it was sent, and the time of its way up, us."""
    _, answered, up = np.intersect1d(
        records["p"][:, 2], records["y"][:, 0], assume_unique=True, return_indices=True
    )
    return np.column_stack([records["p"][answered, 0], records["y"][up, 1]])


def _firmware(records: Records, spec: RunSpec) -> tuple[dict[str, Any] | None, list[int] | None]:
    """What was in the modem: mean and most over the run; and the mean of each interval."""
    if not spec.uplink:
        return None, None
    samples = records["m"]
    means = np.diff(samples[:, 1]) / (SAMPLE_US * 1000)
    totals = {
        "mean_bytes": round(float(means.mean()), 1),
        "max_bytes": int(samples[-1, 2]),
    }
    return totals, [round(float(x)) for x in means]


def _capacity_bytes(spec: RunSpec, link: Link, change: str) -> npt.NDArray[np.float64]:
    """Bytes that could cross the link, whose rate this event changes, in each interval."""
    edges = np.arange(0, spec.duration_us + 1, SAMPLE_US)
    capacity = _capacity_between(spec, link, change, edges)
    for event in spec.events:
        if event.what == "outage":
            outage = np.clip(edges, event.at_us, event.at_us + event.value)
            capacity -= _capacity_between(spec, link, change, outage)
    return capacity


def _capacity_between(
    spec: RunSpec, link: Link, change: str, edges: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    if link.trace:
        return link.trace.opportunities(edges // 1000).astype(np.float64) * 1500
    assert link.rate_bps is not None
    # Bits since the start at each change of the rate; between changes they grow evenly.
    at, bits, rate = [0], [0.0], link.rate_bps
    for event in spec.events:
        if event.what == change:
            bits.append(bits[-1] + rate * (event.at_us - at[-1]) / 1e6)
            at.append(event.at_us)
            rate = event.value
    bits.append(bits[-1] + rate * (spec.duration_us - at[-1]) / 1e6)
    at.append(spec.duration_us)
    return np.diff(np.interp(edges, at, bits)) / 8


def tcp_counters(netstat: str) -> dict[str, int]:
    """The TcpExt counters of /proc/net/netstat."""
    names, values = (line.split()[1:] for line in netstat.splitlines() if line.startswith("TcpExt"))
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def drwa_counters(path: Path) -> dict[str, int]:
    """What /proc/net/tcp_drwa counts, of all interfaces; nothing where the kernel lacks DRWA."""
    if not path.exists():
        return {}
    interfaces = [
        dict(pair.split("=", 1) for pair in line.split()[1:])
        for line in path.read_text().splitlines()
    ]
    return {
        key: sum(int(each[key]) for each in interfaces) for key in ("sockets", "rounds", "capped")
    }


def programs_counters(path: Path) -> dict[str, int]:
    """The same of the programs at the phone's interfaces."""
    if not path.exists():
        return {}
    interfaces = json.loads(path.read_text())["interfaces"]
    names = {"sockets": "flows", "rounds": "rounds", "capped": "capped"}
    counters = {key: sum(each[name] for each in interfaces) for key, name in names.items()}
    if any(each["aqm"] != "off" for each in interfaces):
        for name in ("flows", "dropped", "deaf", "tunnels"):
            counters[f"udp_{name}"] = sum(each["udp"][name] for each in interfaces)
    return counters


def _rounds(path: Path, records: Records, start_us: int) -> dict[str, list[Any]] | None:
    """The tracepoint's rounds; flow is the number of the download, -1 for any other connection."""
    if not path.exists():
        return None
    flow_of = {int(port): int(flow) for flow, port in records["f"]}
    columns: dict[str, list[Any]] = {
        "t_s": [],
        "flow": [],
        "rtt_ms": [],
        "path_ms": [],
        "cwnd_bytes": [],
        "rwnd_bytes": [],
    }
    for seconds, us, text in _ROUND.findall(path.read_text()):
        fields = dict(pair.split("=", 1) for pair in text.split() if "=" in pair)
        columns["t_s"].append((int(seconds) * 1_000_000 + int(us) - start_us) / 1e6)
        ports = (int(fields["sport"]), int(fields["dport"]))
        columns["flow"].append(next((flow_of[p] for p in ports if p in flow_of), -1))
        columns["rtt_ms"].append(int(fields["rtt_us"]) / 1e3)
        columns["path_ms"].append(int(fields["path_us"]) / 1e3)
        columns["cwnd_bytes"].append(int(fields["cwnd"]))
        columns["rwnd_bytes"].append(int(fields["rwnd"]))
    return columns if columns["t_s"] else None
