/* SPDX-License-Identifier: MIT */
/*
 * flexsc bench: runs the measuring loop of a single variant (--raw), or starts
 * flexbench, the Python package that runs variants alternately and compares
 * them.
 */
#include "cases.h"

#include <string.h>

#include "cmd/command.h"
#include "cmd/python.h"

static const struct bench_case cases[] = {
	{ "calls", bench_calls },
	{ "timers", bench_timers },
	{ "reads", bench_reads },
	{ "crawl", bench_crawl },
	{ "load", bench_load },
	{ "rounds", bench_rounds },
	{ NULL, NULL },
};

int command_bench(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--raw"))
		return bench_raw(argv[0], cases, argc - 2, argv + 2);
	return python_run(argv[0], "flexbench", argv + 1);
}
