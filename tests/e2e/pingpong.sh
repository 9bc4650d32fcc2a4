#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# ibv_rc_pingpong.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "${1:-infiniband}")
gid=()
[ "${1:-infiniband}" = infiniband ] || gid=(-g 0)

pingpong "${gid[@]}"
pingpong "${gid[@]}" -e
pingpong "${gid[@]}" -c
pingpong "${gid[@]}" -n 100000
pingpong "${gid[@]}" -n 20000 -e -s 64
for size in 1 2 64 1000 4095 65536 1048576 8388608; do
	pingpong "${gid[@]}" -s "$size" -n 200 -c
done
for mtu in 256 512 1024 2048 4096; do
	pingpong "${gid[@]}" -m "$mtu" -s 10000
done
pingpong "${gid[@]}" -r 2 -n 5000
# With a GID the path is global, also on InfiniBand.
[ "${#gid[@]}" -gt 0 ] || pingpong -g 0

check_nothing_left
summary
