/* SPDX-License-Identifier: MIT */
/*
 * A tally: the results of an open loop's requests, or of sessions. Every
 * request that was due is counted exactly once, by its end, so "offered" is the
 * sum of all ends. Requests that were due before the end of the warm-up are
 * counted separately. Each thread has its own tally.
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
	uint64_t last;		/* time of the last answer */
	uint64_t warm_up;	/* number of requests that were due before "from" */
	uint64_t ends[BENCH_ENDS];
	uint64_t bytes;		/* bytes of bodies */
	uint64_t within;	/* number of answers between "from" and "until" */
	uint64_t within_bytes;	/* bytes of these answers' bodies */
	uint64_t spun;		/* ns of polling for events without result */
	/* Counted from the time when a request was due. */
	struct bench_times connect, response, behind;
	struct bench_times exchange;	/* from the time when bytes could be sent */
	/* Sessions, from the first to the last. */
	uint64_t begun, done, failed;
	uint64_t unasked;	/* requests of failed sessions that were never sent */
	uint64_t lost;		/* connections that were closed while their clients thought */
};

void bench_times_add(struct bench_times *times, uint64_t ns);
double bench_times_mean(const struct bench_times *times);

/* Count a correct answer that came now, before the time-out. bytes: of its body. */
void bench_tally_answered(struct bench_tally *tally, uint64_t now,
			  size_t bytes);

/* Like bench_histogram_at(), but never more than the longest time counted. */
double bench_times_at(const struct bench_times *times, double share);

/* Count the end, now, of a request that was due. */
void bench_tally_end(struct bench_tally *tally, uint64_t due, uint64_t now,
		     enum bench_end end);

/* Add a thread's tally to another thread's tally of the same run. */
void bench_tally_merge(struct bench_tally *into,
		       const struct bench_tally *from);

uint64_t bench_tally_offered(const struct bench_tally *tally);

/*
 * Answers per second, from "from" to the last answer, or to "until" if that is
 * later (SEND, 4.4).
 */
double bench_tally_response_rate(const struct bench_tally *tally);

/* Requests per second that were answered before their client gave up. */
double bench_tally_goodput(const struct bench_tally *tally);

/*
 * Answers per second between "from" and "until", whenever their requests were
 * due.
 */
double bench_tally_answer_rate(const struct bench_tally *tally);

#endif /* FLEXSC_STUDY_TALLY_H */
