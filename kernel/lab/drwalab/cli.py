# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the lab."""

import copy
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import product
from json import dumps as dump_json
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from drwalab import (
    burstlink,
    cases,
    compare,
    errors,
    importing,
    ltelink,
    output,
    pool,
    results,
    schemes,
    spec,
    units,
)
from drwalab import traces as link_traces
from drwalab import uplink as uplinks
from drwalab.campaign import campaign
from drwalab.cost import cost
from drwalab.demo import demo
from drwalab.documents import documents
from drwalab.evidence_page import evidence_command
from drwalab.flentfile import flent
from drwalab.jobs import merge_command, plan_command, run_one_command
from drwalab.kernels import kernel_app
from drwalab.latenews import late_news
from drwalab.literature import literature
from drwalab.machine import machine
from drwalab.parquet import parquet
from drwalab.picture import picture
from drwalab.radios import RADIOS
from drwalab.report import report
from drwalab.spec import DEFAULTS, RunSpec, SpecError
from drwalab.symbols import symbols
from drwatool.version import this_version

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
trace_app = typer.Typer(no_args_is_help=True, help="Look at link traces, import or make one.")
case_app = typer.Typer(no_args_is_help=True, help="Named runs: the paper's figures, known defects.")
app.add_typer(kernel_app, name="kernel", help="Build and list guest kernels.")
app.add_typer(case_app, name="case")
app.add_typer(trace_app, name="trace")
app.command()(campaign)
app.command()(cost)
app.command()(demo)
app.command()(documents)
app.command("evidence")(evidence_command)
app.command()(flent)
app.command("late-news")(late_news)
app.command()(literature)
app.command()(machine)
app.command("merge")(merge_command)
app.command("plan")(plan_command)
app.command("run-one")(run_one_command)
app.command()(report)
app.command()(parquet)
app.command()(picture)
kernel_app.command()(symbols)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"lab {this_version()}")
        raise typer.Exit


@app.callback()
def lab(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Say which one this is."
        ),
    ] = False,
) -> None:
    """The DRWA network lab: a server, a cellular link and a phone, in virtual time."""


Run = TypeVar("Run", bound=Callable[..., None])
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as JSON (a list when there are several); - for standard output, "
        "which then has no table.",
    ),
]


# The groups of `lab run --help`: parameters of run(), by what they are about.
RUN_GROUPS = {
    "What to compare": "scheme kernel lambda_ limits unpatched",
    "The link": "rate trace base_rtt buffer aqm loss reorder duplicate promotion drx event second "
    "ipv6",
    "What comes down": "flows flow_gap reader duration cc shape initcwnd object_ keep_alive push "
    "arrival think neighbour accepted",
    "What goes up, and the modem": "upload uploads upload_kind upload_cc upload_lie uplink_rate "
    "uplink_trace uplink_buffer uplink_scheme uplink_target uplink_loss firmware grant "
    "grant_report modem_tells modem_hides modem_bearers",
    "Probes": "probe_interval probe_kind",
    "The phone's sockets": "rcvbuf window_clamp mss no_timestamps no_window_scaling fastopen mptcp",
    "A hotspot": "client client_rtt client_jitter client_nat",
    "Clocks, middleboxes and offloads": "ack_thin downlink_ack_thin clock_drift clock_tick "
    "syn_scale strip_timestamps gro tso upload_tso",
    "Results": "seed json pcap",
}


def _grouped(groups: dict[str, str]) -> Callable[[Run], Run]:
    """Gives the options of a command their groups in its help."""

    def group(command: Run) -> Run:
        annotations = command.__annotations__
        for title, names in groups.items():
            for name in names.split():
                kind, option = get_args(annotations[name])
                told = copy.copy(option)
                told.rich_help_panel = title
                annotations[name] = Annotated[kind, told]
        return command

    return group


