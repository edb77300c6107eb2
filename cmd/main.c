/* SPDX-License-Identifier: MIT */
/* flexsc(1): finds and runs the subcommand. */
#include <flexsc/version.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "run", command_run, "run a threaded program exception-less" },
	{ "serve", command_serve, "serve a folder over HTTP" },
	{ "check", command_check, "test which engines work, and explain failures" },
	{ "stat", command_stat, "show the counters of a live process" },
	{ "top", command_top, "monitor all FlexSC processes" },
	{ "bench", command_bench, "measure calls, timers and the server" },
#ifdef FLEXSC_STUDY
	{ "study", command_study, "measure the papers' figures, and more" },
#endif
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static int help(FILE *out, int status)
{
	fputs("flexsc: system calls without mode switches\n\n"
	      "usage: flexsc COMMAND [ARGUMENTS]\n\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s%s\n", commands[i].name,
			commands[i].summary);
	fputs("\n"
	      "See flexsc COMMAND --help; flexsc --version prints the version.\n", out);
	return status;
}

/*
 * Set argv[0] to the subcommand's name, because getopt_long() begins its
 * messages with argv[0].
 */
static int run(size_t i, int argc, char **argv)
{
	static char name[32];

	snprintf(name, sizeof(name), "flexsc: %s", commands[i].name);
	argv[0] = name;
	return commands[i].run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *name = argv[1];

	if (argc < 2)
		return help(stderr, 2);
	if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
	    !strcmp(name, "help"))
		return help(stdout, 0);
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("flexsc " FLEXSC_VERSION_STRING);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return run(i, argc - 1, argv + 1);
	fprintf(stderr, "flexsc: unknown command \"%s\"; see flexsc --help\n", name);
	return 2;
}
