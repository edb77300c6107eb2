/* SPDX-License-Identifier: MIT */
/*
 * The outcome of an open loop or of sessions, as "bench --raw load" prints it.
 */
#ifndef FLEXSC_BENCH_OUTCOME_H
#define FLEXSC_BENCH_OUTCOME_H

#include <stdint.h>

#include "settings.h"
#include "tally.h"

#define BENCH_NETWORK	3	/* counters of the server's network */

struct bench_outcome {
	const struct bench_settings *settings;
	const struct bench_tally *tally;	/* of all threads */
	double *order;			/* NULL: not wanted */
	long order_count;
	double network[BENCH_NETWORK];	/* before; then what came to it */
	uint64_t cpu;			/* ns of the server's, if its pid is given */
};

/* Read the counters of the server's network: before, and then what came to them. */
void bench_outcome_before(struct bench_outcome *outcome);
void bench_outcome_after(struct bench_outcome *outcome);

void bench_outcome_report(const struct bench_outcome *outcome);

#endif /* FLEXSC_BENCH_OUTCOME_H */
