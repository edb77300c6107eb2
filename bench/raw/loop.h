/* SPDX-License-Identifier: MIT */
/*
 * The cases' common parts: the library's loop for a variant, clocks, chance,
 * and memory that was touched before anything is measured.
 */
#ifndef FLEXSC_BENCH_LOOP_H
#define FLEXSC_BENCH_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "settings.h"

struct flexsc_loop;

/* Stay on core; negative: anywhere. 0, or 1 after a line on stderr. */
int bench_pin(long core);

/*
 * Make a loop and pin this thread: after the loop was made, because it may have
 * its syscall threads only where its owner may be. 0, or 1 after a line on
 * stderr.
 */
int bench_loop_create(struct flexsc_loop **loop,
		      const struct bench_settings *settings);

/* Memory that is zeroed and resident; NULL after a line on stderr. */
void *bench_memory(size_t count, size_t size);

/*
 * The numbers below "outstanding" in random order, but the first "active"
 * numbers are spread evenly. NULL after a line on stderr.
 */
uint32_t *bench_order(uint64_t outstanding, uint64_t active);

/* Allow so many descriptors, or as many as may be. Returns the limit. */
size_t bench_descriptors(size_t wanted);

/* The same; 1 after a line on stderr, if so many aren't allowed. */
int bench_allow(const char *name, size_t wanted);

/* Bytes of this process in memory now. */
double bench_resident(void);

/* Nanoseconds of CLOCK_MONOTONIC or CLOCK_THREAD_CPUTIME_ID. */
static inline uint64_t bench_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Random numbers that are equal in every run (xorshift64). */
static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif /* FLEXSC_BENCH_LOOP_H */
