# SPDX-License-Identifier: Apache-2.0
"""A phone's day in four minutes of a guest: what happens, and what has to come of it.

One download after the other runs through the lab's network, over rmnet0 or wlan0, with a ping
beside it over the same interface. The system in the guest learns from commands what it would learn
from other processes: that networks come and go, which SIM is in, what the carrier wants.
"""

import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import drwasystem
from drwalab import guest, kernels, ltelink, network, results, spec, traces
from drwalab.kernels import Kernel
from drwalab.traces import Trace
from drwasystem import Phone

KERNEL = "6.12"
SCHEMA = "drwa-e2e/1"
HERE = Path(__file__).resolve().parent
VENDOR_XML = drwasystem.TOP / "frameworks" / "carrier" / "vendor.xml"

LTE, WIFI, CLAT = "rmnet0", "wlan0", "v4-rmnet0"
# Of a VPN over LTE, and of the second SIM; no packet goes over them
VPN, SECOND = "tun0", "rmnet1"
# What CLAT's device is called once another one has its name
FORMER_CLAT = "v4-former"
# As clatd gives it. A JVM's NetworkInterface lists what has an address, Android's everything.
CLAT_ADDRESS = f"ip -n phone addr add 192.0.0.4/32 dev {CLAT}"
# Where LTE's device is while the modem restarts: for the phone it is gone, and comes as a new one.
ELSEWHERE = "modem"
SERVICES = {"A": "connectivity", "B": "drwa"}

# netd has died, and the kernel has kept this. netd is to reset it, not the policy.
LEFT_BY_NETD = f"""\
echo 200 >/proc/sys/net/ipv4/conf/{WIFI}/tcp_drwa_lambda
echo 100 >/proc/sys/net/ipv4/conf/{WIFI}/tcp_drwa_queue
"""

DURATION_S = 211
BASE_RTT_MS = 50
# LTE is what ltelink generates, 10 Mb/s in the mean; base stations buffer seconds of that.
LTE_SEED = 1
LTE_BUFFER_BYTES = 3_000_000
# From the upload on, the way up is slow, and buffers a second of that: behind the phone's
# interface, as a modem does.
UPLINK_BPS = 5_000_000
UPLINK_BUFFER_PACKETS = 400
SLOW_UPLINK = (
    f"tc -n router qdisc change dev net0 root netem limit {UPLINK_BUFFER_PACKETS}"
    f" delay {BASE_RTT_MS // 2}ms rate {UPLINK_BPS}bit"
)
UPLINK_MS = 20
WIFI_BPS = 30_000_000
WIFI_BUFFER_BYTES = 500_000
WIFI_FULL_MS = BASE_RTT_MS + WIFI_BUFFER_BYTES * 8e3 / WIFI_BPS

# What a step changes has this long to show in the kernel, and then in the queue.
KNOB_MS = 60
SETTLE_S = 5
LOOK_S = 1

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    at_s: int
    name: str
    # For a mark in a figure
    mark: str
    happens: str
    # Events of the lab's agent, where "phone: ..." is a command of the system
    events: tuple[str, ...]
    # λ in hundredths from then on; None for an interface that is gone
    lambdas: dict[str, int | None]
    # What dumpsys says of interfaces
    says: tuple[str, ...]
    # The queues of those that are on
    queues: dict[str, int] = field(default_factory=dict)
    # How long the queue needs to show what has changed
    settle_s: int = SETTLE_S
    # Targets of uplinks in ms, by interface
    uplinks: dict[str, int] = field(default_factory=dict)


HOTSPOT_S = 10
# What telephony tells a new system server
BACK = ("phone: telephony xml update.xml", "phone: telephony sim 1 cid=2018 mcc=405 mnc=840")
# What a carrier wants that has no DRWA else
UPLINK_XML = f"""\
<carrier_config_list>
    <carrier_config cid="1">
        <int name="drwa_uplink_target_ms_int" value="{UPLINK_MS}" />
    </carrier_config>
</carrier_config_list>
"""

# The limit that ConnectivityService has applied all the time, as much as DRWA's own
LIMIT = (
    "the static receive maximum of 16777216 bytes"
    " (net.tcp.buffersize, config_tcp_buffers, tcp_rmem)"
)
SUPERSEDED = f"supersedes {LIMIT}, which stays"
LEFT = f"stays below {LIMIT}"
KEPT = f"keeps {LIMIT}, which leaves DRWA its 16777216"


def _shared(queue: int) -> tuple[str, ...]:
    """What the policy says of LTE and its 464xlat."""
    return (
        f"{LTE} λ=3.00: carrier 2018",
        f"queue {queue}, shared with {CLAT}",
        f"{CLAT} λ=3.00: carrier 2018",
        f"queue {queue}, shared with {LTE}",
    )


