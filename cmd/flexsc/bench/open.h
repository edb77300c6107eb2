/* SPDX-License-Identifier: MIT */
/*
 * bench --raw load rate=N: an open loop. Requests are sent when they are due,
 * whether or not earlier ones were answered, and each time is counted from the
 * time that the request was due. So a server that is slow isn't spared, and
 * nothing that it makes wait is left out (compare load.c, whose clients wait).
 */
#ifndef FLEXSC_BENCH_OPEN_H
#define FLEXSC_BENCH_OPEN_H

struct bench_settings;

int bench_open(const struct bench_settings *settings);

#endif /* FLEXSC_BENCH_OPEN_H */
