/* SPDX-License-Identifier: MIT */
/* Processes that are made without libc's fork(), whose handlers don't run then. */
#ifndef FLEXSC_THREADS_FORKS_H
#define FLEXSC_THREADS_FORKS_H

#include <stdbool.h>
#include <stdint.h>

bool flexsc__forks_makes_child(long nr);

/* Makes such a call of the program's. Returns a value, or -1 with errno set. */
long flexsc__forks_plainly(long nr, const uint64_t args[6]);

#endif /* FLEXSC_THREADS_FORKS_H */
