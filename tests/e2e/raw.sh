#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Raw packets: perftest's programs.  They talk to each other by frames only, so
# a server is ready when its steering rule is there and its receives are posted.
# $1: the program that posts by itself.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer ethernet)
limit=60
server=02:00:00:00:00:01
client=02:00:00:00:00:02

# A rule is there, and $1 receives.
ready()
{
	for _ in $(seq 300); do
		"$sfnic" stat >"$work/stat" 2>&1 || true
		if grep -qE " $1 receives posted" "$work/stat" &&
			"$sfnic" stat --json 2>&1 | grep -q '"flows": 1,'; then
			return 0
		fi
		sleep 0.1
	done
	return 1
}

# raw RECEIVES PROGRAM ARGS...: server and client with the same arguments.
raw()
{
	local receives=$1 program=$2 pid rc=0 server_rc=0
	shift 2
	cases=$((cases + 1))
	under_sfnic "$program" --server -F -B "$server" -E "$client" "$@" \
		>"$work/server" 2>&1 &
	pid=$!
	pids=("$pid")
	if ready "$receives"; then
		under_sfnic "$program" --client -F -B "$client" -E "$server" \
			"$@" >"$work/client" 2>&1 || rc=$?
	else
		echo "not started: the server is not ready" >"$work/client"
		rc=125
	fi
	[ "$rc" -eq 0 ] || kill "$pid" 2>/dev/null || true
	wait "$pid" || server_rc=$?
	pids=()
	if [ "$rc" -eq 0 ] && [ "$server_rc" -eq 0 ] &&
		grep -qE -- "$perf_line" "$work/client"; then
		echo "ok      $program $*"
		return
	fi
	fail "$program $*: client $rc, server $server_rc, wanted a result"
	sed 's/^/        server | /' "$work/server"
	sed 's/^/        client | /' "$work/client"
}

check "$(basename "$1")" ' cases, all right' "$1"
sed 's/^/        | /' "$work/out"

# As many receives as frames: a server may look later than they come.  No -e:
# these programs wait for events that they have not asked for.
raw 100 raw_ethernet_lat -n 1000 -r 100 -s 64
raw 100 raw_ethernet_lat -n 1000 -r 100 -s 1024
raw 100 raw_ethernet_lat -n 500 -r 100 -s 64 -I 64
ip=(-J 10.0.0.1 -j 10.0.0.2 -K 1000 -k 2000)
raw 1000 raw_ethernet_bw -n 1000 -r 1000 -s 1024
raw 1000 raw_ethernet_bw -n 1000 -r 1000 -s 1024 "${ip[@]}"
raw 1000 raw_ethernet_bw -n 1000 -r 1000 -s 1024 "${ip[@]}" --tcp
check 'raw_ethernet_fs_rate' '^1000 ' raw_ethernet_fs_rate --server -F \
	-B "$server" -E "$client" -n 1000

check_nothing_left
check_no_memory
summary
