# SPDX-License-Identifier: GPL-2.0-only
"""What a guest reads: setup.sh, which builds server, router and phone, and the agent's own spec.

    server srv0 ------ net0 router cell0 ------ rmnet0 phone
           half base RTT, loss        the cellular link

Half of the base RTT lies on the way down, at srv0, and half on the way up, at net0. The agent puts
the cellular link on cell0, and on rmnet0 when the uplink is limited too.

Runs that need it have a second link, like the first one, from ap0 to the phone's wlan0; or a modem
between the link and the phone, with an interface of the phone's for each of two kinds of traffic:

    router cell0 ====== air0 modem m0 ------ rmnet0 phone
                                   m1 ------ v4-rmnet0 or tun0

or a modem of several bearers, with transmit queues for each:

    router cell0 ====== rmnet_ipa0 rmnet0 phone

or a client of the phone's hotspot:

    phone swlan0 ------ wl0 client
"""

from math import log
from random import Random

from drwalab import quicstacks, units
from drwalab.schemes import STOCK_RMEM, Limits
from drwalab.spec import (
    DEFAULTS,
    GOVERNED,
    HEADER_BYTES,
    PACED,
    PACKET_BYTES,
    SECONDS,
    Client,
    Event,
    Link,
    RunSpec,
)
from drwalab.uplink import Uplink

CONF = "/proc/sys/net/ipv4/conf"
CLASSIC = "/sys/module/tcp_drwa/parameters/classic"

# Where the guest finds the BPF programs and their loader.
BPF = "/run/lab/bpf"
_LOADER = f"nsenter --net=/run/netns/phone {BPF}/drwa-bpf"
PROGRAMS = "programs"
MODULE = "/run/lab/drwa.ko"
_PINS = "mount -t bpf none /sys/fs/bpf"

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
if [ $modem = 1 ]; then
	ip netns add modem
	put modem /proc/sys/net/ipv6/conf/default/disable_ipv6 1
	join router cell0 02:00:00:00:02:01 modem air0 $to_phone
	join modem m0 $to_router phone rmnet0 02:00:00:00:02:02
else
	join router cell0 02:00:00:00:02:01 phone $modem_end 02:00:00:00:02:02
fi
if [ $modem_end != rmnet0 ]; then
	ip -n phone link add rmnet0 address 02:00:00:00:02:02 mtu $mtu gso_max_segs 1 \
		type labrmnet
	ip -n phone link set rmnet0 addrgenmode none
	ip -n phone link set rmnet0 up
	tc -n phone qdisc replace dev rmnet0 root handle 1: mq
fi
addresses server srv0 fd00:1::1 10.0.1.1
addresses router net0 fd00:1::2 10.0.1.2
addresses router cell0 fd00:2::1 10.0.2.1
addresses phone rmnet0 fd00:2::2 10.0.2.2
neighbours server srv0 fd00:1::2 10.0.1.2 02:00:00:00:01:02
neighbours router net0 fd00:1::1 10.0.1.1 02:00:00:00:01:01
neighbours router cell0 fd00:2::2 10.0.2.2 $to_phone
neighbours phone rmnet0 fd00:2::1 10.0.2.1 $to_router
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

# The modem hands on what carries its own hardware addresses; the rest of the network takes it for
# the phone, and the phone for the router.
_MODEM = """\
join modem m1 02:00:00:00:07:01 phone {device} 02:00:00:00:07:02
put modem /proc/sys/net/ipv4/ip_forward 1
for at in "air0 10.0.2.1 02:00:00:00:02:01" "m0 10.0.2.2 02:00:00:00:02:02" \\
	"m1 10.0.4.2 02:00:00:00:07:02"; do
	set -- $at
	ip -n modem route add "$2" dev "$1" scope link
	ip -n modem neigh add "$2" lladdr "$3" dev "$1" nud permanent
done
ip -n modem route add default via 10.0.2.1 dev air0
ip -n router route add 10.0.4.2 via 10.0.2.2 dev cell0
ip -n phone addr add 10.0.4.2/24 dev {device}
ip -n phone neigh add 10.0.4.1 lladdr 02:00:00:00:07:01 dev {device} nud permanent
ip -n phone route add default via 10.0.4.1 dev {device} metric 100
ip -n phone link set {device} mtu {mtu}
"""
# clatd takes 28 from the MTU, for the longer header; a VPN, more for its own.
_SECOND_MTU = {"clat": PACKET_BYTES - 28, "vpn": 1400}