def _option(text: str, metavar: str, name: str | None = None) -> Any:
    """An option that is read by spec.parse, which knows the units and the defaults."""
    key = (name or "").removeprefix("--")
    default = DEFAULTS.get(key)
    if default is not None:
        text += f" Default: {default}."
    return typer.Option(*([name] if name else []), metavar=metavar, help=text)


@app.command()
@_grouped(RUN_GROUPS)
def run(
    scheme: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="The phone's receiver: " + ", ".join(schemes.names()) + ". stock is Linux "
            "auto-tuning up to 16 MiB; static and android-… are Android's limits; idle has nothing "
            "on the link but probes. Repeat it for several runs over the same link.",
        ),
    ],
    kernel: Annotated[
        str | None, _option("Kernel line: 6.12, 6.1, 5.10 or 7.3.", "LINE", "--kernel")
    ] = None,
    lambda_: Annotated[
        str | None,
        _option(
            "λ of drwa and its forms (1.25 unless given) and drwa-classic (3.00), "
            "from 1.00 to 10.00, or 0 for off.",
            "NUMBER",
            "--lambda",
        ),
    ] = None,
    limits: Annotated[
        str | None,
        _option(
            "Whose TCP buffer limits the phone has under drwa, its forms and drwa-classic: any "
            "other scheme. "
            f"Default: {' and '.join(dict.fromkeys(schemes.DEFAULT_LIMITS.values()))}.",
            "NAME",
            "--limits",
        ),
    ] = None,
    rate: Annotated[
        str | None, _option("Constant downlink rate: bit, kbit, mbit or gbit.", "RATE", "--rate")
    ] = None,
    trace: Annotated[
        str | None,
        _option(
            "Downlink trace in mahimahi's format: a line per 1500-byte packet with the time in ms "
            "at which it can cross; starts again at its end.",
            "FILE",
            "--trace",
        ),
    ] = None,
    base_rtt: Annotated[
        str | None,
        _option("RTT of the idle path, half each way: us, ms or s.", "TIME", "--base-rtt"),
    ] = None,
    buffer: Annotated[
        str | None,
        _option(
            "Downlink queue in bytes of IP packets: kB is 1000, KiB is 1024; no unit is bytes. "
            "With --aqm, as many packets of 1500 bytes.",
            "SIZE",
            "--buffer",
        ),
    ] = None,
    flows: Annotated[
        str | None, _option("Bulk downloads in parallel; 0 for none.", "NUMBER", "--flows")
    ] = None,
    flow_gap: Annotated[
        str | None,
        _option("Time from one bulk download's start to the next one's.", "TIME", "--flow-gap"),
    ] = None,
    reader: Annotated[
        str | None,
        _option(
            "The application of a bulk download: fast; slow:RATE reads at that rate; pause:AT/FOR "
            "does not read for a while; burst:PERIOD/SIZE asks every PERIOD for a segment of a "
            "video on the same connection, or once the one before is there; small:SIZE reads that "
            "much in each call; every:PERIOD reads all that is there, that often; lowat:SIZE sets "
            "SO_RCVLOWAT and sleeps in poll() until it may read.",
            "READER",
            "--reader",
        ),
    ] = None,
    duration: Annotated[
        str | None, _option("Length of the run, in steps of 100ms.", "TIME", "--duration")
    ] = None,
    cc: Annotated[
        str | None,
        _option(
            "The server's congestion control: " + ", ".join(spec.CONGESTION_CONTROLS) + ".",
            "NAME",
            "--cc",
        ),
    ] = None,
    aqm: Annotated[
        str | None,
        _option(
            "Queue management of the base station: " + ", ".join(spec.AQMS) + "; else first in, "
            "first out.",
            "NAME",
            "--aqm",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        _option("Random loss on the way down, before the queue, such as 1%.", "PERCENT", "--loss"),
    ] = None,
    reorder: Annotated[
        str | None,
        _option(
            "Share of the packets that leave the downlink after 1 to 5 later ones, or after 50ms.",
            "PERCENT",
            "--reorder",
        ),
    ] = None,
    duplicate: Annotated[
        str | None,
        _option("Share of the packets that come twice, on the way down.", "PERCENT", "--duplicate"),
    ] = None,
    ack_thin: Annotated[
        str | None,
        _option(
            "Of a run of pure ACKs of a connection the uplink passes only every Nth, and the last "
            "one after 10ms.",
            "N",
            "--ack-thin",
        ),
    ] = None,
    promotion: Annotated[
        str | None,
        _option(
            "Idle radio: after the second time without a packet in either direction, the first one "
            "waits for the first time, such as 500ms/7s. Probes pause with the load then.",
            "TIME/TIME",
            "--promotion",
        ),
    ] = None,
    drx: Annotated[
        str | None,
        _option(
            "Connected-mode DRX: cycle, on-duration, inactivity timer, such as 160ms/10ms/100ms. "
            "After the last one without a grant, either way, what comes down waits for the next "
            "on-duration; what goes up wakes the radio. Probes wait as well, but wake nobody.",
            "TIME/TIME/TIME",
            "--drx",
        ),
    ] = None,
    event: Annotated[
        list[str] | None,
        _option(
            "A change during the run, 'TIME NAME=VALUE': base-rtt=150ms, rate=1mbit (0mbit stops "
            "it), uplink-rate=1mbit, loss=1%, outage=2s (nothing crosses the link, either way), "
            "lambda=2.0 (0 is off), clock=-200ms (the server's clock stands still for so long) or "
            "clock=1s (jumps ahead), timestamps=off (removed on the way) or on, interface=down or "
            "up (rmnet0), move=wlan0 (running connections go on over a second link, like the first "
            "one and with λ off) or rmnet0 again. Repeat for more.",
            "EVENT",
            "--event",
        ),
    ] = None,
    object_: Annotated[
        list[str] | None,
        _option(
            "Fetch objects of this size, each on a new connection. Repeat for sizes that take "
            "turns, or that are drawn with --arrival poisson.",
            "SIZE",
            "--object",
        ),
    ] = None,
    keep_alive: Annotated[
        bool, typer.Option("--keep-alive", help="Fetch all objects on one connection.")
    ] = False,
    push: Annotated[
        bool,
        typer.Option(
            "--push",
            help="The server sends all objects but the first unasked. With --keep-alive.",
        ),
    ] = False,
    arrival: Annotated[
        str | None,
        _option(
            "When objects are asked for: think, one after another with --think between; poisson, "
            "at random with a mean of --think between requests, whether or not others are still "
            "under way.",
            "NAME",
            "--arrival",
        ),
    ] = None,
    think: Annotated[
        str | None,
        _option("Time from an object's end to the next one's request.", "TIME", "--think"),
    ] = None,
    probe_interval: Annotated[
        str | None,
        _option(
            "Time from one probe of 84 bytes to the next: us, ms or s. Slow links want fewer: 20 a "
            "second are 4 % of 0.3 Mb/s.",
            "TIME",
            "--probe-interval",
        ),
    ] = None,
    upload: Annotated[
        bool, typer.Option("--upload", help="The phone also sends bulk data to the server.")
    ] = False,
    uplink_rate: Annotated[
        str | None,
        _option("Constant uplink rate; else the uplink has no limit.", "RATE", "--uplink-rate"),
    ] = None,
    uplink_trace: Annotated[
        str | None, _option("Uplink trace, like --trace.", "FILE", "--uplink-trace")
    ] = None,
    uplink_buffer: Annotated[
        str | None, _option("Uplink queue, like --buffer.", "SIZE", "--uplink-buffer")
    ] = None,
    uplink_scheme: Annotated[
        list[str] | None,
        typer.Option(
            "--uplink-scheme",
            metavar="NAME",
            help="Give the phone a modem with a queue of its own, and this in front of it: "
            + ", ".join(uplinks.SCHEMES)
            + f". Default with --firmware or --grant: {DEFAULTS['uplink-scheme']}. Repeat it for "
            "several runs over the same link.",
        ),
    ] = None,
    uplink_target: Annotated[
        str | None,
        _option(
            "Delay in the modem that " + " and ".join(uplinks.WITH_TARGET) + " aim at, each unless "
            "given at one of its own.",
            "TIME",
            "--uplink-target",
        ),
    ] = None,
    firmware: Annotated[
        str | None,
        _option(
            "What the modem takes before it stops the phone's qdisc, in bytes of IP packets; it "
            "goes on when an eighth has left.",
            "SIZE",
            "--firmware",
        ),
    ] = None,
    grant: Annotated[
        str | None,
        _option(
            "A packet that finds the modem empty waits this long for the base station's grant.",
            "TIME",
            "--grant",
        ),
    ] = None,
    grant_report: Annotated[
        str | None,
        _option(
            "Grants are for what the modem reported, one --grant before; it reports this often, "
            "such as 5ms. Else they last while it has something.",
            "TIME",
            "--grant-report",
        ),
    ] = None,
    modem_tells: Annotated[
        str | None,
        _option(
            "The modem tells its driver what it still takes, this long after it is asked, such as "
            "4ms: Qualcomm's data flow control. drwa_up hears that.",
            "TIME",
            "--modem-tells",
        ),
    ] = None,
    modem_hides: Annotated[
        str | None,
        _option(
            "What the modem copies ahead and never tells of, in bytes.",
            "SIZE",
            "--modem-hides",
        ),
    ] = None,
    modem_bearers: Annotated[
        str | None,
        _option(
            "Bearers of a modem that tells, 2: each has a transmit queue of rmnet0's below mq, one "
            "for ACKs, and a queue of the modem's. Uploads take them in turn, all else the first.",
            "COUNT",
            "--modem-bearers",
        ),
    ] = None,
    uplink_loss: Annotated[
        str | None,
        _option("Random loss on the way up, behind the radio.", "PERCENT", "--uplink-loss"),
    ] = None,
    downlink_ack_thin: Annotated[
        str | None,
        _option("Like --ack-thin, of an upload's ACKs.", "N", "--downlink-ack-thin"),
    ] = None,
    uploads: Annotated[
        str | None, _option("Bulk uploads in parallel, as --upload is one.", "NUMBER", "--uploads")
    ] = None,
    upload_kind: Annotated[
        str | None,
        _option(
            "What uploads are sent over: tcp; quic, UDP with CUBIC of its own; quic-duplex, with "
            "short packets between its data.",
            "KIND",
            "--upload-kind",
        ),
    ] = None,
    upload_cc: Annotated[
        str | None,
        _option("The phone's congestion control, of those of --cc.", "NAME", "--upload-cc"),
    ] = None,
    upload_lie: Annotated[
        str | None,
        _option(
            "But for 100 ms in 4 s, the timestamps of an upload's server claim that what it "
            "acknowledges came so much earlier than it did, or later when negative.",
            "TIME",
            "--upload-lie",
        ),
    ] = None,
    probe_kind: Annotated[
        str | None,
        _option(
            "What probes get back: echo, their own bytes; opaque, others, so that nothing on the "
            "way can tell what was answered.",
            "KIND",
            "--probe-kind",
        ),
    ] = None,
    rcvbuf: Annotated[
        str | None,
        _option(
            "Bulk downloads set SO_RCVBUF to this; the kernel doubles it, for its own overhead.",
            "SIZE",
            "--rcvbuf",
        ),
    ] = None,
    window_clamp: Annotated[
        str | None,
        _option("Bulk downloads set TCP_WINDOW_CLAMP to this.", "SIZE", "--window-clamp"),
    ] = None,
    mss: Annotated[
        str | None,
        _option(
            "Bulk downloads set TCP_MAXSEG to this, 88 to 8960 bytes with TCP's options; the "
            "links' MTU grows with it.",
            "SIZE",
            "--mss",
        ),
    ] = None,
    no_timestamps: Annotated[
        bool, typer.Option("--no-timestamps", help="The phone offers no TCP timestamps.")
    ] = False,
    no_window_scaling: Annotated[
        bool, typer.Option("--no-window-scaling", help="The phone offers no window scaling.")
    ] = False,
    fastopen: Annotated[
        bool,
        typer.Option("--fastopen", help="TCP Fast Open: the phone sends data with its SYN."),
    ] = False,
    mptcp: Annotated[
        bool,
        typer.Option(
            "--mptcp",
            help="Bulk downloads over MPTCP, with a second subflow over wlan0, a link like the "
            "first one.",
        ),
    ] = False,
    accepted: Annotated[
        bool,
        typer.Option("--accepted", help="The server opens the bulk downloads' connections."),
    ] = False,
    neighbour: Annotated[
        list[str] | None,
        _option(
            "A download beside those that are measured, such as cubic or cubic:20s/30s (from, "
            "for): cubic and bbr, whose application sets SO_RCVBUF; quic, over UDP with CUBIC of "
            "its own; ngtcp2, ngtcp2-bbr, ngtcp2-objects, aioquic and aioquic-video, real stacks; "
            "liar, 20 kbit/s from a server whose timestamps claim a queue of nearly the "
            "base RTT; stream, 500 kbit/s from a server that paces it, governed as well; call "
            "and game, 100 and 250 kbit/s over UDP. Repeat for more.",
            "KIND[:TIME[/TIME]]",
            "--neighbour",
        ),
    ] = None,
    second: Annotated[
        str | None,
        _option(
            "Every second bulk download goes over another interface of the phone: clat (464xlat's) "
            "or vpn, which share rmnet0's link and queue; network, with a link and a queue like "
            "rmnet0's of its own. λ holds on both.",
            "NAME",
            "--second",
        ),
    ] = None,
    client: Annotated[
        str | None,
        _option(
            "Downloads end on a client of the phone's hotspot, a further hop away: all, fetched "
            "objects as well; half, every second bulk download from the second one on.",
            "WHICH",
            "--client",
        ),
    ] = None,
    client_rtt: Annotated[
        str | None,
        _option("RTT between phone and client, half each way.", "TIME", "--client-rtt"),
    ] = None,
    client_jitter: Annotated[
        str | None,
        _option(
            "How far that RTT varies to either side, half each way; nothing is reordered.",
            "TIME",
            "--client-jitter",
        ),
    ] = None,
    client_nat: Annotated[
        bool,
        typer.Option(
            "--client-nat", help="The phone masquerades its client, which is routed else."
        ),
    ] = False,
    clock_drift: Annotated[
        str | None,
        _option(
            "The server's clock, which its TCP timestamps show, is fast, or slow when negative.",
            "PPM",
            "--clock-drift",
        ),
    ] = None,
    clock_tick: Annotated[
        str | None,
        _option(
            "The server's timestamps count once in this time, 1us or whole ms. Default: 1ms.",
            "TIME",
            "--clock-tick",
        ),
    ] = None,
    syn_scale: Annotated[
        str | None,
        _option(
            "A middlebox on the way gives the phone's SYNs this window scale, 0 to 14, in place of "
            "their own.",
            "N",
            "--syn-scale",
        ),
    ] = None,
    strip_timestamps: Annotated[
        bool,
        typer.Option(
            "--strip-timestamps",
            help="A middlebox on the way takes the timestamps option out of SYNs.",
        ),
    ] = False,
    gro: Annotated[
        str | None,
        _option(
            "The phone merges segments (GRO) that its modem hands over together: those that "
            "crossed in an interval of this length, such as 1ms, LTE's.",
            "TIME",
            "--gro",
        ),
    ] = None,
    tso: Annotated[
        bool,
        typer.Option("--tso", help="The server sends large segments that its device splits (TSO)."),
    ] = False,
    upload_tso: Annotated[
        bool,
        typer.Option(
            "--upload-tso",
            help="The phone hands large segments of uploads to its modem, which splits them.",
        ),
    ] = False,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="IPv6 instead of IPv4.")] = False,
    unpatched: Annotated[
        bool,
        typer.Option("--unpatched", help="The kernel without the DRWA series, for comparison."),
    ] = False,
    seed: Annotated[
        str | None,
        _option(
            "Seed of all randomness in the guest; the same seed, the same bytes.", "N", "--seed"
        ),
    ] = None,
    shape: Annotated[
        str | None,
        _option("Each of the server's connections sends at most at this rate.", "RATE", "--shape"),
    ] = None,
    initcwnd: Annotated[
        str | None,
        _option(
            "Segments that the server sends before the first ACK: today 10, before Linux 2.6.39 3.",
            "N",
            "--initcwnd",
        ),
    ] = None,
    json: Json = None,
    pcap: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write server.pcap and phone.pcap here (headers, virtual time in ns); with "
            "several schemes into a folder for each.",
        ),
    ] = None,
) -> None:
    """Run schemes over one link, each in its own guest, and print what came out."""
    given = {
        "kernel": kernel,
        "lambda": lambda_,
        "limits": limits,
        "rate": rate,
        "trace": trace,
        "base-rtt": base_rtt,
        "buffer": buffer,
        "flows": flows,
        "flow-gap": flow_gap,
        "reader": reader,
        "duration": duration,
        "cc": cc,
        "aqm": aqm,
        "loss": loss,
        "reorder": reorder,
        "duplicate": duplicate,
        "ack-thin": ack_thin,
        "promotion": promotion,
        "drx": drx,
        "event": event,
        "object": object_,
        "keep-alive": keep_alive,
        "push": push,
        "arrival": arrival,
        "think": think,
        "probe-interval": probe_interval,
        "upload": upload,
        "uplink-rate": uplink_rate,
        "uplink-trace": uplink_trace,
        "uplink-buffer": uplink_buffer,
        "uplink-target": uplink_target,
        "firmware": firmware,
        "grant": grant,
        "grant-report": grant_report,
        "modem-tells": modem_tells,
        "modem-hides": modem_hides,
        "modem-bearers": modem_bearers,
        "uplink-loss": uplink_loss,
        "downlink-ack-thin": downlink_ack_thin,
        "uploads": uploads,
        "upload-kind": upload_kind,
        "upload-cc": upload_cc,
        "upload-lie": upload_lie,
        "probe-kind": probe_kind,
        "rcvbuf": rcvbuf,
        "window-clamp": window_clamp,
        "mss": mss,
        "no-timestamps": no_timestamps,
        "no-window-scaling": no_window_scaling,
        "fastopen": fastopen,
        "mptcp": mptcp,
        "accepted": accepted,
        "neighbour": neighbour,
        "second": second,
        "client": client,
        "client-rtt": client_rtt,
        "client-jitter": client_jitter,
        "client-nat": client_nat,
        "clock-drift": clock_drift,
        "clock-tick": clock_tick,
        "syn-scale": syn_scale,
        "strip-timestamps": strip_timestamps,
        "gro": gro,
        "tso": tso,
        "upload-tso": upload_tso,
        "ipv6": ipv6,
        "unpatched": unpatched,
        "seed": seed,
        "shape": shape,
        "initcwnd": initcwnd,
    }
    with errors.reported():
        ups: list[str | None] = [*uplink_scheme] if uplink_scheme else [None]
        specs = [
            spec.parse(name, given | {"uplink-scheme": up}) for name, up in product(scheme, ups)
        ]
        if lambda_ is not None and not any(s.scheme.uses_drwa for s in specs):
            raise SpecError("--lambda: none of the schemes is drwa or a form of it")
        if limits is not None and not any(s.scheme.uses_drwa for s in specs):
            raise SpecError("--limits: none of the schemes is drwa or a form of it")
        _check_json(json)
        if pcap is not None:
            specs = _with_captures(specs, Path(pcap))
        found = pool.run_specs(specs)
    if json != "-":
        output.print_table(found)
    _write_json(json, found)


