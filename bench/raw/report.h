/* SPDX-License-Identifier: MIT */
/*
 * What "flexsc bench --raw" prints: one JSON object with the case, its
 * settings, raw samples by name, and counts.
 *
 *	{"case": "calls", "settings": {...},
 *	 "samples": {"ns_per_call": [...]}, "counts": {...}}
 */
#ifndef FLEXSC_BENCH_REPORT_H
#define FLEXSC_BENCH_REPORT_H

#include <stdint.h>

#include "settings.h"

struct flexsc_loop;

/* A series of samples, one per repetition. */
struct bench_series {
	const char *name;
	double *samples;
	long count;
};

/*
 * Report on stderr what failed, with the text of a negative errno code; returns
 * 1.
 */
int bench_failed(const char *what, int err);

/* Allocate one sample per repetition. Returns 0, or 1 after a message. */
int bench_series_init(struct bench_series *series, const char *name,
		      const struct bench_settings *settings);
void bench_series_fini(struct bench_series *series);
void bench_series_add(struct bench_series *series, double sample);

/* The parts of a report, in this order. Series and counts may be repeated. */
void bench_report_begin(const char *name,
			const struct bench_settings *settings);
void bench_report_series(const struct bench_series *series);
void bench_report_counts(void);
void bench_report_count(const char *name, double value);
void bench_report_stats(const struct flexsc_loop *loop);
void bench_report_end(void);

#endif /* FLEXSC_BENCH_REPORT_H */
