/* SPDX-License-Identifier: MIT */
/*
 * A tally: what became of the requests of an open loop, or of sessions. Every
 * request that was due is counted once, by its end, so none is forgotten:
 * "offered" is the sum of all ends. Requests that were due before the warm-up
 * was over are counted apart. A thread has a tally of its own.
 */
#ifndef FLEXSC_STUDY_TALLY_H
#define FLEXSC_STUDY_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "bench/load/histogram.h"
#include "bench/load/visit.h"

struct bench_times {
	struct bench_histogram histogram;
	double sum;		/* ns */
	uint64_t max;		/* ns */
};

struct bench_tally {
	/* Times of CLOCK_MONOTONIC, in ns. */
	uint64_t from;		/* the end of the warm-up */
	uint64_t until;		/* the end of the arrivals, or of sessions */
	uint64_t last;		/* when the last answer came */
	uint64_t warm_up;	/* requests that were due before "from" */
	uint64_t ends[BENCH_ENDS];
	uint64_t bytes;		/* of bodies */
	uint64_t within;	/* answers that came from "from" to "until" */
	uint64_t within_bytes;	/* of these answers' bodies */
	uint64_t spun;		/* ns that events were looked for in vain */
	/* From the time that a request was due. */
	struct bench_times connect, response, behind;
	struct bench_times exchange;	/* from when it could be sent */
	/* Sessions, from the first to the last. */
	uint64_t begun, done, failed;
	uint64_t unasked;	/* requests that were left of failed sessions */
	uint64_t lost;		/* connections closed while clients thought */
};

void bench_times_add(struct bench_times *times, uint64_t ns);
void bench_times_merge(struct bench_times *into,
		       const struct bench_times *from);
double bench_times_mean(const struct bench_times *times);

/* A right answer of so many bytes has come, now, before the time-out. */
void bench_tally_answered(struct bench_tally *tally, uint64_t now,
			  size_t bytes);

/* As bench_histogram_at(), and at most the longest time. */
double bench_times_at(const struct bench_times *times, double share);

/* A request that was due has ended, now. */
void bench_tally_end(struct bench_tally *tally, uint64_t due, uint64_t now,
		     enum bench_end end);

/* Add a thread's tally to that of another, of one run. */
void bench_tally_merge(struct bench_tally *into,
		       const struct bench_tally *from);

uint64_t bench_tally_offered(const struct bench_tally *tally);

/*
 * Answers a second, from "from" to the last answer, or to "until" if that is
 * later (SEND, 4.4).
 */
double bench_tally_response_rate(const struct bench_tally *tally);

/* Requests a second that were answered before their client gave up. */
double bench_tally_goodput(const struct bench_tally *tally);

/* Answers a second that came from "from" to "until", whenever they were due. */
double bench_tally_answer_rate(const struct bench_tally *tally);

#endif /* FLEXSC_STUDY_TALLY_H */
