#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Each allocation and each request fails once.  $1: the program made of alloc.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# Memory that waits in a thread's cache counts as in use.
under=(env GLIBC_TUNABLES=glibc.malloc.tcache_count=0)
check "each allocation fails" 'nothing is left' "$1" "$sfnic"
check_nothing_left
check_no_memory
summary
