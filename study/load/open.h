/* SPDX-License-Identifier: MIT */
/*
 * study --raw load rate=N: an open loop. Requests are sent when they are due,
 * whether or not earlier ones were answered, and an answer's time is counted
 * from when its request was due. So a slow server gets no fewer requests, and
 * requests that have to wait are counted (compare load.c, whose clients wait
 * for answers).
 *
 * study --raw load trace=FILE: sessions begin at the rate; without a rate the
 * loop is closed, and a session begins when one of "connections" sessions ends.
 *
 * Each thread has a crowd (crowd.h) of its own. The trace is read before the
 * threads begin, and the crowds' tallies are added up when all have ended.
 */
#ifndef FLEXSC_STUDY_OPEN_H
#define FLEXSC_STUDY_OPEN_H

struct bench_settings;

int bench_open(const struct bench_settings *settings);

#endif /* FLEXSC_STUDY_OPEN_H */
