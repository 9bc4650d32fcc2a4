#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Users, devices, directories and environments that do not belong together.
# $1: the program made of container.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
limit=30
program=$1

# says WHAT STATUS PATTERN COMMAND...: that status and one line like that.
says()
{
	local what=$1 wanted=$2 pattern=$3 rc=0
	shift 3
	cases=$((cases + 1))
	timeout -k 5 "$limit" "$@" >"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq "$wanted" ] && [ "$(wc -l <"$work/out")" -eq 1 ] &&
		grep -qE -- "$pattern" "$work/out"; then
		echo "ok      $what: $(cat "$work/out")"
		return
	fi
	fail "$what: status $rc, wanted $wanted and one line like '$pattern'"
	sed 's/^/        | /' "$work/out"
}

# ---- two devices -----------------------------------------------------

# between PATTERN PROGRAM ARGS...: server on sfab0, client on sfab1.
between()
{
	local pattern=$1 port server rc=0 server_rc=0
	shift
	cases=$((cases + 1))
	port=$(free_port)
	under_sfnic "$@" -d sfab0 -p "$port" >"$work/server" 2>&1 &
	server=$!
	pids=("$server")
	wait_listening "$port" "$server" "$limit" || true
	under_sfnic "$@" -d sfab1 -p "$port" 127.0.0.1 \
		>"$work/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || true
	wait "$server" || server_rc=$?
	pids=()
	if [ "$rc" -eq 0 ] && [ "$server_rc" -eq 0 ] &&
		grep -qE -- "$pattern" "$work/client"; then
		echo "ok      $* from sfab1 to sfab0"
		return
	fi
	fail "$*: client $rc, server $server_rc"
	sed 's/^/        | /' "$work/server" "$work/client"
}

for layer in infiniband ethernet; do
	"$sfnic" down --force >/dev/null 2>&1 || true
	fabric=(--devices 2 --link-layer "$layer")
	gid=()
	[ "$layer" = infiniband ] || gid=(-g 0)
	between "$perf_line" ib_send_lat -F -n 200
	between "$perf_line" ib_write_bw -F -s 65536 -n 200
	between "$perf_line" ib_read_lat -F -n 200
	between 'usec/iter' ibv_rc_pingpong "${gid[@]}" -c -n 200
	check_nothing_left
done
"$sfnic" down --force >/dev/null 2>&1 || true
fabric=()

# ---- directories -----------------------------------------------------

run=("$sfnic" run -- ibv_devices)
odd=$work/odd
mkdir -m 0700 "$odd"
says "SFNIC_DIR is relative" 125 'must be an absolute path' \
	env SFNIC_DIR=run "${run[@]}"
says "SFNIC_DIR is too long" 125 'too long.*at most 200' \
	env "SFNIC_DIR=/tmp/$(printf '%0300d' 0)" "${run[@]}"
touch "$odd/file"
says "SFNIC_DIR is a file" 125 'is not a directory' \
	env "SFNIC_DIR=$odd/file" "${run[@]}"
says "SFNIC_DIR is below a file" 125 'Not a directory' \
	env "SFNIC_DIR=$odd/file/run" "${run[@]}"
ln -s "$SFNIC_DIR" "$odd/link"
says "SFNIC_DIR is a link" 125 'is not a directory' \
	env "SFNIC_DIR=$odd/link" "${run[@]}"
mkdir -m 0777 "$odd/open"
chmod 0777 "$odd/open"
says "SFNIC_DIR is open to others" 125 'chmod 700' \
	env "SFNIC_DIR=$odd/open" "${run[@]}"
long=$odd/$(printf "%0$((199 - ${#odd}))d" 0)
cases=$((cases + 1))
if SFNIC_DIR=$long "${run[@]}" 2>&1 | grep -q sfab0; then
	echo "ok      SFNIC_DIR of 200 characters"
else
	fail "SFNIC_DIR of 200 characters"
fi
SFNIC_DIR=$long "$sfnic" down --force >/dev/null 2>&1 || true

