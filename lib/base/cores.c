/* SPDX-License-Identifier: MIT */
#include "cores.h"

#include <errno.h>
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

static int cores_read(const char *list, cpu_set_t *cores)
{
	CPU_ZERO(cores);
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
			CPU_SET(core, cores);
		if (!*list)
			return 0;
		if (*list++ != ',')
			return -EINVAL;
	}
}

/*
 * Remove cores that can't be used. Only a trial shows which: a thread may run on cores
 * that its creator's mask lacks, but not outside the process's cpuset.
 */
static void keep_usable(cpu_set_t *cores)
{
	cpu_set_t mine, usable;

	if (sched_getaffinity(0, sizeof(mine), &mine))
		return;
	if (sched_setaffinity(0, sizeof(*cores), cores) ||
	    sched_getaffinity(0, sizeof(usable), &usable))
		usable = mine;
	CPU_AND(cores, cores, &usable);
	sched_setaffinity(0, sizeof(mine), &mine);
}

int flexsc__cores_parse(const char *list, cpu_set_t *cores)
{
	int err = cores_read(list, cores);

	if (err)
		return err;
	keep_usable(cores);
	return CPU_COUNT(cores) ? 0 : -EINVAL;
}
