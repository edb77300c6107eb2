/* SPDX-License-Identifier: MIT */
/* Lists of cores, such as "2,4-6". */
#ifndef FLEXSC_CORES_H
#define FLEXSC_CORES_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The number of cores that a cpu_set_t has room for. musl's CPU_SETSIZE can't be used,
 * because it is the number of bytes.
 */
#define CORES_MAX	(8 * (int)sizeof(cpu_set_t))

/* Cores in the order in which they are to be used, each once. */
struct cores {
	unsigned int count;
	uint16_t core[8 * sizeof(cpu_set_t)];
};

/*
 * Parses a list of cores; the result has the usable ones, in the list's order. -EINVAL:
 * the list is malformed, or the process may not use any of its cores.
 */
int flexsc__cores_list(const char *list, struct cores *cores);

/* The same as a set. */
int flexsc__cores_parse(const char *list, cpu_set_t *set);

/*
 * Splits the calling thread's cores: "rest" gets those that the list lacks. -EINVAL, and
 * the reason in "why": the list is malformed, one of its cores can't be used, or no core
 * is left.
 */
int flexsc__cores_split(const char *list, cpu_set_t *rest, char *why, size_t size);

#endif /* FLEXSC_CORES_H */
