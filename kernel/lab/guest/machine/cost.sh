#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Instructions per segment with the series and with the programs, of a machine whose clock counts them.
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

network() {
	unshare -n sleep 1000000 &
	server=$!
	unshare -n sleep 1000000 &
	phone=$!
	sleep 1
	ip link add srv0 netns $server type veth peer name cell0 netns $phone
	for end in "$server srv0 1" "$phone cell0 2"; do
		set -- $end
		on $1 ip link set $2 gso_max_segs 1 up
		on $1 ip addr add 10.77.0.$3/24 dev $2
		on $1 tc qdisc add dev $2 root netem delay 20ms limit 1000
	done
}

measure() { # what governs
	for direction in down up; do
		echo "# cost $direction $1 $("$here/segments" $server $phone 10.77.0.1 $direction 2>&1)"
	done
}

bpf() { on $phone "$here/drwa-bpf" "$@" || echo "not ok 1 cost # drwa-bpf $*"; }

echo "TAP version 13"
echo "1..1"
mkdir /sys/fs/cgroup/server /sys/fs/cgroup/phone
network
measure nothing
on $phone sh -c "echo 125 >$knob"
measure series
on $phone sh -c "echo 0 >$knob"
bpf attach --interface cell0 --lambda 0 --cgroup /sys/fs/cgroup/phone --object "$here/drwa.bpf.o"
measure programs_off
bpf set --interface cell0 --lambda 1.25
measure programs
echo "# programs $(bpf status --json | sed 's/.*"programs": \(.*\)}$/\1/')"
bpf detach
echo "ok 1 cost"
