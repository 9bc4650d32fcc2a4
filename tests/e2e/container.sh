#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Places that containers are made of, one missing thing a case: it works there,
# or one line says what is missing and how to go on.  $1: the program made of
# container.c.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
limit=30
program=$1

if [ "$(id -u)" -ne 0 ] || ! unshare -mpn --fork true 2>/dev/null; then
	echo "skipped: needs root and namespaces of its own"
	exit 77
fi

# The tree may lie where nobody else can look.
copy=$(mktemp -d)
trap 'cleanup; rm -rf "$copy" /tmp/sfnic-65533 /tmp/sfnic-0/*-"e2e$$"' EXIT
cp -r "$build/bin" "$build/lib" "$copy/"
cp "$program" "$copy/program"
chmod -R a+rX "$copy"
chmod 0711 "$work"
sfnic=$copy/bin/sfnic
program=$copy/program
cd /

cat >"$copy/both" <<'END'
#!/bin/bash
"${@:2}" ibv_devinfo | grep PORT_ACTIVE && "${@:2}" "$1" pair
END
chmod 0755 "$copy/both"

# there COMMANDS PROGRAM ARGS...: in namespaces of its own, after COMMANDS.
there()
{
	printf 'set -e\n%s\nexec "$@"\n' "$1" >"$copy/commands"
	shift
	timeout -k 5 "$limit" unshare "${spaces[@]}" --propagation private \
		/bin/bash "$copy/commands" "${wrap[@]}" "$@"
}

# inside WHAT COMMANDS: in a mount namespace of its own, after COMMANDS: devices
# are found, 64 KiB arrive.  wrap and fabric as in lib.sh.
inside()
{
	local what=$1 rc=0
	cases=$((cases + 1))
	there "$2" "$copy/both" "$program" \
		"$sfnic" run "${fabric[@]}" -- >"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq 0 ] && grep -q 'data ok' "$work/out" &&
		grep -q PORT_ACTIVE "$work/out"; then
		echo "ok      $what"
		return
	fi
	fail "$what: status $rc"
	sed 's/^/        | /' "$work/out"
}

# refused WHAT COMMANDS PATTERN: there, one line like that, status 125.
refused()
{
	local what=$1 rc=0
	cases=$((cases + 1))
	there "$2" "$sfnic" run "${fabric[@]}" -- ibv_devices \
		>"$work/out" 2>&1 || rc=$?
	if [ "$rc" -eq 125 ] && [ "$(wc -l <"$work/out")" -eq 1 ] &&
		grep -qE -- "$3" "$work/out"; then
		echo "ok      $what: $(cat "$work/out")"
		return
	fi
	fail "$what: status $rc, wanted 125 and one line like '$3'"
	sed 's/^/        | /' "$work/out"
}

down()
{
	"$sfnic" down --force >/dev/null 2>&1 || true
}

spaces=(--mount)
nobody=(setpriv --reuid=65533 --regid=65533 --clear-groups)
named=$SFNIC_DIR

# ---- file systems ----------------------------------------------------

inside "no /dev/shm" "umount -l /dev/shm || true; mount -t tmpfs -o ro none /dev/shm"
down
# The copy is in /tmp: it stays there, read-only.
read_only="mkdir -p /run/sf-e2e; mount -t tmpfs none /run/sf-e2e
	mkdir /run/sf-e2e/copy
	mount --bind $copy /run/sf-e2e/copy
	mount -t tmpfs none /tmp; mkdir -p $copy
	mount --bind /run/sf-e2e/copy $copy
	mount -o remount,bind,ro $copy
	umount -l /run/sf-e2e
	mount -o remount,bind,ro /
	mount -t tmpfs -o ro none /dev/shm
	mount -t tmpfs -o ro none /run
	unset SFNIC_DIR XDG_RUNTIME_DIR"
inside "read-only, but for /tmp" "$read_only"
inside "read-only, but for XDG_RUNTIME_DIR" "$read_only
	mkdir -m 0700 /tmp/user; mount -t tmpfs -o mode=700 none /tmp/user
	mount -o remount,ro /tmp
	export XDG_RUNTIME_DIR=/tmp/user"
refused "nothing can be written" "$read_only; mount -o remount,ro /tmp" \
	'/tmp.*Read-only file system.*SFNIC_DIR'
