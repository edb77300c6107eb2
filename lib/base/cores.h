/* SPDX-License-Identifier: MIT */
/* Lists of cores, such as "2,4-6". */
#ifndef FLEXSC_CORES_H
#define FLEXSC_CORES_H

#include <sched.h>

/*
 * Parses a list of cores. -EINVAL: the list is malformed, or the process may use none
 * of its cores.
 */
int flexsc__cores_parse(const char *list, cpu_set_t *cores);

#endif /* FLEXSC_CORES_H */
