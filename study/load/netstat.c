/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "netstat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file is pairs of lines: names, then the values in their order. */
static double value_of(char *names, char *values, const char *name)
{
	char *names_at = NULL, *values_at = NULL;
	char *found = strtok_r(names, " \n", &names_at);
	char *value = strtok_r(values, " \n", &values_at);

	while (found && value && strcmp(found, name) != 0) {
		found = strtok_r(NULL, " \n", &names_at);
		value = strtok_r(NULL, " \n", &values_at);
	}
	return found && value ? strtod(value, NULL) : 0;
}

double bench_netstat(long pid, const char *name)
{
	char path[64], *names = NULL, *values = NULL;
	size_t names_room = 0, values_room = 0;
	double value = 0;
	FILE *file;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%ld/net/netstat", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/net/netstat");
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!value && getline(&names, &names_room, file) > 0 &&
	       getline(&values, &values_room, file) > 0)
		value = value_of(names, values, name);
	free(names);
	free(values);
	fclose(file);
	return value;
}