def _with_captures(specs: list[RunSpec], into: Path) -> list[RunSpec]:
    folders = [into]
    if len(specs) > 1:
        slugs = [re.sub(r"[^\w.]+", "-", s.name) for s in specs]
        folders = [into / f"{number}-{slug}" for number, slug in enumerate(slugs, start=1)]
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise SpecError(f"--pcap: {into}: {e.strerror}") from e
    for folder in folders:
        if problem := output.check_writable(folder / pool.PCAPS[0]):
            raise SpecError(f"--pcap: {problem}")
    return [replace(s, pcap_dir=folder) for s, folder in zip(specs, folders, strict=True)]


def _check_json(target: str | None) -> None:
    if target not in (None, "-") and (problem := output.check_writable(Path(target))):
        raise SpecError(f"--json: {problem}")


def _write_json(target: str | None, found: list[results.Result]) -> None:
    if target == "-":
        sys.stdout.write(results.dump(found))
    elif target is not None:
        output.write_whole(Path(target), results.dump(found))


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


@case_app.command("list")
def case_list(traces: Annotated[Path | None, cases.TRACES_OPTION] = None) -> None:
    """List the cases."""
    with errors.reported():
        for case in cases.load(traces).values():
            print(f"{case.name} ({_runs(len(case.specs))})\n  {case.about}")
            for reason in case.skipped:
                print(f"  Not run: {reason}")


