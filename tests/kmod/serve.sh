#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# flexsc serve in a guest, on one engine after the other, and clients that check
# what it answers: TAP, and behind "#" the counters of flexsc stat and of the
# module, before and after. Runs as root.
#
#	kmod-serve [ENGINE...]
#
# Without an ENGINE, also a server whose clients the kernel accepts, and whose calls
# something begins to watch: then the kernel may not accept for it.
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

# launch COMMAND...: a $server, and its $port, which it says.
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

# start ENGINE [OPTION...]: flexsc serve.
start() {
	engine=$1
	shift
	launch flexsc serve --engine "$engine" "$@" -p 0 /tmp/www
	grep -q "with engine $engine," /tmp/said
}

# watch_calls 0|1: does something watch every task's system calls?
watch_calls() {
	echo "$1" >/sys/kernel/tracing/events/raw_syscalls/sys_enter/enable
}

# ask WHAT FILE...: a few clients are served.
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
	end
	result $? "$engine: it ends when it is told to"
done
echo "1..$count"
exit $failed
