#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/packages/install.sh DIR: in a clean root, install the packages of DIR in an older
# version, upgrade, use, remove and purge them. The last line is "nothing is left". The
# script changes the system, so it is only for a root that is then deleted.
set -eu
dir=$(cd "$1" && pwd)
version=$(cat VERSION)
older=0.0.1
export DEBIAN_FRONTEND=noninteractive
install='apt-get install --yes --no-install-recommends'
work=$(mktemp -d)
chmod 755 "$work"

# Write the package $1 to the folder $work with an older version.
age() {
	rm -rf "$work/tree"
	dpkg-deb --raw-extract "$1" "$work/tree"
	find "$work/tree/DEBIAN" "$work/tree/usr/src" -type f \
		\( -path '*/DEBIAN/*' -o -name dkms.conf \) \
		-exec sed -i "s/$version/$older/g" {} + 2>/dev/null || true
	for place in "$work/tree/usr/src"/*; do
		[ ! -d "$place" ] || mv "$place" "$work/tree/usr/src/flexsc-$older"
	done
	dpkg-deb --build "$work/tree" "$work" >/dev/null
}

# The version that all packages have to have; $1 is a prefix of it.
use() {
	for name in $names; do
		# shellcheck disable=SC2016 # a format of dpkg-query
		dpkg-query --show -f '${Version} ${db:Status-Status}\n' "$name" |
			grep -q "^$1.* installed$"
	done
	flexsc --version
	# Without Zydis a program that creates threads gets a warning.
	flexsc run -- python3 -c 'from threading import *; Thread().start()' 2>"$work/errors"
	cat "$work/errors"
	[ ! -s "$work/errors" ]
	# io_uring may be forbidden here, but a thread works without it, too.
	flexsc check run | tee "$work/check"
	grep -q '^run *works' "$work/check"
	python3 -c 'import flexsc; flexsc.Loop'
	nginx -t
	getent group flexsc
	kernel=$(basename /usr/src/linux-headers-*-cloud-amd64)
	dkms status | tee "$work/status"
	grep "flexsc/$1.*${kernel#linux-headers-}.*: installed" "$work/status"
}

# The names of all files, without this tree, temporary files, caches and logs.
left() {
	find / -xdev \( -path "$PWD" -o -path /tmp -o -path /var/cache -o -path /var/log \) \
		-prune -o -iname '*flexsc*' -print
}

# This policy forbids packages to start servers.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get update
# DKMS builds for each kernel that has a modules folder and headers.
$install linux-headers-cloud-amd64 nginx-light

names=''
packages=''
for package in "$dir"/*.deb; do
	name=${package##*/}
	name=${name%%_*}
	case $name in
	*-dbgsym) ;;
	*)
		names="$names $name"
		packages="$packages $package"
		age "$package"
		;;
	esac
done
left >"$work/before"

echo "installing $older"
$install "$work"/*.deb
use "$older"
echo "upgrading to $version"
# shellcheck disable=SC2086 # a list of words
$install $packages
use "$version"
echo removing
unit=/etc/systemd/system/server.service.d
mkdir -p "$unit"
echo 'ExecStart=/usr/bin/flexsc run -- server' >"$unit/run.conf"
# shellcheck disable=SC2086
apt-get remove --yes $names | tee "$work/remove"
grep -F "$unit/run.conf" "$work/remove"
rm -r "$unit"
nginx -t
left | diff "$work/before" - | grep '^>' || true
echo purging
# shellcheck disable=SC2086
dpkg --purge $names >"$work/purge" 2>&1
cat "$work/purge"
if grep 'not empty so not removed' "$work/purge"; then
	exit 1
fi
left | diff "$work/before" -
echo 'nothing is left'
