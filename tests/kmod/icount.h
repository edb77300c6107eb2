/* SPDX-License-Identifier: MIT */
/*
 * Guest instructions: if QEMU runs with -icount shift=0, the time-stamp counter counts
 * them. Both user and kernel mode count.
 */
#ifndef FLEXSC_TESTS_ICOUNT_H
#define FLEXSC_TESTS_ICOUNT_H

#include <stdint.h>
#include <stdlib.h>

#define ROUNDS	200

static inline uint64_t instructions(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* The instructions of counting itself. */
static uint64_t own = UINT64_MAX;

static inline uint64_t since(uint64_t begin)
{
	return instructions() - begin - own;
}

static inline void calibrate(void)
{
	for (int i = 0; i < 100; i++) {
		uint64_t begin = instructions(), count = instructions() - begin;

		own = count < own ? count : own;
	}
}

static inline int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median, because some measurements contain a timer interrupt. */
static inline double median(uint64_t *counts, unsigned int n)
{
	qsort(counts, n, sizeof(*counts), compare);
	return (double)counts[n / 2];
}

/* The median count of a statement. Then "after" runs, uncounted. */
#define COUNT(statement, after)						\
	({								\
		uint64_t counts_[ROUNDS], begin_;			\
									\
		for (int r_ = 0; r_ < ROUNDS; r_++) {			\
			begin_ = instructions();			\
			statement;					\
			counts_[r_] = since(begin_);			\
			after;						\
		}							\
		median(counts_, ROUNDS);				\
	})

#endif /* FLEXSC_TESTS_ICOUNT_H */
