#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# DRWA, net.ipv4.conf.<interface>.tcp_drwa_lambda, _queue and _rivals: the knobs, and
# what they do to downloads in this network, which every test gets new:
#
#	server                                            phone
#	srv0  10.77.0.1  ---- 10 Mb/s, 40 ms, 400 ----  cell0  10.77.0.2
#	srv1  10.77.1.1  ---- packets of buffer   ----  wifi0  10.77.1.2
#	lo    10.77.9.1
#
# A third one, peer0 without an address, is there for a hostile sender, which
# speaks TCP by itself.
#
# Usage: tcp_drwa.sh [TEST]...
#
# Without a name all tests run, and take about five minutes. It needs root, ip, tc
# and the programs tcp_drwa and tcp_drwa_peer beside it, and no more of a shell
# and its tools than a phone has.
# DRWA_STORM_S is the length of the test named storm, in seconds. With
# KSFT_MACHINE_SLOW=yes speed and RTT, which then are the machine's, fail no test.
#
# Tests are called by name, and options are words to be split.
# shellcheck disable=SC2086,SC2317

knob_tests="knob_range knob_owner knob_per_interface knob_rename knob_refused_name
	knob_removal queue_range rivals_range proc_lines"
tests="$knob_tests download ipv6 five_flows slow_link so_rcvbuf window_clamp
	no_timestamps reads_seldom low_water_mark no_window_scaling
	small_segments jumbo_frames fast_open
	mptcp classic switch_off switch_on interface_flap move_away storm
	lie_nothing lie_tsecr_small lie_tsecr_large lie_tsecr_zero lie_tsecr_wrap
	lie_tsecr_random lie_tsval_constant lie_tsval_backwards lie_tsval_jumps
	lie_bursts lie_tiny lie_overrun lie_holes lie_unread
	lie_fin_with_ack kernel_log"

here=$(dirname "$0")
tool=$here/tcp_drwa
conf=/proc/sys/net/ipv4/conf
classic=/sys/module/tcp_drwa/parameters/classic
ksft_skip=4

rate_mbit=10
base_ms=40
packets=400

fail() { why="$why${why:+, }$*"; }
skip() { skipped="$*"; }
at_least() { [ "$2" -ge "$3" ] || missed "$1" "$2, at least $3 expected"; }
at_most() { [ "$2" -le "$3" ] || missed "$1" "$2, at most $3 expected"; }
missed() { # what it is, what was expected
	case $KSFT_MACHINE_SLOW$1 in
	yes*RTT* | yes*bytes* | yes*goodput* | yes*window*) slow="$slow${slow:+, }$*" ;;
	*) fail "$*" ;;
	esac
}
is() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }

# A name space is known by a process in it: Android has no place for their names.
new_namespace() {
	unshare -n sleep 1000000 &
	namespace=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/$namespace/ns/net)" ] ||
			return 0
		sleep 0.1
	done
	return 1
}

on() { # name-space command...
	namespace=$1
	shift
	nsenter -t "$namespace" -n "$@"
}

put() { # name-space file value
	# shellcheck disable=SC2016
	on "$1" sh -c 'echo "$2" > "$1"' sh "$2" "$3" 2>/dev/null
}

get() { # name-space file
	on "$1" cat "$2"
}

has() { # name-space file
	on "$1" test -e "$2"
}

set_lambda() { put "$phone" "$conf/$1/tcp_drwa_lambda" "$2"; }
lambda() { get "$phone" "$conf/$1/tcp_drwa_lambda"; }
set_queue() { put "$phone" "$conf/$1/tcp_drwa_queue" "$2"; }
queue() { get "$phone" "$conf/$1/tcp_drwa_queue"; }

set_rivals() { put "$phone" "$conf/$1/tcp_drwa_rivals" "$2"; }
rivals() { get "$phone" "$conf/$1/tcp_drwa_rivals"; }

