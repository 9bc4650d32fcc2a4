#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs on queue pairs other than plain RC.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
fabric=(--link-layer "$layer")
gid=()
[ "$layer" = infiniband ] || gid=(-g 0)

verbs_pingpong()
{
	pair 'iters in [0-9.]+ seconds = [0-9.]+ usec/iter' "$@" "${gid[@]}"
}

xsrq_pingpong()
{
	pair '^success' ibv_xsrq_pingpong "$@" "${gid[@]}"
}

# many_clients N: a server of ibv_xsrq_pingpong and N clients at once, each of
# which has a target queue pair and all of which share an SRQ.
many_clients()
{
	local port server i client=() rc=0
	cases=$((cases + 1))
	port=$(free_port)
	under_sfnic ibv_xsrq_pingpong -p "$port" -c "$1" -n 200 "${gid[@]}" \
		>"$work/server" 2>&1 &
	server=$!
	wait_listening "$port" "$server" "$limit" || true
	for ((i = 0; i < $1; i++)); do
		under_sfnic ibv_xsrq_pingpong -p "$port" -n 200 "${gid[@]}" \
			127.0.0.1 >"$work/client$i" 2>&1 &
		client+=($!)
	done
	pids=("$server" "${client[@]}")
	for i in "${pids[@]}"; do
		wait "$i" || rc=$?
	done
	pids=()
	if [ "$rc" -eq 0 ] && grep -q '^success' "$work/server"; then
		echo "ok      ibv_xsrq_pingpong with $1 clients"
		return
	fi
	fail "ibv_xsrq_pingpong with $1 clients: $rc"
	sed 's/^/        server | /' "$work/server"
}

verbs_pingpong ibv_srq_pingpong -c
verbs_pingpong ibv_srq_pingpong -e -c -q 4
verbs_pingpong ibv_srq_pingpong -r 60 -q 1 -n 5000

verbs_pingpong ibv_ud_pingpong -c
verbs_pingpong ibv_ud_pingpong -e -c -s 1024 -n 5000

verbs_pingpong ibv_uc_pingpong -c
verbs_pingpong ibv_uc_pingpong -e -c -s 65536

xsrq_pingpong -n 500
xsrq_pingpong -e -s 1000 -n 500
xsrq_pingpong -m 256 -s 65536 -l 3 -n 100
xsrq_pingpong -i 1 -d sfab0
many_clients 3

check_nothing_left
summary
