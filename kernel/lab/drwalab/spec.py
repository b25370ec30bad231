# SPDX-License-Identifier: GPL-2.0-only
"""What one run is: read from the options of a command or a case, checked before any guest boots."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from drwalab import quicstacks, schemes, traces, units
from drwalab.schemes import Scheme
from drwalab.sources import read_lines
from drwalab.traces import Trace
from drwalab.uplink import (
    BEARERS,
    BELOW_MQ,
    PROBE_KINDS,
    SCHEMES,
    UPLOAD_KINDS,
    WITH_TARGET,
    Uplink,
)

CONGESTION_CONTROLS = (
    "cubic",
    "bbr",
    "reno",
    "westwood",
    "vegas",
    "bic",
    "htcp",
    "highspeed",
)
AQMS = ("codel", "fq_codel", "pie")
ARRIVALS = ("think", "poisson")

LAMBDA_RANGE = (100, 1000)
SAMPLE_US = 100_000
PACKET_BYTES = 1500
# IPv6 and TCP without options.
HEADER_BYTES = 60

# What an application can ask of its socket, in bytes. Beyond them the kernel takes another value.
_SIZES = {"rcvbuf": (2304, 1 << 29), "window-clamp": (1152, 1 << 30), "mss": (88, 8960)}

# Sizes of arrays in the guest's agent.
MAX_FLOWS = 256
MAX_OBJECTS = 32
MAX_EVENTS = 64
MAX_ACK_THIN = 1000
MAX_NEIGHBOURS = 8
MAX_UPLOADS = 64
MAX_CLOCK_PPM = 10_000
# What the server may begin with, in segments.
MAX_INITCWND = 100
MAX_CLOCK_TICK_MS = 1000
# RFC 7323, 2.3.
MAX_SCALE = 14
# Their steps, in lablink.
MAX_CLOCK_STEPS = 16
# The flavour of kernels with netfilter; it has no part in where none is asked for.
WITH_NAT = "bpf"
# veth has GRO since 5.13.
NO_GRO = ("5.10",)
# Poisson arrivals in a run, in the mean: each has two sockets until it is fetched.
MAX_REQUESTS = 10_000

DEFAULTS: dict[str, Any] = {
    "kernel": "6.12",
    "base-rtt": "50ms",
    "buffer": "1500kB",
    "uplink-buffer": "300kB",
    "uplink-scheme": "pfifo",
    "firmware": "600kB",
    "grant": "8ms",
    "upload-kind": "tcp",
    "upload-cc": "cubic",
    "probe-kind": "echo",
    "flows": 1,
    "duration": "60s",
    "cc": "cubic",
    "flow-gap": "0ms",
    "arrival": "think",
    "think": "2s",
    "reader": "fast",
    "client-rtt": "4ms",
    "probe-interval": "50ms",
    "seed": 1,
}


class SpecError(Exception):
    """Options that make no run; the text is one line."""


@dataclass(frozen=True)
class Event:
    """A change during the run; the value is in us, bit/s, ppm, hundredths, or one of a choice."""

    at_us: int
    what: str
    value: int

    def __str__(self) -> str:
        return f"{units.show_time(self.at_us)} {self.what}={_EVENT_SHOWN[self.what](self.value)}"


# The choices of an event, by their numbers.
_CHOICES = {
    "interface": ("down", "up"),
    "move": ("rmnet0", "wlan0"),
    "timestamps": ("off", "on"),
}


def _choice(what: str) -> Callable[[str], int]:
    def number(text: str) -> int:
        if text not in _CHOICES[what]:
            raise ValueError(f"'{text}' is neither {' nor '.join(_CHOICES[what])}")
        return _CHOICES[what].index(text)

    return number


_EVENT_PARSERS: dict[str, Callable[[str], int]] = {
    "base-rtt": units.parse_time_us,
    "rate": units.parse_rate_bps,
    "uplink-rate": units.parse_rate_bps,
    "loss": units.parse_percent_ppm,
    "lambda": units.parse_hundredths,
    "outage": units.parse_time_us,
    "clock": units.parse_signed_ms,
} | {what: _choice(what) for what in _CHOICES}
# Of the events, what does not belong to the link.
_LOAD_EVENTS = ("lambda", "clock", "timestamps")
_EVENT_SHOWN: dict[str, Callable[[int], str]] = {
    "base-rtt": units.show_time,
    "rate": units.show_rate,
    "uplink-rate": units.show_rate,
    "loss": units.show_percent,
    "lambda": units.show_hundredths,
    "outage": units.show_time,
    "clock": units.show_signed_ms,
} | {what: choices.__getitem__ for what, choices in _CHOICES.items()}


@dataclass(frozen=True)
class Promotion:
    """The time that an idle radio takes to wake up, and the silence that lets it sleep."""

    wake_us: int
    idle_us: int

    def __str__(self) -> str:
        return f"{units.show_time(self.wake_us)}/{units.show_time(self.idle_us)}"


@dataclass(frozen=True)
class Drx:
    """A cycle, how long a sleeping radio listens in it, and the silence that lets it sleep."""

    cycle_us: int
    on_us: int
    inactivity_us: int

    def __str__(self) -> str:
        return "/".join(map(units.show_time, (self.cycle_us, self.on_us, self.inactivity_us)))


_Unit = tuple[Callable[[str], int], Callable[[int], str]]
_TIME: _Unit = (units.parse_time_us, units.show_time)
_RATE: _Unit = (units.parse_rate_bps, units.show_rate)
_BYTES: _Unit = (units.parse_bytes, units.show_bytes)

# Each kind with the units of its numbers.
_READERS: dict[str, tuple[_Unit, ...]] = {
    "fast": (),
    "slow": (_RATE,),
    "pause": (_TIME, _TIME),
    "burst": (_TIME, _BYTES),
    "small": (_BYTES,),
    "every": (_TIME,),
    "lowat": (_BYTES,),
}
# The kernel takes it for half of the largest buffer at most.
MAX_LOWAT_BYTES = 8 << 20
# A slow reader reads every 10 ms.
MIN_READ_BPS = 8_000


@dataclass(frozen=True)
class Reader:
    """What the phone's application does with a bulk download."""

    kind: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        shown = [show(n) for (_, show), n in zip(_READERS[self.kind], self.numbers, strict=True)]
        return f"{self.kind}:{'/'.join(shown)}" if shown else self.kind


