#!/bin/busybox sh
# SPDX-License-Identifier: MIT
#
# flexsc bench --raw calls with the engine kmod, which checks each call's result, on the
# caller's core and on another one, whose thread sleeps or polls: TAP, and behind "#" the
# times, which mean nothing in an emulated machine.
# shellcheck shell=dash
set -u

count=0
failed=0

# measure CALL BATCH CORES POLL_US: make the calls, and print the result of the test.
measure() {
	count=$((count + 1))
	name="$1, $2 in a batch, executed on core $3, polling for $4 us"
	if flexsc bench --raw calls variant=kmod call="$1" batch="$2" core=0 kernel_cores="$3" \
		poll_us="$4" calls=512 reps=1 >/tmp/found; then
		echo "ok $count - $name"
		sed -n 's/.*\("ns_per_call": \[[^]]*\]\).*/# \1/p' /tmp/found
	else
		echo "not ok $count - $name"
		failed=1
	fi
}

for call in getppid close read pread; do
	for batch in 1 32 512; do
		measure $call $batch 0 0
		measure $call $batch 1 0
		measure $call $batch 1 200
	done
done
echo "1..$count"
exit $failed
