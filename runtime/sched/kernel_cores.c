/* SPDX-License-Identifier: MIT */
#include "kernel_cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cores.h"
#include "lib/base/syscall.h"

/* Room for a list of all cores by their numbers. */
#define LIST_MAX	(5 * CORES_MAX)

static char list[LIST_MAX];	/* "": none */
static cpu_set_t rest;		/* the process's cores without those of the list */

int flexsc__kernel_cores_init(char *why, size_t size)
{
	const char *value = getenv("FLEXSC_KERNEL_CORES");
	int err;

	if (!*list && value &&
	    snprintf(list, sizeof(list), "%s", value) >= LIST_MAX) {
		*list = '\0';
		snprintf(why, size, "the list is longer than %d bytes", LIST_MAX - 1);
		return -EINVAL;
	}
	CPU_ZERO(&rest);
	raw_syscall(SYS_sched_getaffinity, 0, sizeof(rest), PTR(&rest), 0, 0, 0);
	if (!*list)
		return 0;
	err = flexsc__cores_split(list, &rest, why, size);
	if (err)
		*list = '\0';
	return err;
}

const char *flexsc__kernel_cores(void)
{
	return *list ? list : NULL;
}

unsigned int flexsc__kernel_cores_rest(void)
{
	const int n = CPU_COUNT(&rest);

	return n ? (unsigned int)n : 1;
}

void flexsc__kernel_cores_leave(cpu_set_t *own)
{
	CPU_ZERO(own);
	if (!*list)
		return;
	raw_syscall(SYS_sched_getaffinity, 0, sizeof(*own), PTR(own), 0, 0, 0);
	raw_syscall(SYS_sched_setaffinity, 0, sizeof(rest), PTR(&rest), 0, 0, 0);
}

void flexsc__kernel_cores_return(const cpu_set_t *own)
{
	if (*list)
		raw_syscall(SYS_sched_setaffinity, 0, sizeof(*own), PTR(own), 0,
			    0, 0);
}
