/* SPDX-License-Identifier: MIT */
/*
 * A crowd: independent clients of an open loop or of sessions. A request begins
 * when it is due, on its client's own connection. After the time-out the client
 * gives up and closes the connection. One thread runs a crowd, which has its
 * own epoll set. Several crowds, one thread each, share the arrivals.
 *
 * Without a trace a client has one request. With a trace a client has a
 * session: after each answer it thinks for the time in the trace, and then
 * sends the next request. If a request ends in any other way, the session ends,
 * and has failed unless the run's end cut the request off.
 *
 * In an open loop, clients arrive when they are due. In a closed loop, which has
 * a number of places, a client arrives whenever a place is free.
 *
 * If the thread is overloaded, requests begin late; tally->behind shows by how
 * much.
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
	/* Set by the caller. */
	struct bench_arrivals arrivals;
	size_t places;		/* of a closed loop; 0: clients arrive when due */
	const struct bench_trace *trace;	/* NULL: the pages, in turn */
	struct bench_connections connections;
	struct bench_page pages[BENCH_PAGES];
	size_t page_count;
	uint64_t warm_up;	/* ns */
	uint64_t length;	/* ns; 0: until all clients have finished */
	uint64_t timeout;	/* ns since a request was due; 0: none */
	uint64_t spin;		/* ns of polling for events before a sleep */
	bool cut;		/* don't wait for answers after the end */
	/* Results of a run. */
	struct bench_tally *tally;
	/*
	 * For each answer, in the order of arrival: us since its request was due.
	 * NULL: not recorded.
	 */
	double *order;
	long order_count;
	const struct bench_page *first_wrong;	/* page of the first wrong answer, or NULL */
	const char *first_why;
	/* Visits with a pending request, the oldest first. */
	struct bench_visit *oldest, *newest;
	struct bench_agenda agenda;	/* clients that think */
	struct bench_visit *spare;	/* memory for later clients */
	size_t clients;
	uint64_t freed;		/* ns: a free place isn't taken before this time */
	uint64_t random;	/* selects the bytes of an answer to compare */
	const char *wrong;	/* an error that ends the run */
};

/*
 * Allocate memory and the epoll set. order: record each answer's time. Returns
 * 0 or -errno.
 */
int bench_crowd_init(struct bench_crowd *crowd, bool order);
void bench_crowd_fini(struct bench_crowd *crowd);

/*
 * Request every page once, so that later answers can be compared with the first
 * one. The pages of a trace aren't requested, because their names determine
 * their bytes. Returns NULL or an error message.
 */
const char *bench_crowd_learn(struct bench_crowd *crowd);

/*
 * Run from the first request, due at "begin", to the end of the last one.
 * Returns NULL or an error message. A wrong answer ends the run. With a trace, it
 * is counted and ends only its session.
 */
const char *bench_crowd_run(struct bench_crowd *crowd, uint64_t begin);

#endif /* FLEXSC_STUDY_CROWD_H */
