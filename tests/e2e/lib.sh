# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# What end-to-end tests share.  Each test has a fabric of its own (SFNIC_DIR)
# and takes it down at its end, with whatever it started.

e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib.sh
. "$e2e/../../scripts/lib.sh"

build=${SF_BUILD:-$SF_ROOT/build}
sfnic=$build/bin/sfnic
work=$(mktemp -d)
export SFNIC_DIR=$work/run
mkdir -m 0700 "$SFNIC_DIR"

limit=60      # seconds that a program may take
wrap=()       # in front of sfnic
under=()      # between sfnic and the program
fabric=()     # options of `sfnic run`
pids=()
cases=0
failures=0

cleanup()
{
	local p
	for p in "${pids[@]}"; do
		kill -9 "$p" 2>/dev/null || true
	done
	"${wrap[@]}" "$sfnic" down --force >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT

[ -x "$sfnic" ] || die "$sfnic is not built"

# under_sfnic PROGRAM ARGS...
under_sfnic()
{
	timeout -k 5 "$limit" "${wrap[@]}" "$sfnic" run "${fabric[@]}" -- \
		"${under[@]}" "$@"
}

fail()
{
	echo "FAILED  $*"
	failures=$((failures + 1))
}

# check WHAT PATTERN PROGRAM ARGS...: ends with 0 and prints a line like that.
check()
{
	local what=$1 pattern=$2 rc=0
	shift 2
	cases=$((cases + 1))
	under_sfnic "$@" >"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq 0 ] && grep -qE -- "$pattern" "$work/out"; then
		echo "ok      $what"
		return
	fi
	fail "$what: status $rc, wanted 0 and a line like '$pattern'"
	sed 's/^/        | /' "$work/out"
}

# pair PATTERN PROGRAM ARGS...: a server and a client with the same arguments;
# both end with 0 and the client prints a line like that.
pair()
{
	local pattern=$1 port server rc=0 server_rc=0 start=$SECONDS
	shift
	cases=$((cases + 1))
	port=$(free_port)
	under_sfnic "$@" -p "$port" >"$work/server" 2>&1 &
	server=$!
	pids=("$server")
	if wait_listening "$port" "$server" "$limit"; then
		under_sfnic "$@" -p "$port" 127.0.0.1 \
			>"$work/client" 2>&1 || rc=$?
	else
		echo "not started: the server does not listen" >"$work/client"
		rc=125
	fi
	# A client that failed may leave a server that waits for ever.
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || true
	wait "$server" || server_rc=$?
	pids=()
	if [ "$rc" -eq 0 ] && [ "$server_rc" -eq 0 ] &&
		grep -qE -- "$pattern" "$work/client"; then
		echo "ok      $* ($((SECONDS - start)) s)"
		return
	fi
	fail "$*: client $rc, server $server_rc, wanted a line like '$pattern'"
	sed 's/^/        server | /' "$work/server"
	sed 's/^/        client | /' "$work/client"
}

pingpong()
{
	pair 'iters in [0-9.]+ seconds = [0-9.]+ usec/iter' ibv_rc_pingpong "$@"
}

# What perftest prints at the end: bytes, iterations and a figure: 0.00 under valgrind, inf
# where perftest could not find out how fast its clock runs.
perf_line='^ *[0-9]+ +[1-9][0-9]*[[:space:]]+([0-9]+[.][0-9]|inf)'

# perf PROGRAM ARGS...  -F because nobody cares for CPU frequencies here.
perf()
{
	pair "$perf_line" "$1" -F "${@:2}"
}

# The fabric is quiet: nothing is left of programs that have ended.
check_nothing_left()
{
	local i
	cases=$((cases + 1))
	for i in $(seq 50); do
		"${wrap[@]}" "$sfnic" stat --json >"$work/stat" 2>&1 || true
		if ! grep -qE '"(pds|mrs|mws|dms|cqs|srqs|ahs|qps|flows|xrcds|cm_ids)": *[1-9]' "$work/stat"; then
			echo "ok      nothing is left"
			return
		fi
		sleep 0.1
	done
	fail "objects are left after $i looks"
	sed 's/^/        | /' "$work/stat"
}

# The arena has all its pages back.
check_no_memory()
{
	cases=$((cases + 1))
	for _ in $(seq 50); do
		"${wrap[@]}" "$sfnic" stat --json >"$work/stat" 2>&1 || true
		if grep -q '"arena_used": 0,' "$work/stat"; then
			echo "ok      no page is in use"
			return
		fi
		sleep 0.1
	done
	fail "pages of the arena are in use"
	sed 's/^/        | /' "$work/stat"
}

summary()
{
	echo "$((cases - failures)) of $cases passed"
	[ "$failures" -eq 0 ] && [ "$cases" -gt 0 ]
}
