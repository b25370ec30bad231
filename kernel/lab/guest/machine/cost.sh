#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Instructions per segment, or datagram, with the series, with the programs and with the uplink's
# gate, and of what the programs do, of a machine whose clock counts them.
#
# Options are words to be split.
# shellcheck disable=SC2086
here=$(dirname "$0")
knob=/proc/sys/net/ipv4/conf/cell0/tcp_drwa_lambda

on() { # name space, known by a process in it; command...
	space=$1
	shift
	nsenter -t "$space" -n "$@"
}

ends() {
	unshare -n sleep 1000000 &
	server=$!
	unshare -n sleep 1000000 &
	phone=$!
	sleep 1
}

network() {
	ends
	ip link add srv0 netns $server type veth peer name cell0 netns $phone
	for end in "$server srv0 1" "$phone cell0 2"; do
		set -- $end
		on $1 ip link set $2 gso_max_segs 1 up
		on $1 ip addr add 10.77.0.$3/24 dev $2
		on $1 tc qdisc add dev $2 root netem delay 20ms limit 1000
	done
}

count() { # direction, what governs, address of the server
	echo "# cost $1 $2 $("$here/segments" $server $phone $3 $1 2>&1)"
}

measure() { # what governs
	for direction in down up; do
		count $direction $1 10.77.0.1
	done
}

# The modem is a name space of its own, which this one stands for.
uplink() { # Mb/s of the way up
	ends
	ip link add srv0 netns $server type veth peer name m1
	ip link add cell0 netns $phone type veth peer name m0
	for end in "$server srv0 78 1" "$$ m1 78 2" "$$ m0 77 1" "$phone cell0 77 2"; do
		set -- "$1" $end
		on $2 ip link set $3 gso_max_segs 1 up
		on $2 ip addr add 10.$4.0.$5/24 dev $3
	done
	on $server ip route add default via 10.78.0.2
	on $phone ip route add default via 10.77.0.1
	tc qdisc add dev m1 root netem rate $1mbit delay 40ms limit 400
	on $phone tc qdisc add dev cell0 root fq_codel
	count up fq_codel_$1 10.78.0.1
	# Two packets at a time and a little less than the modem: what to hold costs by itself.
	on $phone tc qdisc replace dev cell0 root handle 1: tbf rate $(($1 * 15 / 16))mbit \
		burst 3100 limit 1000000 &&
		on $phone tc qdisc replace dev cell0 parent 1:1 fq_codel ||
		echo "not ok 1 cost # tbf"
	count up tbf_$1 10.78.0.1
	on $phone tc qdisc del dev cell0 root
	on $phone tc qdisc replace dev cell0 root handle 1: drwa_up &&
		on $phone tc qdisc replace dev cell0 parent 1:1 fq_codel ||
		echo "not ok 1 cost # drwa_up"
	count up gate_$1 10.78.0.1
	kill $server $phone
	ip link del m1
	ip link del m0
}

pair() { on $phone "$here/drwa-bpf" "$@" || echo "not ok 1 cost # drwa-bpf $*"; }

echo "TAP version 13"
echo "1..1"
network
measure nothing
count udp nothing 10.77.0.1
on $phone sh -c "echo 125 >$knob"
measure series
on $phone sh -c "echo 0 >$knob"
pair attach --interface cell0 --lambda 0 --object "$here/drwa.bpf.o"
measure pair_off
pair set --interface cell0 --lambda 1.25
measure pair
count udp pair 10.77.0.1
pair set --interface cell0 --lambda 1.25 --aqm on
count udp aqm 10.77.0.1
echo "# programs $(pair status --json | sed 's/.*"programs": \(.*\)}$/\1/')"
pair detach
pair attach --interface cell0 --lambda 1.25 --priority 1 --object "$here/drwa.bpf.o"
measure pair_filters
count udp pair_filters 10.77.0.1
pair detach
on $phone tc qdisc add dev cell0 clsact
for way in ingress egress; do
	# Of classic BPF, which returns what is no match
	on $phone tc filter add dev cell0 $way prio 1 protocol all bpf bytecode '1,6 0 0 0,' ||
		echo "not ok 1 cost # filters"
done
measure filters
count udp filters 10.77.0.1
"$here/time_packets" "$here/drwa.bpf.o" | sed 's/^/# packets /'
kill $server $phone
echo 1 >/proc/sys/net/ipv4/ip_forward
# Of which the stream leaves a part, and which it fills
uplink 25
uplink 16
echo "ok 1 cost"
