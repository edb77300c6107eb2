/* SPDX-License-Identifier: MIT */
/*
 * Counters in Prometheus' text format, and the table of a loop's counters. Used
 * by the server and by flexsc stat.
 */
#ifndef SERVE_EXPOSITION_H
#define SERVE_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <flexsc/stats.h>

struct loop_counter {
	size_t offset;		/* in struct flexsc_stats */
	const char *name;
	const char *meaning;
	bool gauge;		/* a current value, not a count */
};

#define LOOP_COUNTERS	20

extern const struct loop_counter loop_counters[LOOP_COUNTERS];

uint64_t loop_counter_value(const struct loop_counter *counter,
			    const struct flexsc_stats *stats);

/*
 * Begin a family of samples with this name. The caller then writes each sample
 * as a line. Returns the suffix of the sample's name: "_total", or "" for a
 * gauge.
 */
const char *exposition_family(FILE *out, const char *name, const char *meaning,
			      bool gauge);

/* Write name="text", escaped. "text" ends after "max" bytes or at a zero. */
void exposition_label(FILE *out, const char *name, const char *text,
		      size_t max);

/* Write all families of these loops' counters. */
void exposition_loops(FILE *out, const struct flexsc_stats_page *loops,
		      unsigned int count);

#endif /* SERVE_EXPOSITION_H */
