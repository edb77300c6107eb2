/* SPDX-License-Identifier: MIT */
/* Processes that are made without libc's fork(), so that its handlers don't run. */
#ifndef FLEXSC_RUNTIME_FORKS_H
#define FLEXSC_RUNTIME_FORKS_H

#include <stdbool.h>
#include <stdint.h>

/* May the call make a process? */
bool flexsc__forks_makes_child(long nr);

/* Make such a call for the program. Returns a value, or -1 with errno set. */
long flexsc__forks_plainly(long nr, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_FORKS_H */
