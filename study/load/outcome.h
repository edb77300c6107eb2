/* SPDX-License-Identifier: MIT */
/*
 * The results of an open loop or of sessions, as printed by "study --raw load".
 * The main thread calls the functions, before and after the crowds' threads
 * run.
 */
#ifndef FLEXSC_STUDY_OUTCOME_H
#define FLEXSC_STUDY_OUTCOME_H

#include <stdint.h>

#include "bench/raw/settings.h"
#include "tally.h"

#define BENCH_NETWORK	3	/* number of network counters */

struct bench_outcome {
	const struct bench_settings *settings;
	const struct bench_tally *tally;	/* sum of all threads */
	double *order;			/* time of each answer in us, or NULL */
	long order_count;
	double network[BENCH_NETWORK];	/* counters, later their growth */
	uint64_t cpu;			/* server's processor time in ns; 0: no pid= */
};

/* Read the network's counters before a run; after it, compute their growth. */
void bench_outcome_before(struct bench_outcome *outcome);
void bench_outcome_after(struct bench_outcome *outcome);

/* Print the outcome as JSON. */
void bench_outcome_report(const struct bench_outcome *outcome);

#endif /* FLEXSC_STUDY_OUTCOME_H */
