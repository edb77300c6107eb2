/* SPDX-License-Identifier: MIT */
/*
 * Makes all calls of waits.h natively, and again in the way in which this test runs:
 * preloaded, with one carrier and with two, or posted to a loop with "loop=1".
 */
#include "beside.h"

#define DESCRIPTORS	8192U

/* A process of "waits", with its output in a file. */
struct run {
	const char *mode, *out;
	int pid;
};

static struct run begin(const char *mode, const char *out, char **environment)
{
	struct run run = { .mode = mode, .out = out };
	posix_spawn_file_actions_t actions;
	char slower[16];
	char *argv[] = { "waits", (char *)mode, "reference", slower, NULL };

	if (!strcmp(mode, "natively"))
		argv[2] = NULL;
	snprintf(slower, sizeof(slower), "%u", test_slower());
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, out,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_EQ(posix_spawn(&run.pid, program, &actions, NULL, argv,
			     environment), 0);
	posix_spawn_file_actions_destroy(&actions);
	return run;
}

static int end(const struct run *run)
{
	int status;

	CHECK_EQ(waitpid(run->pid, &status, 0), run->pid);
	return status;
}

/* Each difference is noted in a line. */
static void end_comparison(const struct run *run)
{
	int status = end(run);
	FILE *seen = fopen(run->out, "r");
	char line[256];

	CHECK(seen);
	while (fgets(line, sizeof(line), seen)) {
		line[strcspn(line, "\n")] = 0;
		test_note("%s: %s", run->out, line);
	}
	fclose(seen);
	CHECK_EQ(status, 0);
}

static struct run begin_with(const char *carriers, const char *out)
{
	setenv("FLEXSC_CARRIERS", carriers, 1);
	return begin("threads", out, environ);
}

TEST_LIMIT(each_call_waits_as_natively, 200)
{
	struct run native, runs[2];

	NEEDS_WAITING_ENGINE();
	if (!raise_fd_limit(DESCRIPTORS))
		SKIP("%u descriptors aren't allowed", DESCRIPTORS);
	find_program("waits");
	enter_scratch();
	native = begin("natively", "reference", native_environment());
	CHECK_EQ(end(&native), 0);
	if (test_parameter("loop", 0)) {
		runs[0] = begin("loop", "asked", environ);
		/* With a hint, the first call on a descriptor takes another path. */
		runs[1] = begin("hinted", "hinted", environ);
	} else {
		runs[0] = begin_with("1", "one carrier");
		runs[1] = begin_with("2", "two carriers");
	}
	for (unsigned int i = 0; i < 2; i++)
		end_comparison(&runs[i]);
}
