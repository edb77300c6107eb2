/* SPDX-License-Identifier: MIT */
/*
 * The runtime at rest. The kernel lets only a process with one thread enter some
 * namespaces, and programs look at the number of threads when they fork. So when the
 * program's only thread makes such a call, carriers and monitor end first. The
 * user thread stays at home from then on, until the next pthread_create() starts
 * new ones.
 */
#ifndef FLEXSC_THREADS_REST_H
#define FLEXSC_THREADS_REST_H

#include <stdbool.h>

#include "uthread.h"

/*
 * u is the calling thread, at home and inside the runtime. If it is the program's
 * only thread, the runtime rests when this returns, and the process has one thread.
 * False: there are others, or u has a filter (calls/filter.h).
 */
bool flexsc__rest(struct uthread *u);

/* As flexsc__rest(), before u forks; but not too often. */
void flexsc__rest_to_fork(struct uthread *u);

/* Carriers and monitor are there again. */
void flexsc__rest_over(void);

#endif /* FLEXSC_THREADS_REST_H */
