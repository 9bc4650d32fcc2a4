#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `cmake --install` puts everything where libibverbs and people look.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SF_BUILD:-$root/build}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

DESTDIR=$dest cmake --install "$build" --prefix /usr >/dev/null
files=$(find "$dest" -type f -o -type l)
files=${files//"$dest"/}
failures=0

# has PATTERN: exactly one file whose path below the root looks like that.
has()
{
	local n
	n=$(grep -cE "^$1\$" <<<"$files" || true)
	if [ "$n" -eq 1 ]; then
		echo "ok      $1"
	else
		echo "FAILED  $n files are like $1"
		failures=$((failures + 1))
	fi
}

has '/usr/lib/.*libibverbs/libscalefabric-rdmav34\.so'
has '(/usr)?/etc/libibverbs\.d/scalefabric\.driver'
has '/usr/include/scalefabric/sf_hw\.h'
has '/usr/include/rdma/scalefabric-abi\.h'
has '/usr/bin/sfnic'
has '/usr/.*/sfnicd'
has '/usr/lib/.*/libsfnic[^/]*\.so'
has '/usr/share/man/man1/sfnic\.1(\.gz)?'
has '/usr/share/man/man7/scalefabric\.7(\.gz)?'

if [ "$failures" -gt 0 ]; then
	printf 'installed:\n%s\n' "$files"
	exit 1
fi
