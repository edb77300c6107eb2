/* SPDX-License-Identifier: MIT */
/*
 * A route: a case's server, and the addresses that its clients use in turn.
 * Ports are counted per address, so they don't run out. A route is constant
 * once it is made.
 */
#ifndef FLEXSC_BENCH_ROUTE_H
#define FLEXSC_BENCH_ROUTE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/raw/settings.h"

struct bench_route {
	struct sockaddr_in server;
	uint32_t source;	/* first address, in host order; 0: any */
	uint32_t sources;
};

/*
 * Make a route from the settings. The first address is the setting "source", or
 * else the argument "source", a loopback address, or NULL for any address. From
 * loopback no other network can be reached, so clients of a server elsewhere
 * always use any address. Returns 0, or 1 after a message that begins with the
 * case's name.
 */
int bench_route_init(struct bench_route *route, const char *name,
		     const struct bench_settings *settings, const char *source);

/*
 * Connect from the next address. Returns a non-blocking descriptor, or -errno.
 * udp: make a datagram socket instead of a TCP connection. wait: return when
 * the TCP connection exists, after two seconds at most.
 */
int bench_route_connect(const struct bench_route *route, uint64_t turn,
			bool udp, bool wait);

#endif /* FLEXSC_BENCH_ROUTE_H */