# For tcp_drwa, which runs them on the phone
lambda_command() { # interface value
	echo "echo $2 > $conf/$1/tcp_drwa_lambda"
}

route_commands() { # server's interface and address, phone's interface and address
	echo "ip route replace 10.77.9.1 via $2 dev $3 src 10.77.0.2 &&" \
	     "nsenter -t $server -n ip route replace 10.77.0.2 via $4 dev $1"
}

counted() { # key of cell0's line in the phone's /proc/net/tcp_drwa
	number=$(get "$phone" /proc/net/tcp_drwa | sed -n "s/^cell0 .* $1=\([0-9]*\).*/\1/p")
	echo "${number:-0}"
}

counter() { # name in TcpExt of the phone's /proc/net/netstat
	get "$phone" /proc/net/netstat | grep '^TcpExt:' | {
		read -r names
		read -r values
		wanted=$1
			set -- $values
		for name in $names; do
			[ "$name" = "$wanted" ] && echo "$1"
			shift
		done
	}
}

# Up, with packets that are one segment each, as the link shall serve and drop them
raise() { # name-space interface
	on "$1" ip link set "$2" gso_max_segs 1
	on "$1" ethtool -K "$2" tso off gso off 2>/dev/null
	on "$1" ip link set "$2" up
}

connect() { # server's interface, phone's interface, network
	ip link add "$1" netns "$server" type veth peer name "$2" netns "$phone" || return 1
	network=$3
	for end in "$server $1 1" "$phone $2 2"; do
			set -- $end
		raise "$1" "$2"
		on "$1" ip addr add "10.77.$network.$3/24" dev "$2"
		on "$1" ip addr add "fd77:$network::$3/64" dev "$2" nodad 2>/dev/null
	done
}

network() {
	new_namespace && server=$namespace && new_namespace && phone=$namespace || return 1
	on "$server" ip link set lo up
	on "$server" ip addr add 10.77.9.1/32 dev lo
	on "$server" ip addr add fd77:9::1/128 dev lo 2>/dev/null
	for host in $server $phone; do
		put "$host" $conf/all/rp_filter 0
		put "$host" $conf/default/rp_filter 0
	done
	connect srv0 cell0 0 && connect srv1 wifi0 1 || return 1
	on "$phone" ip route add 10.77.9.1 via 10.77.0.1 dev cell0 || return 1
	on "$phone" ip route add fd77:9::1 via fd77:0::1 dev cell0 2>/dev/null
	link 10 400
}

# The way down carries rate and all delay. netem counts what is under way, too.
link() { # Mb/s packets
	rate_mbit=$1
	packets=$2
	for dev in srv0 srv1; do
		on "$server" tc qdisc replace dev $dev root netem \
			rate "${1}mbit" delay "${base_ms}ms" limit "$2" 2>/dev/null ||
			skip "no netem"
	done
}

no_network() {
	rm -f "$out" "$out.storm" "$out.peer"
	[ -n "$server$phone" ] || return
	kill $server $phone
	wait $server $phone 2>/dev/null
	server=
	phone=
}

# RTT behind a full queue of ordinary packets
full_us() { echo $((packets * 1514 * 8 / rate_mbit)); }

traffic() { # options seconds [command seconds]...
	options=$1
	shift
	"$tool" $options "$server" "$phone" "${address:-10.77.9.1}" "$@" >"$out" 2>&1 ||
		fail "$(tail -n 1 "$out")"
}

value() { # span name
	number=$(sed -n "$1{s/^/ /;s/.* $2=\([0-9]*\).*/\1/p;}" "$out")
	echo "${number:-0}"
}

