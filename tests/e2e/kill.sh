#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kill -9 and SIGSTOP of anybody at any moment.  $1: the program made of kill.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

kills=100
stops=20
daemons=20
limit=110
if [ "${SF_TEST_LONG:-0}" = 1 ]; then
	kills=1000
	stops=300
	daemons=300
	limit=1100
fi
check "$kills kills among 4 pairs" "^$kills kills, 0 failures" \
	"$1" kill "$kills"
check_nothing_left
check_no_memory
check "$stops processes are stopped" "^$stops kills, 0 failures" \
	"$1" stop "$stops"
check_nothing_left
check_no_memory
check "the daemon is killed $daemons times" "^$daemons kills, 0 failures" \
	"$1" daemon "$daemons"
# There may be no daemon now, and nothing that could be looked at.
pingpong -n 1000
check_nothing_left
check_no_memory
summary
