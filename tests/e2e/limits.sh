#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Little of everything: descriptors, address space, files, processes, stack,
# disk.  It works, or says what is missing, and leaves nothing behind.  $1: the
# program made of container.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
limit=30
program=$1

if [ "$(id -u)" -eq 0 ]; then
	# The tree may lie where nobody else can look.
	copy=$(mktemp -d)
	trap 'cleanup; rm -rf "$copy"' EXIT
	cp -r "$build/bin" "$build/lib" "$copy/"
	cp "$program" "$copy/program"
	chmod -R a+rX "$copy"
	chmod 0711 "$work"
	sfnic=$copy/bin/sfnic
	program=$copy/program
fi

down()
{
	"$sfnic" down --force >/dev/null 2>&1 || true
}

# limited WHAT ULIMIT STATUS PATTERN [LINES]: `sfnic run -- program pair` under
# that limit; at most so many lines.
limited()
{
	local what=$1 words=$2 wanted=$3 pattern=$4 lines=${5:-1} rc=0
	cases=$((cases + 1))
	# shellcheck disable=SC2086
	(ulimit $words && exec timeout -k 5 "$limit" "${wrap[@]}" \
		"$sfnic" run -- "$program" pair) >"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq "$wanted" ] && grep -qE -- "$pattern" "$work/out" &&
		[ "$(wc -l <"$work/out")" -le "$lines" ]; then
		echo "ok      $what: $(head -n 1 "$work/out")"
		return
	fi
	fail "$what: status $rc, wanted $wanted and a line like '$pattern'"
	sed 's/^/        | /' "$work/out"
}

# ---- who starts the daemon is limited --------------------------------

limited "5 descriptors" "-n 5" 125 'ulimit -n'
limited "8 descriptors" "-n 8" 125 'ulimit -n'
limited "200 MB of address space" "-v 200000" 125 'ulimit -v'
down
limited "no locked memory" "-l 0" 0 'data ok'
down
limited "a small stack" "-s 64" 0 'data ok'
down
limited "little CPU time" "-t 9" 0 'data ok'
down
limited "little data" "-d 50000" 0 'data ok'
if [ "$(id -u)" -eq 0 ]; then
	# Root may have more processes.
	down
	rm -f "$SFNIC_DIR/lock"
	chown 65530:65530 "$SFNIC_DIR"
	wrap=(setpriv --reuid=65530 --regid=65530 --clear-groups)
	limited "no more processes" "-u 1" 125 'cannot .*ulimit -u'
	wrap=()
	rm -f "$SFNIC_DIR/lock"
	chown 0:0 "$SFNIC_DIR"
fi

# ---- only the program is ---------------------------------------------

down
"$sfnic" run -- true
limited "16 descriptors" "-n 16" 1 'errno 24' 3
limited "7 descriptors" "-n 7" 1 '.' 5
limited "60 descriptors" "-n 60" 0 'data ok'
limited "too little address space" "-v 1000000" 1 'ulimit -v' 4
limited "no locked memory, small stack" "-l 0 -s 64" 0 'data ok'
limited "files of 1 KiB" "-f 1" 0 'data ok'
check_nothing_left
check_no_memory
"$sfnic" down
# 1 GiB fits into 4.
cases=$((cases + 1))
if (ulimit -v 4000000 && exec "$sfnic" run --arena 1G -- "$program" pair) \
	>"$work/out" 2>&1; then
	echo "ok      a small arena in little address space"
else
	fail "a small arena in little address space"
	cat "$work/out"
fi
down

# ---- a full disk -----------------------------------------------------

if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
	summary
	exit
fi
full()
{
	local rc=0
	cases=$((cases + 1))
	unshare --mount --propagation private /bin/bash -c "
		mount -t tmpfs -o mode=0700,$1 none '$SFNIC_DIR'
		timeout $limit '$sfnic' run -- true || exit
		" >"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq 125 ] && [ "$(wc -l <"$work/out")" -eq 1 ] &&
		grep -q 'No space left.*SFNIC_DIR' "$work/out"; then
		echo "ok      $1: $(cat "$work/out")"
	else
		fail "$1: status $rc"
		cat "$work/out"
	fi
}
full size=64k
full nr_inodes=2
full nr_inodes=20
# Space comes back: nothing of the first try is in the way.
cases=$((cases + 1))
rc=0
unshare --mount --propagation private /bin/bash -ec "
	mount -t tmpfs -o mode=0700,size=64k none '$SFNIC_DIR'
	! '$sfnic' run -- true 2>/dev/null
	ls '$SFNIC_DIR'
	mount -o remount,size=10M '$SFNIC_DIR'
	exec timeout $limit '$sfnic' run -- '$program' pair
	" >"$work/out" 2>&1 || rc=$?
if [ "$rc" -eq 0 ] && grep -q 'data ok' "$work/out" &&
	[ "$(head -n 1 "$work/out")" = lock ]; then
	echo "ok      a full disk that was cleared"
else
	fail "a full disk that was cleared: status $rc"
	cat "$work/out"
fi
summary
