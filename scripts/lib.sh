# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# What the scripts here share.  To be sourced.

SF_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# quiet COMMAND...: output only if it fails.
quiet()
{
	local log rc=0
	log=$(mktemp)
	"$@" >"$log" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || cat "$log" >&2
	rm -f "$log"
	return "$rc"
}

# configure_and_build DIR [CMAKE OPTIONS...]
configure_and_build()
{
	local dir=$1
	shift
	quiet cmake -S "$SF_ROOT" -B "$dir" -G Ninja "$@" ||
		die "cmake did not configure $dir"
	quiet cmake --build "$dir" || die "the build in $dir failed"
}

# listening PORT: does somebody listen on that TCP port of this host?
listening()
{
	local hex
	hex=$(printf ':%04X' "$1")
	awk -v port="$hex" '
		$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
		END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# wait_listening PORT PID [SECONDS]: until PID's server listens.
wait_listening()
{
	local tries=$((${3:-20} * 20))
	while ! listening "$1"; do
		kill -0 "$2" 2>/dev/null || return 1
		[ $((tries--)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# A TCP port of loopback that is free now, from the range that the system does
# not hand out by itself.
free_port()
{
	local port
	for _ in $(seq 100); do
		port=$((20000 + RANDOM % 12000))
		if ! listening "$port"; then
			echo "$port"
			return
		fi
	done
	die "no free TCP port"
}
