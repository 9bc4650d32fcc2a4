#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `cmake --install` puts everything where libibverbs and people look.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# A build of its own: paths are fixed when it is configured.
configure_and_build "$work/build" -DCMAKE_INSTALL_PREFIX=/usr -DSF_TESTS=OFF
DESTDIR=$work/root quiet cmake --install "$work/build"
(cd "$work/root" && find . -type f -o -type l) | sed 's/^\.//' >"$work/files"

# has PATTERN: exactly one file has such a path.
has()
{
	local n
	cases=$((cases + 1))
	n=$(grep -cxE "$1" "$work/files" || true)
	if [ "$n" -eq 1 ]; then
		echo "ok      $1"
	else
		fail "$n files are like $1"
	fi
}

# Where Debian's libibverbs looks.
libdir=/usr/lib/$(gcc -print-multiarch)
has "$libdir/libibverbs/libscalefabric-rdmav34\.so"
has '/etc/libibverbs\.d/scalefabric\.driver'
has '/usr/include/scalefabric/sf_hw\.h'
has '/usr/include/rdma/scalefabric-abi\.h'
has '/usr/bin/sfnic'
has '/usr/.*/sfnicd'
has "$libdir/scalefabric/libsfnic-preload\.so"
has '/usr/share/man/man1/sfnic\.1(\.gz)?'
has '/usr/share/man/man7/scalefabric\.7(\.gz)?'
has '/usr/share/man/man8/sfnicd\.8(\.gz)?'

# Nothing unexpected goes where others live.
cases=$((cases + 1))
if grep -vE 'scalefabric|sfnic' "$work/files"; then
	fail "the files above bear names of others"
else
	echo "ok      nothing else is installed"
fi
[ "$failures" -eq 0 ] || cat "$work/files"
summary
