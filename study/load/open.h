/* SPDX-License-Identifier: MIT */
/*
 * study --raw load rate=N: an open loop. Requests are sent when they are due,
 * whether or not earlier ones were answered, and an answer's time is counted
 * from the time when its request was due. So a slow server doesn't get fewer
 * requests, and waiting requests are counted (unlike in load.c, whose clients
 * wait for answers).
 *
 * study --raw load trace=FILE: sessions begin at the rate. Without a rate the
 * loop is closed: a session begins when one of "connections" sessions ends.
 *
 * Each thread has its own crowd (crowd.h). The trace is read before the threads
 * start, and the crowds' tallies are added up when all have ended.
 */
#ifndef FLEXSC_STUDY_OPEN_H
#define FLEXSC_STUDY_OPEN_H

struct bench_settings;

int bench_open(const struct bench_settings *settings);

#endif /* FLEXSC_STUDY_OPEN_H */
