/* SPDX-License-Identifier: MIT */
/*
 * What became of the requests of an open loop. Every request that was due is
 * counted once, by its end, so nobody is forgotten: offered is the sum of all
 * ends. Requests that were due before the warm-up was over are counted apart.
 */
#ifndef FLEXSC_BENCH_TALLY_H
#define FLEXSC_BENCH_TALLY_H

#include <stdint.h>

#include "histogram.h"

enum bench_end {
	BENCH_ANSWERED,
	BENCH_LATE,		/* the client gave up, or the run was over */
	BENCH_REFUSED,
	BENCH_RESET,
	BENCH_CLOSED,		/* by the server, within the answer or before */
	BENCH_UNSENT,		/* this client had no port or descriptor left */
	BENCH_ENDS,
};

struct bench_times {
	struct bench_histogram histogram;
	double sum;		/* ns */
	uint64_t max;
};

struct bench_tally {
	uint64_t from;		/* due earlier: part of the warm-up */
	uint64_t until;		/* the end of the arrivals */
	uint64_t last;		/* when the last answer came */
	uint64_t warm_up;	/* requests of it */
	uint64_t ends[BENCH_ENDS];
	uint64_t bytes;		/* of bodies */
	/* All from the time that a request was due. */
	struct bench_times connect, response, behind;
};

void bench_times_add(struct bench_times *times, uint64_t ns);
double bench_times_mean(const struct bench_times *times);

/* A request that was due has ended, now. */
void bench_tally_end(struct bench_tally *tally, uint64_t due, uint64_t now,
		     enum bench_end end);

uint64_t bench_tally_offered(const struct bench_tally *tally);

/* Answers a second, from the first request to the last answer (SEND, 4.4). */
double bench_tally_response_rate(const struct bench_tally *tally);

/* Requests a second that were answered before their client gave up. */
double bench_tally_goodput(const struct bench_tally *tally);

#endif /* FLEXSC_BENCH_TALLY_H */
