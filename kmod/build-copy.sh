#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# kmod/build-copy.sh SOURCE KDIR WORK OUTPUT: build flexsc.ko in a copy of the sources,
# because Kbuild leaves its files beside them.
set -eu

rm -rf "$3"
mkdir -p "$3/include"
cp -r "$1/kmod" "$3"
cp -r "$1/include/uapi" "$3/include"
make --no-print-directory -C "$3/kmod" KDIR="$2" modules
cp "$3/kmod/flexsc.ko" "$4"
