/* SPDX-License-Identifier: MIT */
/*
 * flexsc check: which engines and event backends work here, whether flexsc run
 * does, and why the others don't.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <flexsc/flexsc.h>
#include <flexsc/ecb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static const char usage[] =
	"usage: flexsc check [ENGINE | run]\n"
	"\n"
	"Tests each engine, or only ENGINE, on this machine and for this user, and\n"
	"explains failures. Programs use uring, or threads if uring doesn't work,\n"
	"unless FLEXSC_ENGINE or an option selects another engine.\n"
	"Then tests the backends of events: programs use kmod, or uring if kmod\n"
	"doesn't work, unless FLEXSC_ECB or an option selects another one.\n"
	"Page faults and changed pages are events where the kernel has them.\n"
	"Then tests flexsc run with a program that makes a thread.\n"
	"With the argument run, only tests that.\n"
	"The exit status is 0 if all but kmod, faults and changes (or the named\n"
	"ENGINE) work, else 1.\n";

static void check_print(const char *what, const char *name, int err,
			const char *why)
{
	if (!err)
		printf("%s%-8s works%s%s\n", what, name, why[0] ? ", but " : "",
		       why);
	else
		printf("%s%-8s doesn't work: %s\n", what, name,
		       why[0] ? why : strerror(-err));
}

static int check(const char *engine)
{
	char why[256] = "";
	int err = flexsc_engine_probe(engine, why, sizeof(why));

	check_print("", engine, err, why);
	return err;
}

static int check_events(const char *backend)
{
	char why[256] = "";
	int err = flexsc_ecb_probe(backend, why, sizeof(why));

	check_print("events: ", backend, err, why);
	return err;
}

/* Events of memory, which no default depends on. */
static void check_memory(const char *name, uint32_t what)
{
	char why[256];
	int err = flexsc_ecb_memory_probe(what, why, sizeof(why));

	check_print("events: ", name, err, why);
}

/*
 * Whether flexsc run works depends on libc, on limits and on filters. So test
 * it: run this command under flexsc run, and let it make a thread.
 */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define MAKE_A_THREAD	"--make-a-thread"

static void *nothing(void *arg)
{
	return arg;
}

static int make_a_thread(void)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, nothing, NULL);

	if (err) {
		fprintf(stderr, "can't make a thread: %s\n", strerror(err));
		return 1;
	}
	return pthread_join(thread, NULL) != 0;
}

/* Returns the line's text after the prefix of the runtime's messages. */
static char *line_text(char *line)
{
	static const char prefix[] = "flexsc: run: ";

	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, prefix, sizeof(prefix) - 1))
		line += sizeof(prefix) - 1;
	return line;
}

static int print_status(FILE *lines, pid_t pid)
{
	char first[512] = "", line[512];
	int status = 0;
	bool works;

	if (fgets(first, sizeof(first), lines))
		while (fgets(line, sizeof(line), lines))
			;
	waitpid(pid, &status, 0);
	works = WIFEXITED(status) && !WEXITSTATUS(status);
	if (!works && !first[0])
		snprintf(first, sizeof(first),
			 WIFSIGNALED(status) ?
				 "the test program was ended by signal %d" :
				 "the test program ended with status %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) :
					       WEXITSTATUS(status));
	check_print("", "run", works ? 0 : -EIO, line_text(first));
	return !works;
}

static int check_run(void)
{
	char *const argv[] = { "flexsc", "run", "--", "/proc/self/exe", "check",
			       MAKE_A_THREAD, NULL };
	int ends[2];
	FILE *lines;
	pid_t pid;

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC)) {
		check_print("", "run", -errno, "");
		return 1;
	}
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		unsetenv("FLEXSC_ENGINE");
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	lines = pid < 0 ? NULL : fdopen(ends[0], "r");
	if (!lines) {
		check_print("", "run", -errno, "");
		close(ends[0]);
	}
	close(ends[1]);
	return lines ? print_status(lines, pid) | fclose(lines) : 1;
}

#else

#define MAKE_A_THREAD	""

static int make_a_thread(void)
{
	return 2;
}

static int check_run(void)
{
	return 0;
}

#endif

static int check_one(const char *name)
{
	const char *engine;

	if (!strcmp(name, "run"))
		return check_run();
	for (unsigned int i = 0; (engine = flexsc_engine_name(i)); i++)
		if (!strcmp(name, engine))
			return check(name) != 0;
	fprintf(stderr, "flexsc: check: unknown engine \"%s\"; see flexsc check "
		"--help\n", name);
	return 2;
}

int command_check(int argc, char **argv)
{
	const char *engine;
	int failed = 0;

	if (argc > 1 && (!strcmp(argv[1], "--help") ||
			 !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 2) {
		fputs(usage, stderr);
		return 2;
	}
	if (argc == 2 && !strcmp(argv[1], MAKE_A_THREAD))
		return make_a_thread();
	if (argc == 2)
		return check_one(argv[1]);
	/* The kernel module is optional, so a missing module is no failure. */
	for (unsigned int i = 0; (engine = flexsc_engine_name(i)); i++)
		failed |= check(engine) && strcmp(engine, "kmod") != 0;
	check_events("kmod");
	failed |= check_events("uring") != 0;
	check_memory("faults", FLEXSC_MEMORY_MISSING);
	check_memory("changes", FLEXSC_MEMORY_CHANGES);
	failed |= check_run();
	return failed;
}