# Its directory is removed and made anew: a daemon that has lost it leaves the
# files of the next one alone.
cases=$((cases + 1))
rc=0
"$sfnic" run --linger 1 -- true
rm -rf "$SFNIC_DIR"
mkdir -m 0700 "$SFNIC_DIR"
"$sfnic" run -- sleep 2.5
"$sfnic" run -- ibv_devices >"$work/out" 2>&1 || rc=$?
if [ "$rc" -eq 0 ] && grep -q sfab0 "$work/out" &&
	[ -e "$SFNIC_DIR/sys/class/infiniband/sfab0" ]; then
	echo "ok      the directory is removed under a daemon"
else
	fail "the directory was removed under a daemon: status $rc"
	cat "$work/out"
	ls "$SFNIC_DIR"
fi

# ---- environments ----------------------------------------------------

check "SFNIC_DAEMON names nothing" sfab0 \
	env SFNIC_DAEMON=/nonexistent "${run[@]}"
check "sfnic run in sfnic run" sfab0 "${run[@]}"
check "three of them, sharing a fabric" 'data ok' "$sfnic" run -- \
	"$sfnic" run -- "$program" pair
libc=$(ldd "$sfnic" | awk '/libc\.so/ { print $3 }')
cases=$((cases + 1))
if LD_PRELOAD=${libc%/*}/libm.so.6 "${run[@]}" 2>&1 | grep -q sfab0; then
	echo "ok      another preload library before"
else
	fail "another preload library before"
fi
check "another preload library after" sfab0 env \
	sh -c "LD_PRELOAD=${libc%/*}/libm.so.6:\$LD_PRELOAD exec ibv_devices"
for drop in "-u LD_PRELOAD" "-u SFNIC_DIR" "-i"; do
	cases=$((cases + 1))
	rc=0
	# shellcheck disable=SC2086
	"$sfnic" run -- env $drop /usr/bin/env ibv_devices \
		>"$work/out" 2>&1 || rc=$?
	if ! grep -qE 'sfab|sfnic' "$work/out" && [ "$rc" -le 1 ]; then
		echo "ok      exec by env $drop: no device, no crash"
	else
		fail "exec by env $drop: status $rc"
		cat "$work/out"
	fi
done
check "the program clears its environment" 'data ok' "$program" bare 0
"$sfnic" down --force >/dev/null 2>&1 || true
fabric=(--linger 1)
check "it does, and the daemon has left meanwhile" 'data ok' "$program" bare 3
fabric=()

# Descriptors 0 to 2 are closed, for sfnic and for a program that starts the
# daemon again.
"$sfnic" down --force >/dev/null 2>&1 || true
cases=$((cases + 1))
rc=0
(exec <&- >&- 2>&-
	exec timeout "$limit" "$sfnic" run --linger 1 -- \
		"$program" bare 3) || rc=$?
if [ "$rc" -eq 0 ]; then
	echo "ok      descriptors 0 to 2 are closed"
else
	fail "descriptors 0 to 2 are closed: status $rc"
fi
# Who reads what a program writes sees its end, not the daemon's.
"$sfnic" down --force >/dev/null 2>&1 || true
cases=$((cases + 1))
if timeout 5 sh -c "'$sfnic' run -- true 2>&1 | cat"; then
	echo "ok      the daemon keeps no pipe open"
else
	fail "the daemon keeps its starter's pipe open"
fi
check_nothing_left
check_no_memory

# ---- two users -------------------------------------------------------

if [ "$(id -u)" -ne 0 ]; then
	summary
	exit
fi
"$sfnic" down --force >/dev/null 2>&1 || true
copy=$(mktemp -d)
trap 'cleanup; rm -rf "$copy" "${dirs[@]}"' EXIT
cp -r "$build/bin" "$build/lib" "$copy/"
chmod -R a+rX "$copy"
sfnic=$copy/bin/sfnic
named=$SFNIC_DIR
unset SFNIC_DIR
cd /
fabric=(--instance "e2e$$")
users=(65531 65532)
dirs=()
for user in "${users[@]}"; do
	dirs+=("/tmp/sfnic-$user")
done

as_user()
{
	local user=$1
	shift
	timeout -k 5 "$limit" setpriv "--reuid=$user" "--regid=$user" --clear-groups \
		env -u HOME XDG_RUNTIME_DIR= "$@"
}

# daemon_of USER: its process number, as the user sees it.
daemon_of()
{
	as_user "$1" "$sfnic" stat --json "${fabric[@]}" 2>/dev/null |
		sed -n 's/^{"daemon": \([0-9]*\),.*/\1/p'
}

