/* SPDX-License-Identifier: MIT */
/* Lists of cores, as "2,4-6". */
#ifndef FLEXSC_CORES_H
#define FLEXSC_CORES_H

#include <sched.h>

/*
 * Read a list of cores. -EINVAL: no such list, or none of its cores is the
 * process's to use.
 */
int flexsc__cores_parse(const char *list, cpu_set_t *cores);

#endif /* FLEXSC_CORES_H */