@case_app.command("run")
def case_run(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Cases, see case list.")],
    json: Json = None,
    record: Annotated[Path | None, output.record_option("each case's table, NAME.md,")] = None,
    means: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the geometric means over the links of cases that have them, as JSON.",
        ),
    ] = None,
    traces: Annotated[Path | None, cases.TRACES_OPTION] = None,
) -> None:
    """Run cases and print a table for each."""
    everything: list[results.Result] = []
    over_links: dict[str, list[dict[str, Any]]] = {}
    with errors.reported():
        chosen = cases.choose(names, traces)
        _check_json(json)
        if means is not None and (problem := output.check_writable(means)):
            raise SpecError(f"--means: {problem}")
        pool.find_kernels([each for case in chosen for each in case.specs])
        for case in chosen:
            for reason in case.skipped:
                print(f"{case.name}: not run: {reason}", file=sys.stderr)
            start = time.monotonic()
            found = pool.run_specs(case.specs)
            everything += found
            if case.means:
                over_links[case.name] = [asdict(m) for m in compare.means(compare.compare(found))]
            took = time.monotonic() - start
            if record:
                text = cases.record(case, found, took)
                output.write_whole(record / f"{case.name}.md", text)
            if json != "-":
                print(f"{case.name}: {case.about}")
                output.print_table(found, case.settled_s)
                if case.means:
                    output.print_means(found)
                print(
                    f"{len(found)} run{'s' if len(found) > 1 else ''} in {took:.1f} s", flush=True
                )
    _write_json(json, everything)
    if means is not None:
        output.write_whole(means, dump_json(over_links, ensure_ascii=False) + "\n")


