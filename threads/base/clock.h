/* SPDX-License-Identifier: MIT */
/* Times in nanoseconds, as the runtime counts them. Any thread. */
#ifndef FLEXSC_THREADS_CLOCK_H
#define FLEXSC_THREADS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SECOND	1000000000ULL

/* What the kernel takes for a time. */
static inline bool time_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 &&
	       time->tv_nsec < (long)SECOND;
}

/* A valid one; what is too large is as good as never. */
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

#endif /* FLEXSC_THREADS_CLOCK_H */
