#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Registered memory and what programs do to it, on every way that leads to it.
# $1: the program made of regions.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

limit=120
for way in auto uffd call; do
	export SFNIC_MEMORY=$way
	check "SFNIC_MEMORY=$way" ' cases$' "$1"
done
check_nothing_left
check_no_memory
summary
