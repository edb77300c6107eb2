/* SPDX-License-Identifier: MIT */
/*
 * Where the server of a case is, and which addresses its clients' connections
 * come from, by turns: each has ports of its own, so that they don't run out.
 */
#ifndef FLEXSC_BENCH_ROUTE_H
#define FLEXSC_BENCH_ROUTE_H

#include <netinet/in.h>
#include <stdint.h>

#include "settings.h"

struct bench_route {
	struct sockaddr_in server;
	uint32_t source;	/* the first, in the host's order; 0: any */
	uint32_t sources;
};

/*
 * From the settings; source stands in for that setting, NULL is any. 0, or 1
 * after a line that names the case.
 */
int bench_route_init(struct bench_route *route, const char *name,
		     const struct bench_settings *settings, const char *source);

/* Give a socket its own address, before it connects. 0, or -errno. */
int bench_route_bind(const struct bench_route *route, int fd, uint64_t turn);

/* Begin to connect, without waiting; a descriptor, or -errno. */
int bench_route_connect(const struct bench_route *route, uint64_t turn);

#endif /* FLEXSC_BENCH_ROUTE_H */