STEPS = (
    Step(
        0,
        "LTE, unidentified",
        "LTE",
        "The phone has LTE; its carrier is not identified yet. A download starts.",
        (
            f"phone: telephony xml {VENDOR_XML.name}",
            "phone: telephony sim 1",
            f"phone: network connect 100 cellular:1 {LTE} {CLAT}",
            f"download {LTE}",
            f"probe {LTE}",
        ),
        {LTE: 0, CLAT: 0, SECOND: 0, WIFI: 0},
        (f"{LTE} off: unidentified carrier", f"{CLAT} off: unidentified carrier"),
    ),
    Step(
        15,
        "Carrier identified",
        "carrier: λ=1.50",
        "The carrier is identified; its XML says λ = 1.50. The download goes on.",
        ("phone: telephony sim 1 cid=2018 mcc=405 mnc=840",),
        {LTE: 150, CLAT: 150, WIFI: 0},
        (
            f"{LTE} λ=1.50: carrier 2018",
            f"queue 100, shared with {CLAT}",
            f"{CLAT} λ=1.50: carrier 2018",
            f"queue 100, shared with {LTE}",
        ),
        {LTE: 100, CLAT: 100},
    ),
    Step(
        35,
        "Wi-Fi",
        "Wi-Fi",
        "Wi-Fi becomes the default; the next download is over it. LTE lingers.",
        (
            "hangup",
            f"phone: network connect 101 wifi {WIFI}",
            f"download {WIFI}",
            f"probe {WIFI}",
        ),
        {LTE: 150, CLAT: 150, WIFI: 0},
        (f"{LTE} λ=1.50: carrier 2018", f"{WIFI} off: wifi"),
        {LTE: 100, CLAT: 100},
    ),
    Step(
        45,
        "LTE goes",
        "LTE goes",
        "LTE has lingered long enough and is torn down. The download over Wi-Fi goes on.",
        ("phone: network lose 100",),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (f"{WIFI} off: wifi",),
    ),
    Step(
        55,
        "Back to LTE",
        "back to LTE",
        "Wi-Fi is lost, LTE is back, with the next download.",
        (
            "hangup",
            "phone: network lose 101",
            f"ip -n phone link set {WIFI} down",
            f"phone: network connect 102 cellular:1 {LTE} {CLAT}",
            f"download {LTE}",
            f"probe {LTE}",
        ),
        {LTE: 150, CLAT: 150, WIFI: 0},
        (f"{LTE} λ=1.50: carrier 2018", f"queue 102, shared with {CLAT}"),
        {LTE: 102, CLAT: 102},
    ),
    Step(
        75,
        "Carrier changes λ",
        "carrier: λ=3.00",
        "The carrier wants λ = 3.00: another XML. The download goes on.",
        ("phone: telephony xml update.xml",),
        {LTE: 300, CLAT: 300, WIFI: 0},
        (f"{LTE} λ=3.00: carrier 2018", f"{CLAT} λ=3.00: carrier 2018", SUPERSEDED),
        {LTE: 102, CLAT: 102},
    ),
    Step(
        90,
        "Switched off",
        "off by a setting",
        "A setting switches DRWA off, in the middle of the download.",
        ("phone: settings put global drwa_enabled 0",),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (
            "DRWA: off: Settings.Global drwa_enabled",
            f"{LTE} off: Settings.Global drwa_enabled",
            f"{CLAT} off: Settings.Global drwa_enabled",
        ),
    ),
    Step(
        98,
        "Switched on",
        "on",
        "The setting is deleted: the carrier decides again. The download still goes on, and fills "
        "the window that it was offered first.",
        ("phone: settings delete global drwa_enabled",),
        {LTE: 300, CLAT: 300, WIFI: 0},
        ("DRWA: enabled", f"{LTE} λ=3.00: carrier 2018", f"{CLAT} λ=3.00: carrier 2018"),
        {LTE: 102, CLAT: 102},
        settle_s=12,
    ),
    Step(
        116,
        "Flag",
        "off by a flag",
        "A flag from a server switches DRWA off.",
        ("phone: device_config put tethering drwa -1",),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (
            "DRWA: off: DeviceConfig tethering/drwa",
            f"{LTE} off: DeviceConfig tethering/drwa",
            f"{CLAT} off: DeviceConfig tethering/drwa",
        ),
    ),
    Step(
        118,
        "Flag goes",
        "on",
        "The flag is deleted.",
        ("phone: device_config delete tethering drwa",),
        {LTE: 300, CLAT: 300, WIFI: 0},
        ("DRWA: enabled", f"{LTE} λ=3.00: carrier 2018", f"{CLAT} λ=3.00: carrier 2018"),
        {LTE: 102, CLAT: 102},
    ),
    Step(
        120,
        "Modem restarts",
        "modem restarts",
        "The modem restarts: LTE's interface is gone, and the network still names it. "
        "464xlat's is renamed, and another device has its name and the other's number.",
        (
            "hangup",
            f"number=$(ip netns exec phone cat /sys/class/net/{LTE}/ifindex)"
            f" && ip -n phone link set {LTE} netns {ELSEWHERE}"
            f" && ip -n phone link set {CLAT} name {FORMER_CLAT}"
            f" && ip -n phone link add {CLAT} index $number type dummy && {CLAT_ADDRESS}",
        ),
        {LTE: None, CLAT: 300, FORMER_CLAT: 0, WIFI: 0},
        (
            f"{LTE} λ=3.00: carrier 2018, not written: no such interface",
            f"{CLAT} λ=3.00: carrier 2018",
        ),
        {CLAT: 102},
    ),
    Step(
        122,
        "Modem is back",
        "modem is back",
        "A new interface has the old name, and nobody but netd tells of it. Then the next "
        "download starts.",
        (
            f"ip -n {ELSEWHERE} link set {LTE} netns phone"
            f" && ip -n phone addr add 10.0.2.2/24 dev {LTE}"
            f" && ip -n phone link set {LTE} up"
            f" && ip -n phone route add default via 10.0.2.1",
            f"download {LTE}",
            f"probe {LTE}",
        ),
        {LTE: 300, CLAT: 300, FORMER_CLAT: 0, WIFI: 0},
        _shared(102),
        {LTE: 102, CLAT: 102},
    ),
    Step(
        133,
        "VPN, second SIM",
        "VPN, second SIM",
        "A VPN over LTE comes, and a network of the second SIM, whose carrier is the same. The "
        "download goes on.",
        (
            "phone: telephony sim 3 cid=2018 mcc=405 mnc=840",
            f"phone: network connect 104 vpn:cellular:102 {VPN}",
            f"phone: network connect 105 cellular:3 {SECOND}",
        ),
        {LTE: 300, CLAT: 300, VPN: 300, SECOND: 300, WIFI: 0},
        (
            f"{LTE} λ=3.00: carrier 2018",
            f"queue 102, shared with {VPN}, {CLAT}",
            f"{SECOND} λ=3.00: carrier 2018",
            "queue 105",
            f"{VPN} λ=3.00: over network 102 (carrier 2018)",
            f"queue 102, shared with {LTE}, {CLAT}",
            f"{CLAT} λ=3.00: carrier 2018",
            f"queue 102, shared with {LTE}, {VPN}",
        ),
        {LTE: 102, CLAT: 102, VPN: 102, SECOND: 105},
    ),
    Step(
        137,
        "Hotspot",
        "hotspot",
        "The VPN and the second SIM go. A client of the phone's hotspot has the next download.",
        (
            "hangup",
            "phone: network lose 104",
            "phone: network lose 105",
            "ip netns exec server ./bulk.py 5301 listen send &"
            f" timeout {HOTSPOT_S} ip netns exec client ./bulk.py 5301 connect take fetched &",
        ),
        {LTE: 300, CLAT: 300, VPN: 0, SECOND: 0, WIFI: 0},
        _shared(102),
        {LTE: 102, CLAT: 102},
    ),
    Step(
        137 + HOTSPOT_S,
        "netd dies",
        "netd dies",
        "netd is killed. init starts it again, and the system server with it.",
        ("phone: setprop ctl.restart netd",),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (),
    ),
    Step(
        149,
        "LTE again",
        "LTE again",
        "Telephony and LTE are back, with the next download.",
        (
            *BACK,
            f"phone: network connect 106 cellular:1 {LTE} {CLAT}",
            f"download {LTE}",
        ),
        {LTE: 300, CLAT: 300, WIFI: 0},
        _shared(106),
        {LTE: 106, CLAT: 106},
    ),
    Step(
        159,
        "System server dies",
        "system server dies",
        "The system server is killed, in the middle of the download, and starts again. netd lives "
        "on.",
        ("phone: stop system_server", "phone: start system_server"),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (),
    ),
    Step(
        162,
        "LTE once more",
        "LTE once more",
        "Telephony and LTE are back. The download goes on.",
        (*BACK, f"phone: network connect 107 cellular:1 {LTE} {CLAT}"),
        {LTE: 300, CLAT: 300, WIFI: 0},
        _shared(107),
        {LTE: 107, CLAT: 107},
    ),
    Step(
        164,
        "SIM swap",
        "SIM without DRWA",
        "In the first SIM's place is one of a carrier that never asked for DRWA, with the next "
        "download.",
        (
            "hangup",
            "phone: network lose 107",
            "phone: telephony sim 2 cid=1 mcc=310 mnc=260",
            f"phone: network connect 103 cellular:2 {LTE} {CLAT}",
            f"download {LTE}",
        ),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (f"{LTE} off: carrier 1", f"{CLAT} off: carrier 1"),
    ),
    Step(
        180,
        "Upload",
        "upload",
        "An upload starts in the place of the download.",
        (
            "hangup",
            SLOW_UPLINK,
            "ip netns exec server ./bulk.py 5300 listen take uploaded &"
            " ip netns exec phone ./bulk.py 5300 connect send &",
        ),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (f"{LTE} off: carrier 1",),
    ),
    Step(
        192,
        "Uplink held",
        f"uplink: {UPLINK_MS} ms",
        f"The carrier wants its uplink held to {UPLINK_MS} ms, and nothing else: another XML. The "
        "upload goes on.",
        ("phone: telephony xml uplink.xml",),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (f"{LTE} off: carrier 1", f"uplink held to {UPLINK_MS} ms", f"{CLAT} off: carrier 1"),
        uplinks={LTE: UPLINK_MS},
    ),
    Step(
        204,
        "Airplane mode",
        "airplane",
        "All networks go.",
        ("phone: network lose 103", f"ip -n phone link set {LTE} down"),
        {LTE: 0, CLAT: 0, WIFI: 0},
        (),
    ),
)
NAMES = [step.name for step in STEPS]


