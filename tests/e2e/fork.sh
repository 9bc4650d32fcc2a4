#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fork, exec and threads around open devices.  $1: the program made of fork.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

limit=120
check "fork, exec, threads" ' cases$' "$1" all
check "after ibv_fork_init" ' cases$' "$1" all init
export SFNIC_MEMORY=call
check "memory by system call" ' cases$' "$1" all
unset SFNIC_MEMORY
if [ "${SF_TEST_LONG:-0}" = 1 ]; then
	for i in $(seq 20); do
		check "once more, $i" ' cases$' "$1" all
	done
fi
check_nothing_left
check_no_memory
summary
