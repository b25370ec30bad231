#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# DRWA's BPF programs on the kernel that runs: what they do to the downloads of
# selftest_common.sh.
#
# Usage: selftest.sh [TEST]...
#
# Without a name all tests run, and take about three minutes. It needs what
# selftest_common.sh does, and beside it what `make selftest` puts there: drwa-bpf and
# drwa.bpf.o as well. The programs see sockets of this script alone.
# DRWA_CYCLES is how often the test named cycles attaches and detaches, DRWA_STORM_S
# the length of the storm in seconds.
#
# Tests are called by name, and options are words to be split.
# shellcheck disable=SC2086,SC2317

tests="download ipv6 switch_off_and_on detach_lets_go so_rcvbuf no_timestamps
	interface_goes interrupted cycles storm kernel_log"

# shellcheck source-path=SCRIPTDIR source=../tests/selftest_common.sh
. "$(dirname "$0")/selftest_common.sh"

loader=$here/drwa-bpf
pins=/sys/fs/bpf

bpf() { on $phone "$loader" "$@" 2>&1; }
attach() { bpf attach --interface cell0 --cgroup $cgroup --object "$here/drwa.bpf.o" "$@"; }

# For tcp_drwa, which runs it on the phone
set_command() { # lambda
	echo "$loader set --interface cell0 --lambda $1"
}

nothing_left() { # after what
	# shellcheck disable=SC2010
	left=$(ls $pins 2>/dev/null | grep '^drwa' | tr '\n' ' ')
	[ -z "$left" ] || fail "after $1 there is $left"
}

cleanup() { "$loader" detach 2>/dev/null; }

counted() { # key of cell0 in the loader's status
	bpf status --json | sed -n "s/.*\"cell0\"[^}]*\"$1\": \([0-9]*\).*/\1/p"
}

governs() { # options
	both attach "$1"
	at_most "RTT, us," "$(value 2 rtt_us)" $((stock_us / 2))
	at_least sockets "$(counted sockets)" 1
	at_least rounds "$(counted rounds)" 10
	[ "$(counted refused)" = 0 ] || fail "the kernel refused $(counted refused) clamps"
}

stands_aside() { # options
	both attach "$1"
	stood_aside
}

download() {
	governs ""
	info=$("$loader" status --json | sed 's/.*"programs": //')
	echo "# $info"
	[ "$(cat /proc/sys/net/core/bpf_jit_enable 2>/dev/null)" != 1 ] ||
		case $info in *'"jited_bytes": 0'*) fail "not all is compiled" ;; esac
}

ipv6() {
	address=fd77::1
	governs ""
}

switch_off_and_on() {
	must attach
	traffic "" 4 "$(set_command 0)" 2 true 4 "$(set_command 1.25)" 10 true 4
	at_most "RTT, us, on" "$(value 1 rtt_us)" $((full_us / 2))
	at_least "RTT, us, off" "$(value 3 rtt_us)" $((full_us / 2))
	at_most "RTT, us, on again" "$(value 5 rtt_us)" $((full_us / 3))
	at_least "goodput, kb/s," "$(value 5 goodput_kbps)" $((rate_mbit * 850))
}

detach_lets_go() {
	must attach
	traffic "-n 3" 4 "$loader detach" 2 true 4
	nothing_left detach
	at_least "RTT, us, after" "$(value 3 rtt_us)" $((full_us / 2))
	at_least "window after" "$(value 3 wnd)" $(($(value 1 wnd) * 3 / 2))
}

so_rcvbuf() { stands_aside "-b 60000"; }

no_timestamps() {
	on $phone sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_timestamps'
	stands_aside ""
}

interface_goes() {
	must attach
	interface_vanishes $server $phone 10.77.0.1
	must bpf status >/dev/null
	must bpf detach
	nothing_left detach
}

# At any instant, and by any signal: at most the next command has to clean up.
interrupted() {
	for seconds in 0.005 0.01 0.02 0.04 0.08 0.16 0.32; do
		for signal in INT TERM KILL; do
			on $phone timeout -s $signal $seconds "$loader" attach \
				--interface cell0 --cgroup $cgroup --object "$here/drwa.bpf.o" \
				>/dev/null 2>&1
			ended=$?
			case $ended$signal in
			0*)	# it was done before
				must bpf detach
				;;
			*KILL)
				bpf detach >/dev/null
				;;
			esac
			nothing_left "$signal at $seconds s"
		done
	done
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
	governs ""
}

leave_cgroup() {
	echo $$ >"$old/cgroup.procs"
	rmdir $cgroup
}

echo "TAP version 13"
needs "$loader"
[ ! -e $pins/drwa ] || quit "DRWA is in use here: drwa-bpf detach"
cgroups=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/self/mounts | head -n 1)
[ -n "$cgroups" ] || quit "no cgroup2 is mounted"
old=$cgroups$(sed -n 's/^0:://p' /proc/self/cgroup)
cgroup=$cgroups/drwa-selftest
mkdir $cgroup || quit "cannot make $cgroup"
echo $$ >$cgroup/cgroup.procs
trap 'leave; leave_cgroup' EXIT
trap 'exit 1' HUP INT TERM
network || quit "cannot make name spaces with veth and netem"
said=$(attach)
case $? in
0) ;;
77) quit "$said" ;;
*)
	echo "Bail out! $said"
	exit 1
	;;
esac
cleanup
no_network

[ $# -gt 0 ] || set -- $tests
run_tests "$@"
