#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The same programs under valgrind, which may not find errors; $1: a program
# that was built with ASan.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

command -v valgrind >/dev/null || die "no valgrind; run scripts/setup --tests"
limit=120
under=(valgrind -q --error-exitcode=99 --leak-check=no
	"--suppressions=$e2e/perftest.supp")

check "ibv_devices" 'sfab0' ibv_devices
check "ibv_devinfo -v" 'PORT_ACTIVE' ibv_devinfo -v
pingpong -n 100
pingpong -n 20 -e -s 100000
perf ib_send_lat -n 50
perf ib_write_bw -n 20 -s 65536
perf ib_read_lat -n 50
perf ib_atomic_lat -n 50

# One side only: its memory is reached in other ways.
cases_under=("${under[@]}")
under=()
: >"$work/client"
port=$(free_port)
cases=$((cases + 1))
under_sfnic "${cases_under[@]}" ibv_rc_pingpong -p "$port" \
	>"$work/server" 2>&1 &
server=$!
pids=("$server")
if wait_listening "$port" "$server" 60 &&
	under_sfnic ibv_rc_pingpong -p "$port" 127.0.0.1 >"$work/client" 2>&1 &&
	wait "$server"; then
	echo "ok      only the server under valgrind"
else
	fail "only the server under valgrind"
	cat "$work/server" "$work/client"
fi
pids=()

check "a program under ASan" ' cases, all right$' "$1"

check_nothing_left
summary