# Its ports are none of the phone's, so that the server's end of a connection tells whose it is, and
# NAT leaves them alone.
_CLIENT = """\
ip netns add client
put client /proc/sys/net/ipv6/conf/default/disable_ipv6 $no_ipv6
join phone swlan0 02:00:00:00:09:01 client wl0 02:00:00:00:09:02
addresses phone swlan0 fd00:5::1 10.0.5.1
addresses client wl0 fd00:5::2 10.0.5.2
neighbours phone swlan0 fd00:5::2 10.0.5.2 02:00:00:00:09:02
neighbours client wl0 fd00:5::1 10.0.5.1 02:00:00:00:09:01
ip -n client route add default via 10.0.5.1
[ $no_ipv6 = 1 ] || ip -n client route add default via fd00:5::1
put phone /proc/sys/net/ipv4/ip_forward 1
put phone /proc/sys/net/ipv6/conf/all/forwarding 1
put client /proc/sys/net/ipv4/tcp_no_metrics_save 1
put client /proc/sys/net/ipv4/ip_local_port_range '20000 29999'
"""
_ROUTED = """\
ip -n router route add 10.0.5.0/24 via 10.0.2.2 dev cell0
[ $no_ipv6 = 1 ] || ip -n router route add fd00:5::/64 via fd00:2::2 dev cell0
"""
_NAT = """\
ip netns exec phone nft -f - <<'RULES'
table ip hotspot {
	chain post {
		type nat hook postrouting priority srcnat
		oifname "rmnet0" ip saddr 10.0.5.0/24 masquerade
	}
}
RULES
"""
# With a rate, netem lets nothing overtake; as much as Wi-Fi has.
_LAN_RATE = "1gbit"

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
        f"modem={int(spec.behind_modem)}",
        f"modem_end={'rmnet_ipa0' if _bearers(spec) > 1 else 'rmnet0'}",
        f"to_phone=02:00:00:00:{'05:01' if spec.behind_modem else '02:02'}",
        f"to_router=02:00:00:00:{'06:01' if spec.behind_modem else '02:01'}",
        _HOSTS,
        f"# The phone: {spec.name}",
        f"put phone /proc/sys/net/ipv4/tcp_rmem '{_limits(spec.scheme.rmem)}'",
        f"put phone /proc/sys/net/ipv4/tcp_wmem '{_limits(wmem)}'",
    ]
    if spec.client:
        lines += [_CLIENT, *_lan(spec.client)]
    hosts = ["phone", "client"] if spec.client else ["phone"]
    if not spec.sockets.timestamps:
        lines += [f"put {host} /proc/sys/net/ipv4/tcp_timestamps 0" for host in hosts]
    if not spec.sockets.window_scaling:
        lines += [f"put {host} /proc/sys/net/ipv4/tcp_window_scaling 0" for host in hosts]
    if spec.sockets.fastopen:
        # Data in the SYN without a cookie from an earlier connection, on every listener.
        lines += [
            *(f"put {host} /proc/sys/net/ipv4/tcp_fastopen {0x1 | 0x4}" for host in hosts),
            f"put server /proc/sys/net/ipv4/tcp_fastopen {0x2 | 0x200 | 0x400}",
        ]
    if spec.initcwnd:
        route = ("fd00:1::2", " -6") if spec.ipv6 else ("10.0.1.2", "")
        lines.append(
            f"ip -n server{route[1]} route change default via {route[0]} initcwnd {spec.initcwnd}"
        )
    if spec.has_second_link:
        lines.append(_SECOND_LINK)
    if spec.second and spec.behind_modem:
        device = SECONDS[spec.second]
        lines.append(_MODEM.format(device=device, mtu=_SECOND_MTU[spec.second]))
    if spec.tso:
        lines.append("ip -n server link set srv0 gso_max_segs 65535")
    if spec.upload_tso:
        lines.append("ip -n phone link set rmnet0 gso_max_segs 65535")
    if spec.sockets.mptcp:
        lines.append(_MPTCP.format(address="fd00:3::2" if spec.ipv6 else "10.0.3.2"))
    lines += ["", "# Propagation", *_propagation("add", spec, spec.base_rtt_us, spec.loss_ppm)]
    # After all that draws random numbers, as netem does for its losses: the maps draw some, too.
    if spec.scheme.bpf:
        lines += [_PINS, *_attach(spec)]
    elif spec.lambda_hundredths is not None:
        lines += [
            f"insmod {MODULE}"
            if spec.scheme.module
            else f"echo {'Y' if spec.scheme.classic else 'N'} > {CLASSIC}",
            *(
                f"put phone {CONF}/{device}/tcp_drwa_lambda {spec.lambda_hundredths}"
                for device in governed(spec)
            ),
        ]
        if spec.behind_modem:
            # A kernel that knows no queues takes each interface for one.
            for device in governed(spec):
                queue = f"{CONF}/{device}/tcp_drwa_queue"
                exists = f"ip netns exec phone test -e {queue}"
                lines.append(f"if {exists}; then put phone {queue} 1; fi")
    for number, each in enumerate(spec.neighbours):
        if each.kind in quicstacks.LOADS:
            load = quicstacks.LOADS[each.kind]
            lines += quicstacks.server(number, load, _server(spec))
    return "\n".join(lines) + "\n"