@trace_app.command("info")
def trace_info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace in mahimahi's format.")],
) -> None:
    """Print the length, the mean rate and the hash of a trace."""
    with errors.reported():
        trace = link_traces.load(file)
    output.describe(
        {
            "length": f"{trace.period_ms / 1000:g} s",
            "opportunities": len(trace.times_ms),
            "mean rate": f"{trace.mean_bps / 1e6:.2f} Mb/s",
            "sha256": trace.sha256,
        }
    )


@trace_app.command("generate")
def trace_generate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The trace to write.")],
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Length of the trace, in whole seconds.")
    ] = "60s",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, another link.")] = 1,
    radio: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Kind of link, with its mean rate: "
            + ", ".join(f"{r.name} ({r.mean_mbps:g} Mb/s)" for r in RADIOS.values())
            + "; or one that serves in bursts, or jumps, whose seed is its own: "
            + ", ".join(burstlink.FORMS)
            + ".",
        ),
    ] = "lte",
) -> None:
    """Write a generated downlink in mahimahi's format."""
    if radio not in RADIOS and not burstlink.is_link(radio):
        known = units.instead_of(radio, (*RADIOS, *burstlink.FORMS))
        errors.fail(f"--radio: '{radio}' is unknown: {known}")
    try:
        seconds, rest = divmod(units.parse_time_us(duration), 1_000_000)
        if rest or not seconds:
            raise ValueError(f"'{duration}' is no number of whole seconds")
    except ValueError as e:
        errors.fail(f"--duration: {e}")
    if problem := output.check_writable(file):
        errors.fail(problem)
    try:
        if radio in RADIOS:
            times = ltelink.opportunities(seed, seconds, RADIOS[radio])
        else:
            times = burstlink.opportunities(radio, seconds)
    except burstlink.LinkError as e:
        errors.fail(f"--radio: {e}")
    output.write_whole(file, "".join(f"{t}\n" for t in times))