# Downloads beside those that are measured: congestion control of a TCP one, or another kind.
NEIGHBOURS = ("cubic", "bbr", "quic", *quicstacks.LOADS, "liar", "stream", "call", "game")
# Of which these take what they need and no more: the law governs the first, over TCP.
GOVERNED = ("liar", "stream")
PACED = ("call", "game")


@dataclass(frozen=True)
class Neighbour:
    """A download beside the measured ones; without for_us, to the end."""

    kind: str
    at_us: int = 0
    for_us: int | None = None

    def __str__(self) -> str:
        if self.for_us is None and not self.at_us:
            return self.kind
        shown = units.show_time(self.at_us)
        return f"{self.kind}:{shown}" + (f"/{units.show_time(self.for_us)}" if self.for_us else "")


@dataclass(frozen=True)
class Clock:
    """The server's clock as its timestamps show it: its drift, and the us that it counts as one."""

    ppm: int = 0
    tick_us: int = 1000


# What of the load ends there: downloads and fetches, or every second download.
CLIENT_LOADS = ("all", "half")


@dataclass(frozen=True)
class Client:
    """A client of the phone's hotspot: the RTT between the two, and how far it varies each way."""

    load: str
    rtt_us: int
    jitter_us: int
    nat: bool

    def words(self) -> list[str]:
        words = ["--client", self.load, "--client-rtt", units.show_time(self.rtt_us)]
        if self.jitter_us:
            words += ["--client-jitter", units.show_time(self.jitter_us)]
        return words + (["--client-nat"] if self.nat else [])


# Which other interface of the phone carries every second download.
SECONDS = {
    "clat": "v4-rmnet0",
    "vpn": "tun0",
    "network": "wlan0",
}


@dataclass(frozen=True)
class Link:
    """One direction of the cellular link: a constant rate or a trace, and the queue before it."""

    rate_bps: int | None
    trace: Trace | None
    buffer_bytes: int


@dataclass(frozen=True)
class Sockets:
    """What the phone's host and the sockets of bulk downloads have that others have not.

    Sizes are in bytes, and 0 where an application does not set them.
    """

    rcvbuf_bytes: int
    window_clamp_bytes: int
    mss_bytes: int
    timestamps: bool
    window_scaling: bool
    fastopen: bool
    mptcp: bool
    accepted: bool

    def words(self) -> list[str]:
        sizes = {
            "--rcvbuf": self.rcvbuf_bytes,
            "--window-clamp": self.window_clamp_bytes,
            "--mss": self.mss_bytes,
        }
        flags = {
            "--no-timestamps": not self.timestamps,
            "--no-window-scaling": not self.window_scaling,
            "--fastopen": self.fastopen,
            "--mptcp": self.mptcp,
            "--accepted": self.accepted,
        }
        words = [w for name, size in sizes.items() if size for w in (name, units.show_bytes(size))]
        return words + [name for name, given in flags.items() if given]


_PLAIN_SOCKETS = Sockets(0, 0, 0, True, True, False, False, False)


