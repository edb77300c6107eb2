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

# switches ENGINE: print the mode switches, and on kmod check how many they are.
switches() {
	sum=0
	for name in loop_calls plainly exposed on_host natively kernel_waits kernel_wakes; do
		sum=$((sum + $(counter $name)))
	done
	echo "# $1: $sum mode switches for $(counter calls) calls, $(counter posted) posted"
	case $1 in
	kmod*)
		[ $((sum * 4)) -lt "$(counter calls)" ]
		result $? "$1: less than one mode switch for four calls"
		;;
	esac
}

for engine in kmod uring threads; do
	flexsc run --engine $engine --carriers 1 --stats kmod-threaded 2>/tmp/counters
	result $? "$engine: each byte arrives"
	grep -q "process .* engine $engine\$" /tmp/counters
	result $? "$engine: the runtime uses the engine"
	switches $engine
done

# Each thread then has credentials of its own, so a pool makes the calls that wait.
flexsc run --engine kmod --carriers 1 --stats kmod-threaded user 2>/tmp/counters
result $? "kmod after a change of the user: each byte arrives"
grep -q "process .* engine kmod\$" /tmp/counters
result $? "kmod after a change of the user: the runtime uses the engine"
switches "after a change of the user"

# The program runs on the other core. flexsc stat has a line for each core that executed
# calls: "core NUMBER CALLS ...". The module's count may lack some last batches.
# shellcheck disable=SC2016 # the program's shell expands PPID
flexsc run --engine kmod --kernel-cores 1 --carriers 1 --stats kmod-threaded exec \
	'env -u LD_PRELOAD flexsc stat $PPID >/tmp/stat' 2>/tmp/counters
result $? "kmod with kernel core 1: each byte arrives"
grep -q "process .* engine kmod\$" /tmp/counters
result $? "kmod with kernel core 1: the runtime uses the engine"
cores=$(awk '$1 == "core" { print $2 }' /tmp/stat)
executed=$(awk '$1 == "core" { print $3 }' /tmp/stat)
echo "# kmod with kernel core 1: core $cores executed $executed calls"
[ "$cores" = 1 ] && [ $((executed * 10)) -ge $(($(counter posted) * 9)) ]
result $? "kmod with kernel core 1: this core executes the posted calls, no other core any"
switches "kmod with kernel core 1"

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
