# SPDX-License-Identifier: GPL-2.0-only
"""What a guest reads: setup.sh, which builds server, router and phone, and the agent's own spec.

    server srv0 ------ net0 router cell0 ------ rmnet0 phone
           half base RTT, loss        the cellular link

Half of the base RTT lies on the way down, at srv0, and half on the way up, at net0. The agent puts
the cellular link on cell0, and on rmnet0 when the uplink is limited too.

Runs that need it have a second link, like the first one, from ap0 to the phone's wlan0.
"""

from math import log
from random import Random

from drwalab import units
from drwalab.schemes import Limits
from drwalab.spec import DEFAULTS, HEADER_BYTES, PACKET_BYTES, Event, Link, RunSpec

KNOB = "/proc/sys/net/ipv4/conf/rmnet0/tcp_drwa_lambda"
CLASSIC = "/sys/module/tcp_drwa/parameters/classic"

# An uplink without a limit whose packets wait for the radio, or are thinned, all the same.
UNLIMITED_BPS = 10**12

_HOSTS = """\
put() { # host file value
	ip netns exec "$1" sh -c 'echo "$2" > "$1"' put "$2" "$3"
}

for host in server router phone; do
	ip netns add $host
	put $host /proc/sys/net/ipv6/conf/default/disable_ipv6 $no_ipv6
done

# Fixed addresses and neighbours, so that nothing but the experiment's packets is on the wire.
# Segments leave as single packets (gso_max_segs), since loss and queues count packets.
join() { # host device mac, twice
	ip link add "$2" netns "$1" address "$3" mtu $mtu gso_max_segs 1 type veth \\
		peer name "$5" netns "$4" address "$6" mtu $mtu gso_max_segs 1
	for end in "$1 $2" "$4 $5"; do
		ip -n "${end% *}" link set "${end#* }" addrgenmode none
		ip -n "${end% *}" link set "${end#* }" up
	done
}
neighbours() { # host device address6 address4 mac
	ip -n "$1" neigh add "$4" lladdr "$5" dev "$2" nud permanent
	[ $no_ipv6 = 1 ] || ip -n "$1" neigh add "$3" lladdr "$5" dev "$2" nud permanent
}
addresses() { # host device address6 address4
	ip -n "$1" addr add "$4/24" dev "$2"
	[ $no_ipv6 = 1 ] || ip -n "$1" addr add "$3/64" dev "$2" nodad
}
join server srv0 02:00:00:00:01:01 router net0 02:00:00:00:01:02
join router cell0 02:00:00:00:02:01 phone rmnet0 02:00:00:00:02:02
addresses server srv0 fd00:1::1 10.0.1.1
addresses router net0 fd00:1::2 10.0.1.2
addresses router cell0 fd00:2::1 10.0.2.1
addresses phone rmnet0 fd00:2::2 10.0.2.2
neighbours server srv0 fd00:1::2 10.0.1.2 02:00:00:00:01:02
neighbours router net0 fd00:1::1 10.0.1.1 02:00:00:00:01:01
neighbours router cell0 fd00:2::2 10.0.2.2 02:00:00:00:02:02
neighbours phone rmnet0 fd00:2::1 10.0.2.1 02:00:00:00:02:01
for route in "server fd00:1::2 10.0.1.2" "phone fd00:2::1 10.0.2.1"; do
	set -- $route
	ip -n "$1" route add default via "$3"
	[ $no_ipv6 = 1 ] || ip -n "$1" route add default via "$2"
done

put router /proc/sys/net/ipv4/ip_forward 1
put router /proc/sys/net/ipv6/conf/all/forwarding 1

# Limits that the kernel would derive from the guest's memory.
echo '131072 196608 262144' > /proc/sys/net/ipv4/tcp_mem
# A server that is never the bottleneck.
put server /proc/sys/net/ipv4/tcp_rmem '4096 131072 67108864'
put server /proc/sys/net/ipv4/tcp_wmem '4096 262144 67108864'
put server /proc/sys/net/ipv4/tcp_notsent_lowat 131072
for host in server phone; do
	put $host /proc/sys/net/ipv4/tcp_no_metrics_save 1
done
"""

_SECOND_LINK = """\
join router ap0 02:00:00:00:03:01 phone wlan0 02:00:00:00:03:02
addresses router ap0 fd00:3::1 10.0.3.1
addresses phone wlan0 fd00:3::2 10.0.3.2
neighbours router ap0 fd00:3::2 10.0.3.2 02:00:00:00:03:02
neighbours phone wlan0 fd00:3::1 10.0.3.1 02:00:00:00:03:01
ip -n phone route add default via 10.0.3.1 metric 100
[ $no_ipv6 = 1 ] || ip -n phone route add default via fd00:3::1 metric 2000
"""

