/* SPDX-License-Identifier: MIT */
/* Finds the program that a test runs, natively and in other ways. */
#ifndef FLEXSC_TESTS_BESIDE_H
#define FLEXSC_TESTS_BESIDE_H

#include "tests/harness/harness.h"

#include <limits.h>
#include <spawn.h>

extern char **environ;

static char program[PATH_MAX];

/* The program is in the same directory as the test, in a guest, too. */
static inline void find_program(const char *called)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *name;

	CHECK(n > 0);
	program[n] = 0;
	name = strrchr(program, '/') + 1;
	CHECK(name + strlen(called) < program + sizeof(program));
	strcpy(name, called);
}

static inline char **native_environment(void)
{
	static char *kept[256];
	unsigned int n = 0;

	for (char **e = environ; *e && n < 255; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "FLEXSC_", 7))
			kept[n++] = *e;
	kept[n] = NULL;
	return kept;
}

#endif /* FLEXSC_TESTS_BESIDE_H */
