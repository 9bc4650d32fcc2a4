#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A host that has RDMA devices of its own: a made-up tree, in a mount namespace.
set -euo pipefail

if [ "${1:-}" != inside ]; then
	unshare --mount --propagation private true 2>/dev/null || {
		echo "skipped: no mount namespaces here"
		exit 77
	}
	exec unshare --mount --propagation private "$0" inside
fi
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
trap 'umount -lR /dev /sys/class "$work"/dev/{null,zero,urandom,tty} || true; cleanup' EXIT

# A card that Debian's libibverbs has a provider for.
sys=$work/class
ib=$sys/infiniband/mlx5_0
verbs=$sys/infiniband_verbs/uverbs0
mkdir -p "$ib/device" "$ib/ports" "$verbs" "$work/dev/infiniband"
echo "1: CA" >"$ib/node_type"
echo "0011:2233:4455:6677" >"$ib/node_guid"
echo "16.35.2000" >"$ib/fw_ver"
echo "pci:v000015B3d00001017sv000015B3sd00000007bc02sc00i00" \
	>"$ib/device/modalias"
echo 0x15b3 >"$ib/device/vendor"
echo 0x1017 >"$ib/device/device"
echo 6 >"$sys/infiniband_verbs/abi_version"
echo mlx5_0 >"$verbs/ibdev"
echo 231:192 >"$verbs/dev"
echo 1 >"$verbs/abi_version"
ln -s "$ib/device" "$verbs/device"
echo "the host's" >"$work/dev/infiniband/uverbs0"
for node in null zero urandom tty; do
	touch "$work/dev/$node"
	mount --bind "/dev/$node" "$work/dev/$node"
done
ln -s /proc/self/fd "$work/dev/fd"
cp -r "$sys" "$work/kept"
mount --bind "$sys" /sys/class
mount --rbind "$work/dev" /dev

hidden="the host's own RDMA devices are hidden"
check "hidden by default" "sfab0" ibv_devices
cases=$((cases + 1))
if [ "$(grep -c "$hidden" "$work/out")" -eq 1 ] &&
	! grep -q mlx5_0 "$work/out"; then
	echo "ok      with one line"
else
	fail "the line or the device"
	cat "$work/out"
fi

"$sfnic" down --force >/dev/null 2>&1 || true
fabric=(--host-devices show)
check "the host's device is there" "mlx5_0 .*0011223344556677" ibv_devices
cases=$((cases + 1))
if grep -q sfab0 "$work/out" && ! grep -q "$hidden" "$work/out"; then
	echo "ok      and ours, without a line"
else
	fail "ours is not there, or something is said to be hidden"
	cat "$work/out"
fi
check "the host's node is the host's" "the host's" cat /dev/infiniband/uverbs0
check "ours is ours" "character special file" \
	stat -c %F /dev/infiniband/uverbs1
check "the host's attributes" "16.35.2000" \
	cat /sys/class/infiniband/mlx5_0/fw_ver
check "ours can be used" "hca_id:.*sfab0" ibv_devinfo -d sfab0
pingpong -d sfab0 -n 100

"$sfnic" down --force >/dev/null 2>&1 || true
cases=$((cases + 1))
rc=0
"$sfnic" run --host-devices show --name mlx5_ -- true >"$work/out" 2>&1 || rc=$?
if [ "$rc" -eq 125 ] && [ "$(wc -l <"$work/out")" -eq 1 ] &&
	grep -q -e --name "$work/out"; then
	echo "ok      a name that the host has: one line"
else
	fail "a name that the host has: status $rc"
	cat "$work/out"
fi
cases=$((cases + 1))
if diff -r "$work/kept" /sys/class; then
	echo "ok      the host's tree is as it was"
else
	fail "the host's tree has changed"
fi
summary
