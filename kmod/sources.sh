#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# kmod/sources.sh FOLDER: copy the module's sources to FOLDER in the form in
# which they are packaged, with the generated base/calls.def.
set -eu
umask 022
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
find kmod include/uapi/linux ! -name '*.mod.c' \
	\( -name '*.[ch]' -o -name Kbuild -o -name Makefile \) \
	-exec install -D -m 644 {} "$to"/{} \;
make --silent -C "$to/kmod" LIBRARY="$PWD/lib/calls" base/calls.def
