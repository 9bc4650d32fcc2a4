#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a post costs a GPU, from the compiler: registers and SASS instructions of
# kernels that are one whole call each (credit check with its wait, slot, fence,
# commit, ring, error return), and the fences, atomics and doorbells in them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || [ ! -x /usr/local/cuda/bin/nvcc ] ||
	nvcc=/usr/local/cuda/bin/nvcc
[ -n "$nvcc" ] || {
	echo "no nvcc in PATH or /usr/local/cuda/bin: nothing to count"
	exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-arch=sm_90 -std=c++17 -Iinclude)
"$nvcc" "${flags[@]}" -Xptxas -v -cubin tests/bench/gda.cu -o "$work/cubin" \
	2>"$work/ptxas"
"$nvcc" "${flags[@]}" -ptx tests/bench/gda.cu -o "$work/ptx"
# A SASS instruction has 16 bytes; the sections are padded to 8 of them.
readelf -SW "$work/cubin" 2>/dev/null |
	sed -n 's/^ *\[ *[0-9]*\] \.text\.//p' |
	awk '{ print $1, $5 }' >"$work/sizes"

awk '
FILENAME ~ /ptxas$/ && /Compiling entry function/ { split($0, q, "\x27"); k = q[2] }
FILENAME ~ /ptxas$/ && /Used [0-9]+ registers/ {
	for (i = 1; i < NF; i++)
		if ($i == "Used")
			regs[k] = $(i + 1)
}
FILENAME ~ /sizes$/ { bytes[$1] = $2 }
FILENAME ~ /ptx$/ && /\.entry/ {
	k = $0; sub(/.*\.entry /, "", k); sub(/\(.*/, "", k)
	order[++kinds] = k
}
FILENAME ~ /ptx$/ && /fence|membar/ { fences[k]++ }
FILENAME ~ /ptx$/ && /atom\.(add|exch|cas)|red\./ { atomics[k]++ }
FILENAME ~ /ptx$/ && /atom\.cas/ { cas[k]++ }
function hex(s,    i, v) {
	for (i = 1; i <= length(s); i++)
		v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
	return v
}
END {
	line = "%-22s %9s %9s %7s %8s %4s\n"
	printf line, "sm_90", "registers", "SASS", "fences", "atomics", "CAS"
	for (i = 1; i <= kinds; i++) {
		k = order[i]
		printf line, k, regs[k], hex(bytes[k]) / 16, fences[k] + 0, \
			atomics[k] + 0, cas[k] + 0
	}
	print "SASS: instructions with padding. Each rings with one store."
	print "For comparison, the same measure on others (exclusive, block, " \
		"GPU):"
	print "NCCL GPI put 22/128 24/176 24/176, put+signal 24/176;" \
		" DOCA put 26/184 38/296 38/296"
}' "$work/ptxas" "$work/sizes" "$work/ptx"
