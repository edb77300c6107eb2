/* SPDX-License-Identifier: MIT */
/*
 * The measuring loops of "flexsc bench --raw": one measurement of one variant,
 * printed as one JSON object. flexbench compares measurements. The main thread
 * runs a case; load has further threads.
 *
 * A case returns the exit status: 0, or 1 after one line on stderr.
 */
#ifndef FLEXSC_BENCH_CASES_H
#define FLEXSC_BENCH_CASES_H

struct bench_settings;

struct bench_case {
	const char *name;
	int (*run)(const struct bench_settings *settings);
};

int bench_calls(const struct bench_settings *settings);
int bench_timers(const struct bench_settings *settings);
int bench_reads(const struct bench_settings *settings);
int bench_crawl(const struct bench_settings *settings);
int bench_load(const struct bench_settings *settings);
int bench_rounds(const struct bench_settings *settings);

/*
 * Run the case that argv[0] names, with the settings in the other arguments.
 * The last element of cases has no name. Messages begin with "who". Returns the
 * exit status.
 */
int bench_raw(const char *who, const struct bench_case *cases, int argc,
	      char **argv);

#endif /* FLEXSC_BENCH_CASES_H */
