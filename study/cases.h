/* SPDX-License-Identifier: MIT */
/*
 * The measuring loops of "flexsc study --raw", like those of bench/cases.h. The
 * cases "events" and "memory" start threads; the case "steps" has a child
 * process.
 */
#ifndef FLEXSC_STUDY_CASES_H
#define FLEXSC_STUDY_CASES_H

struct bench_settings;

int bench_events(const struct bench_settings *settings);
int bench_steps(const struct bench_settings *settings);
int bench_lost(const struct bench_settings *settings);
int bench_pollute(const struct bench_settings *settings);
int bench_footprint(const struct bench_settings *settings);
int bench_memory_speed(const struct bench_settings *settings);

#endif /* FLEXSC_STUDY_CASES_H */
