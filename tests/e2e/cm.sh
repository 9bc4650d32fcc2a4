#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# librdmacm's programs, and perftest with -R.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "${1:-infiniband}")

listeners()
{
	"$sfnic" stat --json 2>/dev/null |
		sed -n 's/.*"cm_listeners": \([0-9]*\).*/\1/p'
}

# start_server PROGRAM ARGS...: until it listens; its pid in $server.
start_server()
{
	local i
	# The one before may have been killed: not that one is waited for.
	for i in $(seq 400); do
		[ "$(listeners)" = 1 ] || break
		sleep 0.05
	done
	# Its output is looked at while it runs.
	under_sfnic stdbuf -oL "$@" >"$work/server" 2>&1 &
	server=$!
	pids=("$server")
	for i in $(seq 400); do
		[ "$(listeners)" = 1 ] && return
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	echo "does not listen after $i looks" >>"$work/server"
}

# start_talker PATTERN PROGRAM ARGS...: until it has printed a line like that.
start_talker()
{
	local pattern=$1
	shift
	under_sfnic stdbuf -oL "$@" >"$work/server" 2>&1 &
	server=$!
	pids=("$server")
	for _ in $(seq 400); do
		grep -qE -- "$pattern" "$work/server" && return
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	echo "no line like '$pattern'" >>"$work/server"
}

# group ARGS...: mckey as a receiver, then as a sender that both have the group.
group()
{
	local rc=0 server_rc=0
	start_talker 'joined dgid' mckey "$@"
	under_sfnic mckey "$@" -s >"$work/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || kill_program "$server"
	wait "$server" || server_rc=$?
	pids=()
	grep -q 'data transfers complete' "$work/server" || server_rc=1
	verdict "mckey $*" "$rc" "$server_rc"
}

# The program that the shell $1 runs, behind timeout.
kill_program()
{
	local p
	for p in $(pgrep -P "$1"); do
		# shellcheck disable=SC2046 # words
		kill -9 $(pgrep -P "$p") 2>/dev/null || true
	done
}

# verdict WHAT STATUS...: all of them 0
verdict()
{
	local what=$1
	shift
	cases=$((cases + 1))
	if [[ "$*" =~ ^[0\ ]*$ ]]; then
		echo "ok      $what"
		return
	fi
	fail "$what: status $*, wanted 0"
	sed 's/^/        server | /' "$work/server"
	sed 's/^/        client | /' "$work/client"
}

# run_pair "SERVER" "CLIENT" [PATTERN]: both end with 0, the client prints a line
# like that; sets $rc, $server_rc, $found.
run_pair()
{
	rc=0 server_rc=0 found=0
	# shellcheck disable=SC2086 # words
	start_server $1
	# shellcheck disable=SC2086
	under_sfnic $2 >"$work/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || kill_program "$server"
	wait "$server" || server_rc=$?
	pids=()
	[ -z "${3:-}" ] || grep -qE -- "$3" "$work/client" || found=1
}

cm_pair()
{
	local rc server_rc found
	run_pair "$@"
	verdict "$2" "$rc" "$server_rc" "$found"
}

# cm_client "SERVER" "CLIENT" [COUNT]: a server that never ends, COUNT clients.
cm_client()
{
	local rc=0 i
	# shellcheck disable=SC2086
	start_server $1
	for i in $(seq "${3:-1}"); do
		# shellcheck disable=SC2086
		under_sfnic $2 >"$work/client" 2>&1 || rc=$?
	done
	kill_program "$server"
	wait "$server" || true
	pids=()
	verdict "$2, $i times" "$rc"
}

cm_pair "rping -s -v -C 5 -a 127.0.0.1" "rping -c -v -C 5 -a 127.0.0.1" \
	'ping data: rdma-ping-4:'
cm_pair "rping -s -V -C 200 -S 4000 -p 7400" \
	"rping -c -V -C 200 -S 4000 -p 7400 -a 127.0.0.1"
cm_pair "rping -s -C 3 -a ::1" "rping -c -C 3 -a ::1"
cm_client "rping -s -P" "rping -c -C 3 -a 127.0.0.1" 3
cm_pair "ucmatose" "ucmatose -s 127.0.0.1" 'return status 0'
cm_pair "ucmatose -c 20 -C 5" "ucmatose -s 127.0.0.1 -c 20 -C 5" \
	'return status 0'
cm_pair "ucmatose -m" "ucmatose -s 127.0.0.1 -m" 'return status 0'
cm_client "cmtime" "cmtime -s 127.0.0.1 -c 50"
cm_pair "rdma_server" "rdma_client -s 127.0.0.1"
cm_pair "rdma_xserver -c r" "rdma_xclient -s 127.0.0.1 -c r"
cm_pair "rdma_xserver -c x" "rdma_xclient -s 127.0.0.1 -c x"
cm_pair "udaddy" "udaddy -s 127.0.0.1" 'return status 0'
cm_pair "udaddy -b ::1 -c 10 -C 5 -S 200" "udaddy -s ::1 -c 10 -C 5 -S 200" \
	'return status 0'
