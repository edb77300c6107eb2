#!/bin/busybox sh
# SPDX-License-Identifier: MIT
#
# Run a program with threads by flexsc run, on each engine: TAP, and behind "#" the mode
# switches per call. With the module, threads share a mode switch. Runs in a guest, as
# root.
# shellcheck shell=dash
set -u

# shellcheck source=tests/kmod/tap.sh
. /bin/kmod-tap

# counter NAME: print a counter of the last run.
counter() {
	awk -v name="$1" '$1 == name { print $2; exit }' /tmp/counters
}

# flexsc run finds the runtime beside its own folder.
mkdir -p /runtime
ln -sf /bin/libflexsc-runtime.so /runtime/
export LD_LIBRARY_PATH=/bin

for engine in kmod uring threads; do
	flexsc run --engine $engine --carriers 1 --stats kmod-threaded 2>/tmp/counters
	result $? "$engine: each byte arrives"
	grep -q "process .* engine $engine\$" /tmp/counters
	result $? "$engine: the runtime uses the engine"
	switches=0
	for name in loop_calls plainly exposed on_host natively kernel_waits kernel_wakes; do
		switches=$((switches + $(counter $name)))
	done
	echo "# $engine: $switches mode switches for $(counter calls) calls," \
		"$(counter posted) posted"
	if [ $engine = kmod ]; then
		[ $((switches * 4)) -lt "$(counter calls)" ]
		result $? "kmod: less than one mode switch for four calls"
	fi
done

# The program installs a filter before its first thread, so the module refuses it.
flexsc run --engine kmod --stats kmod-threaded filtered 2>/tmp/counters
result $? "with a filter each byte arrives"
grep -q "^flexsc: run: using syscall threads: kmod: a seccomp filter" /tmp/counters &&
	grep -q "process .* engine threads\$" /tmp/counters
result $? "with a filter the engine is threads"

# The module locks the entries of all carriers, which the limit counts for this user: with
# 65,536 entries per carrier, 8 MB would suffice for one.
mkdir -p /etc
echo "user:x:1000:1000::/tmp:/bin/sh" >/etc/passwd
(
	ulimit -l 8192
	start-stop-daemon -S -c user -x /bin/flexsc -- \
		run --engine kmod --carriers 3 --stats kmod-threaded twice 2>/tmp/counters
)
result $? "two processes of a user with 8 MB of locked memory: each byte arrives"
[ "$(grep -c "carriers: 3, engine kmod\$" /tmp/counters)" = 2 ]
result $? "two processes of a user with 8 MB of locked memory have all carriers"
finish