# Two downloads of which the first four seconds do not count, without DRWA and with
# it. The results of the first stay in stock_kbps, stock_us and stock_wnd.
both() { # options [lambda]
	set_lambda cell0 0
	sockets=$(counted sockets)
	capped=$(counted capped)
	traffic "$1" 4 true 3
	stock_kbps=$(value 2 goodput_kbps)
	stock_us=$(value 2 rtt_us)
	stock_wnd=$(value 2 wnd_max)
	at_least "goodput without DRWA, kb/s," "$stock_kbps" 100
	is "sockets without DRWA" "$(counted sockets)" "$sockets"
	# What is left of it in the queue
	sleep 1
	set_lambda cell0 "${2:-150}"
	traffic "$1" 4 true 3
	at_least "goodput, kb/s," "$(value 2 goodput_kbps)" $((stock_kbps * 94 / 100))
}

governs() { # options [lambda]
	both "$@"
	at_most "RTT, us," "$(value 2 rtt_us)" $((stock_us / 2))
	at_least sockets "$(counted sockets)" $((sockets + 1))
	at_least rounds "$(counted rounds)" 10
	at_least "capped segments" "$(counted capped)" $((capped + 10))
}

stands_aside() { # options
	both "$1"
	is "capped segments" "$(counted capped)" "$capped"
	at_least "RTT, us," "$(value 2 rtt_us)" $((stock_us / 2))
	at_least "window" "$(value 2 wnd_max)" $((stock_wnd * 3 / 4))
}

knob_range() {
	is "the default" "$(lambda cell0)" 0
	for good in 0 100 101 150 999 1000 '250 ' 0; do
		set_lambda cell0 "$good" || fail "refuses $good"
			is lambda "$(lambda cell0)" "${good% }"
	done
	set_lambda cell0 150
	for bad in -1 1 50 99 1001 2147483647 4294967446 99999999999 text 1.5 150x; do
		! set_lambda cell0 "$bad" || fail "takes $bad"
		is "lambda after $bad" "$(lambda cell0)" 150
	done
}

knob_owner() {
	for file in lambda queue rivals; do
		is owner "$(on "$phone" stat -c '%a %u %g' $conf/cell0/tcp_drwa_$file)" \
			"644 0 0"
	done
}

knob_per_interface() {
	set_lambda cell0 150
	is "wifi0's lambda" "$(lambda wifi0)" 0
	for none in lo all default; do
		for file in lambda queue rivals; do
			! has "$phone" $conf/$none/tcp_drwa_$file || fail "$none has a knob"
		done
	done
}

knob_rename() {
	set_lambda wifi0 200
	set_queue wifi0 7
	on "$phone" ip link set wifi0 down
	on "$phone" ip link set wifi0 name other0 || fail "cannot rename"
	is "lambda under a new name" "$(lambda other0)" 200
	is "queue under a new name" "$(queue other0)" 7
	! has "$phone" $conf/wifi0 || fail "the old name stays"
}

# sysctl gives "all" a meaning, so that there is no file. Where such a name is taken
# nevertheless, nothing may be left on.
knob_refused_name() {
	set_lambda wifi0 200
	set_queue wifi0 7
	on "$phone" ip link set wifi0 down
	set -- 200 7
	if on "$phone" ip link set wifi0 name all 2>/dev/null; then
		! get "$phone" /proc/net/tcp_drwa | grep -q '^all ' || fail "all has a line"
		on "$phone" ip link set all name wifi0
		set -- 0 0
	fi
	is "lambda after it" "$(lambda wifi0)" "$1"
	is "queue after it" "$(queue wifi0)" "$2"
}

knob_removal() {
	set_lambda wifi0 200
	set_queue wifi0 7
	on "$phone" ip link set wifi0 netns "$server"
	! has "$phone" $conf/wifi0/tcp_drwa_lambda || fail "stays when the interface moves"
	for file in lambda queue; do
		is "$file in another name space" \
			"$(get "$server" $conf/wifi0/tcp_drwa_$file)" 0
	done
	put "$server" $conf/wifi0/tcp_drwa_lambda 300
	on "$server" ip link del wifi0
	! has "$server" $conf/wifi0 || fail "stays when the interface goes"
	connect srv1 wifi0 1
	is "lambda of a new interface" "$(lambda wifi0)" 0
	is "queue of a new interface" "$(queue wifi0)" 0
	# Go with the name space while set
	set_lambda wifi0 200
	set_queue wifi0 7
}