inside "no /sys" "mount -t tmpfs -o ro none /sys"
down
inside "no /dev but null" "touch $work/null; mount --bind /dev/null $work/null
	mount -t tmpfs none /dev; touch /dev/null
	mount --bind $work/null /dev/null; mount -o remount,ro /dev"
down
inside "no /dev/null" "mount -t tmpfs -o ro none /dev"
down
inside "no /proc/sys" "mount -t tmpfs -o ro none /proc/sys"
down
refused "no /proc" "umount -l /proc; mount -t tmpfs none /proc" \
	'/proc is not mounted'

# ---- rights ----------------------------------------------------------

unset SFNIC_DIR
fabric=(--instance "e2e$$")
wrap=("${nobody[@]}" env -u HOME -u USER -u XDG_RUNTIME_DIR)
inside "no passwd entry, no HOME" ":"
"${wrap[@]}" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
wrap=(setpriv --bounding-set=-all --inh-caps=-all --no-new-privs)
inside "root without capabilities" ":"
wrap=("${nobody[@]}" --bounding-set=-all --inh-caps=-all --no-new-privs)
inside "a user without capabilities and new privileges" ":"
for profile in docker docker-old trace; do
	"${wrap[@]}" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
	wrap=("${nobody[@]}" --bounding-set=-all --inh-caps=-all
		"$program" "$profile")
	inside "seccomp: $profile" ":"
done
"${wrap[@]}" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
wrap=()
"${wrap[@]}" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1
fabric=()
export SFNIC_DIR=$named

# ---- PID namespaces --------------------------------------------------

pids_of=(unshare --mount --propagation private --pid --fork --mount-proc
	--kill-child)
wrap=("${pids_of[@]}")
# The daemon ends with the namespace of the first; the client's starts anew.
check "a PID namespace of its own" 'PORT_ACTIVE' ibv_devinfo
check "another one, after that" 'data ok' "$program" pair
wrap=()
"$sfnic" run -- true
wrap=("${pids_of[@]}")
pingpong -c -s 65536 -n 200
pingpong -c -e -n 200
wrap=()
check_nothing_left
check_no_memory

# A program whose daemon goes with its PID namespace.
down
cases=$((cases + 1))
"${pids_of[@]}" "$sfnic" run -- sleep 60 >/dev/null 2>&1 &
pids=($!)
for _ in $(seq 50); do
	"$sfnic" stat >/dev/null 2>&1 && break
	sleep 0.1
done
rc=0
port=$(free_port)
timeout 20 "$sfnic" run -- ibv_rc_pingpong -e -p "$port" -n 100000000 \
	>"$work/server" 2>&1 &
server=$!
wait_listening "$port" "$server" || true
timeout 20 "$sfnic" run -- ibv_rc_pingpong -e -p "$port" -n 100000000 \
	127.0.0.1 >"$work/client" 2>&1 &
client=$!
sleep 0.5
kill -9 "${pids[0]}"
wait "${pids[0]}" 2>/dev/null || true
pids=()
wait "$server" || rc=$?
wait "$client" || true
if [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ]; then
	echo "ok      the daemon ends with its PID namespace: programs end"
else
	fail "the daemon has ended with its PID namespace: status $rc"
	cat "$work/server" "$work/client"
fi
pingpong -n 100
check_nothing_left
down

# ---- network namespaces ----------------------------------------------

# Loopback is down; the directory of this namespace is another one.
spaces=(--mount --net)
unset SFNIC_DIR
fabric=(--instance "e2e$$")
inside "a network namespace" ":"
"$sfnic" run "${fabric[@]}" -- true
cases=$((cases + 1))
if "$sfnic" stat --json "${fabric[@]}" >"$work/out" &&
	! unshare --net "$sfnic" stat "${fabric[@]}" >"$work/other" 2>&1; then
	echo "ok      another network namespace has another fabric"
else
	fail "the fabric of another network namespace"
	cat "$work/out" "$work/other"
fi
fabric+=(--link-layer ethernet)
cases=$((cases + 1))
rc=0
unshare --net "$sfnic" run "${fabric[@]}" -- ibv_devinfo -v >"$work/out" 2>&1 ||
	rc=$?
if [ "$rc" -eq 0 ] && grep -q 'GID\[ *0\]' "$work/out"; then
	echo "ok      Ethernet where loopback is down"
else
	fail "Ethernet where loopback is down: status $rc"
	cat "$work/out"
fi
"$sfnic" down --instance "e2e$$" --force >/dev/null 2>&1
export SFNIC_DIR=$named
fabric=()
summary
