/* SPDX-License-Identifier: MIT */
/* Lists of cores, such as "2,4-6". */
#ifndef FLEXSC_CORES_H
#define FLEXSC_CORES_H

#include <sched.h>

/*
 * The number of cores that a cpu_set_t has room for. musl's CPU_SETSIZE can't be used,
 * because it is the number of bytes.
 */
#define CORES_MAX	(8 * (int)sizeof(cpu_set_t))

/*
 * Parses a list of cores. -EINVAL: the list is malformed, or the process may not use
 * any of its cores.
 */
int flexsc__cores_parse(const char *list, cpu_set_t *cores);

#endif /* FLEXSC_CORES_H */
