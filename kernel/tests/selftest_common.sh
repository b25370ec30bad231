# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# What the selftests of DRWA's forms without the series share; they read it from beside
# them: downloads between two network name spaces, which every test gets new:
#
#	server                                                   phone
#	srv0  10.77.0.1, fd77::1  -- 10 Mb/s, 40 ms, 400 --  cell0  10.77.0.2, fd77::2
#	                              packets of buffer
#
# A test is a function that calls fail, or something that does. run_tests runs those
# that it gets by name, as TAP; cleanup, which a script defines, comes after each.
# They need root, ip, tc with netem, and tcp_drwa of the kernel's selftests beside them.
# With KSFT_MACHINE_SLOW=yes speed and RTT, which then are the machine's, fail no test.
#
# Tests are called by name, options are words to be split, and what is set here is for
# the scripts, as some of theirs is for here.
# shellcheck disable=SC2034,SC2086,SC2154

here=$(dirname "$0")
tool=$here/tcp_drwa
rate_mbit=10
packets=400
# RTT behind a full queue of ordinary packets
full_us=$((packets * 1514 * 8 / rate_mbit))
ksft_skip=4
server=
phone=

fail() { why="$why${why:+, }$*"; }
at_least() { [ "$2" -ge "$3" ] || missed "$1" "$2, at least $3 expected"; }
at_most() { [ "$2" -le "$3" ] || missed "$1" "$2, at most $3 expected"; }
missed() { # what it is, what was expected
	case $KSFT_MACHINE_SLOW$1 in
	yes*RTT* | yes*goodput* | yes*window*) slow="$slow${slow:+, }$*" ;;
	*) fail "$*" ;;
	esac
}

on() { # name space, known by a process in it; command...
	space=$1
	shift
	nsenter -t "$space" -n "$@"
}

must() { "$@" || fail "failed: $*"; }

new_namespace() {
	unshare -n sleep 1000000 &
	space=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/$space/ns/net)" ] || return 0
		sleep 0.1
	done
	return 1
}

network() {
	new_namespace && server=$space && new_namespace && phone=$space || return 1
	ip link add srv0 netns $server type veth peer name cell0 netns $phone || return 1
	for end in "$server srv0 1" "$phone cell0 2"; do
		set -- $end
		# Packets of one segment, as the link shall serve and drop them
		on $1 ip link set $2 gso_max_segs 1
		on $1 ethtool -K $2 tso off gso off 2>/dev/null
		on $1 ip link set $2 up
		on $1 ip addr add 10.77.0.$3/24 dev $2
		on $1 ip addr add fd77::$3/64 dev $2 nodad 2>/dev/null
	done
	on $server tc qdisc add dev srv0 root netem rate ${rate_mbit}mbit delay 40ms limit $packets
}

no_network() {
	[ -n "$server" ] || return 0
	kill $server $phone 2>/dev/null
	wait $server $phone 2>/dev/null
	server=
	phone=
}

traffic() { # options seconds [command seconds]...
	options=$1
	shift
	"$tool" $options $server $phone ${address:-10.77.0.1} "$@" >"$out" 2>&1 ||
		fail "$(tail -n 1 "$out")"
}

value() { # span name
	number=$(sed -n "$1{s/^/ /;s/.* $2=\([0-9]*\).*/\1/p;}" "$out")
	echo "${number:-0}"
}

# Two downloads of which the first two seconds do not count, without DRWA and with it
both() { # how DRWA comes, options
	traffic "$2" 2 true 3
	stock_kbps=$(value 2 goodput_kbps)
	stock_us=$(value 2 rtt_us)
	stock_wnd=$(value 2 wnd_max)
	at_least "goodput without DRWA, kb/s," $stock_kbps 100
	# What is left of it in the queue
	sleep 1
	must $1
	traffic "$2" 2 true 3
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((stock_kbps * 95 / 100))
}

# DRWA comes and goes under two connections of a tool of its own, which have no limit
# left in the end.
comes_and_goes() { # command it comes by, command it goes by, from, to, address of from
	spans=
	# Of a second each; as many as it takes
	for _ in $(seq 3000); do
		spans="$spans true 1"
	done
	"$tool" -n 2 $3 $4 $5 1 $spans >"$out" 2>&1 &
	under=$!
	sleep 1
	for cycle in $(seq ${DRWA_CYCLES:-20}); do
		$1 || fail "$1 $cycle"
		sleep 0.1
		$2 || fail "$2 $cycle"
		[ $((cycle % 5)) != 0 ] || echo "# $cycle cycles"
	done
	sleep 5
	kill $under 2>/dev/null || fail "$(tail -n 1 "$out")"
	wait $under 2>/dev/null
	at_least "goodput after, kb/s," "$(value '$' goodput_kbps)" $((rate_mbit * 850))
}

# Every change as fast as it goes, by two functions that end with $out.done, under eight
# connections.
storm_of() { # function, function, how connections are made, percent of the link to have
	$1 &
	first=$!
	$2 &
	$3 "-n 8" ${DRWA_STORM_S:-5}
	: >"$out.done"
	wait $first $!
	at_least "goodput in the storm, kb/s," "$(value 1 goodput_kbps)" $((rate_mbit * $4 * 10))
}

# Under a connection, which ends with it
interface_vanishes() { # from, to, address of from
	("$tool" $1 $2 $3 3 >/dev/null 2>&1) &
	under=$!
	sleep 1
	on $phone ip link del cell0
	wait $under
}

stood_aside() {
	at_least "RTT, us," "$(value 2 rtt_us)" $((stock_us * 3 / 4))
	at_least window "$(value 2 wnd_max)" $((stock_wnd * 3 / 4))
}

kernel_log() {
	complaints=$(dmesg | tail -n "+$((log_lines + 1))" |
		grep -E 'WARNING:|BUG|KASAN|KCSAN|UBSAN|INFO: |Oops|Call Trace' | head -n 1)
	[ -z "$complaints" ] || fail "$complaints"
}

quit() {
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

needs() { # command...
	[ "$(id -u)" = 0 ] || quit "needs root"
	for command in ip tc nsenter unshare dmesg "$tool" "$@"; do
		command -v "$command" >/dev/null || quit "needs $command"
	done
	out=$(mktemp) || quit "needs a place for files"
}

leave() {
	cleanup
	no_network
	rm -f "$out" "$out.done"
}

run_tests() { # name...
	log_lines=$(dmesg | wc -l)
	echo "1..$#"
	failed=0
	count=0
	for name in "$@"; do
		count=$((count + 1))
		why=
		slow=
		address=
		rm -f "$out.done"
		network || fail "no network"
		[ -n "$why" ] || "$name"
		cleanup
		no_network
		if [ -n "$why" ]; then
			echo "not ok $count $name # $why"
			failed=1
		elif [ -n "$slow" ]; then
			echo "ok $count $name # XFAIL slow machine: $slow"
		else
			echo "ok $count $name"
		fi
	done
	return $failed
}