queue_range() {
	is "the default" "$(queue cell0)" 0
	for good in 1 100 2147483647 '250 ' 0 7; do
		set_queue cell0 "$good" || fail "refuses $good"
		is queue "$(queue cell0)" "${good% }"
	done
	for bad in -1 2147483648 4294967303 99999999999 text 1.5 7x; do
		! set_queue cell0 "$bad" || fail "takes $bad"
		is "queue after $bad" "$(queue cell0)" 7
	done
	is "wifi0's queue" "$(queue wifi0)" 0
}

rivals_range() {
	is "the default" "$(rivals cell0)" 1
	for good in 0 1 '0 '; do
		set_rivals cell0 "$good" || fail "refuses $good"
		is rivals "$(rivals cell0)" "${good% }"
	done
	for bad in -1 2 4294967297 text 1.5 1x; do
		! set_rivals cell0 "$bad" || fail "takes $bad"
		is "rivals after $bad" "$(rivals cell0)" 0
	done
	is "wifi0's rivals" "$(rivals wifi0)" 1
}

proc_lines() {
	is "lines before any" "$(get "$phone" /proc/net/tcp_drwa | wc -l)" 0
	set_lambda cell0 125
	set_queue cell0 7
	numbers='[0-9]*\(,[0-9]*\)\{13\}'
	get "$phone" /proc/net/tcp_drwa | grep -q "^cell0 lambda=125 queue=7 sockets=[0-9]* \
rounds=[0-9]* capped=[0-9]* delay_us=$numbers rtt_us=$numbers rivals=1\$" ||
		fail "no line as expected"
	is lines "$(get "$phone" /proc/net/tcp_drwa | wc -l)" 1
	set_lambda cell0 0
	set_queue cell0 0
	is "lines after it" "$(get "$phone" /proc/net/tcp_drwa | wc -l)" 1
}

download() { governs ""; }
five_flows() { governs "-n 5"; }

ipv6() {
	if ! on "$phone" ip route get fd77:9::1 >/dev/null 2>&1; then
		skip "no IPv6"
		return
	fi
	address=fd77:9::1
	governs ""
}

slow_link() {
	link 1 60
	governs ""
}

so_rcvbuf() {
	stands_aside "-b 60000"
	at_most window "$(value 2 wnd_max)" 120000
	is "the buffer" "$(value 2 rcvbuf)" 120000
}

# As stock auto-tuning does, the growth of the buffer may raise it.
window_clamp() {
	both "-w 30000"
	at_most window "$(value 2 wnd_max)" "$stock_wnd"
}

# RTTs stand in for one-way delays.
no_timestamps() {
	put "$phone" /proc/sys/net/ipv4/tcp_timestamps 0
	governs ""
}

# A round is one of what arrives, not of what is read. A buffer that has to grow first does
# so by chance where its reader comes seldom.
rounds_of_arrivals() { # options
	put "$phone" /proc/sys/net/ipv4/tcp_rmem "4096 2000000 16777216"
	rounds=$(counted rounds)
	both "$1"
	at_least rounds "$(counted rounds)" $((rounds + 50))
	at_most "RTT, us," "$(value 2 rtt_us)" $(($(full_us) / 2))
}

reads_seldom() { rounds_of_arrivals "-e 500"; }
low_water_mark() { rounds_of_arrivals "-l 300000"; }

no_window_scaling() {
	put "$phone" /proc/sys/net/ipv4/tcp_window_scaling 0
	both ""
	at_most window "$(value 2 wnd_max)" 65535
	at_most "RTT, us," "$(value 2 rtt_us)" $((stock_us * 105 / 100))
}

small_segments() {
	link 1 600
	governs "-m 88"
}

