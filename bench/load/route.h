/* SPDX-License-Identifier: MIT */
/*
 * A route: where the server of a case is, and the addresses that its clients'
 * connections come from, by turns. Each address has ports of its own, so ports
 * don't run out. A route doesn't change once it is made.
 */
#ifndef FLEXSC_BENCH_ROUTE_H
#define FLEXSC_BENCH_ROUTE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/raw/settings.h"

struct bench_route {
	struct sockaddr_in server;
	uint32_t source;	/* the first address, in host order; 0: any */
	uint32_t sources;
};

/*
 * Make a route of the settings. The first address is the setting "source". If
 * that isn't given, the first address is the argument "source", which is of the
 * loopback network, or NULL for any address; but from loopback no other network
 * can be reached, so a server elsewhere has clients of any address. 0, or 1
 * after a line on stderr that begins with the case's name.
 */
int bench_route_init(struct bench_route *route, const char *name,
		     const struct bench_settings *settings, const char *source);

/*
 * Connect from the address whose turn it is: a TCP connection, which nobody waits
 * for if wait is false; or, with udp, a socket of datagrams. A descriptor that
 * doesn't block, or -errno; who waits does so for two seconds at most.
 */
int bench_route_connect(const struct bench_route *route, uint64_t turn,
			bool udp, bool wait);

#endif /* FLEXSC_BENCH_ROUTE_H */
