/* SPDX-License-Identifier: MIT */
/*
 * The processor's own clock, for spans of a few hundred instructions: the
 * time-stamp counter of x86-64, the virtual counter of arm64. Its ticks have a
 * constant rate, which differs from the core's cycles. Reading it takes no
 * system call, and waits for all earlier instructions. Any thread.
 */
#ifndef FLEXSC_STUDY_TICKS_H
#define FLEXSC_STUDY_TICKS_H

#include <stddef.h>
#include <stdint.h>

/* Read the clock. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
	unsigned int core;
	uint64_t now;

	__builtin_ia32_lfence();
	now = __builtin_ia32_rdtscp(&core);
	/* Keep later instructions from starting before the reading. */
	__builtin_ia32_lfence();
	return now;
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(now) : : "memory");
	return now;
#else
#error "no clock is known for this processor"
#endif
}

/*
 * The mean of the middle half of the samples; sorts the samples. A few
 * disturbed samples don't change it, as with a median. It is finer than the
 * clock, which may advance by 26 ticks at once. count: at least one.
 */
double bench_middle(double *samples, size_t count);

/* Ticks between two consecutive readings. */
double bench_ticks_between(void);

/* Ticks per microsecond, by CLOCK_MONOTONIC; takes 20 milliseconds. */
double bench_ticks_per_us(void);

#endif /* FLEXSC_STUDY_TICKS_H */