@dataclass(frozen=True)
class RunSpec:
    """One run. Times are in us, sizes in bytes, rates in bit/s, λ in hundredths, loss in ppm."""

    kernel: str
    flavour: str
    scheme: Scheme
    lambda_hundredths: int | None
    cc: str
    aqm: str | None
    down: Link
    up: Link | None
    base_rtt_us: int
    loss_ppm: int
    reorder_ppm: int
    duplicate_ppm: int
    ack_thin: int
    promotion: Promotion | None
    drx: Drx | None
    flows: int
    flow_gap_us: int
    reader: Reader
    sockets: Sockets
    duration_us: int
    uploads: int
    upload_kind: str
    upload_cc: str
    upload_lie_ms: int
    uplink: Uplink | None
    uplink_loss_ppm: int
    downlink_ack_thin: int
    object_bytes: tuple[int, ...]
    keep_alive: bool
    push: bool
    arrival: str
    think_us: int
    probe_us: int
    probe_kind: str
    events: tuple[Event, ...]
    neighbours: tuple[Neighbour, ...]
    client: Client | None
    second: str | None
    clock: Clock
    # What middleboxes make of SYNs: the window scale of the phone's, and no timestamps.
    syn_scale: int | None
    strip_timestamps: bool
    gro_us: int | None
    tso: bool
    upload_tso: bool
    ipv6: bool
    # How the server sends: at most so fast, and first so many segments; 0 leaves it to the kernel.
    shape_bps: int
    initcwnd: int
    seed: int
    pcap_dir: Path | None = None

    @property
    def stops_both_ways(self) -> bool:
        """Whether the uplink has to wait for the radio even when it has no rate."""
        outage = any(event.what == "outage" for event in self.events)
        return outage or self.promotion is not None or self.drx is not None

    @property
    def has_second_link(self) -> bool:
        moves = any(event.what == "move" for event in self.events)
        return self.sockets.mptcp or moves or self.second == "network"

    @property
    def behind_modem(self) -> bool:
        """Whether two interfaces of the phone share the link."""
        return self.second in ("clat", "vpn")

    @property
    def has_clock(self) -> bool:
        """Whether the link has to translate the server's timestamps."""
        changes = any(event.what in ("clock", "timestamps") for event in self.events)
        lies = any(neighbour.kind == "liar" for neighbour in self.neighbours)
        return bool(changes or lies or self.upload_lie_ms or self.clock != Clock())

    @property
    def has_middlebox(self) -> bool:
        return self.strip_timestamps or self.syn_scale is not None

    def idle(self) -> "RunSpec":
        """This link with nothing on it but probes, whatever the phone, the load and the seed are.

        Its radio is awake, and its queue, which stays empty, is a plain one.
        """
        return replace(
            self,
            scheme=schemes.find("idle"),
            lambda_hundredths=None,
            cc=DEFAULTS["cc"],
            aqm=None,
            promotion=None,
            drx=None,
            flows=0,
            flow_gap_us=0,
            shape_bps=0,
            initcwnd=0,
            reader=Reader(DEFAULTS["reader"]),
            sockets=_PLAIN_SOCKETS,
            uploads=0,
            upload_kind=DEFAULTS["upload-kind"],
            upload_cc=DEFAULTS["upload-cc"],
            upload_lie_ms=0,
            uplink=replace(self.uplink, scheme=DEFAULTS["uplink-scheme"], target_us=None)
            if self.uplink
            else None,
            probe_kind=DEFAULTS["probe-kind"],
            object_bytes=(),
            keep_alive=False,
            push=False,
            arrival=DEFAULTS["arrival"],
            think_us=units.parse_time_us(DEFAULTS["think"]),
            events=tuple(event for event in self.events if event.what not in _LOAD_EVENTS),
            neighbours=(),
            client=None,
            second=None,
            clock=Clock(),
            syn_scale=None,
            strip_timestamps=False,
            tso=False,
            upload_tso=False,
            seed=DEFAULTS["seed"],
            pcap_dir=None,
        )

    @property
    def name(self) -> str:
        parts = [self.scheme.label]
        if self.lambda_hundredths is not None:
            parts[0] += f" λ={units.show_hundredths(self.lambda_hundredths)}"
        if self.scheme.limits and not self.scheme.default_limits:
            parts.append(f"limits {self.scheme.limits}")
        if self.shape_bps:
            parts.append(f"shaped {units.show_rate(self.shape_bps)}")
        if self.cc != DEFAULTS["cc"]:
            parts.append(self.cc)
        if self.aqm:
            parts.append(self.aqm)
        if self.uplink and not self.scheme.idle:
            parts.append(self.uplink.label)
        if self.upload_cc != DEFAULTS["upload-cc"]:
            parts.append(f"upload {self.upload_cc}")
        if self.flavour == "base":
            parts.append("unpatched")
        return ", ".join(parts)

    def command(self) -> str:
        """The command line that repeats this run; traces by their names alone."""
        words = ["lab", "run", "--kernel", self.kernel, "--scheme", self.scheme.name]
        if self.lambda_hundredths is not None:
            words += ["--lambda", units.show_hundredths(self.lambda_hundredths)]
        if self.scheme.limits and not self.scheme.default_limits:
            words += ["--limits", self.scheme.limits]
        words += _link_words("", self.down)
        words += ["--base-rtt", units.show_time(self.base_rtt_us)]
        if self.up:
            words += _link_words("uplink-", self.up)
        if self.uplink:
            # The modem is the buffer.
            words = words[:-2] + self.uplink.words()
        words += ["--flows", str(self.flows)]
        if self.flow_gap_us:
            words += ["--flow-gap", units.show_time(self.flow_gap_us)]
        words += ["--duration", units.show_time(self.duration_us)]
        words += ["--cc", self.cc]
        if self.aqm:
            words += ["--aqm", self.aqm]
        for name in ("loss", "reorder", "duplicate", "uplink-loss"):
            if ppm := getattr(self, f"{name.replace('-', '_')}_ppm"):
                words += [f"--{name}", units.show_percent(ppm)]
        if self.ack_thin:
            words += ["--ack-thin", str(self.ack_thin)]
        if self.downlink_ack_thin:
            words += ["--downlink-ack-thin", str(self.downlink_ack_thin)]
        if self.promotion:
            words += ["--promotion", str(self.promotion)]
        if self.drx:
            words += ["--drx", str(self.drx)]
        if self.reader.kind != DEFAULTS["reader"]:
            words += ["--reader", str(self.reader)]
        for size in self.object_bytes:
            words += ["--object", units.show_bytes(size)]
        if self.object_bytes:
            words += ["--arrival", self.arrival, "--think", units.show_time(self.think_us)]
        words += self.sockets.words()
        if self.probe_us != units.parse_time_us(DEFAULTS["probe-interval"]):
            words += ["--probe-interval", units.show_time(self.probe_us)]
        if self.probe_kind != DEFAULTS["probe-kind"]:
            words += ["--probe-kind", self.probe_kind]
        for event in self.events:
            words += ["--event", str(event)]
        for neighbour in self.neighbours:
            words += ["--neighbour", str(neighbour)]
        if self.client:
            words += self.client.words()
        if self.second:
            words += ["--second", self.second]
        if self.clock.ppm:
            words += ["--clock-drift", units.show_ppm(self.clock.ppm)]
        if self.clock.tick_us != Clock.tick_us:
            words += ["--clock-tick", units.show_time(self.clock.tick_us)]
        if self.syn_scale is not None:
            words += ["--syn-scale", str(self.syn_scale)]
        if self.gro_us is not None:
            words += ["--gro", units.show_time(self.gro_us)]
        if self.shape_bps:
            words += ["--shape", units.show_rate(self.shape_bps)]
        if self.initcwnd:
            words += ["--initcwnd", str(self.initcwnd)]
        flags = {
            "--strip-timestamps": self.strip_timestamps,
            "--tso": self.tso,
            "--upload-tso": self.upload_tso,
            "--keep-alive": self.keep_alive,
            "--push": self.push,
            "--upload": self.uploads > 0,
            "--ipv6": self.ipv6,
            "--unpatched": self.flavour == "base",
        }
        words += [flag for flag, given in flags.items() if given]
        if self.uploads > 1:
            words += ["--uploads", str(self.uploads)]
        if self.upload_kind != DEFAULTS["upload-kind"]:
            words += ["--upload-kind", self.upload_kind]
        if self.upload_cc != DEFAULTS["upload-cc"]:
            words += ["--upload-cc", self.upload_cc]
        if self.upload_lie_ms:
            words += ["--upload-lie", units.show_signed_ms(self.upload_lie_ms)]
        words += ["--seed", str(self.seed)]
        return shlex.join(words)