@trace_app.command("import")
def trace_import(
    source: Annotated[Path, typer.Argument(metavar="LOG", help="A .csv, .pps or .pcap file.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The trace to write.")],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="csv: seconds and kbit/s. pps: the time in ms of each packet of 1500 bytes. pcap: "
            "packets of a busy download, captured on the phone. Default: by the log's name.",
        ),
    ] = None,
    time_column: Annotated[
        str, typer.Option(metavar="COLUMN", help="csv: the seconds; a name of its head, or 1, 2, …")
    ] = "1",
    rate_column: Annotated[
        str, typer.Option(metavar="COLUMN", help="csv: the rate in kbit/s, likewise.")
    ] = "2",
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="pcap: the phone's. Default: that to which the most bytes went.",
        ),
    ] = None,
) -> None:
    """Write a link that was logged elsewhere in mahimahi's format."""
    if kind is not None and kind not in importing.KINDS:
        errors.fail(f"--kind: '{kind}' is unknown: {units.instead_of(kind, importing.KINDS)}")
    if problem := output.check_writable(file):
        errors.fail(problem)
    columns = importing.Columns(time_column, rate_column)
    with errors.reported():
        kind = kind or importing.kind_of(source)
        times = importing.opportunities(source, kind, columns, to)
    for doubt in importing.doubts(source, columns) if kind == "csv" else ():
        print(f"lab: {doubt}", file=sys.stderr)
    output.write_whole(file, "".join(f"{t}\n" for t in times))
    trace_info(file)


def _hide_types(command: Any) -> None:
    """Lets help name the values of options, and not their types; a switch has no value."""
    for param in command.get_params(typer.Context(command)):
        if param.param_type_name == "argument":
            # Its name is told before it.
            param.display_type_rich = lambda **_: ""
        elif param.metavar is None:
            param.metavar = "" if param.is_flag else param.name.upper()
    for child in getattr(command, "commands", {}).values():
        _hide_types(child)


def main() -> None:
    """Entry point: a usage error is one line, exit code 2."""
    command = get_command(app)
    _hide_types(command)
    try:
        code = command(prog_name="lab", standalone_mode=False)
    except TyperException as error:
        # Without a command the help is out already, and there is no message.
        if message := " ".join(error.format_message().split()):
            print(f"lab: {message}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)
