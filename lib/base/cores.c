/* SPDX-License-Identifier: MIT */
#include "cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int cores_number(const char **at)
{
	char *end;
	unsigned long n;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	n = strtoul(*at, &end, 10);
	*at = end;
	return n < (unsigned long)CORES_MAX ? (int)n : -EINVAL;
}

static void cores_add(struct cores *cores, int core, cpu_set_t *set)
{
	if (CPU_ISSET(core, set))
		return;
	CPU_SET(core, set);
	cores->core[cores->count++] = (uint16_t)core;
}

static int cores_read(const char *list, struct cores *cores, cpu_set_t *set)
{
	cores->count = 0;
	CPU_ZERO(set);
	for (;;) {
		int first = cores_number(&list);
		int last = first;

		if (*list == '-') {
			list++;
			last = cores_number(&list);
		}
		if (first < 0 || last < first)
			return -EINVAL;
		for (int core = first; core <= last; core++)
			cores_add(cores, core, set);
		if (!*list)
			return 0;
		if (*list++ != ',')
			return -EINVAL;
	}
}

/*
 * Remove cores that can't be used. Only a trial shows which: a thread may run on cores
 * that its creator's mask lacks, but not outside the process's cpuset. The trial adds
 * the cores to the thread's own ones, so that the thread isn't moved to one of them.
 */
static void keep_usable(cpu_set_t *set)
{
	cpu_set_t mine, usable;

	if (sched_getaffinity(0, sizeof(mine), &mine))
		return;
	CPU_OR(&usable, set, &mine);
	if (sched_setaffinity(0, sizeof(usable), &usable) ||
	    sched_getaffinity(0, sizeof(usable), &usable))
		usable = mine;
	CPU_AND(set, set, &usable);
	sched_setaffinity(0, sizeof(mine), &mine);
}

static int cores_usable(const char *list, struct cores *cores, cpu_set_t *set)
{
	const int err = cores_read(list, cores, set);
	unsigned int n = 0;

	if (err)
		return err;
	keep_usable(set);
	for (unsigned int i = 0; i < cores->count; i++)
		if (CPU_ISSET(cores->core[i], set))
			cores->core[n++] = cores->core[i];
	cores->count = n;
	return n ? 0 : -EINVAL;
}

int flexsc__cores_list(const char *list, struct cores *cores)
{
	cpu_set_t set;

	return cores_usable(list, cores, &set);
}

int flexsc__cores_parse(const char *list, cpu_set_t *set)
{
	struct cores cores;

	return cores_usable(list, &cores, set);
}

/* Returns the first core of a that b lacks. */
static int first_without(const cpu_set_t *a, const cpu_set_t *b)
{
	int core = 0;

	while (!CPU_ISSET(core, a) || CPU_ISSET(core, b))
		core++;
	return core;
}

int flexsc__cores_split(const char *list, cpu_set_t *rest, char *why, size_t size)
{
	cpu_set_t mine, listed, usable;
	struct cores cores;

	if (cores_read(list, &cores, &listed)) {
		snprintf(why, size, "give a list of cores, such as 2,4-6");
		return -EINVAL;
	}
	usable = listed;
	keep_usable(&usable);
	if (!CPU_EQUAL(&usable, &listed)) {
		snprintf(why, size, "core %d doesn't exist, or this process may "
			 "not use it", first_without(&listed, &usable));
		return -EINVAL;
	}
	CPU_ZERO(&mine);
	sched_getaffinity(0, sizeof(mine), &mine);
	CPU_AND(&usable, &mine, &listed);
	CPU_XOR(rest, &mine, &usable);
	if (CPU_COUNT(rest))
		return 0;
	snprintf(why, size, "leaves no core for the program itself");
	return -EINVAL;
}
