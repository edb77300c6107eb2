/* SPDX-License-Identifier: MIT */
#include "histogram.h"

/* The time in the middle of a class. */
static double middle(unsigned int class)
{
	unsigned int group = class / BENCH_HISTOGRAM_SUB;
	double low = class % BENCH_HISTOGRAM_SUB;

	if (!group)
		return low;
	low += BENCH_HISTOGRAM_SUB;
	return (low + 0.5) * (double)(UINT64_C(1) << (group - 1));
}

void bench_histogram_merge(struct bench_histogram *into,
			   const struct bench_histogram *from)
{
	for (unsigned int i = 0; i < BENCH_HISTOGRAM_CLASSES; i++)
		into->counts[i] += from->counts[i];
	into->total += from->total;
}

double bench_histogram_at(const struct bench_histogram *h, double share)
{
	double rank = share * (double)h->total;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < BENCH_HISTOGRAM_CLASSES; i++) {
		sum += h->counts[i];
		if (sum && (double)sum >= rank)
			return middle(i);
	}
	return 0;
}