group -m 239.1.2.3
group -m ff0e::1:99
group -m 239.1.2.4 -c 5 -C 3 -b 127.0.0.1
group -M ff12::7 -b 127.0.0.1
cm_pair "riostream -T b -I 10 -C 100 -S 1000" \
	"riostream -s 127.0.0.1 -T b -I 10 -C 100 -S 1000"
cm_pair "rstream -T b -I 10 -C 100 -S 1000" \
	"rstream -s 127.0.0.1 -T b -I 10 -C 100 -S 1000"

# A datagram rsocket names itself by LID alone: there is none on Ethernet.
if [ "${1:-infiniband}" = infiniband ]; then
	rc=0
	start_talker '' udpong -b 127.0.0.1
	for _ in $(seq 100); do
		ss -lun 2>/dev/null | grep -q ':7174 ' && break
		sleep 0.05
	done
	under_sfnic udpong -s 127.0.0.1 -S 100 -C 100 >"$work/client" 2>&1 ||
		rc=$?
	kill_program "$server"
	wait "$server" || true
	pids=()
	grep -qE 'custom +100 +100 ' "$work/client" || rc=1
	verdict udpong "$rc"
fi

head -c 3000000 /dev/urandom >"$work/in"
cm_client rcopy "rcopy $work/in 127.0.0.1:$work/copy"
cases=$((cases + 1))
if cmp -s "$work/in" "$work/copy"; then
	echo "ok      rcopy: the copy is the same"
else
	fail "rcopy: the copy is not the same"
fi

for program in ib_send_lat ib_send_bw ib_write_lat ib_write_bw \
	ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do
	# Between its two connections perftest's server does not listen for a
	# moment; its client then uses what it has freed when it tries again.
	for _ in 1 2 3; do
		run_pair "$program -R -F -n 200" \
			"$program -R -F -n 200 127.0.0.1" \
			"$perf_line"
		grep -q 'REJECTED; error: 8' "$work/client" || break
	done
	verdict "$program -R" "$rc" "$server_rc" "$found"
done

# Nobody listens.
cases=$((cases + 1))
if under_sfnic rping -c -C 1 -a 127.0.0.1 -p 7999 >"$work/out" 2>&1; then
	fail "rping without a server is no error"
elif grep -q 'RDMA_CM_EVENT_REJECTED.* 8$' "$work/out"; then
	echo "ok      nobody listens: rejected"
else
	fail "rping without a server: $(cat "$work/out")"
fi

# One side dies: the other one hears of it.
start_server rping -s -d -a 127.0.0.1
under_sfnic rping -c -a 127.0.0.1 >"$work/client" 2>&1 &
client=$!
pids+=("$client")
for _ in $(seq 200); do
	grep -q ESTABLISHED "$work/server" && break
	sleep 0.05
done
kill_program "$client"
wait "$client" 2>/dev/null || true
rc=0
wait "$server" || rc=$?
pids=()
cases=$((cases + 1))
if grep -qE 'DISCONNECTED|completion failed' "$work/server" && [ "$rc" -ne 124 ]; then
	echo "ok      a peer that is killed is noticed"
else
	fail "a peer that is killed: status $rc"
	sed 's/^/        server | /' "$work/server" | tail -20
fi

check_nothing_left

# Nobody has the address.
cases=$((cases + 1))
under_sfnic rping -c -C 1 -a 198.51.100.7 >"$work/out" 2>&1 || true
if grep -q 'RDMA_CM_EVENT_ADDR_ERROR' "$work/out"; then
	echo "ok      an address of nobody: ADDR_ERROR"
else
	fail "an address of nobody: $(cat "$work/out")"
fi

# Addresses of the second device; one of them is on no interface.
"$sfnic" down --force >/dev/null 2>&1 || true
fabric+=(--devices 2 --addr 127.0.0.2=1,198.51.100.7=1)
cm_pair "rping -s -C 3 -a 127.0.0.2" "rping -c -C 3 -a 127.0.0.2"
cm_pair "rping -s -C 3" "rping -c -C 3 -a 198.51.100.7"
cases=$((cases + 2))
if "$sfnic" stat | grep -A1 '^sfab1 port 1:' | grep -q xmit_bytes &&
	! "$sfnic" stat | grep -A1 '^sfab0 port 1:' | grep -q xmit_bytes; then
	echo "ok      it was the second device that worked"
else
	fail "it was not the second device that worked"
	"$sfnic" stat | sed 's/^/        | /'
fi
if "$sfnic" devices >"$work/out" &&
	grep -qE '^127\.0\.0\.1 +sfab0$' "$work/out" &&
	grep -qE '^198\.51\.100\.7 +sfab1$' "$work/out"; then
	echo "ok      sfnic devices shows whose addresses they are"
else
	fail "sfnic devices: $(cat "$work/out")"
fi
check_nothing_left
summary
