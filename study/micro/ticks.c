/* SPDX-License-Identifier: MIT */
#include "ticks.h"

#include <stdlib.h>

#include "bench/raw/loop.h"

#define READINGS	1001
#define SPAN_NS		20000000

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_middle(double *samples, size_t count)
{
	size_t quarter = count / 4, half = count - 2 * quarter;
	double sum = 0;

	qsort(samples, count, sizeof(*samples), compare);
	for (size_t i = 0; i < half; i++)
		sum += samples[quarter + i];
	return sum / (double)half;
}

double bench_ticks_between(void)
{
	double samples[READINGS];

	for (int i = 0; i < READINGS; i++) {
		uint64_t begin = bench_ticks();

		samples[i] = (double)(bench_ticks() - begin);
	}
	return bench_middle(samples, READINGS);
}

double bench_ticks_per_us(void)
{
	uint64_t ns = bench_clock(CLOCK_MONOTONIC), begin = bench_ticks(), now;

	do
		now = bench_clock(CLOCK_MONOTONIC);
	while (now - ns < SPAN_NS);
	return (double)(bench_ticks() - begin) / ((double)(now - ns) / 1000);
}