def governed_below(step: Step) -> Step:
    """The step where programs at LTE's interface govern 464xlat's packets, too."""
    if not step.lambdas.get(CLAT):
        return step
    says = []
    for before, line in zip(("", *step.says), step.says, strict=False):
        if line.startswith(f"{CLAT} λ="):
            says.append(f"{CLAT} off: governed at {LTE}")
        elif not before.startswith(f"{CLAT} λ=") or not line.startswith("queue"):
            says.append(line.replace(f", shared with {CLAT}", "").replace(f", {CLAT}", ""))
    return replace(
        step,
        lambdas=step.lambdas | {CLAT: 0},
        says=tuple(says),
        queues={iface: queue for iface, queue in step.queues.items() if iface != CLAT},
    )


@dataclass(frozen=True)
class Check:
    what: str
    wanted: str
    got: str
    passed: bool


@dataclass
class Judged:
    step: Step
    checks: list[Check] = field(default_factory=list)
    policy: str = ""
    netd: str = ""
    filters: str = ""

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


# --- Playing it


def play(
    phone: Phone,
    kernel: Kernel,
    files: list[Path],
    cancel: threading.Event,
    reached: Callable[[float], None],
) -> "Story":
    """Runs the story on a phone with this kernel; raises GuestError or Cancelled."""

    def write(folder: Path) -> None:
        for path in files:
            shutil.copy(path, folder)
        _write_inputs(phone, folder)

    folder = guest.run_inputs(
        f"host {phone.name}",
        write,
        kernel,
        kernels.agent(),
        cancel,
        reached,
        stall_s=guest.SCRIPT_STALL_S,
        memory=drwasystem.MEMORY,
    )
    try:
        return Story(phone, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_of(number: int) -> int:
    return STEPS[number + 1].at_s if number + 1 < len(STEPS) else DURATION_S


def _lte(folder: Path) -> Trace:
    path = folder / "lte"
    ltelink.write_trace(path, LTE_SEED, DURATION_S)
    return traces.load(path)


def _write_inputs(phone: Phone, folder: Path) -> None:
    """What the lab's agent reads: setup.sh, spec and the link's trace."""
    trace = _lte(folder)
    trace.write_native(folder / network.trace_name("down"))
    sample = VENDOR_XML.read_text()
    (folder / VENDOR_XML.name).write_text(sample)
    update = re.sub(r'(cid="2018".*?value=")150(")', r"\g<1>300\2", sample, flags=re.DOTALL)
    assert update != sample
    (folder / "update.xml").write_text(update)
    (folder / "uplink.xml").write_text(UPLINK_XML)
    for name in ("watch", "look", "bulk.py"):
        shutil.copy(HERE / "guest" / name, folder)

    # Of the lab's runs, one that moves to Wi-Fi has such a link, too.
    like = spec.parse(
        "android-13plus",
        {
            "trace": trace.path,
            "buffer": f"{LTE_BUFFER_BYTES}B",
            "base-rtt": f"{BASE_RTT_MS}ms",
            "duration": f"{DURATION_S}s",
            "event": [f"1s move={WIFI}"],
        },
    )
    like = replace(like, client=spec.Client("all", rtt_us=0, jitter_us=0, nat=False))
    start = "\n".join(
        [
            network.setup_script(like),
            f"ip netns add {ELSEWHERE}",
            *(f"ip -n phone link add {iface} type dummy" for iface in (CLAT, VPN, SECOND)),
            CLAT_ADDRESS,
            "ip netns exec phone /bin/sh -e -c '",
            drwasystem.attach(phone) if phone.programs else LEFT_BY_NETD,
            drwasystem.START,
            "./watch &",
            "'",
        ]
    )
    (folder / "setup.sh").write_text(start)
    lines = [
        f"duration_us {DURATION_S * 10**6}",
        "flows 0",
        "cc cubic",
        f"down 0 {LTE_BUFFER_BYTES} {network.trace_name('down')}",
        f"second {WIFI_BPS} {WIFI_BUFFER_BYTES}",
    ]
    for number, step in enumerate(STEPS):
        lines += [f"event {step.at_s * 10**6} {event}" for event in _events(step)]
        # netd watches the connections meanwhile, so nobody waits for it.
        command = f"ip netns exec phone ./look {SERVICES[phone.host]} step{number} &"
        lines.append(f"event {(_end_of(number) - LOOK_S) * 10**6} {command}")
    (folder / "spec").write_text("\n".join(lines) + "\n")


def _is_command(event: str) -> bool:
    """Whether it is the shell's, which waits for it."""
    return event.split()[0] not in ("download", "hangup", "probe") and not event.endswith("&")


def _events(step: Step) -> list[str]:
    """For the agent, which has a limit to their number: commands in a row are one."""
    joined: list[str] = []
    for is_command, group in groupby(step.events, _is_command):
        events = list(group)
        joined += [" && ".join(events)] if is_command else events
    # Where the system was started: a new mount of /sys, as of `ip netns exec`, has no programs.
    system = f"nsenter --target $(cat {drwasystem.COMMANDS}/netd.pid) --mount --net --wd=."
    return [event.replace("phone: ", f"{system} {drwasystem.COMMANDS}/") for event in joined]


# --- What was recorded


class Story:
    """What a guest recorded, in seconds of the story; and the judgement."""

    def __init__(self, phone: Phone, folder: Path) -> None:
        self.phone = phone
        records = results.read_raw(folder / "raw")
        start_us = int(records["t"][0, 0])
        self.probe_s: Times = records["p"][:, 0] / 1e6
        self.rtt_ms: Times = records["p"][:, 1] / 1e3
        samples = records["s"].reshape(-1, len(records["f"]), 5)
        self.sample_s: Times = samples[:, 0, 0] / 1e6
        self.received: Times = samples[:, :, 2].astype(np.float64)
        self.window: Times = samples[:, :, 3].astype(np.float64)
        self.watched = self._watched(folder / "watched", start_us)
        self.upload_s, self.uploaded = self._transfer(folder / "uploaded", start_us)
        self.fetch_s, self.fetched = self._transfer(folder / "fetched", start_us)
        self.lte = _lte(folder)
        self.judged = [
            Judged(
                governed_below(step) if phone.programs else step,
                policy=(folder / f"step{number}.policy").read_text(),
                netd=(folder / f"step{number}.netd").read_text(),
                filters=(folder / f"step{number}.filters").read_text(),
            )
            for number, step in enumerate(STEPS)
        ]
        self.judge()

    @staticmethod
    def _transfer(path: Path, start_us: int) -> tuple[Times, Times]:
        """What guest/bulk.py wrote: instants, and the bytes that had come."""
        taken = np.loadtxt(path, ndmin=2)
        return (taken[:, 0] - start_us) / 1e6, taken[:, 1]

    @staticmethod
    def _watched(path: Path, start_us: int) -> dict[str, list[tuple[float, int | None]]]:
        """What guest/watch wrote of each name, with the instants when first seen."""
        found: dict[str, list[tuple[float, int | None]]] = {}
        for line in path.read_text().splitlines():
            at, name, value = line.split()
            change = (int(at) - start_us) / 1e6, None if value == "-" else int(value)
            found.setdefault(name, []).append(change)
        return found

    @property
    def passed(self) -> bool:
        return all(judged.passed for judged in self.judged)

    def _flow_of(self, number: int) -> int:
        """The download that runs at a step's end, or ended there."""
        events = [event for step in STEPS[: number + 1] for event in step.events]
        return sum(event.startswith("download") for event in events) - 1

    def _settled(self, number: int) -> tuple[float, float]:
        step = STEPS[number]
        return step.at_s + step.settle_s, _end_of(number)

    def rtt(self, number: int) -> float:
        """The median RTT once a step has settled, in ms; 0 without any."""
        begin, end = self._settled(number)
        values = self.rtt_ms[(self.probe_s >= begin) & (self.probe_s < end)]
        return float(np.median(values)) if len(values) else 0.0

    def _samples(self, number: int) -> npt.NDArray[np.bool_]:
        begin, end = self._settled(number)
        return (self.sample_s > begin) & (self.sample_s <= end)

    def window_kb(self, number: int) -> float:
        """The median window that the server saw once a step has settled; 0 for a short step."""
        part = self.window[self._samples(number), self._flow_of(number)]
        return float(np.median(part)) / 1e3 if len(part) else 0.0

    def goodput_mbps(self, number: int) -> float:
        """What the download got once a step has settled; 0 for a short step."""
        part = self.received[self._samples(number), self._flow_of(number)]
        begin, end = self._settled(number)
        return float(part[-1] - part[0]) * 8 / (end - begin) / 1e6 if len(part) else 0.0

    def upload_mbps(self, number: int) -> float:
        """What the server got of the upload once a step has settled."""
        return self._mbps(number, self.upload_s, self.uploaded)

    def clients_mbps(self, number: int) -> float:
        """What the hotspot's client got once a step has settled."""
        return self._mbps(number, self.fetch_s, self.fetched)

    def _mbps(self, number: int, times_s: Times, taken: Times) -> float:
        begin, end = self._settled(number)
        first, last = np.interp([begin, end], times_s, taken)
        return float(last - first) * 8 / (end - begin) / 1e6

    def lte_mbps(self, number: int) -> float:
        begin, end = self._settled(number)
        return self.lte.capacity_bytes(int(begin * 1e3), int(end * 1e3)) * 8 / (end - begin) / 1e6

    def values(self, name: str, begin_s: float, end_s: float) -> list[int | None]:
        """The values of an interface or a counter in a part of the story, in their order."""
        changes = self.watched.get(name, [])
        before = [value for at, value in changes if at <= begin_s]
        return before[-1:] + [value for at, value in changes if begin_s < at < end_s]

    # --- The judgement

    def judge(self) -> None:
        for number, judged in enumerate(self.judged):
            judged.checks = self._judge(number)

    def _judge(self, number: int) -> list[Check]:
        checks = [
            *self._knobs(number),
            *self._queues(number),
            *self._dumps(number),
            self._uplinks(number),
            *(self._filters(number) if self.phone.programs else []),
        ]
        wants: dict[str, Callable[[int], list[Check]]] = {
            "LTE, unidentified": self._fills_lte,
            "Carrier identified": self._began_before if self.phone.programs else self._governed,
            "Wi-Fi": self._stock_wifi,
            "LTE goes": self._stock_wifi,
            "Back to LTE": self._governed,
            "Carrier changes λ": self._wider,
            "Switched off": self._fills_lte,
            "Switched on": self._governed_again,
            "Modem is back": self._wider,
            "Hotspot": self._client,
            "LTE again": self._governed_again,
            "SIM swap": self._fills_lte,
            "Upload": self._fills_uplink,
            "Uplink held": self._uplink_held,
            "Airplane mode": self._all_off,
        }
        # What is over before it shows in the queue is judged by its knobs.
        want = wants.get(STEPS[number].name)
        return checks + (want(number) if want else [])

    def _knobs(self, number: int) -> list[Check]:
        """λ of each interface: new in time, and nothing else until the next step."""
        step = self.judged[number].step
        checks = []
        for iface, wanted in step.lambdas.items():
            after = self.values(iface, step.at_s + KNOB_MS / 1e3, _end_of(number))
            got = " then ".join(_lambda(value) for value in after) or "none"
            checks.append(
                Check(
                    f"λ of {iface}",
                    f"{_lambda(wanted)} within {KNOB_MS} ms",
                    got,
                    set(after) == {wanted},
                )
            )
        return checks

    def _queues(self, number: int) -> list[Check]:
        """The queue of each interface: as soon as λ, and as long."""
        step = self.judged[number].step
        checks = []
        for iface in step.lambdas:
            wanted = None if step.lambdas[iface] is None else step.queues.get(iface, 0)
            after = self.values(f"queue:{iface}", step.at_s + KNOB_MS / 1e3, _end_of(number))
            got = " then ".join(_queue(value) for value in after) or "none"
            what = f"queue of {iface}"
            checks.append(
                Check(
                    what,
                    f"{_queue(wanted)} within {KNOB_MS} ms",
                    got,
                    set(after) == {wanted},
                )
            )
        return checks

    def _dumps(self, number: int) -> list[Check]:
        """dumpsys of the policy, its log of writes, and dumpsys of netd."""
        judged = self.judged[number]
        step = judged.step
        state, _, writes = judged.policy.partition("Events without a change:")
        lines = {line.strip() for line in state.splitlines()}
        says = [self._limit(line) for line in step.says]
        said = [line for line in says if line in lines]
        said_all = said == says and (bool(says) or not _LISTED.search(state))
        wanted = "; ".join(says) or "no interface"
        checks = [
            Check("dumpsys of the policy", wanted, "; ".join(said) or "no interface", said_all),
            Check(
                f"writes on {WIFI}",
                "none",
                str(len(re.findall(rf"\b{WIFI}\b", writes)) or "none"),
                WIFI not in writes and "errors: 0" in writes,
            ),
        ]
        knobs = {
            iface: (int(value), int(queue))
            for iface, value, queue in _KNOBS.findall(self._dumped(number))
        }
        wants = {
            iface: (value, step.queues.get(iface, 0))
            for iface, value in step.lambdas.items()
            if value is not None
        }
        if self.phone.programs:
            # What is off has no entry.
            wants = {iface: want for iface, want in wants.items() if want[0] or iface in knobs}
        got = {iface: knobs[iface] for iface in step.lambdas if iface in knobs}
        who = "the policy, of the maps" if self._policy_has_maps else "netd"
        return [*checks, Check(f"dumpsys of {who}", _told(wants), _told(got), got == wants)]

    def _limit(self, line: str) -> str:
        """The programs' kernel has no drwa_up. Host A replaces a limit that is below DRWA's."""
        if self.phone.programs and line.startswith("uplink held"):
            return f"{line}, not set: no drwa_uplink_target_ms"
        if line != SUPERSEDED or not (self.phone.programs or self.phone.host == "A"):
            return line
        return KEPT if self.phone.host == "A" else LEFT

    def _uplinks(self, number: int) -> Check:
        """What is at the interfaces' roots, as netd reads it from the kernel."""
        wanted = {} if self.phone.programs else STEPS[number].uplinks
        found = _UPLINKS.findall(self.judged[number].netd)
        got = {iface: int(target) for iface, target, root in found if root == "drwa_up"}
        return Check("uplinks held", _targets(wanted), _targets(got), got == wanted)

    def _filters(self, number: int) -> list[Check]:
        """The programs are at both hooks of what is on, and nowhere else; nor is an entry left."""
        on = {iface for iface, value in self.judged[number].step.lambdas.items() if value}
        wanted = sorted((iface, hook) for iface in on for hook in ("egress", "ingress"))
        got = sorted(_FILTERS.findall(self.judged[number].filters))
        checks = [Check("programs at interfaces", _at(wanted), _at(got), got == wanted)]
        if not on:
            begin, end = STEPS[number].at_s + KNOB_MS / 1e3, _end_of(number)
            entries = self.values("map:entries", begin, end)
            checks.append(
                Check("entries in the map", "none", _counts(entries) or "none", set(entries) == {0})
            )
        return checks

    @property
    def _policy_has_maps(self) -> bool:
        """And not netd."""
        return self.phone.programs and self.phone.host == "A"

    def _dumped(self, number: int) -> str:
        """What tells of the kernel's side: who writes the knobs, or has the programs' maps."""
        judged = self.judged[number]
        return judged.policy if self._policy_has_maps else judged.netd

    def _counted(self, number: int) -> list[Check]:
        """What netd tells of LTE's rounds since the interface came."""
        delay, rtt = _medians_ms(self._dumped(number))
        # The programs count since the interface was on, with the queue that stood then.
        most = (8 if self.phone.programs else 4) * BASE_RTT_MS
        return [
            Check(
                "median queueing delay in the kernel's histogram",
                f"below {most} ms",
                f"below {delay} ms" if delay else "none",
                0 < delay <= most,
            ),
            Check(
                "median RTT without it",
                f"below {BASE_RTT_MS} to {2 * BASE_RTT_MS} ms",
                f"below {rtt} ms" if rtt else "none",
                BASE_RTT_MS < rtt <= 2 * BASE_RTT_MS,
            ),
        ]

    def _fills_lte(self, number: int) -> list[Check]:
        rtt, window = self.rtt(number), self.window_kb(number)
        return [
            _at_least("RTT", "ms", rtt, 8 * BASE_RTT_MS),
            _at_least("window", "kB", window, LTE_BUFFER_BYTES / 1e3),
        ]

    def _began_before(self, number: int) -> list[Check]:
        """The programs were not there when the download began, and leave it alone, and say so."""
        found = _UNKNOWN.search(self._dumped(number))
        unknown_mb = int(found[1]) / 1e6 if found else 0.0
        return [
            *self._fills_lte(number),
            _at_least("of connections that began before", "MB", unknown_mb, 1),
        ]

    def _governed(self, number: int, stock: int = 0) -> list[Check]:
        """Against a step without DRWA."""
        rtt, window = self.rtt(number), self.window_kb(number)
        return [
            _at_most("RTT", "ms", rtt, self.rtt(stock) / 3, self.rtt(stock)),
            _at_most("window", "kB", window, self.window_kb(stock) / 10, self.window_kb(stock)),
            self._uses_lte(number),
            *self._counted(number),
        ]

    def _governed_again(self, number: int) -> list[Check]:
        """Against the time after a switch, whose queue had as long to grow."""
        return self._governed(number, stock=NAMES.index("Switched off"))

    def _uses_lte(self, number: int) -> Check:
        link = self.lte_mbps(number)
        return _at_least("goodput", "Mb/s", self.goodput_mbps(number), 0.85 * link, decimals=2)

    def _wider(self, number: int) -> list[Check]:
        before = NAMES.index("Back to LTE")
        return [
            _at_least("RTT", "ms", self.rtt(number), 1.5 * self.rtt(before)),
            _at_most("RTT", "ms", self.rtt(number), self.rtt(0) / 2, self.rtt(0)),
            _at_least("window", "kB", self.window_kb(number), 1.5 * self.window_kb(before)),
            self._uses_lte(number),
        ]

    def _client(self, number: int) -> list[Check]:
        """Programs govern what the phone forwards; the series governs the phone's own sockets."""
        link = self.lte_mbps(number)
        goodput = _at_least(
            "the client's goodput", "Mb/s", self.clients_mbps(number), 0.85 * link, decimals=2
        )
        if self.phone.programs:
            return [_at_most("RTT", "ms", self.rtt(number), self.rtt(0) / 2, self.rtt(0)), goodput]
        return [_at_least("RTT", "ms", self.rtt(number), 8 * BASE_RTT_MS), goodput]

    def _stock_wifi(self, number: int) -> list[Check]:
        """A full queue, a window that leaves it full, and no work of DRWA's for that."""
        begin, end = STEPS[number].at_s + 1, _end_of(number)
        rounds = self.values(f"rounds:{WIFI}", begin, end)
        return [
            _at_least("RTT", "ms", self.rtt(number), 0.7 * WIFI_FULL_MS),
            _at_least("window", "kB", self.window_kb(number), 2 * WIFI_BUFFER_BYTES / 1e3),
            _at_least(
                "goodput", "Mb/s", self.goodput_mbps(number), 0.9 * WIFI_BPS / 1e6, decimals=2
            ),
            Check("rounds of DRWA", "none", str(len(rounds) - 1 or "none"), len(rounds) == 1),
        ]

    def _fills_uplink(self, number: int) -> list[Check]:
        return [
            _at_least("RTT beside the upload", "ms", self.rtt(number), 5 * BASE_RTT_MS),
            self._uses_uplink(number),
        ]

    def _uses_uplink(self, number: int) -> Check:
        upload, link = self.upload_mbps(number), UPLINK_BPS / 1e6
        return _at_least("upload", "Mb/s", upload, 0.85 * link, decimals=2)

    def _uplink_held(self, number: int) -> list[Check]:
        """Against the step before; what the programs' kernel cannot is left as it is there."""
        if self.phone.programs:
            return self._fills_uplink(number)
        stock = self.rtt(number - 1)
        return [
            _at_most("RTT beside the upload", "ms", self.rtt(number), stock / 5, stock),
            self._uses_uplink(number),
        ]

    def _all_off(self, number: int) -> list[Check]:
        ends = {name: changes[-1][1] for name, changes in self.watched.items()}
        on = [
            f"{name} {_lambda(value)}" for name, value in ends.items() if _is_lambda(name) and value
        ]
        shared = [
            f"{name} {value}" for name, value in ends.items() if name.startswith("queue:") and value
        ]
        return [
            Check("interfaces that are on at the end", "none", ", ".join(on) or "none", not on),
            Check("queues at the end", "none", ", ".join(shared) or "none", not shared),
        ]

    # --- For the report

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.phone.host,
            "phone": self.phone.name,
            "programs": self.phone.programs,
            "passed": self.passed,
            "steps": [
                {
                    "at_s": judged.step.at_s,
                    "name": judged.step.name,
                    "happens": judged.step.happens,
                    "passed": judged.passed,
                    "rtt_ms": round(self.rtt(number), 1),
                    "window_kb": round(self.window_kb(number), 1),
                    "goodput_mbps": round(self.goodput_mbps(number), 3),
                    "checks": [asdict(check) for check in judged.checks],
                    "policy": judged.policy,
                    "netd": judged.netd,
                }
                for number, judged in enumerate(self.judged)
            ],
            "lambdas": {
                name: changes for name, changes in self.watched.items() if _is_lambda(name)
            },
            "rtt": {
                "t_s": [round(float(x), 4) for x in self.probe_s],
                "ms": [round(float(x), 3) for x in self.rtt_ms],
            },
            "window": [
                {
                    "t_s": [round(float(x), 1) for x in self.sample_s[live]],
                    "bytes": [int(x) for x in self.window[live, flow]],
                }
                for flow, live in enumerate(self._live())
            ],
        }

    def _live(self) -> list[npt.NDArray[np.bool_]]:
        """Which samples each download is alive in."""
        spans: list[list[float]] = []
        for step in STEPS:
            for event in step.events:
                if event.startswith("download"):
                    spans.append([step.at_s, DURATION_S])
                elif event == "hangup":
                    spans[-1][1] = step.at_s
        return [(self.sample_s > begin) & (self.sample_s <= end) for begin, end in spans]


