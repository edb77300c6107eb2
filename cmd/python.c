/* SPDX-License-Identifier: MIT */
/* Finds and runs the Python packages flexbench and flexstudy. */
#define _GNU_SOURCE
#include "python.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The packages, and their folders in the sources, relative to a built command.
 * With absolute folders, the command would differ between build folders.
 */
static const struct package {
	const char *name;
	const char *source;
} packages[] = {
	{ "flexbench", FLEXSC_SOURCE "/bench" },
	{ "flexstudy", FLEXSC_SOURCE "/study" },
};

#define PACKAGES	(sizeof(packages) / sizeof(packages[0]))

static bool has(const char *folder, const char *package)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/__main__.py", folder, package);
	return !access(path, R_OK);
}

/*
 * Find the folder that contains the package. "here" is the command's folder.
 * The candidates are, in this order: ../share/flexsc relative to "here",
 * because an installation may be moved; the sources; and the configured folder
 * of packages. If FLEXBENCH_DIR is set, it is the only candidate. Prints a
 * message if no folder has the package.
 */
static bool find(const char *who, const struct package *package,
		 const char *here, char path[PATH_MAX])
{
	const char *asked = getenv("FLEXBENCH_DIR");
	char beside[PATH_MAX + 32], source[PATH_MAX + 32];
	const char *folders[] = {
		asked, beside, source, FLEXSC_PACKAGES_INSTALLED,
	};
	size_t first = asked ? 0 : 1, end = asked ? 1 : 4;

	snprintf(beside, sizeof(beside), "%s/../share/flexsc", here);
	snprintf(source, sizeof(source), "%s/%s", here, package->source);
	for (size_t i = first; i < end; i++)
		if (has(folders[i], package->name) &&
		    realpath(folders[i], path))
			return true;
	fprintf(stderr, "%s: the Python package %s isn't in %s; %s\n", who,
		package->name, folders[end - 1],
		asked ? "set FLEXBENCH_DIR to the folder that has it" :
			"install Debian's package flexsc-study");
	return false;
}

static int failed(const char *who, int error)
{
	fprintf(stderr, "%s: python3: %s\n", who, strerror(error));
	return 1;
}

/* Prepend a folder to PYTHONPATH. */
static int add_path(const char *who, const char *folder)
{
	const char *was = getenv("PYTHONPATH");
	char *path;
	int err;

	if (asprintf(&path, "%s%s%s", folder, was && *was ? ":" : "",
		     was ? was : "") < 0)
		return failed(who, ENOMEM);
	err = setenv("PYTHONPATH", path, 1);
	free(path);
	return err ? failed(who, errno) : 0;
}

/* flexstudy imports flexbench, so a module of flexstudy needs both packages. */
static int add_paths(const char *who, const char *module, const char *here)
{
	size_t end = strncmp(module, "flexstudy", 9) ? 1 : PACKAGES;
	char folder[PATH_MAX];

	for (size_t i = 0; i < end; i++)
		if (!find(who, &packages[i], here, folder) ||
		    add_path(who, folder))
			return 1;
	return 0;
}

static size_t count(char **argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

int python_run(const char *who, const char *module, char **argv)
{
	char self[PATH_MAX], here[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *args[count(argv) + 8];
	int i = 0;

	if (n < 0)
		return failed(who, errno);
	self[n] = '\0';
	snprintf(here, sizeof(here), "%.*s", (int)(strrchr(self, '/') - self),
		 self);
	if (add_paths(who, module, here))
		return 1;
	args[i++] = (char *)"python3";
	/* -B: no .pyc files. -P: import nothing from the current folder. */
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
