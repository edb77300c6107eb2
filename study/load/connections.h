/* SPDX-License-Identifier: MIT */
/*
 * The connections of a crowd (crowd.h). A connection is a visit's, or idle:
 * kept for a later visit. All are in one epoll set, edge-triggered, with the
 * descriptor as data. One thread at a time uses them: the crowd's, in a run.
 */
#ifndef FLEXSC_STUDY_CONNECTIONS_H
#define FLEXSC_STUDY_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/load/evenness.h"
#include "bench/load/route.h"
#include "bench/load/visit.h"

#define BENCH_FDS_MAX	(1U << 20)

struct bench_connections {
	/* The caller sets these. */
	struct bench_route route;
	uint64_t begun;		/* the next connection's turn (route.h) */
	size_t max;		/* connections at once, at most */
	bool kept;		/* connections outlive a visit */
	uint64_t from;		/* ns: the evenness is of later closings */
	/* The functions keep these. */
	struct bench_evenness evenness;	/* of kept connections' answers */
	int epoll;
	size_t count;
	struct bench_visit **by_fd;	/* NULL: an idle connection, or none */
	uint32_t *answers;	/* by fd: 1 + a kept one's; 0: none is kept */
	int *idle;		/* a ring of descriptors, from idle_first on */
	size_t idle_first, idle_count;
};

/* 0, or -errno; bench_connections_fini() is due in both cases. */
int bench_connections_init(struct bench_connections *connections);
void bench_connections_fini(struct bench_connections *connections);

/*
 * Give the visit the connection that has been idle for longest, so that
 * requests are shared evenly, or a new one, whose handshake may not be over. 0,
 * or -errno: -EMFILE if "max" connections are open, or no descriptor is left.
 */
int bench_connections_take(struct bench_connections *connections,
			   struct bench_visit *visit);

/* Take the visit's connection from it: keep the connection, or close it. */
void bench_connections_keep(struct bench_connections *connections,
			    struct bench_visit *visit);
void bench_connections_drop(struct bench_connections *connections,
			    struct bench_visit *visit);

/* Close an idle connection that the server has closed or sent bytes to. */
void bench_connections_lose(struct bench_connections *connections, int fd);

/* Count an answer of the connection fd, if connections are kept. */
static inline void
bench_connections_answered(struct bench_connections *connections, int fd)
{
	connections->answers[fd] += connections->kept;
}

/* At the end of a run, when no visit has a connection: close the idle ones. */
void bench_connections_close(struct bench_connections *connections);

#endif /* FLEXSC_STUDY_CONNECTIONS_H */