def _bearers(spec: RunSpec) -> int:
    return spec.uplink.bearers if spec.uplink else 1


def client_scripts(spec: RunSpec) -> dict[str, str]:
    """The commands of clients with a stack of their own, by file name."""
    return {
        quicstacks.client_script(number): quicstacks.client(
            number, quicstacks.LOADS[each.kind], _server(spec)
        )
        for number, each in enumerate(spec.neighbours)
        if each.kind in quicstacks.LOADS
    }


def _server(spec: RunSpec) -> str:
    return "fd00:1::1" if spec.ipv6 else "10.0.1.1"


def _lan(client: Client) -> list[str]:
    """The client's buffers are Linux's own, whatever the phone's are."""
    lines = [f"put client /proc/sys/net/ipv4/tcp_rmem '{_limits(STOCK_RMEM)}'"]
    lines.append(_NAT if client.nat else _ROUTED)
    if client.rtt_us:
        down, jitter = client.rtt_us // 2, client.jitter_us // 2
        for way, delay in (("phone", down), ("client", client.rtt_us - down)):
            device = "swlan0" if way == "phone" else "wl0"
            netem = f"netem limit 1000000 delay {delay}us {jitter}us rate {_LAN_RATE}"
            lines.append(f"tc -n {way} qdisc add dev {device} root {netem}")
    return lines


def _programs(spec: RunSpec, verb: str, device: str, hundredths: int) -> str:
    """The loader's command line, in the phone's name space; `ip netns exec` would hide the pins."""
    number = units.show_hundredths(hundredths)
    words = [f"{_LOADER} {verb}"]
    words += [f"--interface {device} --lambda {number}"]
    if spec.behind_modem:
        words.append("--queue 1")
    if spec.scheme.aqm:
        words.append("--aqm on")
    return " ".join(words)


def _attach(spec: RunSpec) -> list[str]:
    assert spec.lambda_hundredths is not None
    server = "fd00:1::2" if spec.ipv6 else "10.0.1.2"
    lines = []
    for device in governed(spec):
        attach, watch = (
            f"{_programs(spec, verb, device, spec.lambda_hundredths)} --object {BPF}/drwa.bpf.o"
            for verb in ("attach", "watch")
        )
        lines.append(attach)
        if spec.scheme.aqm:
            lines.append(f"{watch} --probe {server} >/dev/null &")
    return lines


def governed(spec: RunSpec) -> list[str]:
    """The phone's interfaces with λ."""
    return ["rmnet0", SECONDS[spec.second]] if spec.second else ["rmnet0"]


