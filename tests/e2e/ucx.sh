#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# UCX, by its own benchmark: uct on rc_verbs and ud_verbs, ucp on both.
# $1: link layer.  $2: "few" of the operations.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

fabric=(--link-layer "${1:-infiniband}" --linger 30)
under=(env UCX_NET_DEVICES=sfab0:1)
ucx_line='^Final: +[1-9][0-9]* +[0-9.]+ '

ucx()
{
	pair "$ucx_line" ucx_perftest -n 200 -w 20 "$@"
}

uct()
{
	ucx -d sfab0:1 -x "$@"
}

ucp()
{
	under=(env UCX_NET_DEVICES=sfab0:1 "UCX_TLS=$1")
	shift
	ucx "$@"
}

if [ "${2:-}" = few ]; then
	uct rc_verbs -t am_lat -D short -s 64
	uct ud_verbs -t am_bw -D bcopy -s 900
	ucp rc -t tag_bw -s 3000000
	ucp rc -t ucp_fadd -s 8
	ucp ud -t tag_lat -s 64
	summary
	exit
fi

check "ucx_info: rc_verbs" 'Transport: rc_verbs' ucx_info -d
check "ucx_info: ud_verbs" 'Transport: ud_verbs' ucx_info -d

for data in short bcopy zcopy; do
	uct rc_verbs -t am_lat -D $data -s 64
	uct rc_verbs -t put_lat -D $data -s 64
done
uct rc_verbs -t am_bw -D bcopy -s 4000
uct rc_verbs -t put_bw -D zcopy -s 1000000
uct rc_verbs -t get -D bcopy -s 64
uct rc_verbs -t get -D zcopy -s 1000000
for op in add_lat add_mr fadd cswap; do
	uct rc_verbs -t $op -s 8
done
uct ud_verbs -t am_lat -D short -s 64
uct ud_verbs -t am_bw -D bcopy -s 900
uct ud_verbs -t am_bw -D zcopy -s 900

for op in tag_lat ucp_am_lat stream_lat ucp_put_lat ucp_get; do
	ucp rc -t $op -s 64
done
for op in ucp_add ucp_fadd ucp_swap ucp_cswap; do
	ucp rc -t $op -s 8
done
ucp rc -t tag_bw -s 3000000
ucp ud -t tag_lat -s 64
ucp ud -t tag_bw -s 300000

summary
