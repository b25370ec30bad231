# SPDX-License-Identifier: GPL-2.0-only
"""`lab flent`: results as data files of flent (version 4), in the shape of one of its tests.

Four downloads beside four uploads are its rrul_be, any other numbers of them its rrul_be_nflows;
downloads alone are tcp_ndown, uploads alone tcp_nup. The probes, which are UDP here, are its ping.
"""

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from drwalab import compare, errors, output
from drwalab.compare import ResultError
from drwalab.results import Result

STEP_S = 0.2
# When every run began; virtual time has no date.
EPOCH = datetime(2012, 11, 14, tzinfo=UTC)


def shape(downloads: int, uploads: int) -> tuple[str, str, str]:
    """Flent's test for so many streams, and what it calls a download and an upload of a number."""
    if downloads == uploads == 4:
        return "rrul_be", "TCP download BE{}", "TCP upload BE{}"
    if downloads and uploads:
        return "rrul_be_nflows", "TCP download BE::{}", "TCP upload BE::{}"
    return ("tcp_nup" if uploads else "tcp_ndown"), "TCP download::{}", "TCP upload::{}"


def content(result: Result) -> dict[str, Any]:
    """What the file of a result says."""
    config, series = result["config"], result["series"]
    x = [round(STEP_S * n, 1) for n in range(1, round(config["duration_s"] / STEP_S) + 1)]
    start = EPOCH.timestamp()
    downs = series["flow_goodput_mbps"]
    ups = series["upload_goodput_mbps"] if config["upload"] else []
    name, *streams = shape(len(downs), len(ups))
    results: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}

    def add(stream: str, mbps: Any) -> None:
        results[stream] = [round(float(v), 4) for v in np.interp(x, series["t_s"], mbps)]

    for way, stream, flows in (("upload", streams[1], ups), ("download", streams[0], downs)):
        for number, flow in enumerate(flows, start=1):
            # The first of rrul_be's has no number.
            own = stream.format("" if number == 1 and name == "rrul_be" else number)
            add(own, flow)
            raw[own] = [
                {"t": round(start + t, 6), "val": v}
                for t, v in zip(series["t_s"], flow, strict=True)
            ]
        if flows:
            add(f"TCP {way} avg", np.mean(flows, axis=0))
            add(f"TCP {way} sum", np.sum(flows, axis=0))
    sent, ms = np.array(series["rtt"]["t_s"]), np.array(series["rtt"]["ms"])
    last = np.searchsorted(sent, x, side="right") - 1
    results["Ping (ms) ICMP"] = [float(ms[n]) if n >= 0 else None for n in last]
    raw["Ping (ms) ICMP"] = [
        {"t": round(start + t, 6), "val": v}
        for t, v in zip(sent.tolist(), ms.tolist(), strict=True)
    ]
    if downs and ups:
        add("TCP totals", np.sum([*downs, *ups], axis=0))
        results["Ping (ms) avg"] = results["Ping (ms) ICMP"]
    counts = {"download_streams": len(downs), "upload_streams": len(ups)}
    end = EPOCH + timedelta(seconds=config["duration_s"])
    return {
        "version": 4,
        "x_values": x,
        "results": results,
        "raw_values": raw,
        "metadata": {
            "NAME": name,
            "TITLE": str(result["name"]),
            "NOTE": f"kernel/lab/{result['provenance']['command']}",
            "HOST": "server",
            "HOSTS": ["server"],
            "LOCAL_HOST": "phone",
            "LENGTH": config["duration_s"],
            "TOTAL_LENGTH": config["duration_s"],
            "STEP_SIZE": STEP_S,
            "TEST_PARAMETERS": {key: str(count) for key, count in counts.items() if count},
            "IP_VERSION": 6 if config["ipv6"] else 4,
            "T0": EPOCH.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "TIME": EPOCH.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "BATCH_TIME": end.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }


def flent(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.json...", help="Results that `lab run --json` wrote."),
    ],
    into: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")
    ] = Path("out/flent"),
) -> None:
    """Write results as flent's data files, which its plots and its GUI read."""
    with errors.reported():
        results = compare.load(files)
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ResultError(f"{into}: {e.strerror}") from e
        for number, result in enumerate(results, start=1):
            slug = re.sub(r"[^\w.]+", "-", str(result["name"]))
            path = into / f"{number}-{slug}.flent.gz"
            if problem := output.check_writable(path):
                raise ResultError(problem)
            text = json.dumps(content(result), ensure_ascii=False)
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
            typer.echo(path)