_MPTCP = """\
for host in server phone; do
	ip -n $host mptcp limits set subflow 1
done
ip -n phone mptcp endpoint add {address} dev wlan0 subflow
"""


def setup_script(spec: RunSpec) -> str:
    """The shell script that builds the network; for dash and iproute2 of Debian 12."""
    wmem = spec.scheme.wmem or (4096, 16384, 4 << 20)
    lines = [
        "#!/bin/sh",
        f"# {spec.name}",
        f"no_ipv6={0 if spec.ipv6 else 1}",
        f"mtu={max(PACKET_BYTES, spec.sockets.mss_bytes + HEADER_BYTES)}",
        _HOSTS,
        f"# The phone: {spec.name}",
        f"put phone /proc/sys/net/ipv4/tcp_rmem '{_limits(spec.scheme.rmem)}'",
        f"put phone /proc/sys/net/ipv4/tcp_wmem '{_limits(wmem)}'",
    ]
    if not spec.sockets.timestamps:
        lines.append("put phone /proc/sys/net/ipv4/tcp_timestamps 0")
    if not spec.sockets.window_scaling:
        lines.append("put phone /proc/sys/net/ipv4/tcp_window_scaling 0")
    if spec.sockets.fastopen:
        # Data in the SYN without a cookie from an earlier connection, on every listener.
        lines += [
            f"put phone /proc/sys/net/ipv4/tcp_fastopen {0x1 | 0x4}",
            f"put server /proc/sys/net/ipv4/tcp_fastopen {0x2 | 0x200 | 0x400}",
        ]
    if spec.has_second_link:
        lines.append(_SECOND_LINK)
    if spec.sockets.mptcp:
        lines.append(_MPTCP.format(address="fd00:3::2" if spec.ipv6 else "10.0.3.2"))
    if spec.lambda_hundredths is not None:
        lines += [
            f"echo {'Y' if spec.scheme.classic else 'N'} > {CLASSIC}",
            f"put phone {KNOB} {spec.lambda_hundredths}",
        ]
    lines += ["", "# Propagation", *_propagation("add", spec, spec.base_rtt_us, spec.loss_ppm)]
    return "\n".join(lines) + "\n"


def _limits(limits: Limits) -> str:
    return " ".join(str(limit) for limit in limits)


def _propagation(verb: str, spec: RunSpec, base_rtt_us: int, loss_ppm: int) -> list[str]:
    down = base_rtt_us // 2
    netem = "root netem limit 1000000"
    harm = f" loss {units.show_percent(loss_ppm)}" if loss_ppm else ""
    if spec.duplicate_ppm:
        harm += f" duplicate {units.show_percent(spec.duplicate_ppm)}"
    return [
        f"tc -n server qdisc {verb} dev srv0 {netem} delay {down}us{harm}",
        f"tc -n router qdisc {verb} dev net0 {netem} delay {base_rtt_us - down}us",
    ]