_KNOBS = re.compile(r"^ *(\S+) lambda=(\d+) queue=(\d+)(?: |$)", re.MULTILINE)
# The policy has it in one line, netd in the next.
_UNKNOWN = re.compile(
    rf"^ *{LTE} lambda=.*(?:\n *bytes that came=.*)? unknown=(\d+) ", re.MULTILINE
)
# netd's line, with the ends of the bins that the medians lie in, in ms
_COUNTED = re.compile(
    rf"^ *{LTE} lambda=.*\n(?: *bytes that came=.*\n)? *connections=.*\n"
    r" *queueing delay: p50<(\S+)ms .*\n *RTT without it: p50<(\S+)ms ",
    re.MULTILINE,
)
# Netd's line of an interface whose uplink is held, with the kind of its root
_UPLINKS = re.compile(r"^ *(\S+) uplink=(\d+)ms root=(\w+)", re.MULTILINE)
# What guest/look has of a filter
_FILTERS = re.compile(r"^(\S+) (\w+) filter .* drwa_\2\b", re.MULTILINE)
# A line of the policy's about an interface
_LISTED = re.compile(r"^(?!DRWA:)\S+ (?:off:|λ=)", re.MULTILINE)


# The policy's, with all bins, below 2^10 us, below 2^11 us, and so on
_BINS = re.compile(rf"^ *{LTE} lambda=.* delay_us=(\S+) rtt_us=(\S+)$", re.MULTILINE)


