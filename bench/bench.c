/* SPDX-License-Identifier: MIT */
/*
 * flexsc bench: the measuring loops for one variant at a time (--raw), or
 * flexbench, the Python package that has them run alternately and compares.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/bench.h"
#include "bench/raw/settings.h"

static const char raw_usage[] =
"usage: flexsc bench --raw CASE [KEY=VALUE]...\n\n"
"Runs one measurement and prints it as JSON. CASE is calls, timers, reads,\n"
"events, load, rounds, signals, steps, lost, pollute, footprint or memory;\n"
"flexsc-bench(1) says which keys there are.\n";

static const struct {
	const char *name;
	int (*run)(const struct bench_settings *settings);
} cases[] = {
	{ "calls", bench_calls },
	{ "timers", bench_timers },
	{ "reads", bench_reads },
	{ "events", bench_events },
	{ "load", bench_load },
	{ "rounds", bench_rounds },
	{ "signals", bench_signals },
	{ "steps", bench_steps },
	{ "lost", bench_lost },
	{ "pollute", bench_pollute },
	{ "footprint", bench_footprint },
	{ "memory", bench_memory_speed },
};

#define CASES	(sizeof(cases) / sizeof(cases[0]))

/* The status of a case whose output may not have got where it belongs. */
static int printed(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fputs("flexsc: bench: standard output can't be written\n", stderr);
	return 1;
}

static int raw(int argc, char **argv)
{
	struct bench_settings settings;

	if (argc < 1) {
		fputs(raw_usage, stderr);
		return 2;
	}
	for (size_t i = 0; i < CASES; i++) {
		if (!bench_is(cases[i].name, argv[0]))
			continue;
		if (!bench_settings_parse(&settings, argc - 1, argv + 1))
			return 2;
		return printed(cases[i].run(&settings));
	}
	fprintf(stderr, "flexsc: bench: --raw %s: give calls, timers, reads, "
		"events, load, rounds, signals, steps, lost, pollute, "
		"footprint or memory\n",
		argv[0]);
	return 2;
}

int command_bench(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--raw"))
		return raw(argc - 2, argv + 2);
	return flexbench_run(argv[0], "flexbench", argv + 1);
}
