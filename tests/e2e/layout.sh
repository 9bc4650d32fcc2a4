#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A libibverbs of another layout: one line says what to install, and there is no
# device.  layout.sh STUB
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

stub=$1
fabric=(--devices 2)
advice='install the scalefabric provider package that matches your libibverbs1'

# refused STATUS PROGRAM: ends like that after one line of ours.
refused()
{
	local status=$1 rc=0
	shift
	cases=$((cases + 1))
	under_sfnic "$@" >"$work/out" 2>"$work/err" || rc=$?
	if [ "$rc" -eq "$status" ] &&
		! grep -q sfab "$work/out" &&
		[ "$(grep -c scalefabric "$work/err")" -eq 1 ] &&
		grep -q "^scalefabric: .*$advice\$" "$work/err"; then
		echo "ok      $* is told once what to install"
		return
	fi
	fail "$*: status $rc, wanted $status, no sfab and one line of advice"
	sed 's/^/        stdout | /' "$work/out"
	sed 's/^/        stderr | /' "$work/err"
}

# Without the stub, to know that it is the stub.
check "ibv_devices" sfab1 ibv_devices

# sfnic keeps what is there already.
export LD_PRELOAD=$stub
refused 0 ibv_devices
refused 255 ibv_devinfo
refused 1 ibv_rc_pingpong
unset LD_PRELOAD

check_nothing_left
summary