def _medians_ms(dump: str) -> tuple[float, float]:
    """The ends of the bins with the medians of LTE's queueing delay and RTT; 0 without any."""
    told, bins = _COUNTED.search(dump), _BINS.search(dump)
    if bins:
        delay, rtt = (_median_us([int(x) for x in b.split(",")]) / 1e3 for b in bins.groups())
    elif told:
        delay, rtt = (float(edge) for edge in told.groups())
    else:
        delay = rtt = 0.0
    return delay, rtt


def _median_us(bins: list[int]) -> int:
    total = 0
    for number, count in enumerate(bins):
        total += count
        if 2 * total >= sum(bins) > 0:
            return 1 << 10 + number
    return 0


def _lambda(value: int | None) -> str:
    if value is None:
        return "gone"
    return f"{value / 100:.2f}" if value else "off"


def _queue(value: int | None) -> str:
    if value is None:
        return "gone"
    return str(value) if value else "its own"


def _told(knobs: dict[str, tuple[int, int]]) -> str:
    return ", ".join(
        f"{iface} {_lambda(value)}" + (f" in {queue}" if queue else "")
        for iface, (value, queue) in knobs.items()
    )


def _at(places: list[tuple[str, str]]) -> str:
    return ", ".join(f"{iface}'s {hook}" for iface, hook in places) or "none"


def _counts(values: list[int | None]) -> str:
    return " then ".join(str(value) for value in values if value)


def _targets(targets: dict[str, int]) -> str:
    return ", ".join(f"{iface} {target} ms" for iface, target in targets.items()) or "none"


def _is_lambda(name: str) -> bool:
    """Whether guest/watch means an interface's λ."""
    return ":" not in name


def _number(value: float, unit: str, decimals: int) -> str:
    return f"{value:.{decimals}f} {unit}"


def _at_least(what: str, unit: str, got: float, limit: float, decimals: int = 0) -> Check:
    wanted = f"at least {_number(limit, unit, decimals)}"
    return Check(what, wanted, _number(got, unit, decimals), got >= limit)


def _at_most(what: str, unit: str, got: float, limit: float, stock: float) -> Check:
    wanted = f"at most {_number(limit, unit, 0)}"
    shown = f"{_number(got, unit, 0)}; {_number(stock, unit, 0)} without DRWA"
    return Check(what, wanted, shown, 0 < got <= limit)
