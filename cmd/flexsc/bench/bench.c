/* SPDX-License-Identifier: MIT */
/*
 * flexsc bench: the measuring loops for one variant at a time (--raw), or
 * flexbench, the Python package that has them run alternately and compares.
 */
#define _GNU_SOURCE
#include "cases.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../command.h"
#include "report.h"
#include "settings.h"

static const char raw_usage[] =
"usage: flexsc bench --raw CASE [KEY=VALUE]...\n\n"
"Runs one measurement and prints it as JSON. CASE is calls, timers, reads,\n"
"events, load, rounds, signals, steps, lost, pollute or footprint;\n"
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
};

#define CASES	(sizeof(cases) / sizeof(cases[0]))

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
		return cases[i].run(&settings);
	}
	fprintf(stderr, "flexsc: bench: --raw %s: give calls, timers, reads, "
		"events, load, rounds, signals, steps, lost, pollute or "
		"footprint\n",
		argv[0]);
	return 2;
}

/* flexbench. */

static bool has_flexbench(const char *folder)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/flexbench/__main__.py", folder);
	return !access(path, R_OK);
}

/*
 * The folder that has flexbench: the folder asked for and no other; or one
 * beside an installed command, wherever the command was moved to; or the folder
 * where this command was built, or was to be installed. NULL after a line on
 * stderr.
 */
static const char *find(const char *beside)
{
	const char *asked = getenv("FLEXBENCH_DIR");
	const char *folders[] = {
		asked, beside, FLEXSC_BENCH_DIR, FLEXSC_BENCH_INSTALLED,
	};
	size_t first = asked ? 0 : 1, end = asked ? 1 : 4;

	for (size_t i = first; i < end; i++)
		if (has_flexbench(folders[i]))
			return folders[i];
	fprintf(stderr, "flexsc: bench: the Python package flexbench isn't in "
		"%s; set FLEXBENCH_DIR to the folder that has it\n",
		folders[end - 1]);
	return NULL;
}

static int set_path(const char *folder)
{
	const char *was = getenv("PYTHONPATH");
	char *path;
	int err;

	if (asprintf(&path, "%s%s%s", folder, was && *was ? ":" : "",
		     was ? was : "") < 0)
		return bench_failed("flexbench", -ENOMEM);
	err = setenv("PYTHONPATH", path, 1);
	free(path);
	return err ? bench_failed("flexbench", -errno) : 0;
}

static int flexbench(int argc, char **argv)
{
	char self[PATH_MAX], beside[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *folder;
	char *args[argc + 8];
	int i = 0;

	if (n < 0)
		return bench_failed("flexbench", -errno);
	self[n] = '\0';
	snprintf(beside, sizeof(beside), "%.*s/../share/flexsc",
		 (int)(strrchr(self, '/') - self), self);
	folder = find(beside);
	if (!folder || set_path(folder))
		return 1;
	args[i++] = (char *)"python3";
	/*
	 * Python leaves no files behind, and imports nothing from the current
	 * folder.
	 */
	args[i++] = (char *)"-B";
	args[i++] = (char *)"-P";
	args[i++] = (char *)"-m";
	args[i++] = (char *)"flexbench";
	args[i++] = (char *)"--flexsc";
	args[i++] = self;
	while (*argv)
		args[i++] = *argv++;
	args[i] = NULL;
	execvp(args[0], args);
	fprintf(stderr, "flexsc: bench: python3: %s: install Debian's package "
		"python3\n", strerror(errno));
	return 1;
}

int command_bench(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--raw"))
		return raw(argc - 2, argv + 2);
	return flexbench(argc - 1, argv + 1);
}
