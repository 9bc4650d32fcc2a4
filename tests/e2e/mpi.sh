#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Open MPI over UCX.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "${1:-infiniband}" --linger 30)
quiet mpicc -O1 -o "$work/mpi" "$e2e/mpi.c" || die "mpicc failed"

# mpi RANKS TRANSPORT
mpi()
{
	check "mpirun -n $1 on $2" "^$1 ranks, 0 wrong" \
		mpirun --allow-run-as-root --oversubscribe -n "$1" \
		--mca pml ucx --mca osc ucx \
		--mca pml_ucx_tls any --mca pml_ucx_devices any \
		-x "UCX_TLS=$2,self" -x UCX_NET_DEVICES=sfab0:1 "$work/mpi"
}

mpi 2 rc
mpi 4 rc
mpi 4 ud
check_nothing_left
summary
