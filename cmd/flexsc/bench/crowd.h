/* SPDX-License-Identifier: MIT */
/*
 * The clients of an open loop, who know nothing of each other: a request begins
 * when it is due, over a connection of its own, or over the first of some kept
 * ones that is free. Some time after that its client gives up, and closes. One
 * thread runs all of this; it has an epoll of its own, and never spins.
 *
 * Should that thread have too much to do, requests begin late, and
 * tally->behind shows by how much.
 */
#ifndef FLEXSC_BENCH_CROWD_H
#define FLEXSC_BENCH_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arrivals.h"
#include "route.h"
#include "tally.h"
#include "visit.h"

#define BENCH_PAGES	256
#define BENCH_FDS_MAX	(1U << 20)

struct bench_crowd {
	/* What is asked of it; connections_max with new ones, too. */
	struct bench_arrivals arrivals;
	struct bench_route route;
	uint64_t begun;		/* connections, for their turns */
	struct bench_page pages[BENCH_PAGES];	/* in turn */
	size_t page_count;
	size_t turn;		/* whose it is, of the pages */
	uint64_t warm_up;	/* ns */
	uint64_t timeout;	/* ns; 0: none */
	bool kept;
	size_t connections_max;
	/* What it finds. */
	struct bench_tally *tally;
	double *order;		/* times, as answers came; NULL: not wanted */
	long order_count;
	/*
	 * Requests that have begun, the oldest first. Those without a
	 * connection are the newest ones, from "waiting" on.
	 */
	struct bench_visit *oldest, *newest, *waiting;
	struct bench_visit *spare;
	int epoll;
	struct bench_visit **by_fd;	/* NULL: a connection that is idle */
	int *idle;
	size_t idle_count;
	size_t connections;
	const char *wrong;	/* ends the run */
};

/* Memory and the epoll; wanted: keep the times in order. 0, or -errno. */
int bench_crowd_init(struct bench_crowd *crowd, bool order);
void bench_crowd_fini(struct bench_crowd *crowd);

/* From the first request to the end of the last. NULL, or what is wrong. */
const char *bench_crowd_run(struct bench_crowd *crowd);

#endif /* FLEXSC_BENCH_CROWD_H */