def _limits(limits: Limits) -> str:
    return " ".join(str(limit) for limit in limits)


def _propagation(verb: str, spec: RunSpec, base_rtt_us: int, loss_ppm: int) -> list[str]:
    down = base_rtt_us // 2
    netem = "root netem limit 1000000"
    harm = f" loss {units.show_percent(loss_ppm)}" if loss_ppm else ""
    lost = f" loss {units.show_percent(spec.uplink_loss_ppm)}" if spec.uplink_loss_ppm else ""
    if spec.duplicate_ppm:
        harm += f" duplicate {units.show_percent(spec.duplicate_ppm)}"
    return [
        f"tc -n server qdisc {verb} dev srv0 {netem} delay {down}us{harm}",
        f"tc -n router qdisc {verb} dev net0 {netem} delay {base_rtt_us - down}us{lost}",
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
        *([f"pace_bytes {spec.shape_bps // 8}"] if spec.shape_bps else []),
        *_objects(spec),
        _link("down", spec.down),
    ]
    up = spec.up
    works = spec.ack_thin or spec.stops_both_ways or spec.has_clock or spec.has_middlebox
    if up is None and works:
        up = Link(UNLIMITED_BPS, None, units.parse_bytes(DEFAULTS["uplink-buffer"]))
    if up:
        lines.append(_link("up", up))
    if spec.uplink:
        lines += _modem(spec, spec.uplink)
    if spec.has_second_link:
        lines.append(_link("second", spec.down))
    if spec.behind_modem:
        lines.append("behind_modem")
    if spec.second:
        lines.append(f"second_device {SECONDS[spec.second]}")
    if spec.client:
        lines.append(f"client {spec.client.load}")
    if spec.scheme.bpf:
        lines.append(f"at_end {_LOADER} status --json > {PROGRAMS}")
    lines += _neighbours(spec)
    if spec.has_clock:
        lines += [
            "clocks",
            f"clock_ppm {spec.clock.ppm}",
            f"clock_tick_us {spec.clock.tick_us}",
            # All of the RTT but a millisecond.
            f"lie_ms {max(1, spec.base_rtt_us // 1000 - 1)}",
        ]
    if spec.upload_lie_ms:
        lines.append(f"upload_lie_ms {spec.upload_lie_ms}")
    if spec.gro_us is not None:
        lines.append(f"gro_us {spec.gro_us}")
    if spec.promotion:
        lines.append(f"promotion_us {spec.promotion.wake_us}")
        lines.append(f"idle_us {spec.promotion.idle_us}")
    if spec.syn_scale is not None:
        lines.append(f"syn_scale {spec.syn_scale}")
    if spec.drx:
        lines.append(f"drx {spec.drx.cycle_us} {spec.drx.on_us} {spec.drx.inactivity_us}")
    lines += [f"reorder_ppm {spec.reorder_ppm}", f"ack_thin {spec.ack_thin}"]
    if spec.downlink_ack_thin:
        lines.append(f"down_ack_thin {spec.downlink_ack_thin}")
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
        "strip_stamps": spec.strip_timestamps,
        "fastopen": spec.sockets.fastopen,
        "mptcp": spec.sockets.mptcp,
        "accepted": spec.sockets.accepted,
        "keep_alive": spec.keep_alive,
        "push": spec.push,
        "ipv6": spec.ipv6,
        "pcap": spec.pcap_dir is not None,
        "opaque_probes": spec.probe_kind == "opaque",
    }
    lines += [name for name, given in flags.items() if given]
    if spec.uploads:
        lines += [f"uploads {spec.uploads} {spec.upload_kind}", f"phone_cc {spec.upload_cc}"]
    lines += _events(spec)
    return "\n".join(lines) + "\n"


