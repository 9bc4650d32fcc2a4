#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every kind of memory, on every way to it.  $1: the program, $2: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "$2")
limit=150

# memfd: a memory file stands in for a dmabuf, which few machines have.
for way in auto uffd call memfd; do
	export SFNIC_MEMORY=$way
	check "kinds of memory, $way" ' cases, all right' "$1"
done

check_nothing_left
summary
