/* SPDX-License-Identifier: MIT */
/*
 * The connections of a crowd: those that visits have, and those that are kept
 * while no visit has them. They are in one epoll set, by edges, with the
 * descriptor as data. The crowd's thread calls all functions.
 */
#ifndef FLEXSC_BENCH_CONNECTIONS_H
#define FLEXSC_BENCH_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evenness.h"
#include "route.h"
#include "visit.h"

#define BENCH_FDS_MAX	(1U << 20)

struct bench_connections {
	/* What is asked of them. */
	struct bench_route route;
	uint64_t begun;		/* for their turns */
	size_t max;
	bool kept;
	uint64_t from;		/* closed earlier: not in the evenness */
	/* What there is. */
	struct bench_evenness evenness;	/* of answers to kept ones */
	int epoll;
	size_t count;
	struct bench_visit **by_fd;	/* NULL: idle, or none */
	uint32_t *answers;	/* of a kept connection, and one more; or 0 */
	int *idle;
	size_t idle_count;
};

/* 0, or -errno; bench_connections_fini() is due in both cases. */
int bench_connections_init(struct bench_connections *connections);
void bench_connections_fini(struct bench_connections *connections);

/*
 * Give the visit a connection, an idle one or a new one, which may still be on its
 * way. 0, or -errno: -EMFILE if there are as many as there may be.
 */
int bench_connections_take(struct bench_connections *connections,
			   struct bench_visit *visit);

/* The visit goes without its connection: it is kept, or closed. */
void bench_connections_keep(struct bench_connections *connections,
			    struct bench_visit *visit);
void bench_connections_drop(struct bench_connections *connections,
			    struct bench_visit *visit);

/* An idle connection is at its end. */
void bench_connections_lose(struct bench_connections *connections, int fd);

/* The visit's connection has had an answer that counts. */
static inline void
bench_connections_answered(struct bench_connections *connections, int fd)
{
	connections->answers[fd] += connections->kept;
}

/* Close those that are kept. */
void bench_connections_close(struct bench_connections *connections);

#endif /* FLEXSC_BENCH_CONNECTIONS_H */