def agent_spec(spec: RunSpec) -> str:
    """The agent's spec file; its keys are explained in guest/agent.c."""
    lines = [
        f"duration_us {spec.duration_us}",
        f"flows {spec.flows}",
        f"flow_gap_us {spec.flow_gap_us}",
        f"probe_us {spec.probe_us}",
        " ".join(["reader", spec.reader.kind, *map(str, spec.reader.numbers)]),
        f"cc {spec.cc}",
        *_objects(spec),
        _link("down", spec.down),
    ]
    up = spec.up
    if up is None and (spec.ack_thin or spec.stops_both_ways):
        up = Link(UNLIMITED_BPS, None, units.parse_bytes(DEFAULTS["uplink-buffer"]))
    if up:
        lines.append(_link("up", up))
    if spec.has_second_link:
        lines.append(_link("second", spec.down))
    if spec.promotion:
        lines.append(f"promotion_us {spec.promotion.wake_us}")
        lines.append(f"idle_us {spec.promotion.idle_us}")
    lines += [f"reorder_ppm {spec.reorder_ppm}", f"ack_thin {spec.ack_thin}"]
    if spec.aqm:
        packets = max(1, spec.down.buffer_bytes // PACKET_BYTES)
        lines.append(
            "child tc -n router qdisc replace dev cell0 parent 1:1 handle 10: "
            f"{spec.aqm} limit {packets}"
        )
    sizes = {
        "rcvbuf": spec.sockets.rcvbuf_bytes,
        "window_clamp": spec.sockets.window_clamp_bytes,
        "mss": spec.sockets.mss_bytes,
    }
    lines += [f"{name} {size}" for name, size in sizes.items() if size]
    flags = {
        "fastopen": spec.sockets.fastopen,
        "mptcp": spec.sockets.mptcp,
        "accepted": spec.sockets.accepted,
        "keep_alive": spec.keep_alive,
        "upload": spec.upload,
        "ipv6": spec.ipv6,
        "pcap": spec.pcap_dir is not None,
    }
    lines += [name for name, given in flags.items() if given]
    lines += _events(spec)
    return "\n".join(lines) + "\n"


def _objects(spec: RunSpec) -> list[str]:
    """Sizes that take turns, or the requests of a Poisson process with sizes drawn from them."""
    if spec.arrival == "think":
        return [f"think_us {spec.think_us}", *(f"object {size}" for size in spec.object_bytes)]
    rng = Random(spec.seed)
    requests = []
    at_us = 0.0
    # Random.random() is the same everywhere, which its other methods do not promise.
    while (at_us := at_us - spec.think_us * log(1 - rng.random())) < spec.duration_us:
        size = spec.object_bytes[int(rng.random() * len(spec.object_bytes))]
        requests.append(f"request {round(at_us)} {size}")
    return requests


def trace_name(direction: str) -> str:
    """File name of a link's trace in the results folder."""
    return f"{direction}.trace"


def _link(direction: str, link: Link) -> str:
    words = [direction, str(link.rate_bps or 0), str(link.buffer_bytes)]
    if link.trace:
        words.append(trace_name("down" if direction == "second" else direction))
    return " ".join(words)


def _events(spec: RunSpec) -> list[str]:
    base_rtt_us, loss_ppm = spec.base_rtt_us, spec.loss_ppm
    lines = []
    for event in spec.events:
        if event.what == "base-rtt":
            base_rtt_us = event.value
        elif event.what == "loss":
            loss_ppm = event.value
        lines.append(f"event {event.at_us} {_event_action(spec, event, base_rtt_us, loss_ppm)}")
    return lines


def _event_action(spec: RunSpec, event: Event, base_rtt_us: int, loss_ppm: int) -> str:
    match event.what:
        case "rate":
            return f"down {event.value}"
        case "uplink-rate":
            return f"up {event.value}"
        case "outage":
            return f"outage {event.value}"
        case "interface":
            return " && ".join(_interface(spec, up=event.value == 1))
        case "move":
            return " && ".join(_move(spec, to_wlan0=event.value == 1))
        case "lambda":
            return f"ip netns exec phone sh -c 'echo {event.value} > {KNOB}'"
        case _:
            # netem takes a change as its whole new state.
            return " && ".join(_propagation("change", spec, base_rtt_us, loss_ppm))


def _interface(spec: RunSpec, up: bool) -> list[str]:
    """Taking rmnet0 down, or bringing it up with what the kernel forgot of it."""
    if not up:
        return ["ip -n phone link set rmnet0 down"]
    router = "lladdr 02:00:00:00:02:01 dev rmnet0 nud permanent"
    lines = [
        "ip -n phone link set rmnet0 up",
        f"ip -n phone neigh replace 10.0.2.1 {router}",
        "ip -n phone route replace default via 10.0.2.1",
    ]
    if spec.ipv6:
        lines += [
            "ip -n phone addr replace fd00:2::2/64 dev rmnet0 nodad",
            f"ip -n phone neigh replace fd00:2::1 {router}",
            "ip -n phone route replace default via fd00:2::1",
        ]
    return lines


def _move(spec: RunSpec, to_wlan0: bool) -> list[str]:
    """The way of the phone's packets, whose addresses stay those of rmnet0."""
    gateway, device = ("3", "wlan0") if to_wlan0 else ("2", "rmnet0")
    lines = []
    families = [("10.0.2.2", "10.0.{}.{}")]
    if spec.ipv6:
        families.append(("fd00:2::2", "fd00:{}::{}"))
    for phone, address in families:
        if to_wlan0:
            lines.append(f"ip -n router route replace {phone} via {address.format(3, 2)} dev ap0")
        else:
            lines.append(f"ip -n router route del {phone}")
        via = f"via {address.format(gateway, 1)} dev {device}"
        lines.append(f"ip -n phone route replace default {via}")
    return lines
