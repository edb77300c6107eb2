/* SPDX-License-Identifier: MIT */
/*
 * Histogram of times on a logarithmic scale: 64 classes per power of two
 * nanoseconds, so the error of a percentile is below one percent at any size.
 * One thread fills a histogram; afterwards the threads' histograms are added.
 */
#ifndef FLEXSC_BENCH_HISTOGRAM_H
#define FLEXSC_BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_HISTOGRAM_BITS	6
#define BENCH_HISTOGRAM_SUB	(1U << BENCH_HISTOGRAM_BITS)
#define BENCH_HISTOGRAM_CLASSES	((65 - BENCH_HISTOGRAM_BITS) * \
				 BENCH_HISTOGRAM_SUB)

struct bench_histogram {
	uint64_t total;
	uint64_t counts[BENCH_HISTOGRAM_CLASSES];
};

/* The class of a time. Below 64 ns each nanosecond has its own class. */
static inline unsigned int bench_histogram_class(uint64_t ns)
{
	unsigned int shift;

	if (ns < BENCH_HISTOGRAM_SUB)
		return (unsigned int)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - BENCH_HISTOGRAM_BITS;
	return (shift + 1) * BENCH_HISTOGRAM_SUB +
	       (unsigned int)((ns >> shift) - BENCH_HISTOGRAM_SUB);
}

static inline void bench_histogram_add(struct bench_histogram *h, uint64_t ns)
{
	h->counts[bench_histogram_class(ns)]++;
	h->total++;
}

void bench_histogram_merge(struct bench_histogram *into,
			   const struct bench_histogram *from);

/*
 * The quantile "share" (0 to 1) in ns: at least this share of all times is as
 * short or shorter.
 */
double bench_histogram_at(const struct bench_histogram *h, double share);

#endif /* FLEXSC_BENCH_HISTOGRAM_H */