jumbo_frames() {
	on "$server" ip link set srv0 mtu 9000
	on "$phone" ip link set cell0 mtu 9000
	link 20 100
	governs ""
}

on_both() { # file value what is missing where it cannot be written
	for host in $server $phone; do
		put "$host" "$1" "$2" || {
			skip "$3"
			return 1
		}
	done
}

fast_open() {
	on_both /proc/sys/net/ipv4/tcp_fastopen 3 "no TCP fast open" || return
	governs "-f"
	at_least TCPFastOpenActive "$(counter TCPFastOpenActive)" 1
}

mptcp() {
	on_both /proc/sys/net/mptcp/enabled 1 "no MPTCP" || return
	stands_aside "-M"
}

classic() {
	before=$(cat $classic)
	echo Y >$classic
	governs "" 200
	echo "$before" >$classic
}

# wifi0's knob stays set, so that the hooks stay on.
switch_off() {
	set_lambda cell0 150
	set_lambda wifi0 150
	traffic "" 4 "$(lambda_command cell0 0)" 0.15 true 2 true 4
	at_most "RTT, us, before" "$(value 1 rtt_us)" $(($(full_us) / 2))
	at_least "window after 2 RTT" "$(value 2 wnd)" $(($(value 1 wnd) * 3 / 2))
	at_least "RTT, us, after" "$(value 4 rtt_us)" $(($(full_us) / 2))
}

switch_on() {
	traffic "" 4 true 2 "$(lambda_command cell0 150)" 10 true 4
	at_least "RTT, us, before" "$(value 2 rtt_us)" $(($(full_us) / 2))
	at_most "RTT, us, after" "$(value 4 rtt_us)" $(($(full_us) / 3))
	at_least "goodput, kb/s," "$(value 4 goodput_kbps)" $((rate_mbit * 850))
}

interface_flap() {
	set_lambda cell0 150
	up="ip link set cell0 up && $(route_commands srv0 10.77.0.1 cell0 10.77.0.2)"
	traffic "" 3 "ip link set cell0 down" 0.5 "$up" 4 true 4
	at_least "goodput, kb/s," "$(value 4 goodput_kbps)" $((rate_mbit * 850))
	at_most "RTT, us," "$(value 4 rtt_us)" $(($(full_us) / 2))
}

# From an interface that governs to one that does not
move_away() {
	set_lambda cell0 150
	traffic "" 4 "$(route_commands srv1 10.77.1.1 wifi0 10.77.1.2)" 3 true 4
	at_most "RTT, us, before" "$(value 1 rtt_us)" $(($(full_us) / 2))
	at_least "RTT, us, after" "$(value 3 rtt_us)" $(($(full_us) / 2))
	at_least "goodput, kb/s," "$(value 3 goodput_kbps)" $((rate_mbit * 850))
}

# Writes the values in turn until the file $out.storm goes. It rests now and then,
# for kernels whose time stands still while they are busy.
flip() { # file value...
	file=$1
	shift
	while [ -e "$out.storm" ]; do
		for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			for number in "$@"; do
				echo "$number" >"$file"
			done
		done
		sleep 0.05
	done
}

rename_around() {
	while [ -e "$out.storm" ]; do
		on "$phone" ip link set wifi0 down
		on "$phone" ip link set wifi0 name other0
		on "$phone" ip link set other0 name wifi0
		sleep 0.1
	done
}

# Every setting as fast as it goes, under eight downloads; then all is well.
storm() {
	seconds=${DRWA_STORM_S:-5}
	before=$(cat $classic)
	: >"$out.storm"
	flip $classic Y N &
	stormers=$!
	rename_around &
	stormers="$stormers $!"
	export out
	for interface in cell0 wifi0; do
		on "$phone" "$0" flip $conf/$interface/tcp_drwa_lambda 150 0 1000 100 \
			2>/dev/null &
		stormers="$stormers $!"
	done
	traffic "-n 8" "$seconds"
	at_least "goodput in the storm, kb/s," "$(value 1 goodput_kbps)" $((rate_mbit * 500))
	rm "$out.storm"
	wait $stormers
	echo "$before" >$classic
	governs ""
}

