# SPDX-License-Identifier: GPL-2.0-only
"""`lab parquet`: results as two tidy tables in Parquet, one of runs and one of their series."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drwalab import compare, errors, evidence, extras, output
from drwalab.compare import ResultError
from drwalab.results import Result, of_idle

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "drwa-lab-tables/1"


@dataclass(frozen=True)
class Column:
    """A column: its name, which ends with its unit, pyarrow's name of its type, and what it is."""

    name: str
    type: str
    about: str
    of: Callable[[Result], Any]


def run_id(result: Result) -> str:
    """The same for the same run, in whichever file it is: of its command, links and kernel."""
    origin = result["provenance"]
    words = (
        origin["command"],
        origin["kernel_key"],
        origin["trace_sha256"],
        origin.get("uplink_trace_sha256"),
    )
    return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()[:16]


def _config(key: str) -> Callable[[Result], Any]:
    return lambda result: result["config"].get(key)


def _origin(key: str) -> Callable[[Result], Any]:
    return lambda result: result["provenance"].get(key)


def _rtt(key: str) -> Callable[[Result], Any]:
    return lambda result: result["rtt_ms"][key]


def _up(key: str) -> Callable[[Result], Any]:
    return lambda result: result.get("up_ms", {}).get(key)


def _of(group: str, key: str) -> Callable[[Result], Any]:
    """Of what only some runs have."""
    return lambda result: (result[group] or {}).get(key)


RUNS = (
    Column("run", "string", "the same for the same run in any file; joins the tables", run_id),
    Column("name", "string", "who is compared", lambda r: r["name"]),
    Column("scheme", "string", "receive window of the phone", lambda r: r["scheme"]),
    Column("lambda", "float64", "λ, null without DRWA", lambda r: r["lambda"]),
    Column("limits", "string", "buffer limits under DRWA", lambda r: r["limits"]),
    Column("cc", "string", "congestion control of the server", lambda r: r["cc"]),
    Column("aqm", "string", "queue management of the router, null for a FIFO", lambda r: r["aqm"]),
    Column("kernel", "string", "kernel line", _config("kernel")),
    Column("flavour", "string", "build of the kernel", _config("flavour")),
    Column("rate_bps", "int64", "rate of a steady downlink", _config("rate_bps")),
    Column("trace", "string", "file of a downlink that varies", _config("trace")),
    Column("base_rtt_ms", "float64", "RTT of the path without a queue", _config("base_rtt_ms")),
    Column("buffer_bytes", "int64", "queue of the downlink", _config("buffer_bytes")),
    Column("uplink_rate_bps", "int64", "rate of a steady uplink", _config("uplink_rate_bps")),
    Column("uplink_trace", "string", "file of an uplink that varies", _config("uplink_trace")),
    Column("uplink_scheme", "string", "what is before the modem", _config("uplink_scheme")),
    Column("firmware_bytes", "int64", "queue of the modem", _config("firmware_bytes")),
    Column("flows", "int64", "bulk downloads", _config("flows")),
    Column("uploads", "int64", "bulk uploads", _config("uploads")),
    Column("upload_cc", "string", "congestion control of the phone", _config("upload_cc")),
    Column("duration_s", "float64", "length of the run", _config("duration_s")),
    Column("seed", "int64", "of all randomness", _origin("seed")),
    Column("goodput_mbps", "float64", "of the downloads", lambda r: r["goodput_mbps"]),
    Column("upload_goodput_mbps", "float64", "of the uploads", lambda r: r["upload_goodput_mbps"]),
    Column("rtt_base_ms", "float64", "least RTT of the idle path", _rtt("base")),
    Column("rtt_mean_ms", "float64", "mean RTT of the probes", _rtt("mean")),
    Column("rtt_p50_ms", "float64", "their median", _rtt("p50")),
    Column("rtt_p95_ms", "float64", "their 95th percentile", _rtt("p95")),
    Column("rtt_p99_ms", "float64", "their 99th percentile", _rtt("p99")),
    Column("rtt_lost", "int64", "probes that were lost", _rtt("lost")),
    Column("mean_of_idle", "float64", "mean RTT by the idle link's", lambda r: of_idle(r, "mean")),
    Column("p95_of_idle", "float64", "p95 RTT by the idle link's", lambda r: of_idle(r, "p95")),
    Column("rpm", "float64", "round trips a minute under load, of the probes", evidence.rpm),
    Column("up_mean_ms", "float64", "mean time of the way up", _up("mean")),
    Column("up_p95_ms", "float64", "its 95th percentile", _up("p95")),
    Column(
        "firmware_mean_bytes", "float64", "what was in the modem", _of("firmware", "mean_bytes")
    ),
    Column("objects", "int64", "objects fetched", _of("objects", "count")),
    Column("object_mean_ms", "float64", "mean time of a fetch", _of("objects", "mean_fct_ms")),
    Column("object_p95_ms", "float64", "its 95th percentile", _of("objects", "p95_fct_ms")),
    Column("segment_mean_ms", "float64", "mean time of a segment", _of("segments", "mean_fct_ms")),
    Column("segment_p95_ms", "float64", "its 95th percentile", _of("segments", "p95_fct_ms")),
    Column("jain", "float64", "Jain's index of the downloads", lambda r: r["jain"]),
    Column("fair_share", "float64", "of a fair one, beside neighbours", lambda r: r["fair_share"]),
    Column(
        "utilisation", "float64", "part of the downlink that was used", lambda r: r["utilisation"]
    ),
    Column("retransmits", "int64", "segments sent again", lambda r: r["retransmits"]),
    Column("queue_drops", "int64", "packets that the queue dropped", lambda r: r["queue_drops"]),
    Column("kernel_key", "string", "hash of the kernel's build", _origin("kernel_key")),
    Column("trace_sha256", "string", "hash of the downlink's trace", _origin("trace_sha256")),
    Column("command", "string", "what repeats the run, in kernel/lab", _origin("command")),
)

