/* SPDX-License-Identifier: MIT */
/*
 * bench --raw load rate=N: an open loop. Requests are sent when they are due,
 * whether or not earlier ones were answered, and an answer's time is counted from
 * when its request was due. So a slow server gets no fewer requests, and requests
 * that have to wait are counted (compare load.c, whose clients wait for answers).
 *
 * With trace=FILE sessions are what begins at the rate, or, without a rate, whenever
 * one of "connections" sessions is over.
 *
 * Each of the threads has a crowd of its own; the trace is read before they begin,
 * and their tallies are added up when all are through.
 */
#ifndef FLEXSC_BENCH_OPEN_H
#define FLEXSC_BENCH_OPEN_H

struct bench_settings;

int bench_open(const struct bench_settings *settings);

#endif /* FLEXSC_BENCH_OPEN_H */
