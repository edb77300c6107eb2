/* SPDX-License-Identifier: MIT */
/*
 * When the requests of an open loop are due. The times are a function of rate,
 * kind and seed alone, and no server's slowness moves them.
 *
 *	even	equally far apart
 *	poisson	a random time apart, as clients that know nothing of each other
 */
#ifndef FLEXSC_STUDY_ARRIVALS_H
#define FLEXSC_STUDY_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_arrivals {
	uint64_t begin;		/* ns: when the first one is due */
	uint64_t count;		/* of all threads together */
	uint64_t made;		/* the next one's number, among all threads' */
	uint64_t rate;		/* a second */
	uint64_t stride;	/* passed at once */
	bool poisson;
	double at;		/* ns from begin to the next one, if poisson */
	uint64_t random;	/* state of the random numbers */
};

/* seed: not zero. */
void bench_arrivals_init(struct bench_arrivals *arrivals, uint64_t rate,
			 uint64_t count, bool poisson, uint64_t seed);

/*
 * Keep one thread's part of the arrivals: from number "index" on, every one in
 * "threads". All threads together have all arrivals.
 */
void bench_arrivals_share(struct bench_arrivals *arrivals, uint64_t index,
			  uint64_t threads);

/* When the next one is due; UINT64_MAX: there is none. */
uint64_t bench_arrivals_due(const struct bench_arrivals *arrivals);

/* The next one has arrived. */
void bench_arrivals_pass(struct bench_arrivals *arrivals);

#endif /* FLEXSC_STUDY_ARRIVALS_H */
