/* SPDX-License-Identifier: MIT */
/* Times, in nanoseconds. Any thread, any signal handler. */
#ifndef FLEXSC_CLOCK_H
#define FLEXSC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SECOND	1000000000ULL

/* Would the kernel accept this time limit? */
static inline bool time_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 &&
	       time->tv_nsec < (long)SECOND;
}

/*
 * Converts a valid time to ns. A time that is too large becomes INT64_MAX, which never
 * passes.
 */
static inline uint64_t time_ns(const struct timespec *time)
{
	if (time->tv_sec >= (time_t)(INT64_MAX / SECOND))
		return INT64_MAX;
	return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
}

static inline uint64_t time_now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time_ns(&time);
}

static inline uint64_t time_monotonic(void)
{
	return time_now(CLOCK_MONOTONIC);
}

#endif /* FLEXSC_CLOCK_H */
