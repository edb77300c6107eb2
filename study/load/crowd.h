/* SPDX-License-Identifier: MIT */
/*
 * A crowd: clients of an open loop or of sessions, which know nothing of each
 * other. A request begins when it is due, over a connection of its client's
 * own. When the time-out is over, the client gives up, and closes. One thread
 * runs a crowd, which has an epoll set of its own. Several crowds, a thread
 * each, share the arrivals.
 *
 * Without a trace a client has one request. With a trace the client has a
 * session: when a request is answered, the client thinks, as long as the trace
 * says, and has the next request. Whatever else becomes of a request, the
 * session is over, and has failed unless the request was cut off.
 *
 * Clients arrive when they are due; or, with places, whenever one of so many is
 * free, which is a closed loop.
 *
 * Should the thread have too much to do, requests begin late, and
 * tally->behind shows by how much.
 */
#ifndef FLEXSC_STUDY_CROWD_H
#define FLEXSC_STUDY_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agenda.h"
#include "arrivals.h"
#include "connections.h"
#include "tally.h"
#include "trace.h"
#include "bench/load/visit.h"

#define BENCH_PAGES	256

struct bench_crowd {
	/* The caller sets these. */
	struct bench_arrivals arrivals;
	size_t places;		/* 0: clients arrive when they are due */
	const struct bench_trace *trace;	/* NULL: the pages, in turn */
	struct bench_connections connections;
	struct bench_page pages[BENCH_PAGES];
	size_t page_count;
	uint64_t warm_up;	/* ns */
	uint64_t length;	/* ns; 0: until all clients are through */
	uint64_t timeout;	/* ns since a request was due; 0: none */
	uint64_t spin;		/* ns of looking for events before a sleep */
	bool cut;		/* when time is over, no answer is waited for */
	/* A run leaves these. */
	struct bench_tally *tally;
	double *order;		/* us, as answers came; NULL: not wanted */
	long order_count;
	const struct bench_page *first_wrong;	/* NULL: no answer was wrong */
	const char *first_why;
	/* Visits whose requests are under way, the oldest first. */
	struct bench_visit *oldest, *newest;
	struct bench_agenda agenda;	/* clients that think */
	struct bench_visit *spare;	/* memory for later clients */
	size_t clients;
	uint64_t freed;		/* ns: no free place is taken earlier */
	uint64_t random;	/* chooses what of an answer is compared */
	const char *wrong;	/* ends the run */
};

/* Memory and the epoll set; order: keep each answer's time. 0, or -errno. */
int bench_crowd_init(struct bench_crowd *crowd, bool order);
void bench_crowd_fini(struct bench_crowd *crowd);

/*
 * Ask for every page once, so that later answers can be compared with the
 * first. A trace's pages aren't asked for: their names tell their bytes. NULL,
 * or what is wrong.
 */
const char *bench_crowd_learn(struct bench_crowd *crowd);

/*
 * From the first request, due at "begin", to the end of the last. NULL, or what
 * is wrong. With a trace wrong answers are counted, and end nothing but their
 * sessions.
 */
const char *bench_crowd_run(struct bench_crowd *crowd, uint64_t begin);

#endif /* FLEXSC_STUDY_CROWD_H */
