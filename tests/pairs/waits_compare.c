/* SPDX-License-Identifier: MIT */
/*
 * All calls of waits.h natively and as this test is run: preloaded, with one
 * carrier and with two, or posted to a loop with "loop=1".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"

extern char **environ;

static char program[PATH_MAX];

/* The program "waits" lies beside this one. */
static void find_program(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *name;

	CHECK(n > 0);
	program[n] = 0;
	name = strrchr(program, '/') + 1;
	CHECK(name + sizeof("waits") <= program + sizeof(program));
	strcpy(name, "waits");
}

static char **native_environment(void)
{
	static char *kept[256];
	unsigned int n = 0;

	for (char **e = environ; *e && n < 255; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "FLEXSC_", 7))
			kept[n++] = *e;
	return kept;
}

/* Run "waits" with its output in a file; its status. */
static int run(const char *mode, char **environment, const char *out)
{
	posix_spawn_file_actions_t actions;
	char slower[16];
	char *argv[] = { "waits", (char *)mode, "reference", slower, NULL };
	int pid, status;

	if (!strcmp(mode, "natively"))
		argv[2] = NULL;
	snprintf(slower, sizeof(slower), "%u", test_slower());
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, out,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_EQ(posix_spawn(&pid, program, &actions, NULL, argv, environment),
		 0);
	posix_spawn_file_actions_destroy(&actions);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

/* What differs is noted line by line. */
static void compare(const char *mode)
{
	int status = run(mode, environ, "seen");
	FILE *seen = fopen("seen", "r");
	char line[256];

	CHECK(seen);
	while (fgets(line, sizeof(line), seen)) {
		line[strcspn(line, "\n")] = 0;
		test_note("%s: %s", mode, line);
	}
	fclose(seen);
	CHECK_EQ(status, 0);
}

TEST_LIMIT(each_call_waits_as_it_does_natively, 120)
{
	NEEDS_WAITING_ENGINE();
	find_program();
	enter_scratch();
	CHECK_EQ(run("natively", native_environment(), "reference"), 0);
	if (test_parameter("loop", 0)) {
		compare("loop");
		/* The first call on a descriptor takes another route. */
		if (!strcmp(test_engine(), "uring"))
			compare("hinted");
	} else {
		setenv("FLEXSC_CARRIERS", "1", 1);
		compare("threads");
		setenv("FLEXSC_CARRIERS", "2", 1);
		compare("threads");
	}
	leave_scratch();
}
