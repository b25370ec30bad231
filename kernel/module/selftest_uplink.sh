#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The uplink's gate, sch_drwa_up, on the kernel that runs: an upload over a modem whose
# queue nobody sees, and the qdisc that comes and goes in front of it.
#
#	server srv0  --  m1 modem m0  --  cell0 phone
#	                 10 Mb/s, 40 ms, 400 packets of buffer, on the way up
#
# Usage: selftest_uplink.sh [TEST]...
#
# Without a name all tests run, and take about two minutes. It needs what
# selftest_common.sh does, and sch_drwa_up.ko beside it, or a kernel that has it.
# DRWA_CYCLES is how often the test named cycles attaches and detaches, DRWA_STORM_S the
# length of the storm in seconds.
#
# Tests are called by name, and options are words to be split.
# shellcheck disable=SC2086,SC2119,SC2120,SC2317

tests="upload ipv6 order detach_lets_go attach_takes_over options child wrong_children
	several_queues interface_goes unload cycles storm kernel_log"

# shellcheck source-path=SCRIPTDIR source=../tests/selftest_common.sh
. "$(dirname "$0")/selftest_common.sh"

# A phone's or a rescue system's are busybox's.
command -v insmod >/dev/null || insmod() { busybox insmod "$@"; }
command -v rmmod >/dev/null || rmmod() { busybox rmmod "$@"; }

modem=
# In the phone's name space
attach_command="tc qdisc replace dev cell0 root handle 1: drwa_up &&
	tc qdisc replace dev cell0 parent 1:1 fq_codel"
detach_command="tc qdisc del dev cell0 root"

load() {
	[ ! -e "$here/sch_drwa_up.ko" ] || [ -d /sys/module/sch_drwa_up ] ||
		insmod "$here/sch_drwa_up.ko"
}
attach() { on $phone sh -c "PATH=$PATH; $attach_command"; }
detach() { on $phone sh -c "PATH=$PATH; $detach_command"; }
cleanup() { [ -z "$modem" ] || kill $modem 2>/dev/null; modem=; }

network() {
	new_namespace && server=$space && new_namespace && phone=$space &&
		new_namespace && modem=$space || return 1
	ip link add srv0 netns $server type veth peer name m1 netns $modem || return 1
	ip link add cell0 netns $phone numtxqueues 2 type veth peer name m0 netns $modem || return 1
	for end in "$server srv0 78 1" "$modem m1 78 2" "$modem m0 77 1" "$phone cell0 77 2"; do
		set -- $end
		on $1 ip link set $2 gso_max_segs 1
		on $1 ethtool -K $2 tso off gso off 2>/dev/null
		on $1 ip link set $2 up
		on $1 ip addr add 10.$3.0.$4/24 dev $2
		on $1 ip addr add fd$3::$4/64 dev $2 nodad 2>/dev/null
	done
	on $server ip route add default via 10.78.0.2
	on $phone ip route add default via 10.77.0.1
	on $server ip -6 route add default via fd78::2 2>/dev/null
	on $phone ip -6 route add default via fd77::1 2>/dev/null
	on $modem sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	on $modem sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding' 2>/dev/null
	on $modem tc qdisc add dev m1 root netem rate ${rate_mbit}mbit delay 40ms limit $packets
}

# tcp_drwa's server, which sends, is the phone.
upload_of() { # options seconds [command seconds]...
	options=$1
	shift
	"$tool" $options $phone $server ${address:-10.77.0.2} "$@" >"$out" 2>&1 ||
		fail "$(tail -n 1 "$out")"
}

statistics() { on $phone tc -s qdisc show dev cell0; }
attached() { on $phone tc qdisc show dev cell0 | grep -q "$1"; }

held() { # options
	upload_of "$1" 2 true 4
	stock_kbps=$(value 2 goodput_kbps)
	at_least "RTT without the gate, us," "$(value 2 rtt_p95_us)" $((full_us / 2))
	sleep 1
	must attach
	upload_of "$1" 2 true 4
	at_most "RTT, us," "$(value 2 rtt_p95_us)" $((full_us / 4))
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((stock_kbps * 90 / 100))
	must detach
}

upload() { held ""; }

ipv6() {
	address=fd77::2
	held "-n 3"
}

# No packet overtakes another of its flow, and who is short alone does not wait. order.py lies
# beside where there is a Python.
order() {
	[ -e "$here/order.py" ] || return 0
	must on $phone tc qdisc replace dev cell0 root handle 1: drwa_up
	# Its upload holds the gate shut.
	"$tool" $phone $server 10.77.0.2 10 true 1 >/dev/null 2>&1 &
	upload=$!
	on $server "$here/order.py" take 10.78.0.1 >"$out" &
	taker=$!
	sleep 2
	must on $phone "$here/order.py" send 10.78.0.1
	wait $taker $upload
	for flow in 1 2; do
		at_least "packets of flow $flow" "$(value $flow count)" 501
		at_most "late packets of flow $flow" "$(value $flow late)" 0
	done
	at_least "wait of mixed sizes, us," "$(value 1 wait_us)" $(($(value 2 wait_us) + 2001))
}

detach_lets_go() {
	must attach
	upload_of "" 4 "nsenter -t $phone -n $detach_command" 4 true 6
	at_most "RTT, us, before" "$(value 1 rtt_p95_us)" $((full_us / 6))
	at_least "RTT, us, after" "$(value 3 rtt_p95_us)" $((full_us / 5))
	! attached drwa_up || fail "it is still there"
}

