/* SPDX-License-Identifier: MIT */
/*
 * The times when an open loop's requests are due. They depend only on rate,
 * kind and seed, so a slow server doesn't change them.
 *
 * 	even	equally far apart
 * 	poisson	a random time apart, as with independent clients
 */
#ifndef FLEXSC_STUDY_ARRIVALS_H
#define FLEXSC_STUDY_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_arrivals {
	uint64_t begin;		/* ns: time when the first arrival is due */
	uint64_t count;		/* number of arrivals, of all threads together */
	uint64_t made;		/* the next arrival's number, among all threads' */
	uint64_t rate;		/* arrivals per second */
	uint64_t stride;	/* distance between this thread's arrivals */
	bool poisson;
	double at;		/* poisson: ns from "begin" to the next arrival */
	uint64_t random;	/* state of the random numbers */
};

/* seed: must not be zero. */
void bench_arrivals_init(struct bench_arrivals *arrivals, uint64_t rate,
			 uint64_t count, bool poisson, uint64_t seed);

/*
 * Keep only one thread's arrivals: number "index", and every "threads"-th after
 * it. All threads together have all arrivals.
 */
void bench_arrivals_share(struct bench_arrivals *arrivals, uint64_t index,
			  uint64_t threads);

/* The time when the next arrival is due. UINT64_MAX: none is left. */
uint64_t bench_arrivals_due(const struct bench_arrivals *arrivals);

/* Go on to the next arrival. */
void bench_arrivals_pass(struct bench_arrivals *arrivals);

#endif /* FLEXSC_STUDY_ARRIVALS_H */
