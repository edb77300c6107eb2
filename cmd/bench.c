/* SPDX-License-Identifier: MIT */
/* The Python package flexbench: finding its folder, and running it. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_flexbench(const char *folder)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/flexbench/__main__.py", folder);
	return !access(path, R_OK);
}

/*
 * The folder that has flexbench: FLEXBENCH_DIR and no other, if it is set; else
 * "beside", by the installed command, wherever the command was moved to; or the
 * folder that this command was built from, or that it was to be installed to.
 * NULL after a line on stderr.
 */
static const char *find(const char *who, const char *beside)
{
	const char *asked = getenv("FLEXBENCH_DIR");
	const char *folders[] = {
		asked, beside, FLEXSC_BENCH_DIR, FLEXSC_BENCH_INSTALLED,
	};
	size_t first = asked ? 0 : 1, end = asked ? 1 : 4;

	for (size_t i = first; i < end; i++)
		if (has_flexbench(folders[i]))
			return folders[i];
	fprintf(stderr, "%s: the Python package flexbench isn't in %s; set "
		"FLEXBENCH_DIR to the folder that has it\n", who,
		folders[end - 1]);
	return NULL;
}

static int failed(const char *who, int error)
{
	fprintf(stderr, "%s: flexbench: %s\n", who, strerror(error));
	return 1;
}

static int set_path(const char *who, const char *folder)
{
	const char *was = getenv("PYTHONPATH");
	char *path;
	int err;

	/* In a source tree the package flexstudy has a folder of its own. */
	if (asprintf(&path, "%s:%s/../study%s%s", folder, folder,
		     was && *was ? ":" : "", was ? was : "") < 0)
		return failed(who, ENOMEM);
	err = setenv("PYTHONPATH", path, 1);
	free(path);
	return err ? failed(who, errno) : 0;
}

static size_t count(char **argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

int flexbench_run(const char *who, const char *module, char **argv)
{
	char self[PATH_MAX], beside[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *folder;
	char *args[count(argv) + 8];
	int i = 0;

	if (n < 0)
		return failed(who, errno);
	self[n] = '\0';
	snprintf(beside, sizeof(beside), "%.*s/../share/flexsc",
		 (int)(strrchr(self, '/') - self), self);
	folder = find(who, beside);
	if (!folder || set_path(who, folder))
		return 1;
	args[i++] = (char *)"python3";
	/*
	 * Python leaves no files behind, and imports nothing from the current
	 * folder.
	 */
	args[i++] = (char *)"-B";
	args[i++] = (char *)"-P";
	args[i++] = (char *)"-m";
	args[i++] = (char *)module;
	args[i++] = (char *)"--flexsc";
	args[i++] = self;
	while (*argv)
		args[i++] = *argv++;
	args[i] = NULL;
	execvp(args[0], args);
	fprintf(stderr, "%s: python3: %s: install Debian's package python3\n",
		who, strerror(errno));
	return 1;
}
