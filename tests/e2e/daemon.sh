#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon: killed under programs, started by many at once, started by one
# that is killed.  $1: the program made of daemon.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# The process number of the daemon, or nothing.
daemon_pid()
{
	"$sfnic" stat --json 2>/dev/null | sed -n 's/^{"daemon": \([0-9]*\),.*/\1/p'
}

# How many serve this fabric, also such that nobody can reach.
daemons()
{
	pgrep -fc "^[^ ]*sfnicd --dir $SFNIC_DIR " || true
}

# One, soon: some are about to leave.
one_daemon()
{
	for _ in $(seq 50); do
		[ "$(daemons)" -ne 1 ] || return 0
		sleep 0.1
	done
	echo "$(daemons) daemons"
	return 1
}

# kill_daemon_under WANTED PID LOG: kills it under a program that has printed
# something like WANTED.
kill_daemon_under()
{
	for _ in $(seq 200); do
		grep -q "$1" "$3" && break
		sleep 0.1
	done
	kill -9 "$(daemon_pid)"
	for _ in $(seq 400); do
		kill -0 "$2" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

# ---- killed ----------------------------------------------------------

cases=$((cases + 1))
rc=0
"$sfnic" run -- "$1" >"$work/out" 2>&1 &
pids=($!)
kill_daemon_under '^ready' "${pids[0]}" "$work/out" || fail "it does not end"
wait "${pids[0]}" || rc=$?
if [ "$rc" -eq 0 ] && grep -q '^done' "$work/out"; then
	echo "ok      the daemon is killed: fatal event, errors, no hang"
else
	fail "the daemon is killed: status $rc"
	cat "$work/out"
fi
pingpong -n 1000

for program in "ibv_rc_pingpong -e -n 100000000" "ib_send_bw -F -D 60"; do
	cases=$((cases + 1))
	port=$(free_port)
	# shellcheck disable=SC2086
	(exec "$sfnic" run -- $program -p "$port" >"$work/server" 2>&1) &
	pids=($!)
	wait_listening "$port" "${pids[0]}" || fail "no server"
	# shellcheck disable=SC2086
	(exec "$sfnic" run -- $program -p "$port" 127.0.0.1 \
		>"$work/client" 2>&1) &
	pids+=($!)
	sleep 1
	ok=1
	kill_daemon_under '' "${pids[0]}" "$work/server" || ok=0
	for _ in $(seq 100); do
		kill -0 "${pids[1]}" 2>/dev/null || break
		sleep 0.1
	done
	! kill -0 "${pids[1]}" 2>/dev/null || ok=0
	if [ "$ok" = 1 ]; then
		echo "ok      $program ends when the daemon is killed"
	else
		fail "$program runs on without a daemon"
		cat "$work/server" "$work/client"
		kill -9 "${pids[@]}" 2>/dev/null || true
	fi
	wait "${pids[@]}" 2>/dev/null || true
	pids=()
done
pingpong -n 1000

# ---- started ---------------------------------------------------------

for round in 1 2; do
	cases=$((cases + 1))
	"$sfnic" down --force >/dev/null 2>&1 || true
	# What was killed leaves its socket and its tree.
	if [ "$round" -gt 1 ]; then
		"$sfnic" run -- true
		kill -9 "$(daemon_pid)"
	fi
	many=()
	for i in $(seq 50); do
		"$sfnic" run -- ibv_devices >"$work/many$i" 2>&1 &
		many+=($!)
	done
	bad=0
	for i in "${many[@]}"; do
		wait "$i" || bad=$((bad + 1))
	done
	found=$(cat "$work"/many* | grep -c 'sfab0' || true)
	if [ "$bad" -eq 0 ] && [ "$found" -eq 50 ] && one_daemon; then
		echo "ok      50 programs at once, one daemon"
	else
		fail "50 at once: $bad failed, $found found it," \
			"$(daemons) daemons"
		sort "$work"/many* | uniq -c | sort -n | tail -5
	fi
done

# Whoever starts it is killed; another one comes at once.
cases=$((cases + 1))
bad=0
for i in $(seq 15); do
	"$sfnic" down --force >/dev/null 2>&1 || true
	"$sfnic" run -- true >/dev/null 2>&1 &
	victim=$!
	disown
	sleep "0.00$((RANDOM % 10))"
	kill -9 "$victim" 2>/dev/null || true
	"$sfnic" run -- ibv_devices >"$work/out" 2>&1 || bad=$((bad + 1))
	grep -q sfab0 "$work/out" || bad=$((bad + 1))
	one_daemon || bad=$((bad + 1))
done
if [ "$bad" -eq 0 ]; then
	echo "ok      the one who starts the daemon is killed"
else
	fail "starters killed: $bad of $i went wrong"
fi

# ---- leaves ----------------------------------------------------------

# Not while somebody is connected who may open a device again.
cases=$((cases + 1))
"$sfnic" down --force >/dev/null 2>&1 || true
if "$sfnic" run --linger 1 -- "$1" reopen >"$work/out" 2>&1; then
	echo "ok      a device can be opened again after a long pause"
else
	fail "a device cannot be opened after a long pause"
	cat "$work/out"
fi

check_nothing_left
summary
