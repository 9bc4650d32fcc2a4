#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs that others wrote, over rdma_cm: qperf, fio, libfabric.  $1: link
# layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
fabric=(--link-layer "$layer")

for program in qperf fio fi_pingpong; do
	command -v "$program" >/dev/null && continue
	echo "no $program: run scripts/setup --long"
	exit 77
done

# The program that the shell $1 runs, behind timeout.
kill_program()
{
	local p
	for p in $(pgrep -P "$1"); do
		# shellcheck disable=SC2046 # words
		kill -9 $(pgrep -P "$p") 2>/dev/null || true
	done
}

# judge PATTERN "SERVER" "CLIENT": both end with 0, the client prints such a
# line.  The server listens when its port $port is taken (rdma_cm or TCP).
judge()
{
	local rc=0 server_rc=0 server
	cases=$((cases + 1))
	# shellcheck disable=SC2086 # words
	under_sfnic $2 >"$work/server" 2>&1 &
	server=$!
	pids=("$server")
	for _ in $(seq 400); do
		if ss -Hltn "sport = :$port" | grep -q . ||
			"$sfnic" stat --json 2>/dev/null |
			grep -q '"cm_listeners": [1-9]'; then
			break
		fi
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	# shellcheck disable=SC2086
	under_sfnic $3 >"$work/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || kill_program "$server"
	wait "$server" || server_rc=$?
	pids=()
	if [ "$rc" -eq 0 ] && [ "$server_rc" -eq 0 ] &&
		grep -qE -- "$1" "$work/client"; then
		echo "ok      $3"
		return
	fi
	fail "$3: client $rc, server $server_rc, wanted a line like '$1'"
	sed 's/^/        server | /' "$work/server"
	sed 's/^/        client | /' "$work/client"
}

rc_tests="rc_lat rc_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat
	rc_rdma_write_bw rc_compare_swap_mr rc_fetch_add_mr"
uc_tests="uc_lat uc_bw uc_rdma_write_bw"
# For datagrams qperf makes address handles of LIDs alone.
ud_tests=
[ "$layer" = ethernet ] || ud_tests="ud_lat ud_bw"

port=19765 # qperf's
limit=90
judge '[1-9].*(us|sec)$' qperf \
	"qperf 127.0.0.1 -t 1 -cm1 $rc_tests $uc_tests $ud_tests quit"
# It connects by LID alone where it does without rdma_cm.
[ "$layer" = ethernet ] || judge '[1-9].*(us|sec)$' qperf \
	"qperf 127.0.0.1 -t 1 $rc_tests $uc_tests $ud_tests quit"

limit=60
port=7480
job="fio --ioengine=rdma --port=$port --bs=16k --size=4m --iodepth=4"
for verb in write read; do
	judge 'WRITE: bw=' "$job --name=server --rw=read" \
		"$job --name=client --hostname=127.0.0.1 --rw=write --verb=$verb"
done

port=47592 # fi_pingpong's
judge '^1m +10 +=10' "fi_pingpong -c -p verbs -e msg" \
	"fi_pingpong -c -p verbs -e msg 127.0.0.1"

check_nothing_left
summary
