#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs on queue pairs other than plain RC.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
fabric=(--link-layer "$layer")
gid=()
xgid=()
[ "$layer" = infiniband ] || gid=(-g 0) xgid=(-x 0)

verbs_pingpong()
{
	pair 'iters in [0-9.]+ seconds = [0-9.]+ usec/iter' "$@" "${gid[@]}"
}

verbs_pingpong ibv_srq_pingpong -c
verbs_pingpong ibv_srq_pingpong -e -c -q 4
verbs_pingpong ibv_srq_pingpong -r 60 -q 1 -n 5000
perf ib_send_bw "${xgid[@]}" --use-srq
perf ib_send_bw "${xgid[@]}" --use-srq -q 8 -e
perf ib_send_lat "${xgid[@]}" --use-srq

verbs_pingpong ibv_ud_pingpong -c
verbs_pingpong ibv_ud_pingpong -e -c -s 1024 -n 5000
perf ib_send_lat "${xgid[@]}" -c UD
perf ib_send_lat "${xgid[@]}" -c UD -e -s 64
perf ib_send_bw "${xgid[@]}" -c UD
perf ib_send_bw "${xgid[@]}" -c UD -a -n 100
perf ib_send_bw "${xgid[@]}" -c UD -I 64 -s 32

verbs_pingpong ibv_uc_pingpong -c
verbs_pingpong ibv_uc_pingpong -e -c -s 65536
perf ib_send_lat "${xgid[@]}" -c UC
perf ib_send_bw "${xgid[@]}" -c UC -q 4
perf ib_write_lat "${xgid[@]}" -c UC
perf ib_write_bw "${xgid[@]}" -c UC -a -n 50
perf ib_send_bw "${xgid[@]}" -c UC --use-srq

check_nothing_left
summary
