/* SPDX-License-Identifier: MIT */
/*
 * The measuring loops of "flexsc bench --raw": one measurement of one variant,
 * printed as one JSON object. flexbench compares measurements. The main thread
 * runs a case; load, memory and events have further threads, steps has a child.
 *
 * A case returns the exit status: 0, or 1 after one line on stderr.
 */
#ifndef FLEXSC_BENCH_CASES_H
#define FLEXSC_BENCH_CASES_H

struct bench_settings;

int bench_calls(const struct bench_settings *settings);
int bench_timers(const struct bench_settings *settings);
int bench_events(const struct bench_settings *settings);
int bench_reads(const struct bench_settings *settings);
int bench_load(const struct bench_settings *settings);
int bench_rounds(const struct bench_settings *settings);
int bench_signals(const struct bench_settings *settings);
int bench_steps(const struct bench_settings *settings);
int bench_lost(const struct bench_settings *settings);
int bench_pollute(const struct bench_settings *settings);
int bench_footprint(const struct bench_settings *settings);
int bench_memory_speed(const struct bench_settings *settings);

#endif /* FLEXSC_BENCH_CASES_H */