def _link_words(prefix: str, link: Link) -> list[str]:
    if link.trace:
        source = [f"--{prefix}trace", link.trace.path.name]
    else:
        assert link.rate_bps is not None
        source = [f"--{prefix}rate", units.show_rate(link.rate_bps)]
    return [*source, f"--{prefix}buffer", units.show_bytes(link.buffer_bytes)]


class _Options:
    """Options by name, with defaults, and errors that name the option."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = {
            key: value
            for key, value in given.items()
            if value is not None and value is not False and value not in ([], ())
        }

    def given(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str) -> Any:
        return self._given.get(name, DEFAULTS.get(name))

    def parse(self, name: str, parser: Callable[[str], int]) -> int:
        try:
            return parser(str(self.get(name)))
        except ValueError as e:
            raise SpecError(f"--{name}: {e}") from e

    def positive(self, name: str, parser: Callable[[str], int]) -> int:
        value = self.parse(name, parser)
        if value == 0:
            raise SpecError(f"--{name}: '{self.get(name)}' is not more than 0")
        return value

    def optional(self, name: str, parser: Callable[[str], int]) -> int:
        return self.parse(name, parser) if self.given(name) else 0

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = str(self.get(name))
        if value not in choices:
            raise SpecError(f"--{name}: '{value}' is unknown: {units.instead_of(value, choices)}")
        return value

    def whole(self, name: str, low: int, high: int) -> int:
        text = str(self.get(name))
        if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
            raise SpecError(f"--{name}: '{text}' is not a whole number from {low} to {high}")
        return int(text)


def parse(scheme: str, given: Mapping[str, Any]) -> RunSpec:
    """One run from option texts, named as on the command line without dashes; raises SpecError."""
    options = _Options(given)
    found = _scheme(options, scheme)
    up = None
    if options.given("uplink-rate") or options.given("uplink-trace"):
        up = _link(options, "uplink-")
    elif options.given("uplink-buffer"):
        raise SpecError("--uplink-buffer: needs --uplink-rate or --uplink-trace")
    spec = RunSpec(
        kernel=options.choice("kernel", tuple(read_lines())),
        flavour=_flavour(options, found),
        scheme=found,
        lambda_hundredths=_lambda(options, found),
        cc=options.choice("cc", CONGESTION_CONTROLS),
        aqm=options.choice("aqm", AQMS) if options.given("aqm") else None,
        down=_link(options, ""),
        up=up,
        base_rtt_us=options.parse("base-rtt", units.parse_time_us),
        loss_ppm=options.optional("loss", units.parse_percent_ppm),
        reorder_ppm=options.optional("reorder", units.parse_percent_ppm),
        duplicate_ppm=options.optional("duplicate", units.parse_percent_ppm),
        ack_thin=options.whole("ack-thin", 2, MAX_ACK_THIN) if options.given("ack-thin") else 0,
        promotion=_promotion(options),
        drx=_drx(options),
        flows=options.whole("flows", 0, MAX_FLOWS),
        flow_gap_us=options.parse("flow-gap", units.parse_time_us),
        reader=_reader(options),
        sockets=_sockets(options),
        duration_us=options.positive("duration", units.parse_time_us),
        uploads=_uploads(options),
        upload_kind=options.choice("upload-kind", UPLOAD_KINDS),
        upload_cc=options.choice("upload-cc", CONGESTION_CONTROLS),
        upload_lie_ms=options.optional("upload-lie", units.parse_signed_ms),
        uplink=_uplink(options, up),
        uplink_loss_ppm=options.optional("uplink-loss", units.parse_percent_ppm),
        downlink_ack_thin=options.whole("downlink-ack-thin", 2, MAX_ACK_THIN)
        if options.given("downlink-ack-thin")
        else 0,
        object_bytes=_objects(options.get("object") or []),
        keep_alive=bool(options.get("keep-alive")),
        push=bool(options.get("push")),
        arrival=options.choice("arrival", ARRIVALS),
        think_us=options.parse("think", units.parse_time_us),
        probe_us=options.positive("probe-interval", units.parse_time_us),
        probe_kind=options.choice("probe-kind", PROBE_KINDS),
        events=_events(options.get("event") or []),
        neighbours=_neighbours(options.get("neighbour") or []),
        client=_client(options),
        second=options.choice("second", tuple(SECONDS)) if options.given("second") else None,
        clock=_clock(options),
        syn_scale=options.whole("syn-scale", 0, MAX_SCALE) if options.given("syn-scale") else None,
        strip_timestamps=bool(options.get("strip-timestamps")),
        gro_us=options.parse("gro", units.parse_time_us) if options.given("gro") else None,
        tso=bool(options.get("tso")),
        upload_tso=bool(options.get("upload-tso")),
        ipv6=bool(options.get("ipv6")),
        shape_bps=_shape(options),
        initcwnd=options.whole("initcwnd", 1, MAX_INITCWND) if options.given("initcwnd") else 0,
        seed=options.whole("seed", 0, (1 << 64) - 1),
    )
    if found.idle:
        spec = replace(spec.idle(), seed=spec.seed)
    _check(spec)
    return spec


def flavour_of(scheme: Scheme, *, patched: bool, nat: bool) -> str:
    """The kernel for a scheme; what the law has no part in may do without the series."""
    if scheme.uses_drwa:
        return scheme.flavour
    if nat:
        return WITH_NAT
    return scheme.flavour if patched else "base"


def _flavour(options: _Options, scheme: Scheme) -> str:
    nat = bool(options.get("client-nat"))
    if nat and scheme.uses_drwa and scheme.flavour != WITH_NAT:
        raise SpecError(f"--client-nat: the kernel of the scheme {scheme.name} has none")
    if options.get("unpatched") and scheme.uses_drwa:
        return "base"
    return flavour_of(scheme, patched=not options.get("unpatched"), nat=nat)


def _client(options: _Options) -> Client | None:
    if not options.given("client"):
        for name in ("client-rtt", "client-jitter", "client-nat"):
            if options.given(name):
                raise SpecError(f"--{name}: needs --client")
        return None
    rtt_us = options.parse("client-rtt", units.parse_time_us)
    jitter_us = options.optional("client-jitter", units.parse_time_us)
    if jitter_us > rtt_us:
        raise SpecError("--client-jitter: is more than --client-rtt")
    load = options.choice("client", CLIENT_LOADS)
    return Client(load, rtt_us, jitter_us, bool(options.get("client-nat")))


def _uploads(options: _Options) -> int:
    if not options.get("upload") and not options.given("uploads"):
        for name in ("upload-kind", "upload-cc", "upload-lie"):
            if options.given(name):
                raise SpecError(f"--{name}: needs --upload or --uploads")
        return 0
    kind = options.get("upload-kind")
    for name in ("upload-cc", "upload-lie"):
        if options.given(name) and kind != "tcp":
            raise SpecError(f"--{name}: concerns TCP, not --upload-kind {kind}")
    return options.whole("uploads", 1, MAX_UPLOADS) if options.given("uploads") else 1


def _uplink(options: _Options, up: Link | None) -> Uplink | None:
    """Any of these options stands for all of them, with their defaults."""
    names = (
        "uplink-scheme",
        "uplink-target",
        "firmware",
        "grant",
        "grant-report",
        "modem-tells",
        "modem-hides",
        "modem-bearers",
    )
    given = [name for name in names if options.given(name)]
    if not given:
        return None
    if up is None:
        raise SpecError(f"--{given[0]}: needs --uplink-rate or --uplink-trace")
    if options.given("uplink-buffer"):
        raise SpecError("--uplink-buffer: with a modem, --firmware is its size")
    scheme = options.choice("uplink-scheme", SCHEMES)
    target_us = None
    if options.given("uplink-target"):
        if scheme not in WITH_TARGET:
            raise SpecError(f"--uplink-target: {scheme} has none, {', '.join(WITH_TARGET)} have")
        target_us = options.positive("uplink-target", units.parse_time_us)
    report_us = None
    if options.given("grant-report"):
        report_us = options.positive("grant-report", units.parse_time_us)
    size = options.parse("firmware", units.parse_bytes)
    if not PACKET_BYTES <= size < 1 << 32:
        raise SpecError(f"--firmware: {size} B is out of {PACKET_BYTES}B to 4GiB")
    told_us, hidden_bytes = None, 0
    if options.given("modem-tells"):
        told_us = options.positive("modem-tells", units.parse_time_us)
    if options.given("modem-hides"):
        if told_us is None:
            raise SpecError("--modem-hides: needs --modem-tells")
        hidden_bytes = options.positive("modem-hides", units.parse_bytes)
    bearers = 1
    if options.given("modem-bearers"):
        bearers = _bearers(options, scheme, told_us)
    grant_us = options.parse("grant", units.parse_time_us)
    return Uplink(scheme, target_us, size, grant_us, report_us, told_us, hidden_bytes, bearers)


def _bearers(options: _Options, scheme: str, told_us: int | None) -> int:
    bearers = int(options.choice("modem-bearers", BEARERS))
    if told_us is None:
        raise SpecError("--modem-bearers: needs --modem-tells")
    if scheme not in BELOW_MQ:
        raise SpecError(f"--modem-bearers: takes {', '.join(BELOW_MQ)}, not {scheme}")
    for name in ("ipv6", "gro", "second"):
        if options.given(name):
            raise SpecError(f"--modem-bearers: not with --{name}")
    return bearers


def _scheme(options: _Options, text: str) -> Scheme:
    """Of the schemes in one command, --limits concerns those with DRWA."""
    try:
        scheme = schemes.find(text)
    except ValueError as e:
        raise SpecError(f"--scheme: {e}") from e
    if not options.given("limits"):
        return scheme
    try:
        limits = schemes.find(str(options.get("limits")))
    except ValueError as e:
        raise SpecError(f"--limits: {e}") from e
    if limits.uses_drwa or limits.idle:
        raise SpecError(f"--limits: {limits.name} has none of its own")
    return scheme.under(limits) if scheme.uses_drwa else scheme


def _lambda(options: _Options, scheme: Scheme) -> int | None:
    """Of the schemes in one command, --lambda concerns those that have one."""
    if not scheme.uses_drwa:
        return None
    if not options.given("lambda"):
        return scheme.default_lambda
    value = options.parse("lambda", units.parse_hundredths)
    _check_lambda(value, "--lambda")
    return value


def _check_lambda(hundredths: int, option: str) -> None:
    """0 is off."""
    low, high = LAMBDA_RANGE
    if hundredths and not low <= hundredths <= high:
        limits = f"{units.show_hundredths(low)} to {units.show_hundredths(high)}"
        raise SpecError(f"{option}: {units.show_hundredths(hundredths)} is out of {limits}")


def _link(options: _Options, prefix: str) -> Link:
    rate, trace = f"{prefix}rate", f"{prefix}trace"
    if options.given(rate) == options.given(trace):
        which = "not both" if options.given(rate) else "one of them is needed"
        raise SpecError(f"--{rate} or --{trace}: {which}")
    size = options.parse(f"{prefix}buffer", units.parse_bytes)
    if not PACKET_BYTES <= size < 1 << 32:
        raise SpecError(f"--{prefix}buffer: {size} B is out of {PACKET_BYTES}B to 4GiB")
    if options.given(rate):
        return Link(options.positive(rate, units.parse_rate_bps), None, size)
    try:
        return Link(None, traces.load(Path(options.get(trace))), size)
    except traces.TraceError as e:
        raise SpecError(f"--{trace}: {e}") from e


def _promotion(options: _Options) -> Promotion | None:
    if not options.given("promotion"):
        return None
    wake, slash, idle = str(options.get("promotion")).partition("/")
    try:
        if not slash:
            raise ValueError(f"'{wake}' is not TIME/TIME, such as 500ms/7s")
        promotion = Promotion(units.parse_time_us(wake), units.parse_time_us(idle))
    except ValueError as e:
        raise SpecError(f"--promotion: {e}") from e
    if not promotion.wake_us or not promotion.idle_us:
        raise SpecError(f"--promotion: '{promotion}' has a time that is not more than 0")
    return promotion


def _drx(options: _Options) -> Drx | None:
    if not options.given("drx"):
        return None
    times = str(options.get("drx")).split("/")
    try:
        if len(times) != 3:
            raise ValueError(f"'{'/'.join(times)}' is not TIME/TIME/TIME, such as 160ms/10ms/100ms")
        drx = Drx(*map(units.parse_time_us, times))
    except ValueError as e:
        raise SpecError(f"--drx: {e}") from e
    if not 0 < drx.on_us < drx.cycle_us or not drx.inactivity_us:
        raise SpecError(f"--drx: '{drx}' listens all the time, or never")
    return drx


def _reader(options: _Options) -> Reader:
    text = str(options.get("reader"))
    kind, _, rest = text.partition(":")
    numbers = rest.split("/") if rest else []
    if kind not in _READERS or len(numbers) != len(_READERS[kind]):
        forms = (
            "fast, slow:RATE, pause:AT/FOR, burst:PERIOD/SIZE, small:SIZE, every:PERIOD, lowat:SIZE"
        )
        raise SpecError(f"--reader: '{text}' is none of {forms}")
    try:
        values = [parse(n) for (parse, _), n in zip(_READERS[kind], numbers, strict=True)]
    except ValueError as e:
        raise SpecError(f"--reader: {e}") from e
    if kind != "pause" and not all(values):
        raise SpecError(f"--reader: '{text}' has a number that is not more than 0")
    if kind == "lowat" and values[0] > MAX_LOWAT_BYTES:
        raise SpecError(f"--reader: '{text}' sleeps for more than half of any buffer")
    if kind == "slow" and values[0] < MIN_READ_BPS:
        raise SpecError(f"--reader: '{text}' is slower than {units.show_rate(MIN_READ_BPS)}")
    return Reader(kind, tuple(values))


def _sockets(options: _Options) -> Sockets:
    sizes = {}
    for name, (low, high) in _SIZES.items():
        size = options.optional(name, units.parse_bytes)
        if options.given(name) and not low <= size <= high:
            raise SpecError(f"--{name}: {size} B is out of {low} to {high} bytes")
        sizes[name] = size
    sockets = Sockets(
        rcvbuf_bytes=sizes["rcvbuf"],
        window_clamp_bytes=sizes["window-clamp"],
        mss_bytes=sizes["mss"],
        timestamps=not options.get("no-timestamps"),
        window_scaling=not options.get("no-window-scaling"),
        fastopen=bool(options.get("fastopen")),
        mptcp=bool(options.get("mptcp")),
        accepted=bool(options.get("accepted")),
    )
    if sockets.accepted and sockets.fastopen:
        raise SpecError("--accepted: --fastopen concerns connections that the phone opens")
    if sockets.mptcp and (sockets.fastopen or sockets.mss_bytes or sockets.window_clamp_bytes):
        raise SpecError("--mptcp: not with --fastopen, --mss or --window-clamp")
    return sockets


def _neighbours(texts: list[str]) -> tuple[Neighbour, ...]:
    if len(texts) > MAX_NEIGHBOURS:
        raise SpecError(f"--neighbour: more than {MAX_NEIGHBOURS}")
    found = tuple(_neighbour(text) for text in texts)
    if sum(neighbour.kind == "liar" for neighbour in found) > 1:
        raise SpecError("--neighbour: more than one liar")
    return found


def _neighbour(text: str) -> Neighbour:
    kind, _, rest = text.partition(":")
    at, _, length = rest.partition("/")
    if kind not in NEIGHBOURS:
        raise SpecError(f"--neighbour: '{kind}' is unknown: {units.instead_of(kind, NEIGHBOURS)}")
    try:
        at_us = units.parse_time_us(at) if at else 0
        for_us = units.parse_time_us(length) if length else None
    except ValueError as e:
        raise SpecError(f"--neighbour: {e}") from e
    if for_us == 0:
        raise SpecError(f"--neighbour: '{text}' has no length")
    return Neighbour(kind, at_us, for_us)


def _clock(options: _Options) -> Clock:
    ppm = options.optional("clock-drift", units.parse_ppm)
    if abs(ppm) > MAX_CLOCK_PPM:
        raise SpecError(f"--clock-drift: {ppm} is out of ±{MAX_CLOCK_PPM} ppm")
    if not options.given("clock-tick"):
        return Clock(ppm)
    us = options.parse("clock-tick", units.parse_time_us)
    if us != 1 and (us % 1000 or not 1 <= us // 1000 <= MAX_CLOCK_TICK_MS):
        raise SpecError(
            f"--clock-tick: has to be 1us, or a whole number of ms to {MAX_CLOCK_TICK_MS}"
        )
    return Clock(ppm, us)


def _shape(options: _Options) -> int:
    if not options.given("shape"):
        return 0
    rate = options.positive("shape", units.parse_rate_bps)
    # The kernel takes it as a 32-bit number of bytes per second.
    if not 8 <= rate < 8 << 32:
        raise SpecError(f"--shape: '{options.get('shape')}' is out of 8bit to 34gbit")
    return rate


def _objects(texts: list[str]) -> tuple[int, ...]:
    if len(texts) > MAX_OBJECTS:
        raise SpecError(f"--object: more than {MAX_OBJECTS}")
    sizes = []
    for text in texts:
        size = _Options({"object": text}).positive("object", units.parse_bytes)
        sizes.append(size)
    return tuple(sizes)


def _events(texts: list[str]) -> tuple[Event, ...]:
    if len(texts) > MAX_EVENTS:
        raise SpecError(f"--event: more than {MAX_EVENTS}")
    return tuple(sorted((parse_event(text) for text in texts), key=lambda event: event.at_us))


def parse_event(text: str) -> Event:
    """A change from its text, "TIME NAME=VALUE"; raises SpecError."""
    at, _, change = text.strip().partition(" ")
    what, equals, value = change.strip().partition("=")
    if not equals or what not in _EVENT_PARSERS:
        names = ", ".join(_EVENT_PARSERS)
        raise SpecError(f"--event: '{text}' is not 'TIME NAME=VALUE' with a name of {names}")
    try:
        event = Event(units.parse_time_us(at), what, _EVENT_PARSERS[what](value))
    except ValueError as e:
        raise SpecError(f"--event '{text}': {e}") from e
    if what == "lambda":
        _check_lambda(event.value, f"--event '{text}'")
    return event


def _check(spec: RunSpec) -> None:
    """What no option shows by itself."""
    if spec.duration_us % SAMPLE_US:
        raise SpecError("--duration: has to be a multiple of 100ms")
    loads = (spec.flows, spec.object_bytes, spec.uploads, spec.neighbours, spec.scheme.idle)
    if not any(loads):
        raise SpecError("--flows: 0 leaves nothing to measure without --object or --upload")
    if spec.flow_gap_us * (spec.flows - 1) >= spec.duration_us:
        raise SpecError(f"--flow-gap: the last of {spec.flows} flows would not start in the run")
    if spec.keep_alive and not spec.object_bytes:
        raise SpecError("--keep-alive: needs --object")
    if spec.push and not spec.keep_alive:
        raise SpecError("--push: needs --keep-alive")
    if spec.arrival == "poisson":
        _check_poisson(spec)
    if spec.scheme.uses_drwa and spec.flavour == "base":
        patched = spec.scheme.flavour == "drwa"
        why = "needs the patched kernel" if patched else "has an unpatched kernel anyway"
        raise SpecError(f"--unpatched: the scheme {spec.scheme.name} {why}")
    if spec.reader.kind != "fast" and not spec.flows:
        raise SpecError("--reader: needs bulk downloads, --flows")
    if spec.sockets.accepted and (spec.reader.kind != "fast" or not spec.flows):
        raise SpecError("--accepted: needs bulk downloads, --flows, and a fast reader")
    if spec.sockets.mss_bytes + HEADER_BYTES > spec.down.buffer_bytes:
        raise SpecError(f"--buffer: holds no packet with an MSS of {spec.sockets.mss_bytes} B")
    _check_company(spec)
    for event in spec.events:
        _check_event(spec, event)
    outages = [event for event in spec.events if event.what == "outage"]
    for before, after in pairwise(outages):
        if after.at_us < before.at_us + before.value:
            raise SpecError(f"--event '{after}': begins before the end of '{before}'")


def _check_company(spec: RunSpec) -> None:
    """Neighbours, a second interface, and who may merge or split segments."""
    for neighbour in spec.neighbours:
        if neighbour.at_us >= spec.duration_us:
            raise SpecError(f"--neighbour: '{neighbour}' is not before the end of the run")
    if spec.second:
        if spec.flows < 2 or spec.sockets.accepted or spec.sockets.mptcp:
            raise SpecError("--second: needs two --flows, and neither --accepted nor --mptcp")
        if spec.ipv6:
            raise SpecError("--second: not with --ipv6")
        if any(event.what in ("interface", "move") for event in spec.events):
            raise SpecError("--second: not with an event interface or move")
    if spec.client:
        _check_client(spec, spec.client)
    if spec.upload_tso and (not spec.uplink or spec.upload_kind != "tcp" or not spec.uploads):
        raise SpecError("--upload-tso: needs --upload over TCP and --uplink-scheme")
    if spec.upload_lie_ms and any(neighbour.kind == "liar" for neighbour in spec.neighbours):
        raise SpecError("--upload-lie: not with a liar as --neighbour")
    if spec.second and spec.uplink:
        raise SpecError("--second: not with --uplink-scheme")
    if sum(event.what == "clock" for event in spec.events) > MAX_CLOCK_STEPS:
        raise SpecError(f"--event: more than {MAX_CLOCK_STEPS} of clock")
    if spec.gro_us is not None and spec.kernel in NO_GRO:
        raise SpecError(f"--gro: the lab's links have none in {spec.kernel}")
    if spec.gro_us is not None and spec.second:
        raise SpecError("--gro: not with --second")
    loses = spec.loss_ppm or any(event.what == "loss" for event in spec.events)
    if spec.tso and (loses or spec.duplicate_ppm or spec.sockets.mptcp):
        raise SpecError("--tso: not with --loss, --duplicate or --mptcp, which count packets")


def _check_client(spec: RunSpec, client: Client) -> None:
    if spec.second or spec.sockets.accepted or spec.sockets.mptcp:
        raise SpecError("--client: not with --second, --accepted or --mptcp")
    if any(event.what in ("interface", "move") for event in spec.events):
        raise SpecError("--client: not with an event interface or move")
    if client.load == "half" and spec.flows < 2:
        raise SpecError("--client: half needs two --flows")
    if client.load == "all" and not spec.flows and not spec.object_bytes:
        raise SpecError("--client: needs downloads, --flows or --object")
    if client.nat and spec.ipv6:
        raise SpecError("--client-nat: not with --ipv6, which is routed")


def _check_poisson(spec: RunSpec) -> None:
    if not spec.object_bytes:
        raise SpecError("--arrival: poisson needs --object")
    if spec.keep_alive:
        raise SpecError("--arrival: poisson fetches each object on its own connection")
    if spec.think_us * MAX_REQUESTS < spec.duration_us:
        raise SpecError(f"--think: more than {MAX_REQUESTS} objects in the mean")


def _check_event(spec: RunSpec, event: Event) -> None:
    if event.at_us >= spec.duration_us:
        raise SpecError(f"--event '{event}': is not before the end of the run")
    if event.what == "rate" and spec.down.rate_bps is None:
        raise SpecError(f"--event '{event}': needs --rate")
    if event.what == "uplink-rate" and (spec.up is None or spec.up.rate_bps is None):
        raise SpecError(f"--event '{event}': needs --uplink-rate")
    if event.what in _CHOICES and spec.object_bytes:
        raise SpecError(f"--event '{event}': not with --object")
    if event.what == "lambda" and not spec.scheme.uses_drwa:
        raise SpecError(f"--event '{event}': needs the scheme drwa or a form of it")