# The liar may hurt itself, but neither the download beside it nor the memory.
hostile() { # lie
	set_lambda cell0 150
	ip link add peer0 netns "$server" type veth peer name evil0 netns "$phone" || fail veth
	raise "$server" peer0
	raise "$phone" evil0
	on "$phone" ip addr add 10.77.2.2/24 dev evil0
	on "$phone" ip neigh replace 10.77.2.1 dev evil0 lladdr 02:00:00:00:00:01 nud permanent
	on "$server" ip link set peer0 address 02:00:00:00:00:01
	on "$server" tc qdisc replace dev peer0 root netem rate 20mbit delay 20ms limit 1000
	set_lambda evil0 150
	"${tool}_peer" "$server" peer0 "$phone" 10.77.2.1 3 "$1" >"$out.peer" 2>&1 &
	traffic "" 1 true 2
	wait $! || fail "$(tail -n 1 "$out.peer")"
	at_least "goodput beside it, kb/s," "$(value 2 goodput_kbps)" $((rate_mbit * 850))
	at_most "RTT beside it, us," "$(value 2 rtt_us)" $(($(full_us) / 2))
	mv "$out.peer" "$out"
	at_least "the peer's buffer" "$(value 1 rcvbuf_max)" 1
	at_most "the peer's buffer" "$(value 1 rcvbuf_max)" $((16 << 20))
	at_most "the peer's memory" "$(value 1 rmem_max)" $(($(value 1 rcvbuf_max) * 9 / 8))
	case $1 in
	nothing | tsecr_* | bursts)
		at_least "bytes from the peer" "$(value 1 received)" 200000
		;;
	esac
}

kernel_log() {
	if ! dmesg >/dev/null 2>&1; then
		skip "no dmesg"
		return
	fi
	complaints=$(dmesg | tail -n "+$((log_lines + 1))" |
		grep -E 'WARNING:|BUG|KASAN|KCSAN|UBSAN|INFO: |Oops|Call Trace' | head -n 1)
	[ -z "$complaints" ] || fail "$complaints"
}

quit() {
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

if [ "$1" = flip ]; then
	shift
	flip "$@"
	exit 0
fi

echo "TAP version 13"
[ "$(id -u)" = 0 ] || quit "needs root"
for command in ip tc nsenter unshare "$tool" "${tool}_peer"; do
	command -v "$command" >/dev/null || quit "needs $command"
done
out=$(mktemp) || quit "needs a place for files"
server=
phone=
trap 'no_network' EXIT
trap 'exit 1' HUP INT TERM
network || quit "cannot make name spaces with veth"
has "$phone" $conf/cell0/tcp_drwa_lambda || quit "the kernel lacks DRWA"
no_network

log_lines=$(dmesg 2>/dev/null | wc -l)
[ $# -gt 0 ] || set -- $tests
echo "1..$#"
failed=0
count=0
for name in "$@"; do
	count=$((count + 1))
	why=
	slow=
	skipped=
	address=
	out=$(mktemp)
	network || fail "no network"
	case " $knob_tests kernel_log " in
	*" $name "*)
		skipped=
		;;
	esac
	if [ -z "$skipped" ]; then
		case $name in
		lie_*) hostile "${name#lie_}" ;;
		*) "$name" ;;
		esac
	fi
	no_network
	if [ -n "$skipped" ]; then
		echo "ok $count $name # SKIP $skipped"
	elif [ -n "$why" ]; then
		echo "not ok $count $name # $why"
		failed=1
	elif [ -n "$slow" ]; then
		echo "ok $count $name # XFAIL slow machine: $slow"
	else
		echo "ok $count $name"
	fi
done
exit $failed
