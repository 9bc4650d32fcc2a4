#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs that look at devices.  $1: link layer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

layer=${1:-infiniband}
case $layer in
infiniband) shown=InfiniBand ;;
ethernet) shown=Ethernet ;;
*) die "unknown link layer $layer" ;;
esac
fabric=(--link-layer "$layer")

check "ibv_devices lists the device" 'sfab0[[:space:]]+[0-9a-f]{16}$' ibv_devices
check "ibv_devinfo finds an active port" 'state:.*PORT_ACTIVE' ibv_devinfo
check "ibv_devinfo -v" 'GID\[ *0\]:' ibv_devinfo -v
check "ibv_devinfo -v names the link layer" "link_layer:.*$shown" \
	ibv_devinfo -v
check "ibv_devinfo -l" '1 HCA' ibv_devinfo -l
check "ibv_devinfo -d sfab0 -i 1" 'hca_id:.*sfab0' ibv_devinfo -d sfab0 -i 1
check "ibstat" 'State: Active' ibstat
check "ibstat names the link layer" "Link layer: $shown" ibstat
check "ibstat -l" '^sfab0$' ibstat -l
check "ibstat -p" '0x[0-9a-f]{16}' ibstat -p

fabric+=(--devices 2 --ports 2 --name two --mtu 1024)
"$sfnic" down --force >/dev/null 2>&1 || true
check "two devices" 'two1[[:space:]]' ibv_devices
check "two ports" 'port:.*2$' ibv_devinfo
check "an MTU of 1024" 'active_mtu:.*1024' ibv_devinfo
check "ibstat of the second" "CA 'two1'" ibstat two1

check_nothing_left
summary
