/* SPDX-License-Identifier: MIT */
/*
 * When the requests of an open loop are due. The times are a function of rate,
 * kind and seed alone, and no server's slowness moves them.
 *
 *	even	equally far apart
 *	poisson	a random time apart, as clients that know nothing of each other
 */
#ifndef FLEXSC_BENCH_ARRIVALS_H
#define FLEXSC_BENCH_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_arrivals {
	uint64_t begin;		/* when the first one is due; ns */
	uint64_t count;		/* of all */
	uint64_t made;		/* so far */
	uint64_t rate;		/* a second */
	uint64_t stride;	/* passed at once */
	bool poisson;
	double at;		/* of a poisson arrival, in ns from begin */
	uint64_t random;
};

/* seed: not zero. */
void bench_arrivals_init(struct bench_arrivals *arrivals, uint64_t rate,
			 uint64_t count, bool poisson, uint64_t seed);

/*
 * Keep one thread's part of the arrivals, every so many from index on. All threads
 * together have them all.
 */
void bench_arrivals_share(struct bench_arrivals *arrivals, uint64_t index,
			  uint64_t threads);

/* When the next one is due; UINT64_MAX: there is none. */
uint64_t bench_arrivals_due(const struct bench_arrivals *arrivals);

/* The next one has arrived. */
void bench_arrivals_pass(struct bench_arrivals *arrivals);

#endif /* FLEXSC_BENCH_ARRIVALS_H */
