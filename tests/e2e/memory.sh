#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every way to reach another process' memory gives the same result.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

for way in call uffd; do
	export SFNIC_MEMORY=$way
	echo "SFNIC_MEMORY=$way"
	for size in 1 4095 4096 100000 8388608; do
		pingpong -c -n 100 -s "$size"
	done
	pingpong -e -n 1000
	perf ib_send_lat
	perf ib_write_lat
	perf ib_read_lat
	perf ib_atomic_lat
	perf ib_write_bw -n 1000 -b
	perf ib_read_bw -n 1000 -s 100001
	perf ib_atomic_bw -b
	check_nothing_left
done
summary
