/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the cases: the library's loop for a variant, clocks, random
 * numbers, and memory that is resident before anything is measured.
 */
#ifndef FLEXSC_BENCH_LOOP_H
#define FLEXSC_BENCH_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "settings.h"

struct flexsc_loop;

/* Pin this thread to core; negative: don't. Returns 0, or 1 after a message. */
int bench_pin(long core);

/*
 * Make a loop, then pin this thread. Pinning comes second, because a loop's
 * syscall threads may only use the cores that its owner may use at that time.
 * Returns 0, or 1 after a message.
 */
int bench_loop_create(struct flexsc_loop **loop,
		      const struct bench_settings *settings);

/* Memory that is zeroed and resident; NULL after a message. */
void *bench_memory(size_t count, size_t size);

/*
 * The numbers below "outstanding" in random order, except that the first
 * "active" ones are spread evenly. NULL after a message.
 */
uint32_t *bench_order(uint64_t outstanding, uint64_t active);

/*
 * Raise the limit of descriptors to this number, or as far as possible. Returns
 * the limit.
 */
size_t bench_descriptors(size_t wanted);

/*
 * Raise the limit to this number. Returns 0, or 1 after a message if so many
 * descriptors aren't allowed.
 */
int bench_allow(const char *name, size_t wanted);

/* This process's resident memory, in bytes. */
double bench_resident(void);

/* Nanoseconds of CLOCK_MONOTONIC or CLOCK_THREAD_CPUTIME_ID. */
static inline uint64_t bench_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Pseudo-random numbers, the same in every run (xorshift64). */
static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif /* FLEXSC_BENCH_LOOP_H */
