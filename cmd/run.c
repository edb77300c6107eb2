/* SPDX-License-Identifier: MIT */
/*
 * flexsc run: starts a program with the runtime of flexsc run preloaded. The
 * program replaces this process, so signals and the exit status are the
 * program's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <flexsc/flexsc.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "lib/base/cores.h"
#include "lib/engine/uring_kills.h"
#include "program.h"
#include "runtime/calls/own_calls.h"

#define LIBRARY	"libflexsc-runtime.so"

static const char help[] =
"usage: flexsc run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
"Run an unmodified threaded program: its threads become user threads, and the\n"
"system calls they would block in become exception-less.\n"
"\n"
"      --engine NAME   uring, threads or kmod (uring if it works,\n"
"                      otherwise threads)\n"
"  -c, --carriers N    kernel threads that run user threads (one per core)\n"
"      --kernel-cores LIST  execute system calls on these cores, such as 2,4-6,\n"
"                      and the program on the others\n"
"      --entries N     most pending calls per carrier, in steps of 64 (131072;\n"
"                      with kmod 4096)\n"
"      --deep          also intercept calls that libc makes internally\n"
"      --without NAME  disable loops (event loops stay on their hosts), sticky\n"
"                      (so do threads that often wait there) or patch (of libc)\n"
"      --stats         print counters on standard error when a process ends\n"
"  -h, --help          show this\n"
"\n"
"The program must be linked dynamically with glibc. Programs that it starts run\n"
"the same way. If the runtime doesn't work, flexsc run reports why on standard\n"
"error, and the program runs without it.\n";

enum { OPT_ENGINE = 256, OPT_ENTRIES, OPT_DEEP, OPT_STATS, OPT_WITHOUT,
       OPT_KERNEL_CORES };

static const struct option options[] = {
	{ "engine",	required_argument,	NULL, OPT_ENGINE },
	{ "carriers",	required_argument,	NULL, 'c' },
	{ "kernel-cores", required_argument,	NULL, OPT_KERNEL_CORES },
	{ "entries",	required_argument,	NULL, OPT_ENTRIES },
	{ "deep",	no_argument,		NULL, OPT_DEEP },
	{ "stats",	no_argument,		NULL, OPT_STATS },
	{ "without",	required_argument,	NULL, OPT_WITHOUT },
	{ "help",	no_argument,		NULL, 'h' },
	{ }
};

static int failed(const char *what, int err)
{
	fprintf(stderr, "flexsc: run: %s: %s\n", what, strerror(err));
	return 1;
}

static bool set(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return true;
	failed(name, errno);
	return false;
}

static bool set_number(const char *name, const char *option, const char *value,
		       unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || !n || n > max) {
		fprintf(stderr, "flexsc: run: %s %s: give a number from 1 to "
			"%lu\n", option, value, max);
		return false;
	}
	return set(name, value);
}

/* Can user threads run on this engine of the library? */
static bool is_known_engine(const char *option, const char *name)
{
	if (!strcmp(name, "uring") || !strcmp(name, "threads") ||
	    !strcmp(name, "kmod"))
		return true;
	fprintf(stderr, "flexsc: run: %s%s: give uring, threads or kmod\n",
		option, name);
	return false;
}

static bool works(const char *engine)
{
	char why[256] = "";

	if (!flexsc_engine_probe(engine, why, sizeof(why)))
		return true;
	fprintf(stderr, "flexsc: run: engine %s doesn't work here: %s\n",
		engine, why);
	return false;
}

/*
 * Pass the id of the process that has to print its counters. The program keeps
 * this process's id. The processes that it starts have other ids, and print
 * nothing.
 */
static bool set_stats(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return set("FLEXSC_STATS", pid);
}

