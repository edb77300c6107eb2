/* SPDX-License-Identifier: MIT */
/* Lists of cores, such as "2,4-6". */
#ifndef FLEXSC_CORES_H
#define FLEXSC_CORES_H

#include <sched.h>

/* The cores of a cpu_set_t. musl's CPU_SETSIZE is the number of its bytes. */
#define CORES_MAX	(8 * (int)sizeof(cpu_set_t))

/*
 * Parses a list of cores. -EINVAL: the list is malformed, or the process may not use
 * any of its cores.
 */
int flexsc__cores_parse(const char *list, cpu_set_t *cores);

#endif /* FLEXSC_CORES_H */
