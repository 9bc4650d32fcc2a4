#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A port whose cable is pulled and plugged in again.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=$1
fabric=(--link-layer "$layer" --devices 2)
gid=()
[ "$layer" = infiniband ] || gid=(-g 0)

set_port()
{
	"${wrap[@]}" "$sfnic" port "$@"
}

# expect WHAT COMMAND...: the command says so within a while.
expect()
{
	local what=$1 i
	shift
	cases=$((cases + 1))
	for i in $(seq 100); do
		if "$@" >"$work/out" 2>&1; then
			echo "ok      $what"
			return
		fi
		sleep 0.1
	done
	fail "$what"
	sed 's/^/        | /' "$work/out"
}

# Keeps the fabric there, and hears what happens to its ports.
watch()
{
	timeout "$limit" "$sfnic" run "${fabric[@]}" -- ibv_asyncwatch -d "$1" \
		>"$work/$1" 2>&1 &
	pids+=($!)
}
watch sfab0
watch sfab1
expect "programs watch" grep -q 'async event FD' "$work/sfab0"
expect "both" grep -q 'async event FD' "$work/sfab1"

port_says()
{
	under_sfnic ibv_devinfo -d sfab0 | grep -q "state:.*$1"
}

set_port sfab0 down
set_port sfab0 down
expect "the port is down" port_says PORT_DOWN
expect "sfnic devices says so" \
	sh -c "'$sfnic' devices | grep -q 'sfab0.*DOWN'"
expect "so does sysfs" under_sfnic grep -q '^1: DOWN' \
	/sys/class/infiniband/sfab0/ports/1/state

expect "port error" grep -q IBV_EVENT_PORT_ERR "$work/sfab0"

# Requests to and from it end with their retries.
fails_with()
{
	local want=$1 port server rc=0
	shift
	cases=$((cases + 1))
	port=$(free_port)
	timeout "$limit" "$sfnic" run -- "$@" -d sfab1 -p "$port" \
		>"$work/server" 2>&1 &
	server=$!
	wait_listening "$port" "$server" "$limit" || true
	under_sfnic "$@" -d sfab0 -p "$port" 127.0.0.1 >"$work/client" 2>&1 ||
		rc=$?
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	if [ "$rc" -ne 0 ] && grep -q "$want" "$work/client"; then
		echo "ok      $*: $want"
		return
	fi
	fail "$*: $rc, wanted $want"
	sed 's/^/        | /' "$work/client"
}

fails_with 'transport retry counter exceeded' ibv_rc_pingpong "${gid[@]}" -n 10

set_port sfab0 up
expect "the port is up" port_says PORT_ACTIVE
expect "port active" grep -q IBV_EVENT_PORT_ACTIVE "$work/sfab0"
# The other device's owners hear nothing.
expect "only its own" sh -c "! grep -q IBV_EVENT '$work/sfab1'"
kill "${pids[@]}"
wait "${pids[@]}" || true
pids=()
pingpong -d sfab0 "${gid[@]}"

cases=$((cases + 1))
if set_port sfab9 down 2>"$work/out" || set_port sfab0/3 down 2>>"$work/out" ||
	set_port sfab0 sideways 2>>"$work/out"; then
	fail "ports that there are not"
else
	echo "ok      ports that there are not"
fi

check_nothing_left
summary
