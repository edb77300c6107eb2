# SPDX-License-Identifier: MIT
#
# Print a script's results as TAP. The guests' scripts include this file.
# shellcheck shell=dash

count=0
failed=0

# result STATUS TEXT: print the result of a test.
result() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		failed=1
	fi
}

# finish: print the number of tests, and exit.
finish() {
	echo "1..$count"
	exit $failed
}