# Both at once; one of them longer than it is let.
victim=${users[0]} other=${users[1]}
declare -A server client seconds=([$victim]=25 [$other]=4)
for user in "${users[@]}"; do
	port=$(free_port)
	as_user "$user" "$sfnic" run "${fabric[@]}" -- \
		ib_send_bw -F -D "${seconds[$user]}" -p "$port" >"$work/server$user" 2>&1 &
	server[$user]=$!
	wait_listening "$port" "${server[$user]}" || true
	as_user "$user" "$sfnic" run "${fabric[@]}" -- \
		ib_send_bw -F -D "${seconds[$user]}" -p "$port" 127.0.0.1 \
		>"$work/client$user" 2>&1 &
	client[$user]=$!
done
pids=("${server[@]}" "${client[@]}")
sleep 0.5
cases=$((cases + 1))
other_daemon=$(daemon_of "$other")
if [ -n "$other_daemon" ] && [ "$(daemon_of "$victim")" != "$other_daemon" ]
then
	echo "ok      a fabric for each user"
else
	fail "users have no fabrics of their own"
fi
dir=$(echo "/tmp/sfnic-$other/"*"-e2e$$")
says "the directory of another user" 125 \
	"$dir.*(Permission denied|belongs to uid $other).*SFNIC_DIR" \
	setpriv "--reuid=$victim" "--regid=$victim" --clear-groups \
	env "SFNIC_DIR=$dir" "$sfnic" run -- ibv_devices
says "stat of another user's" 1 "$dir" \
	setpriv "--reuid=$victim" "--regid=$victim" --clear-groups \
	env "SFNIC_DIR=$dir" "$sfnic" stat
says "down of another user's" 1 "$dir" \
	setpriv "--reuid=$victim" "--regid=$victim" --clear-groups \
	env "SFNIC_DIR=$dir" "$sfnic" down --force
says "root does not run in a user's directory" 125 "belongs to uid $other" \
	env "SFNIC_DIR=$dir" "$sfnic" run -- ibv_devices
cases=$((cases + 1))
as_user "$victim" kill -9 "$other_daemon" 2>/dev/null &&
	fail "a user can kill another one's daemon"
as_user "$victim" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1 ||
	fail "sfnic down --force of one user"
rc=0
wait "${server[$victim]}" || rc=$?
wait "${client[$victim]}" || true
other_rc=0
wait "${server[$other]}" || other_rc=$?
wait "${client[$other]}" || other_rc=$?
pids=()
if [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && [ "$other_rc" -eq 0 ] &&
	grep -qE "$perf_line" "$work/client$other" &&
	[ "$(daemon_of "$other")" = "$other_daemon" ]; then
	echo "ok      down --force of one user ends nobody else's programs"
else
	fail "down --force of one user: $rc there, $other_rc at the other"
	cat "$work/server$other" "$work/client$other"
fi

# Somebody else was faster to make the directory.
as_user "$other" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
as_user "$victim" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
rm -rf "/tmp/sfnic-$victim"
as_user "$other" mkdir -m 0777 "/tmp/sfnic-$victim"
says "the directory in /tmp is somebody else's" 125 \
	"belongs to uid $other.*SFNIC_DIR" \
	setpriv "--reuid=$victim" "--regid=$victim" --clear-groups \
	env XDG_RUNTIME_DIR= "$sfnic" run -- ibv_devices
export SFNIC_DIR=$named
fabric=()
summary
