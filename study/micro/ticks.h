/* SPDX-License-Identifier: MIT */
/*
 * The processor's own clock, for spans of a few hundred instructions: the
 * time-stamp counter of x86-64, the virtual counter of arm64. The clock's ticks
 * come at a steady rate, which isn't that of the core's cycles. Reading the
 * clock takes no system call, and waits for all earlier instructions. Any
 * thread.
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
	/* Later instructions begin after the reading. */
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
 * The mean of the samples' middle half; sorts the samples. A few samples that
 * were disturbed don't move this mean, nor would they a median; and it is finer
 * than the clock, which may go on by 26 ticks at once. count: one at least.
 */
double bench_middle(double *samples, size_t count);

/* Ticks between two readings, one right after the other. */
double bench_ticks_between(void);

/* Ticks in a microsecond, by CLOCK_MONOTONIC; takes 20 milliseconds. */
double bench_ticks_per_us(void);

#endif /* FLEXSC_STUDY_TICKS_H */
