#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A program that says itself what it found.  $1: the program, $2: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "$2")
limit=150

check "$(basename "$1")" ' cases, all right' "$1"
sed 's/^/        | /' "$work/out"

check_nothing_left
summary
