#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rdma-core's own suite, as Debian ships it, with the skips that
# tests/pyverbs/skips lists.  $1: link layer; $2: how many pass at least.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=$1
suite=/usr/share/doc/rdma-core/tests
python=/usr/bin/python3 # the one that Debian's pyverbs is for
"$python" -c 'import pyverbs' 2>/dev/null ||
	die "no pyverbs; run scripts/setup --tests"
[ -d "$suite" ] || die "no $suite: documentation is left out when packages" \
	"are installed here (path-exclude in dpkg's configuration)"
cp -rL "$suite" "$work/tests"
gunzip -f "$work"/tests/*.gz

fabric=(--link-layer "$layer")
limit=280
check "pyverbs on $layer" ', 0 surprises$' \
	"$python" "$e2e/../pyverbs/judge.py" "$work/tests" \
	"$e2e/../pyverbs/skips" "$layer" --dev sfab0
cases=$((cases + 1))
passed=$(sed -n 's/^[0-9]* tests: \([0-9]*\) passed.*/\1/p' "$work/out")
if [ "${passed:-0}" -ge "$2" ]; then
	echo "ok      $passed tests pass, wanted $2"
else
	fail "$passed tests pass, wanted $2"
fi
check_nothing_left
check_no_memory
summary