attach_takes_over() {
	upload_of "" 4 "nsenter -t $phone -n sh -c '$attach_command'" 4 true 4
	at_least "RTT, us, before" "$(value 1 rtt_p95_us)" $((full_us / 3))
	at_most "RTT, us, after" "$(value 3 rtt_p95_us)" $((full_us / 3))
	at_least "goodput, kb/s," "$(value 3 goodput_kbps)" $((rate_mbit * 850))
}

# tc's part of it lies beside, where it was compiled.
options() {
	[ -e "$here/q_drwa_up.so" ] || return 0
	export TC_LIB_DIR="$here"
	must on $phone tc qdisc add dev cell0 root handle 1: drwa_up target 20ms
	attached "target 20.0ms" || fail "the target is not shown"
	must on $phone tc qdisc change dev cell0 root handle 1: drwa_up target 100ms
	attached "target 100.0ms" || fail "it did not change"
	for wrong in 999us 1001ms; do
		if on $phone tc qdisc change dev cell0 root handle 1: drwa_up target $wrong 2>/dev/null; then
			fail "took $wrong"
		fi
	done
	if on $phone tc qdisc change dev cell0 root handle 1: drwa_up mux 256 2>/dev/null; then
		fail "took mux 256"
	fi
	must on $phone tc qdisc change dev cell0 root handle 1: drwa_up mux 7
	attached "mux 7" || fail "the mux is not shown"
	# A mux that nobody tells of changes nothing.
	upload_of "" 3
	statistics | grep -q 'hold rate' || fail "$(statistics | tail -n 3)"
	attached "target 100.0ms" || fail "what is wrong changed it"
	unset TC_LIB_DIR
}

# Its own child is a FIFO; another one may be grafted at any time, and back.
child() {
	must on $phone tc qdisc replace dev cell0 root handle 1: drwa_up
	upload_of "" 2 "nsenter -t $phone -n tc qdisc replace dev cell0 parent 1:1 pfifo limit 50" 2
	upload_of "" 2 "nsenter -t $phone -n tc qdisc replace dev cell0 parent 1:1 fq_codel" 3
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((rate_mbit * 850))
	attached fq_codel || fail "no child"
	statistics | grep -A 2 drwa_up | grep -q 'Sent [1-9]' || fail "nothing was counted"
}

wrong_children() {
	must on $phone tc qdisc replace dev cell0 root handle 1: drwa_up
	for wrong in "parent 2:1 pfifo" "parent 1:1 nosuch"; do
		if on $phone tc qdisc add dev cell0 $wrong 2>/dev/null; then
			fail "took $wrong"
		fi
	done
}

several_queues() {
	must on $phone tc qdisc replace dev cell0 root handle 1: mq
	for queue in 1 2; do
		must on $phone tc qdisc replace dev cell0 parent 1:$queue handle 1$queue: drwa_up
		must on $phone tc qdisc replace dev cell0 parent 1$queue:1 fq_codel
	done
	upload_of "-n 4" 2 true 4
	at_most "RTT, us," "$(value 2 rtt_p95_us)" $((full_us / 2))
	# Answers are heard for both, whichever of them goes.
	for queue in 1 2; do
		must on $phone tc qdisc replace dev cell0 parent 1:$queue handle 2$queue: drwa_up
		must on $phone tc qdisc replace dev cell0 parent 2$queue:1 fq_codel
		upload_of "-n 4" 2 true 4
		at_most "RTT, us, with new gates," "$(value 2 rtt_p95_us)" $((full_us / 2))
	done
	must detach
}

interface_goes() {
	must attach
	interface_vanishes $phone $server 10.77.0.2
}

unload() {
	[ -d /sys/module/sch_drwa_up ] && [ -e "$here/sch_drwa_up.ko" ] || return 0
	must attach
	if rmmod sch_drwa_up 2>/dev/null; then
		fail "it went while it was in use"
		load
	fi
	must detach
	if [ -e "$here/drwa_up_dfc.ko" ]; then
		must insmod "$here/drwa_up_dfc.ko"
		rmmod sch_drwa_up 2>/dev/null && fail "it went while drwa_up_dfc was there"
		must rmmod drwa_up_dfc
	fi
	must rmmod sch_drwa_up
	if attach 2>/dev/null; then
		fail "attached without it"
	fi
	must load
}

cycles() {
	comes_and_goes attach detach $phone $server 10.77.0.2
	at_least "RTT, us, after" "$(value '$' rtt_p95_us)" $((full_us / 6))
}

flip() {
	while [ ! -e "$out.done" ]; do
		attach
		on $phone tc qdisc replace dev cell0 parent 1:1 pfifo
		detach
		sleep 0.02
	done >/dev/null 2>&1
}

look() {
	while [ ! -e "$out.done" ]; do
		statistics
		sleep 0.01
	done >/dev/null 2>&1
}

storm() {
	storm_of flip look upload_of 40
	detach 2>/dev/null
	held ""
}

echo "TAP version 13"
needs
load
trap leave EXIT
trap 'exit 1' HUP INT TERM
network || quit "cannot make name spaces with veth and netem"
on $phone tc qdisc add dev cell0 root drwa_up 2>/dev/null || quit "this kernel has no drwa_up"
cleanup
no_network

[ $# -gt 0 ] || set -- $tests
run_tests "$@"
