#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One side is killed: the other ends with an error, soon, and nothing is left.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# kill_one SIDE PROGRAM ARGS...
kill_one()
{
	local side=$1 port server client victim other rc=0
	shift
	cases=$((cases + 1))
	port=$(free_port)
	# exec: the pid is that of the program.
	(exec "$sfnic" run -- "$@" -p "$port" >"$work/server" 2>&1) &
	server=$!
	pids=("$server")
	wait_listening "$port" "$server" || {
		fail "$*: no server"
		cat "$work/server"
		return
	}
	(exec "$sfnic" run -- "$@" -p "$port" 127.0.0.1 \
		>"$work/client" 2>&1) &
	client=$!
	pids+=("$client")
	sleep 1
	victim=$client other=$server
	[ "$side" = client ] || { victim=$server other=$client; }
	kill -0 "$other" 2>/dev/null || {
		fail "$*: over before anybody was killed"
		cat "$work/server" "$work/client"
		return
	}
	kill -9 "$victim"
	wait "$victim" 2>/dev/null || true
	for _ in $(seq 300); do
		kill -0 "$other" 2>/dev/null || break
		sleep 0.1
	done
	if kill -0 "$other" 2>/dev/null; then
		fail "$*: $side killed, the other still runs after 30 s"
		kill -9 "$other"
		cat "$work/server" "$work/client"
	fi
	wait "$other" 2>/dev/null || rc=$?
	pids=()
	if [ "$rc" -eq 0 ] || [ "$rc" -gt 128 ]; then
		fail "$*: $side killed, the other ended with $rc"
		cat "$work/server" "$work/client"
	else
		echo "ok      $side of $* killed: the other ended with $rc"
	fi
}

kill_one server ib_send_bw -F -D 20
kill_one server ib_write_bw -F -D 20
kill_one server ib_read_bw -F -D 20
kill_one server ib_atomic_bw -F -D 20
# Who only waits for a message is told, too.
for side in server client; do
	kill_one "$side" ib_send_lat -F -D 20
	kill_one "$side" ib_send_lat -F -e -n 2000000
done
kill_one client ib_send_bw -F -D 20

check_nothing_left
pingpong -n 1000
summary