static bool set_without(const char *name)
{
	static const char *const parts[][2] = {
		{ "loops", "FLEXSC_LOOPS" },
		{ "sticky", "FLEXSC_STICKY" },
		{ "patch", "FLEXSC_PATCH" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(parts[i][0], name))
			return set(parts[i][1], "0");
	fprintf(stderr, "flexsc: run: --without %s: give loops, sticky or "
		"patch\n", name);
	return false;
}

/* Options whose values may only be tried after all filters (is_forbidden()). */
static const char *engine, *kernel_cores;

/* Can the program run on the cores that the list leaves? They go to "rest". */
static bool is_kernel_cores(const char *list, cpu_set_t *rest)
{
	char why[120];

	if (!flexsc__cores_split(list, rest, why, sizeof(why)))
		return true;
	fprintf(stderr, "flexsc: run: --kernel-cores %s: %s\n", list, why);
	return false;
}

/*
 * Restrict this process to the cores that FLEXSC_KERNEL_CORES doesn't list. The program
 * and its children inherit them: their threads run there, and they see only cores that
 * they can use.
 */
static bool leave_kernel_cores(void)
{
	const char *list = kernel_cores ? kernel_cores : getenv("FLEXSC_KERNEL_CORES");
	cpu_set_t rest;

	if (!list || (!kernel_cores && !*list))
		return true;
	if (!is_kernel_cores(list, &rest) || !set("FLEXSC_KERNEL_CORES", list))
		return false;
	if (!sched_setaffinity(0, sizeof(rest), &rest))
		return true;
	failed("sched_setaffinity", errno);
	return false;
}

static bool set_option(int option, const char *value)
{
	switch (option) {
	case OPT_ENGINE:
		engine = value;
		return is_known_engine("--engine ", value);
	case 'c':
		return set_number("FLEXSC_CARRIERS", "--carriers", value, 1024);
	case OPT_KERNEL_CORES:
		kernel_cores = value;
		return true;
	case OPT_ENTRIES:
		return set_number("FLEXSC_ENTRIES", "--entries", value,
				  1 << 20);
	case OPT_STATS:
		return set_stats();
	case OPT_WITHOUT:
		return set_without(value);
	default:
		return set("FLEXSC_DEEP", "1");
	}
}

/*
 * Find the library: beside the command's folder in the build tree and where both are
 * installed, or in the configured folder of libraries.
 */
static bool find_library(char *path, size_t size)
{
	static const char *const places[] = {
		"runtime/" LIBRARY,
		FLEXSC_LIBDIR "/flexsc/" LIBRARY,
		NULL,
	};
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	for (int i = 0; i < 2 && (slash = strrchr(self, '/')); i++)
		*slash = '\0';
	for (size_t i = 0; n > 0 && places[i]; i++) {
		if (snprintf(path, size, "%s/%s", self, places[i]) < (int)size &&
		    !access(path, R_OK))
			return true;
	}
	snprintf(path, size, "%s", FLEXSC_PREFIX "/" FLEXSC_LIBDIR
				   "/flexsc/" LIBRARY);
	if (!access(path, R_OK))
		return true;
	fprintf(stderr, "flexsc: run: %s: %s; install Debian's package "
		"flexsc-run\n", path, strerror(errno));
	return false;
}

/*
 * Prepend the library to LD_PRELOAD, because the first library that defines a
 * function provides it.
 */
static bool preload(const char *library)
{
	const char *was = getenv("LD_PRELOAD");
	char *both;
	bool done;

	if (strpbrk(library, ": ")) {
		fprintf(stderr, "flexsc: run: %s: the dynamic loader can't "
			"preload a path with a colon or a space\n", library);
		return false;
	}
	if (asprintf(&both, "%s%s%s", library, was && *was ? ":" : "",
		     was ? was : "") < 0)
		return !failed("LD_PRELOAD", ENOMEM);
	done = set("LD_PRELOAD", both);
	free(both);
	return done;
}

/*
 * Choose the engine before the program starts, so that only this process
 * reports that io_uring doesn't work. Otherwise each process of the program
 * would report it.
 */
static bool choose_engine(void)
{
	const char *chosen = getenv("FLEXSC_ENGINE");
	char why[256] = "";

	if (chosen && *chosen)
		return is_known_engine("FLEXSC_ENGINE=", chosen) &&
		       (strcmp(chosen, "kmod") != 0 || works(chosen));
	if (!flexsc_engine_probe("uring", why, sizeof(why)))
		return true;
	fprintf(stderr, "flexsc: run: using syscall threads, because io_uring "
			"doesn't work here: %s\n", why);
	return set("FLEXSC_ENGINE", "threads");
}

/*
 * Does a seccomp filter forbid a call that this command or the runtime makes? A child
 * tries them, before this process makes the first one.
 */
static bool is_forbidden(void)
{
	const char *list = kernel_cores ? kernel_cores : getenv("FLEXSC_KERNEL_CORES");
	char why[96];

	if (!flexsc__is_filtered() ||
	    !flexsc__own_calls_forbidden(OWN_COMMAND, list, why, sizeof(why)))
		return false;
	fprintf(stderr, "flexsc: run: running natively: %s\n", why);
	return true;
}

static int execute(char **argv)
{
	int err;

	execvp(argv[0], argv);
	err = errno;
	failed(argv[0], err);
	return err == ENOENT ? 127 : 126;
}

static int run(char **argv)
{
	char library[PATH_MAX], path[PATH_MAX];
	const char *why;
	int err;

	if (program_find(argv[0], path, sizeof(path))) {
		err = errno;
		failed(argv[0], err);
		return err == ENOENT ? 127 : 126;
	}
	why = program_obstacle(path);
	if (why) {
		fprintf(stderr, "flexsc: run: %s %s\n", path, why);
		return 126;
	}
	if (!find_library(library, sizeof(library)) || !preload(library) ||
	    !choose_engine())
		return 1;
	return execute(argv);
}

/* Try what the options name. */
static bool try_options(void)
{
	if (engine && (!works(engine) || !set("FLEXSC_ENGINE", engine)))
		return false;
	return leave_kernel_cores();
}

int command_run(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "+c:h", options, NULL)) >= 0) {
		if (option == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (option == '?') {
			fputs("see flexsc run --help\n", stderr);
			return 2;
		}
		if (!set_option(option, optarg))
			return 2;
	}
	if (optind == argc) {
		fputs("flexsc: run: missing program; see flexsc run --help\n", stderr);
		return 2;
	}
	if (is_forbidden())
		return execute(argv + optind);
	return try_options() ? run(argv + optind) : 2;
}
