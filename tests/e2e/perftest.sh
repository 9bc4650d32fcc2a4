#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# perftest on RC.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
fabric=(--link-layer "$layer")
gid=()
[ "$layer" = infiniband ] || gid=(-x 0)

# Of -a, -e, -b, -q 8 and -D 2 those that a program has.
while read -r program variants; do
	perf "$program" "${gid[@]}"
	for v in $variants; do
		case $v in
		# 1000 or 5000 times 8 MiB is a benchmark, not a test.
		a) perf "$program" "${gid[@]}" -a -n 25 ;;
		q) perf "$program" "${gid[@]}" -q 8 ;;
		D) perf "$program" "${gid[@]}" -D 2 ;;
		*) perf "$program" "${gid[@]}" "-$v" ;;
		esac
	done
done <<'TABLE'
ib_send_lat   a e D
ib_write_lat  a D
ib_read_lat   a e D
ib_atomic_lat e D
ib_send_bw    a e b q D
ib_write_bw   a b q D
ib_read_bw    a e b q D
ib_atomic_bw  e b q D
TABLE

perf ib_atomic_lat "${gid[@]}" -A CMP_AND_SWAP
perf ib_send_bw "${gid[@]}" -e -b -q 8
perf ib_write_bw "${gid[@]}" -s 8 -n 20000
perf ib_send_lat "${gid[@]}" -m 256 -s 10000
if [ "$layer" = infiniband ]; then
	perf ib_send_lat -x 0
fi

check_nothing_left
summary
