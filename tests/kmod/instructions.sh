#!/bin/busybox sh
# SPDX-License-Identifier: MIT
#
# If a guest's clock counts instructions, flexsc study --raw pollute counts those of a
# system call, as in tests/kmod/vm/instructions.py: TAP. The count of a call is the same
# each time, a larger call has a larger count, and the work between has the same count
# for each call.
# shellcheck shell=dash
set -u

# shellcheck source=tests/kmod/tap.sh
. /bin/kmod-tap

# samples SERIES FILE: print one sample per line, in their order.
samples() {
	sed -n "s/.*\"$1\": \[\([^]]*\)\].*/\1/p" "$2" | tr ',' '\n' | tr -d ' ' |
		sort -n
}

# middle SERIES CALL: print the median of the samples.
middle() {
	samples "$1" "/tmp/$2" | sed -n 6p
}

for call in none getppid pread; do
	flexsc study --raw pollute core=0 work=tree every=64 reps=11 call=$call \
		>/tmp/$call
	result $? "$call: it runs"
done
echo "# of getppid: $(middle call_ticks getppid), of pread: $(middle call_ticks pread)"
[ "$(samples call_ticks getppid | sed -n 3p)" = "$(middle call_ticks getppid)" ]
result $? "getppid has as many instructions each time"
[ "$(middle call_ticks none)" = "$(middle clock_ticks none)" ]
result $? "a call that isn't made has none"
awk -v a="$(middle clock_ticks getppid)" -v b="$(middle call_ticks getppid)" \
	-v c="$(middle call_ticks pread)" \
	'BEGIN { exit !(a + 100 < b && b < a + 1000 && b + 500 < c) }'
result $? "getppid has some hundred, and pread more"
[ "$(middle control_ticks getppid)" = "$(middle control_ticks pread)" ]
result $? "the work has equally many beside each call"
finish
