/* SPDX-License-Identifier: MIT */
#include "bench/cases.h"

#include <stdio.h>
#include <string.h>

#include "settings.h"

static void list(const struct bench_case *cases)
{
	for (const struct bench_case *one = cases; one->name; one++)
		fprintf(stderr, "%s%s", one == cases ? "" :
			one[1].name ? ", " : " or ", one->name);
}

/* The exit status of a case, or 1 if its output couldn't be written. */
static int printed(const char *who, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: can't write to standard output\n", who);
	return 1;
}

int bench_raw(const char *who, const struct bench_case *cases, int argc,
	      char **argv)
{
	struct bench_settings settings;
	const struct bench_case *one = cases;

	bench_who = who;
	while (argc && one->name && strcmp(one->name, argv[0]) != 0)
		one++;
	if (argc && one->name) {
		if (!bench_settings_parse(&settings, argc - 1, argv + 1))
			return 2;
		return printed(who, one->run(&settings));
	}
	fprintf(stderr, "%s: --raw%s%s: give ", who, argc ? " " : "",
		argc ? argv[0] : "");
	list(cases);
	fputs(", followed by KEY=VALUE\n", stderr);
	return 2;
}
