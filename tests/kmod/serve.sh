#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# flexsc serve in a guest, on one engine after the other, and clients that check
# what it answers: TAP, and behind "#" the counters of flexsc stat and of the
# module, before and after. Runs as root.
#
#	kmod-serve [ENGINE...]
#
# CLIENTS and REQUESTS in the environment: how many there are, and how many
# requests each of them makes.
set -u

clients=${CLIENTS:-32}
requests=${REQUESTS:-20}
total=$((clients * requests))
count=0
failed=0

# result STATUS TEXT: a test is over.
result() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		failed=1
	fi
}

# counters ENGINE WHEN: those of the server, one a line.
counters() {
	flexsc stat "$server" |
		awk -v is="# $1 $2" '$2 + 0 == $2 { print is, $1, $2 }'
	[ "$1" != kmod ] || awk -v is="# $1 $2" -v pid="$server" '
		$1 == "registration" { own = $4 == pid }
		own && $1 == "executed" {
			for (i = 1; i < NF; i += 2)
				print is, "module." $i, $(i + 1)
		}' /sys/kernel/debug/flexsc/registrations
}

# start ENGINE: the server, its $port.
start() {
	port=''
	flexsc serve --engine "$1" -p 0 /tmp/www 2>/tmp/said &
	server=$!
	tries=0
	while [ -z "$port" ] && [ $tries -lt 300 ]; do
		sleep 0.1
		port=$(sed -n 's|.*http://[^/]*:\([0-9]*\)/.*|\1|p' /tmp/said)
		tries=$((tries + 1))
	done
	sed 's/^/# /' /tmp/said
	grep -q "with engine $1," /tmp/said
}

# by ENGINE NAME...: the sum of these counters, as they are now.
by() {
	engine=$1
	shift
	counters "$engine" now | awk -v names=" $* " '
		index(names, " " $4 " ") { n += $5 }
		END { print n + 0 }'
}

mkdir -p /tmp/www/folder
head -c 1024 /bin/busybox >/tmp/www/small
head -c 40000 /bin/busybox >/tmp/www/folder/middle
head -c 400000 /bin/busybox >/tmp/www/large
: >/tmp/www/empty

[ $# -gt 0 ] || set -- kmod
for engine in "$@"; do
	start "$engine"
	result $? "$engine: it serves"
	counters "$engine" before
	said=$(kmod-http "$port" "$clients" "$requests" /tmp/www \
		small folder/middle small large small empty)
	result $? "$engine: $said"
	# Counters are published before the loop sleeps.
	sleep 0.5
	counters "$engine" after
	if [ "$engine" = kmod ]; then
		calls=$(by kmod posted)
		[ "$(by kmod by_kmod)" -gt $((4 * total)) ]
		result $? "kmod: the module executed the calls"
		[ "$(by kmod mode_switches)" -lt "$calls" ]
		result $? "kmod: fewer kernel entries than calls"
	fi
	kill "$server"
	wait "$server"
	result $? "$engine: it ends when it is told to"
done
echo "1..$count"
exit $failed