# As a phone's interface has it, txqueuelen.
TX_QUEUE_PACKETS = 1000
# rmnet_sch's: skb->priority 6 to 8 have bands of their own, all else has the last one.
RMNET_PRIOMAP = "3 3 3 3 3 3 0 1 2 3 3 3 3 3 3 3"
# QCUT-D's bound in the paper; QCUT-B's, as many bytes at 5 Mb/s.
QCUT_TARGET_US = 20_000
QCUT_BYTES = 12_500
# Attributes of labgate, and of drwa_up.
LABGATE_BYTES, LABGATE_TARGET = 1, 2
DRWA_UP_TARGET, DRWA_UP_MUX = 1, 2
# Of guest/net/sched/lab_dfc.c, LAB_DFC_MUX
LAB_MUX = 1


def _modem(spec: RunSpec, uplink: Uplink) -> list[str]:
    """The modem, the phone's qdisc in front of it, and what that one has as a child."""
    numbers = (
        uplink.firmware_bytes,
        uplink.grant_us,
        uplink.report_us or 0,
        uplink.told_us or 0,
        uplink.hidden_bytes,
    )
    lines = [f"modem {' '.join(map(str, numbers))}"]
    child = "tc -n phone qdisc replace dev rmnet0 parent"
    pfifo = f"pfifo limit {TX_QUEUE_PACKETS}"
    # Places of the phone's qdiscs, and those below the gates that the agent puts there
    places, below = ["1:1 handle 2:"], ["2:1"]
    if uplink.bearers > 1:
        lines.append(f"bearers {uplink.bearers}")
        queues = range(1, 2 * uplink.bearers + 1)
        places, below = [f"1:{queue}" for queue in queues], [f"1{queue}:1" for queue in queues]
    match uplink.scheme:
        case "pfifo":
            commands = [f"{child} {place} {pfifo}" for place in places]
        case "rmnet":
            commands = [f"{child} 1:1 handle 2: prio bands 4 priomap {RMNET_PRIOMAP}"]
            commands += [f"{child} 2:{band} {pfifo}" for band in range(1, 5)]
        case "fq_codel":
            commands = [f"{child} {place} fq_codel" for place in places]
        case _:
            commands = [f"{child} {place} fq_codel" for place in below]
            lines.append(_gate(spec, uplink))
    return [*lines, f"phone_child {' && '.join(commands)}"]


def _gate(spec: RunSpec, uplink: Uplink) -> str:
    """The spec's line for a gate that tc does not know: its kind and attributes."""
    match uplink.scheme:
        case "autorate":
            assert spec.up is not None
            rate = spec.up.trace.mean_bps if spec.up.trace else spec.up.rate_bps
            return f"autorate {round(rate or 0)}"
        case "qcut-b":
            return f"gate labgate {LABGATE_BYTES}={QCUT_BYTES}"
        case "qcut-d":
            return f"gate labgate {LABGATE_TARGET}={uplink.target_us or QCUT_TARGET_US}"
        case _:
            words = ["gate drwa_up"]
            if uplink.target_us is not None:
                words.append(f"{DRWA_UP_TARGET}={uplink.target_us}")
            if uplink.told_us is not None:
                words.append(f"{DRWA_UP_MUX}={LAB_MUX}")
            return " ".join(words)


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


# Neighbours that are more than TCP with a congestion control of that name.
OF_ITS_OWN = ("quic", *GOVERNED, *PACED)


def _neighbours(spec: RunSpec) -> list[str]:
    lines = []
    for each in spec.neighbours:
        if each.kind in quicstacks.LOADS:
            kind, cc = "program", "-"
        else:
            kind, cc = (each.kind, "-") if each.kind in OF_ITS_OWN else ("tcp", each.kind)
        for_us = spec.duration_us if each.for_us is None else each.for_us
        lines.append(f"neighbour {kind} {cc} {each.at_us} {for_us}")
    return lines


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
        case "lambda" if spec.scheme.bpf:
            return " && ".join(
                _programs(spec, "set", device, event.value) for device in governed(spec)
            )
        case "lambda":
            knobs = [f"{CONF}/{device}/tcp_drwa_lambda" for device in governed(spec)]
            writes = "; ".join(f"echo {event.value} > {knob}" for knob in knobs)
            return f"ip netns exec phone sh -c '{writes}'"
        case "clock":
            return f"clock {event.value}"
        case "timestamps":
            return f"timestamps {event.value}"
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
