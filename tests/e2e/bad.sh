#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What bad things get.  $1: the program made of bad.c, $2: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

limit=150
fabric=(--link-layer "$2")
gid=-1
[ "$2" = infiniband ] || gid=0

check "one mistake a case" ' cases, 0 failures' "$1" "$gid"
if [ "${SF_TEST_LONG:-0}" = 1 ]; then
	check "all queue pairs of a device" ' cases, 0 failures' \
		"$1" "$gid" all
fi

# No write access where the daemon meets its programs: one line, no device.
cases=$((cases + 1))
if SFNIC_DIR=/proc/nowhere "$sfnic" run -- ibv_devices >"$work/out" 2>&1; then
	fail "a runtime directory that cannot be made is no error"
elif [ "$(wc -l <"$work/out")" -eq 1 ]; then
	echo "ok      no runtime directory: $(cat "$work/out")"
else
	fail "a runtime directory that cannot be made: not one line"
	cat "$work/out"
fi

check_nothing_left
summary
