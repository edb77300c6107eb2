/* SPDX-License-Identifier: MIT */
/*
 * The connections of a crowd (crowd.h); each belongs to a visit. All are in one
 * epoll set, edge-triggered, with the descriptor as data. One thread at a time
 * uses them; during a run it is the crowd's.
 */
#ifndef FLEXSC_STUDY_CONNECTIONS_H
#define FLEXSC_STUDY_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/load/route.h"
#include "bench/load/visit.h"

#define BENCH_FDS_MAX	(1U << 20)

struct bench_connections {
	/* Set by the caller. */
	struct bench_route route;
	uint64_t begun;		/* number of the next connection, for route.h */
	size_t max;		/* most concurrent connections */
	/* Set by the functions. */
	int epoll;
	size_t count;
	struct bench_visit **by_fd;
};

/*
 * Returns 0 or -errno. bench_connections_fini() must be called in both cases.
 */
int bench_connections_init(struct bench_connections *connections);
void bench_connections_fini(struct bench_connections *connections);

/*
 * Open a connection for the visit; its handshake may still be pending. Returns
 * 0 or -errno. -EMFILE: "max" connections are open, or no descriptor is left.
 */
int bench_connections_open(struct bench_connections *connections,
			   struct bench_visit *visit);

/* Close the visit's connection, if it has one. */
void bench_connections_close(struct bench_connections *connections,
			     struct bench_visit *visit);

#endif /* FLEXSC_STUDY_CONNECTIONS_H */
