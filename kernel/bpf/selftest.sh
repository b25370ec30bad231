#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# DRWA's pair of programs at an interface, on the kernel that runs: what they do to the
# downloads of selftest_common.sh, and to those of a client behind the phone:
#
#	phone                                    client
#	lan0  10.78.0.1, fd78::1  -- 10 ms --  wl0  10.78.0.2, fd78::2
#
# Usage: selftest.sh [TEST]...
#
# Without a name all tests run, and take about two minutes. It needs what
# selftest_common.sh does, and beside it what `make selftest` puts there: drwa-bpf and
# drwa.bpf.o as well.
# DRWA_CYCLES is how often the test named cycles attaches and detaches, DRWA_STORM_S
# the length of the storm in seconds.
#
# Tests are called by name, and options are words to be split.
# shellcheck disable=SC2086,SC2317

tests="download ipv6 no_timestamps client client_ipv6 beside switch_off_and_on
	detach_lets_go interface_goes cycles storm kernel_log"

# shellcheck source-path=SCRIPTDIR source=../tests/selftest_common.sh
. "$(dirname "$0")/selftest_common.sh"

loader=$here/drwa-bpf
pins=/sys/fs/bpf
# The phone, where downloads end on its client
gateway=

bpf() { on ${gateway:-$phone} "$loader" "$@" 2>&1; }
attach() { bpf attach --interface cell0 --object "$here/drwa.bpf.o" "$@"; }

# For tcp_drwa
command_of() { # verb and options
	echo "nsenter -t ${gateway:-$phone} -n $loader $*"
}

cleanup() {
	[ -z "$phone" ] || bpf detach >/dev/null
	[ -z "$gateway" ] || kill $gateway 2>/dev/null
	[ -z "$gateway" ] || wait $gateway 2>/dev/null
	gateway=
}

nothing_left() { # after what
	# shellcheck disable=SC2010
	left=$(ls $pins 2>/dev/null | grep '^drwa' | tr '\n' ' ')
	[ -z "$left" ] || fail "after $1 there is $left"
	left=$(on ${gateway:-$phone} tc filter show dev cell0 ingress 2>/dev/null)
	[ -z "$left" ] || fail "after $1 there is a filter"
}

behind_phone() {
	gateway=$phone
	new_namespace || fail "no name space"
	phone=$space
	ip link add lan0 netns $gateway type veth peer name wl0 netns $phone || fail "no LAN"
	for end in "$gateway lan0 1" "$phone wl0 2"; do
		set -- $end
		on $1 ip link set $2 gso_max_segs 1 up
		on $1 ip addr add 10.78.0.$3/24 dev $2
		on $1 ip addr add fd78::$3/64 dev $2 nodad 2>/dev/null
		on $1 tc qdisc add dev $2 root netem delay 5ms limit 1000
	done
	on $gateway sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
		echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	on $phone ip route add default via 10.78.0.1
	on $phone ip route add default via fd78::1
	on $server ip route add 10.78.0.0/24 via 10.77.0.2
	on $server ip route add fd78::/64 via fd77::2
}

counted() { # key of cell0 in the loader's status
	bpf status --json | sed -n "s/.*\"cell0\"[^}]*\"$1\": \([0-9]*\).*/\1/p"
}

bad_checksums() {
	for space in $server $phone $gateway; do
		# The last column of the line of values
		on $space sed -n '/^Tcp: [0-9]/s/.* //p' /proc/net/snmp
	done | grep -vx 0
}

governs() {
	both attach ""
	echo "# without: $stock_kbps kb/s, RTT $stock_us us; with: $(tail -n 1 "$out")"
	at_most "RTT, us," "$(value 2 rtt_us)" $((stock_us / 2))
	at_least flows "$(counted flows)" 1
	at_least rounds "$(counted rounds)" 10
	at_least capped "$(counted capped)" 10
	[ -z "$(bad_checksums)" ] || fail "segments with a wrong checksum"
}

download() {
	governs
	info=$(bpf status --json | sed 's/.*"programs": //')
	echo "# $info"
	[ "$(cat /proc/sys/net/core/bpf_jit_enable 2>/dev/null)" != 1 ] ||
		case $info in *'"jited_bytes": 0'*) fail "not all is compiled" ;; esac
}

ipv6() {
	address=fd77::1
	governs
}

no_timestamps() {
	on $phone sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_timestamps'
	governs
}

client() {
	behind_phone
	governs
}

client_ipv6() {
	behind_phone
	address=fd77::1
	governs
}

beside() {
	behind_phone
	on $server ip addr add 10.77.0.3/24 dev srv0
	must attach
	"$tool" $server $gateway 10.77.0.3 8 >"$out.phone" 2>&1 &
	other=$!
	traffic "" 3 true 5
	wait $other || fail "$(tail -n 1 "$out.phone")"
	echo "# client: $(tail -n 1 "$out"); phone: $(tail -n 1 "$out.phone")"
	rm -f "$out.phone"
	at_most "RTT, us," "$(value 2 rtt_us)" $((full_us / 2))
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((rate_mbit * 250))
	at_least flows "$(counted flows)" 2
}

switch_off_and_on() {
	must attach
	off=$(command_of set --interface cell0 --lambda 0)
	on=$(command_of set --interface cell0 --lambda 1.25)
	traffic "" 4 "$off" 2 true 4 "$on" 10 true 4
	at_most "RTT, us, on" "$(value 1 rtt_us)" $((full_us / 2))
	at_least "RTT, us, off" "$(value 3 rtt_us)" $((full_us / 2))
	at_most "RTT, us, on again" "$(value 5 rtt_us)" $((full_us / 3))
	at_least "goodput, kb/s," "$(value 5 goodput_kbps)" $((rate_mbit * 850))
}

detach_lets_go() {
	must attach
	traffic "-n 3" 4 "$(command_of detach)" 2 true 4
	nothing_left detach
	at_least "RTT, us, after" "$(value 3 rtt_us)" $((full_us / 2))
}

interface_goes() {
	must attach
	interface_vanishes $server $phone 10.77.0.1
	must bpf status >/dev/null
	must bpf detach
	nothing_left detach
}

cycles() {
	comes_and_goes attach "bpf detach" $server $phone 10.77.0.1
	nothing_left cycles
	at_least "RTT, us, after" "$(value '$' rtt_us)" $((full_us / 2))
}

flip() {
	while [ ! -e "$out.done" ]; do
		for lambda in 1.25 0 10 1; do
			bpf set --interface cell0 --lambda $lambda
		done
		bpf status --json
		sleep 0.02
	done >/dev/null
}

turn() {
	while [ ! -e "$out.done" ]; do
		attach --lambda 2
		sleep 0.05
		bpf detach
	done >/dev/null
}

storm() {
	storm_of flip turn traffic 50
	bpf detach >/dev/null
	governs
}

echo "TAP version 13"
needs "$loader"
[ ! -e $pins/drwa ] || quit "DRWA is in use here: drwa-bpf detach"
trap leave EXIT
trap 'exit 1' HUP INT TERM
network || quit "cannot make name spaces with veth and netem"
said=$(attach)
case $? in
0) ;;
77)
	# The verifier's last words
	DRWA_VERBOSE=1 attach 2>&1 | tail -n 12 | sed 's/^/# /'
	quit "$said"
	;;
*)
	echo "Bail out! $said"
	exit 1
	;;
esac
cleanup
no_network

[ $# -gt 0 ] || set -- $tests
run_tests "$@"
