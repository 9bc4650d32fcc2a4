#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Random work requests against a model, each way to reach memory.  $1: the
# program made of model.c, $2: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "$2")
gid=-1
[ "$2" = infiniband ] || gid=0
time=4
[ "${SF_TEST_LONG:-0}" = 0 ] || time=60
limit=$((time + 60))

for memory in auto uffd call; do
	export SFNIC_MEMORY=$memory
	check "memory: $memory" 'all as predicted' "$1" "${SF_SEED:-0}" \
		"$time" "$gid"
	cat "$work/out"
done

check_nothing_left
summary
