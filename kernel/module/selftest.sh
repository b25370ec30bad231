#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# DRWA's module on the kernel that runs: what comes and goes with it, under the
# downloads of selftest_common.sh. What its knobs do is the series' selftest's to say,
# tcp_drwa.sh, which may run while the module is loaded.
#
# Usage: selftest.sh [TEST]...
#
# Without a name all tests run, and take about three minutes. It needs what
# selftest_common.sh does, and drwa.ko beside it.
# DRWA_CYCLES is how often the test named cycles loads and unloads, DRWA_STORM_S the
# length of the storm in seconds.
#
# Tests are called by name, and options are words to be split.
# shellcheck disable=SC2086,SC2119,SC2120,SC2317

tests="download ipv6 load_takes_over unload_lets_go switch_off_and_on reload
	full_table wrong_parameters interface_goes so_rcvbuf no_timestamps cycles
	storm kernel_log"

# shellcheck source-path=SCRIPTDIR source=../tests/selftest_common.sh
. "$(dirname "$0")/selftest_common.sh"

knob=/proc/sys/net/ipv4/conf/cell0/tcp_drwa_lambda

# A phone's or a rescue system's are busybox's.
command -v insmod >/dev/null || insmod() { busybox insmod "$@"; }
command -v rmmod >/dev/null || rmmod() { busybox rmmod "$@"; }

set_lambda() { on $phone sh -c "echo $1 >$knob"; }
load() { insmod "$here/drwa.ko" "$@" 2>&1 && set_lambda 125; }

# For tcp_drwa, which runs them in the phone's name space
load_command="PATH=$PATH; insmod $here/drwa.ko 2>/dev/null || busybox insmod $here/drwa.ko"
unload_command="PATH=$PATH; rmmod drwa 2>/dev/null || busybox rmmod drwa"

cleanup() { [ ! -d /sys/module/drwa ] || rmmod drwa; }

nothing_left() { # after what
	for left in $knob /proc/net/tcp_drwa /sys/module/drwa; do
		on $phone test ! -e $left || fail "after $1 there is $left"
	done
}

counted() { # key of cell0 in /proc/net/tcp_drwa
	on $phone sed -n "s/^cell0 .* $1=\([0-9]*\).*/\1/p" /proc/net/tcp_drwa
}

governs() { # options
	both load "$1"
	at_most "RTT, us," "$(value 2 rtt_us)" $((stock_us / 2))
	at_least sockets "$(counted sockets)" 1
	at_least rounds "$(counted rounds)" 10
}

download() { governs ""; }

ipv6() {
	address=fd77::1
	governs ""
}

load_takes_over() {
	traffic "-n 3" 4 "$load_command; echo 125 >$knob" 10 true 4
	at_least "RTT, us, before" "$(value 1 rtt_us)" $((full_us / 3))
	at_most "RTT, us, after" "$(value 3 rtt_us)" $((full_us / 3))
	at_least "goodput, kb/s," "$(value 3 goodput_kbps)" $((rate_mbit * 850))
}

unload_lets_go() {
	must load
	traffic "-n 3" 4 "$unload_command" 2 true 4
	nothing_left unloading
	at_least "RTT, us, after" "$(value 3 rtt_us)" $((full_us / 2))
	at_least "window after" "$(value 3 wnd)" $(($(value 1 wnd) * 3 / 2))
}

switch_off_and_on() {
	must load
	traffic "" 4 "echo 0 >$knob" 2 true 4 "echo 125 >$knob" 10 true 4
	at_most "RTT, us, on" "$(value 1 rtt_us)" $((full_us / 2))
	at_least "RTT, us, off" "$(value 3 rtt_us)" $((full_us / 2))
	at_most "RTT, us, on again" "$(value 5 rtt_us)" $((full_us / 3))
}

reload() {
	must load
	traffic "" 4 "$unload_command; $load_command; echo 125 >$knob" 10 true 4
	at_most "RTT, us, after" "$(value 3 rtt_us)" $((full_us / 3))
	at_least "goodput, kb/s," "$(value 3 goodput_kbps)" $((rate_mbit * 850))
}

# What is beyond the table is left alone, and all goes on.
full_table() {
	must load sockets=1
	traffic "-n 4" 4 true 4
	at_least "RTT, us," "$(value 2 rtt_us)" $((full_us / 2))
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((rate_mbit * 850))
}

wrong_parameters() {
	for wrong in sockets=0 sockets=65537 sockets=many; do
		if insmod "$here/drwa.ko" $wrong 2>/dev/null; then
			fail "took $wrong"
			rmmod drwa
		fi
	done
	dmesg | grep -q 'drwa: sockets=0: give 1 to 65536' || fail "no reason was given"
	nothing_left refusals
}

interface_goes() {
	must load
	interface_vanishes $server $phone 10.77.0.1
	must rmmod drwa
	nothing_left "the interface and the module"
}

so_rcvbuf() {
	both load "-b 60000"
	stood_aside
}

no_timestamps() {
	on $phone sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_timestamps'
	governs ""
}

cycles() {
	comes_and_goes load "rmmod drwa" $server $phone 10.77.0.1
	nothing_left cycles
	at_least "RTT, us, after" "$(value '$' rtt_us)" $((full_us / 2))
}

flip() {
	while [ ! -e "$out.done" ]; do
		for lambda in 125 0 1000 100; do
			set_lambda $lambda
		done
		on $phone cat /proc/net/tcp_drwa
		sleep 0.02
	done >/dev/null 2>&1
}

turn() {
	while [ ! -e "$out.done" ]; do
		load
		sleep 0.05
		rmmod drwa
	done >/dev/null
}

storm() {
	storm_of flip turn traffic 50
	nothing_left "the storm"
	governs ""
}

echo "TAP version 13"
needs
[ ! -d /sys/module/drwa ] || quit "DRWA is in use here: rmmod drwa"
trap leave EXIT
trap 'exit 1' HUP INT TERM
network || quit "cannot make name spaces with veth and netem"
no_network

[ $# -gt 0 ] || set -- $tests
run_tests "$@"
