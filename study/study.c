/* SPDX-License-Identifier: MIT */
/*
 * flexsc study: runs the measuring loop of a single variant (--raw), makes the
 * page of the papers' figures (report), or starts flexstudy, the Python package
 * with the study's benches.
 */
#include "cases.h"

#include <string.h>

#include "bench/cases.h"
#include "cmd/command.h"
#include "cmd/python.h"
#include "study/load/open.h"

static const struct bench_case cases[] = {
	{ "events", bench_events },
	{ "load", bench_open },
	{ "steps", bench_steps },
	{ "lost", bench_lost },
	{ "pollute", bench_pollute },
	{ "footprint", bench_footprint },
	{ "memory", bench_memory_speed },
	{ NULL, NULL },
};

int command_study(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (!strcmp(word, "--raw"))
		return bench_raw(argv[0], cases, argc - 2, argv + 2);
	if (!strcmp(word, "report"))
		return python_run(argv[0], "flexstudy.report", argv + 2);
	return python_run(argv[0], "flexstudy", argv + 1);
}
