/* SPDX-License-Identifier: MIT */
/*
 * The dormant runtime has no threads of its own. The kernel admits only processes with
 * one thread to some namespaces, and programs count threads when they fork. So before
 * the program's only thread makes such a call, carriers and monitor end. The user
 * thread stays on its host until the next pthread_create() starts them again
 * (runtime.c).
 */
#ifndef FLEXSC_RUNTIME_DORMANT_H
#define FLEXSC_RUNTIME_DORMANT_H

#include <stdbool.h>

#include "uthread.h"

/*
 * Make the runtime dormant, if u is the only thread of the program and has no filter
 * (calls/filter.h). Called by u on its host, inside the runtime. Returns whether the
 * runtime is dormant.
 */
bool flexsc__dormant_begin(struct uthread *u);

/* As flexsc__dormant_begin(), before u forks. No effect shortly after another fork. */
void flexsc__dormant_before_fork(struct uthread *u);

/* Called when carriers and monitor have started again. */
void flexsc__dormant_end(void);

#endif /* FLEXSC_RUNTIME_DORMANT_H */
