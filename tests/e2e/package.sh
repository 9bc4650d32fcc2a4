#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian packages: made, judged by lintian, installed by apt, used, purged.
# `package.sh clean`: in a root that debootstrap makes.  `package.sh host`: in a
# copy of this system that keeps nothing.
set -euo pipefail

skip()
{
	echo "skipped: $*"
	exit 77
}

# Mounts and processes are in namespaces of their own: nothing can be left.
if [ "${2:-}" != inside ]; then
	[ "$(id -u)" -eq 0 ] || skip "only root installs packages"
	spaces=(unshare --mount --pid --fork --kill-child --mount-proc)
	"${spaces[@]}" true 2>/dev/null ||
		skip "this system does not allow mount and PID namespaces"
	exec "${spaces[@]}" "$0" "$1" inside
fi

kind=$1
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mnt=$(mktemp -d)   # outside of $work: nobody removes trees that have mounts
root=$mnt/root
finish()
{
	cleanup
	! mountpoint -q "$mnt" || umount --recursive --lazy "$mnt"
	rmdir "$mnt"
}
trap finish EXIT
mount -t tmpfs -o mode=0755 tmpfs "$mnt"
mkdir "$root"

# ---- a root ---------------------------------------------------------------

suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# What apt here takes this release's packages from: URI SUITE, the mirror first.
sources()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' |
		awk -v suite="$suite" '
			$3 == "main" && ($2 == suite ||
				$2 == suite "-updates" ||
				$2 == suite "-security") { print $1, $2 }' |
		sort -s -k 2,2
}

clean_root()
{
	local mirror include=()

	command -v debootstrap >/dev/null || {
		echo "debootstrap is not installed"
		return 1
	}
	mirror=$(sources | awk '{ print $1; exit }')
	if [ -z "$suite" ] || [ -z "$mirror" ]; then
		echo "apt has no source for release '$suite'"
		return 1
	fi
	case $mirror in
	https:*) include=(--include=ca-certificates) ;;
	esac
	timeout -k 5 600 debootstrap --variant=minbase "${include[@]}" \
		"$suite" "$root" "$mirror" >"$work/debootstrap" 2>&1 || {
		tail -n 5 "$work/debootstrap"
		return 1
	}
	sources | sed 's/.*/deb & main/' >"$root/etc/apt/sources.list"
	apt-config dump | grep -E '^Acquire::(https?::|Check-)' \
		>"$root/etc/apt/apt.conf.d/host" || true
	timeout -k 5 300 chroot "$root" apt-get update >"$work/update" 2>&1 || {
		tail -n 5 "$work/update"
		return 1
	}
}

