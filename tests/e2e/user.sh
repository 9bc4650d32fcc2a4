#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# As a user who is not root and has no home: with a runtime directory that was
# named, and with the one that sfnic finds.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

user=65534
if [ "$(id -u)" -eq 0 ]; then
	# The tree may lie where nobody else can look.
	copy=$(mktemp -d)
	trap 'cleanup; rm -rf "$copy"' EXIT
	cp -r "$build/bin" "$build/lib" "$copy/"
	chmod -R a+rX "$copy"
	chmod 0711 "$work"
	chown -R "$user:$user" "$SFNIC_DIR"
	sfnic=$copy/bin/sfnic
	wrap=(setpriv "--reuid=$user" "--regid=$user" --clear-groups
		env HOME=/nonexistent XDG_RUNTIME_DIR=)
else
	echo "not root already"
fi

programs()
{
	check "ibv_devices" 'sfab0' ibv_devices
	check "ibv_devinfo" 'PORT_ACTIVE' ibv_devinfo
	check "ibstat" 'State: Active' ibstat
	pingpong
	pingpong -e -s 100000
	perf ib_send_lat
	perf ib_write_bw -s 65536 -n 500
	perf ib_read_lat
	perf ib_atomic_lat
	check_nothing_left
}

cd /
programs

# Nothing in the environment: a directory by user and network namespace.
"${wrap[@]}" "$sfnic" down --force >/dev/null 2>&1 || true
unset SFNIC_DIR
fabric=(--instance "e2e$$")
check "without SFNIC_DIR" 'sfab0' ibv_devices
pingpong
"${wrap[@]}" "$sfnic" down "${fabric[@]}" --force >/dev/null 2>&1 ||
	fail "sfnic down ${fabric[*]} --force"
summary