# Name, type and meaning of each column of the series.
SERIES = (
    ("run", "string", "of which run"),
    ("quantity", "string", "what was measured; its name ends with the unit"),
    ("stream", "int32", "of which flow, counted from 0; null where it is of all"),
    ("t_s", "float64", "when: the end of an interval, or when a probe was sent"),
    ("value", "float64", "how much"),
)

# Of these, a list for each stream; of the others, one.
_STREAMS = {
    "flow_goodput_mbps": "goodput_mbps",
    "neighbour_goodput_mbps": "neighbour_goodput_mbps",
    "upload_goodput_mbps": "upload_goodput_mbps",
}
_WHOLE = ("goodput_mbps", "rwnd_bytes", "link_mbps", "uplink_mbps", "firmware_bytes")
_ROUNDS = ("rtt_ms", "path_ms", "cwnd_bytes", "rwnd_bytes")


def series_of(result: Result) -> Iterator[tuple[str, int | None, Sequence[float], Sequence[float]]]:
    """Each series of a run: its quantity, stream, instants and values."""
    series = result["series"]
    at_s = series["t_s"]
    for name in _WHOLE:
        if series.get(name) is not None:
            yield name, None, at_s, series[name]
    for name, quantity in _STREAMS.items():
        for stream, values in enumerate(series.get(name) or ()):
            yield quantity, stream, at_s, values
    yield "rtt_ms", None, series["rtt"]["t_s"], series["rtt"]["ms"]
    if up := series.get("up"):
        yield "up_ms", None, up["t_s"], up["ms"]
    for flow in dict.fromkeys((result["drwa"] or {}).get("flow", ())):
        rounds = result["drwa"]
        own = [n for n, one in enumerate(rounds["flow"]) if one == flow]
        own_stream = None if flow < 0 else flow
        at = [rounds["t_s"][n] for n in own]
        for name in _ROUNDS:
            if name in rounds:
                yield f"drwa_{name}", own_stream, at, [rounds[name][n] for n in own]


def tables(results: Sequence[Result]) -> tuple["pa.Table", "pa.Table"]:
    """The table of runs and that of series; a run that is there twice is in them once."""
    import pyarrow as pa

    by_id = {run_id(result): result for result in results}
    fields = [
        pa.field(c.name, pa.type_for_alias(c.type), metadata={"about": c.about}) for c in RUNS
    ]
    runs = pa.Table.from_pylist(
        [{c.name: c.of(result) for c in RUNS} for result in by_id.values()],
        schema=pa.schema(fields, metadata={"schema": SCHEMA}),
    )
    kinds = [pa.field(n, pa.type_for_alias(t), metadata={"about": a}) for n, t, a in SERIES]
    schema = pa.schema(kinds, metadata={"schema": SCHEMA})
    parts = [
        pa.table(
            [
                pa.repeat(pa.scalar(one, pa.string()), len(at_s)),
                pa.repeat(pa.scalar(quantity, pa.string()), len(at_s)),
                pa.repeat(pa.scalar(stream, pa.int32()), len(at_s)),
                pa.array(at_s, pa.float64()),
                pa.array(values, pa.float64()),
            ],
            schema=schema,
        )
        for one, result in by_id.items()
        for quantity, stream, at_s, values in series_of(result)
    ]
    return runs, pa.concat_tables(parts)


def parquet(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE.json...", help="Results that `lab … --json` wrote."),
    ] = None,
    into: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the tables go.")
    ] = Path("out/parquet"),
    columns: Annotated[
        bool, typer.Option("--columns", help="Print what each column is instead.")
    ] = False,
) -> None:
    """Write results as two tables in Parquet: runs.parquet, and series.parquet in long form.

    Each column has its description in the file's schema, too.
    """
    if columns:
        output.describe({f"runs.{c.name}": f"{c.type:8} {c.about}" for c in RUNS})
        output.describe({f"series.{n}": f"{t:8} {about}" for n, t, about in SERIES})
        return
    with errors.reported():
        extras.need("pyarrow")
        import pyarrow.parquet as pq

        if not files:
            raise ResultError("no file: give results that `lab run --json` wrote")
        found = compare.load(files)
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ResultError(f"{into}: {e.strerror}") from e
        for name, table in zip(("runs", "series"), tables(found), strict=True):
            path = into / f"{name}.parquet"
            if problem := output.check_writable(path):
                raise ResultError(problem)
            pq.write_table(table, path, compression="zstd")
            typer.echo(f"{path}: {table.num_rows} rows")
