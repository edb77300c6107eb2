#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# kmod/build-copy.sh SOURCE KDIR WORK OUTPUT: build flexsc.ko in a copy of the
# sources, because Kbuild would leave its files in the source folder.
set -eu

rm -rf "$3"
"$1/kmod/sources.sh" "$3"
make --no-print-directory -C "$3/kmod" KDIR="$2" modules
cp "$3/kmod/flexsc.ko" "$4"
