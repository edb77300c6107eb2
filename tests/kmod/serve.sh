#!/bin/busybox sh
# SPDX-License-Identifier: MIT
#
# Run flexsc serve in a guest, on one engine after the other, with clients that check the
# responses: TAP, and behind "#" the counters of flexsc stat and of the module, before and
# after. Runs as root.
#
#	kmod-serve [ENGINE...]
#
# Without an ENGINE, it also runs a server for which the kernel accepts
# clients, and whose calls are traced at some point: from then on the kernel
# may not accept.
#
# CLIENTS and REQUESTS in the environment: the number of clients, and of
# requests per client.
# shellcheck shell=dash
set -u

clients=${CLIENTS:-32}
requests=${REQUESTS:-20}
total=$((clients * requests))
# shellcheck source=tests/kmod/tap.sh
. /bin/kmod-tap

# counters ENGINE WHEN: print the server's counters, one per line.
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

# launch COMMAND...: start a $server, and read its $port from its output.
launch() {
	port=''
	"$@" >/tmp/said 2>&1 &
	server=$!
	tries=0
	while [ -z "$port" ] && [ $tries -lt 300 ]; do
		sleep 0.1
		port=$(sed -n 's|.*http://[^/]*:\([0-9]*\)/.*|\1|p
			s|^[0-9][0-9]*$|&|p' /tmp/said)
		tries=$((tries + 1))
	done
	sed 's/^/# /' /tmp/said
}

# start ENGINE [OPTION...]: start flexsc serve.
start() {
	engine=$1
	shift
	launch flexsc serve --engine "$engine" "$@" -p 0 /tmp/www
	grep -q "with engine $engine," /tmp/said
}

# watch_calls 0|1: trace the system calls of all tasks?
watch_calls() {
	echo "$1" >/sys/kernel/tracing/events/raw_syscalls/sys_enter/enable
}

# ask WHAT FILE...: serve some clients, and check their results.
ask() {
	what=$1
	shift
	said=$(timeout 30 kmod-http "$port" 8 3 /tmp/www "$@")
	result $? "$what: $said"
}

# end
end() {
	kill "$server"
	wait "$server"
}

# by ENGINE NAME...: print the present sum of these counters.
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

if [ $# = 0 ]; then
	launch http-events --events send
	wget -q -O /tmp/www/1k "http://127.0.0.1:$port/1k"
	ask "http-events" 1k
	watch_calls 1
	ask "something watches http-events' calls" 1k
	watch_calls 0
	ask "nothing watches them any more" 1k
	end
	set -- kmod
fi
for engine in "$@"; do
	start "$engine"
	result $? "$engine: it serves"
	counters "$engine" before
	said=$(kmod-http "$port" "$clients" "$requests" /tmp/www \
		small folder/middle small large small empty)
	result $? "$engine: $said"
	# The loop publishes counters before it sleeps.
	sleep 0.5
	counters "$engine" after
	if [ "$engine" = kmod ]; then
		calls=$(by kmod posted)
		[ "$(by kmod by_kmod)" -gt $((4 * total)) ]
		result $? "kmod: the module executed the calls"
		[ "$(by kmod mode_switches)" -lt "$calls" ]
		result $? "kmod: fewer kernel entries than calls"
	fi
	end
	result $? "$engine: it ends at SIGTERM"
done
finish
