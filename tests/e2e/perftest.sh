#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# perftest: every program on every transport with every option that it has, with
# the old and the new way to post.
# $1: link layer.  $2: "all", or "some": every second combination of the two
# layers taken together, posted in one of the two ways.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
part=${2:-some}
fabric=(--link-layer "$layer")
gid=()
turn=0
[ "$layer" = infiniband ] || gid=(-x 0) turn=2

# one PROGRAM TRANSPORT ARGS...
one()
{
	local program=$1 transport=$2
	shift 2
	turn=$(((turn + 1) % 8))
	if [ "$part" = all ] || [ "$turn" = 1 ]; then
		perf "$program" -c "$transport" "$@" "${gid[@]}"
	fi
	if [ "$part" = all ] || [ "$turn" = 5 ]; then
		perf "$program" -c "$transport" "$@" "${gid[@]}" \
			--use_old_post_send
	fi
}

# An option's arguments.  Few iterations where many make a benchmark of it.
args_of()
{
	local program=$1 transport=$2 option=$3 size=10000
	[ "$transport" != UD ] || size=200
	case $option in
	plain) echo ;;
	a) echo -a -n 25 ;;
	I) echo -I 64 -s 64 ;;
	l) echo -l 8 ;;
	recv_l) echo -l 8 --recv_post_list 8 ;;
	q) echo -q 8 -n 1000 ;;
	eq) echo -e -b -q 8 -n 1000 ;;
	r) echo -r 64 -n 1000 ;;
	srq) echo --use-srq ;;
	srq_q) echo --use-srq -q 4 -r 2048 -n 1000 ;;
	Q) echo -Q 16 ;;
	Q1) echo -Q 1 ;;
	D) echo -D 1 -f 0 ;;
	odp) echo --odp ;;
	m) case $program in
		ib_atomic*) echo -m 256 -n 500 ;;
		*) echo -m 256 -s "$size" -n 500 ;;
		esac ;;
	s) echo -s 65536 -n 100 ;;
	s1) echo -s 1 -n 1000 ;;
	o) echo -o 1 -n 500 ;;
	A) echo -A CMP_AND_SWAP ;;
	t) echo -t 1 -n 500 ;;
	N) echo -N ;;
	*) echo "-$option" ;;
	esac
}

while read -r program transports options; do
	for transport in ${transports//,/ }; do
		for option in $options; do
			case $transport:$option in
			UD:s) continue ;;       # one packet
			UC:odp | XRC:odp) continue ;; # perftest refuses
			XRC:srq*) continue ;; # it has SRQs anyhow
			esac
			read -ra args < <(args_of "$program" "$transport" "$option")
			one "$program" "$transport" "${args[@]}"
		done
	done
done <<'TABLE'
ib_send_lat   RC,UC,UD,XRC a e I r srq odp m s D
ib_send_bw    RC,UC,UD,XRC a e I l recv_l b q eq r srq srq_q Q Q1 odp m s t N D
ib_write_lat  RC,UC,XRC    a I odp m s D
ib_write_bw   RC,UC,XRC    a I l b q Q Q1 odp m s s1 t N D
ib_read_lat   RC,XRC       a e odp m s o D
ib_read_bw    RC,XRC       a e l b q eq Q Q1 odp m s o t N D
ib_atomic_lat RC,XRC       plain e A m o D
ib_atomic_bw  RC,XRC       plain e A l b q eq Q Q1 m o t N D
TABLE

check_nothing_left
summary