host_root()
{
	mkdir "$mnt/upper" "$mnt/work"
	mount -t overlay -o "lowerdir=/,upperdir=$mnt/upper,workdir=$mnt/work" \
		overlay "$root" || skip "this system does not allow overlays"
	# Containers' images leave manual pages out.
	sed -i '/^path-exclude/d' "$root"/etc/dpkg/dpkg.cfg.d/*
}

mount_root()
{
	local node

	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mount -t tmpfs -o mode=0755 tmpfs "$root/run"
	mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
	for node in null zero full random urandom; do
		: >"$root/dev/$node"
		mount --bind "/dev/$node" "$root/dev/$node"
	done
	ln -s /proc/self/fd "$root/dev/fd"
}

in_root()
{
	chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C TMPDIR=/tmp \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# ---- checks ---------------------------------------------------------------

# expect WHAT COMMAND...
expect()
{
	local what=$1
	shift
	cases=$((cases + 1))
	if "$@" >"$work/out" 2>&1; then
		echo "ok      $what"
		return
	fi
	fail "$what"
	sed 's/^/        | /' "$work/out"
}

packages_in_root()
{
	# shellcheck disable=SC2016
	in_root dpkg-query -W -f '${Package}\n' | sort
}

# What is there for people and programs to find; not what dpkg and apt remember.
# A user's lock file outlives the daemon: the next one may be waiting for it.
# Debian's libibverbs1 makes a group, which leaves traces; nothing of ours does.
files_in_root()
{
	(cd "$root" && find etc usr opt var run tmp -xdev \
		\( -path var/cache -o -path var/log -o -path var/tmp \
		-o -path var/lib/apt -o -path var/lib/dpkg \) -prune -o -print) |
		grep -vE -e '^tmp/sfnic-[0-9]+(/[0-9]+(/lock)?)?$' \
			-e '^(etc/(group|gshadow)-|run/adduser)$' | sort
}

# Exactly the release of rdma-core that the headers were from.
depends_on_one_release()
{
	local version release depends

	version=$(dpkg-query -W -f '${Version}' libibverbs-dev)
	release=${version%%.*}
	depends=$(dpkg-deb -f "$1" Depends)
	echo "$depends"
	[[ $depends == *"libibverbs1 (>= $release)"* ]] &&
		[[ $depends == *"libibverbs1 (<< $((release + 1)))"* ]]
}

manual_page()
{
	in_root zcat "/usr/share/man/$1.gz" | grep '^\.TH'
}

headers_compile()
{
	printf '#include <%s>\n' scalefabric/sf_hw.h rdma/scalefabric-abi.h |
		cc -std=c11 -fsyntax-only -I "$root/usr/include" -xc -
}

# A device that nobody has a provider for: libibverbs loads all that there are
# and asks each of them.
strange_device()
{
	local class=$root/sys/class/infiniband_verbs

	mount -t tmpfs -o mode=0755 tmpfs "$root/sys"
	mkdir -p "$class/uverbs0/device" "$root/sys/class/infiniband/strange0"
	echo 6 >"$class/abi_version"
	echo strange0 >"$class/uverbs0/ibdev"
	echo 1 >"$class/uverbs0/abi_version"
	echo 231:192 >"$class/uverbs0/dev"
	echo strange:thing >"$class/uverbs0/device/modalias"
	mkdir "$root/dev/infiniband"
	: >"$root/dev/infiniband/uverbs0"
	mount --bind /dev/null "$root/dev/infiniband/uverbs0"
}

no_strange_device()
{
	umount "$root/dev/infiniband/uverbs0" "$root/sys"
	rm -r "$root/dev/infiniband"
}

# Our plugin is loaded, and there are two lines of heading, nothing else.
quiet_without_sfnic()
{
	local rc=0

	in_root timeout 20 env LD_DEBUG=files ibv_devices 2>&1 |
		grep 'calling init: .*/libscalefabric-rdmav34\.so' || return 1
	in_root timeout 20 ibv_devices >"$work/ibv" 2>&1 || rc=$?
	cat "$work/ibv"
	[ "$rc" -eq 0 ] && [ "$(wc -l <"$work/ibv")" -eq 2 ] &&
		grep -q 'node GUID' "$work/ibv"
}

# ---- the story ------------------------------------------------------------

command -v lintian >/dev/null ||
	die "lintian is missing: run scripts/setup --tests --long"
"$SF_ROOT/scripts/package" "$work/deb" >"$work/debs"
mapfile -t debs <"$work/debs"
expect "three packages" [ ${#debs[@]} -eq 3 ]
expect "lintian" lintian --allow-root --fail-on error "${debs[@]}"
expect "one release of libibverbs1" \
	depends_on_one_release "$work"/deb/scalefabric-provider_*.deb

start=$SECONDS
if [ "$kind" = clean ] && why=$(clean_root); then
	echo "a root of $suite ($((SECONDS - start)) s)"
else
	[ "$kind" = host ] || {
		echo "debootstrap cannot run, a copy of this system instead:"
		echo "$why"
		rm -rf "$root"
		mkdir "$root"
	}
	host_root
fi
mount_root
mkdir "$root/tmp/deb"
cp "${debs[@]}" "$root/tmp/deb/"
packages_in_root >"$work/packages.before"
files_in_root >"$work/files.before"

expect "apt-get install" in_root timeout -k 5 300 sh -c \
	'apt-get install -y --allow-downgrades /tmp/deb/*.deb'
packages_in_root >"$work/packages"
mapfile -t added < <(comm -13 "$work/packages.before" "$work/packages")
echo "        installed ${added[*]}"
for page in man1/sfnic.1 man7/scalefabric.7 man8/sfnicd.8; do
	expect "$page" manual_page "$page"
done
expect "headers" headers_compile
strange_device
expect "ibv_devices without sfnic is quiet" quiet_without_sfnic
no_strange_device

unset SFNIC_DIR
sfnic=sfnic
clean_environment=(env -i PATH=/usr/bin:/bin LC_ALL=C HOME=/nonexistent)
for who in 65534 0; do
	wrap=(chroot "--userspec=$who:$who" "$root" "${clean_environment[@]}")
	check "ibv_devices as user $who" sfab0 ibv_devices
	pingpong
	pingpong -e -s 100000 -n 100
	check_nothing_left
	expect "sfnic down" "${wrap[@]}" sfnic down
done

expect "apt-get purge" in_root timeout -k 5 300 \
	apt-get purge -y "${added[@]}"
packages_in_root >"$work/packages"
expect "no package is left" diff "$work/packages.before" "$work/packages"
files_in_root >"$work/files"
expect "no file is left" diff "$work/files.before" "$work/files"
summary
