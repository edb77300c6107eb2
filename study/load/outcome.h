/* SPDX-License-Identifier: MIT */
/*
 * The outcome of an open loop or of sessions, as "study --raw load" prints it.
 * The main thread calls the functions, before the crowds' threads run and
 * after.
 */
#ifndef FLEXSC_STUDY_OUTCOME_H
#define FLEXSC_STUDY_OUTCOME_H

#include <stdint.h>

#include "bench/raw/settings.h"
#include "tally.h"

#define BENCH_NETWORK	3	/* counters of the server's network */

struct bench_outcome {
	const struct bench_settings *settings;
	const struct bench_tally *tally;	/* of all threads */
	double *order;			/* us, of each answer; or NULL */
	long order_count;
	double network[BENCH_NETWORK];	/* counters; then their growth */
	uint64_t cpu;			/* ns of the server's; 0 without pid= */
};

/* Read the network's counters before a run; and how much they grew, after. */
void bench_outcome_before(struct bench_outcome *outcome);
void bench_outcome_after(struct bench_outcome *outcome);

/* Print the outcome as JSON. */
void bench_outcome_report(const struct bench_outcome *outcome);

#endif /* FLEXSC_STUDY_OUTCOME_H */
