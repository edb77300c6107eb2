/* SPDX-License-Identifier: MIT */
/*
 * The runtime as a whole. It starts with the program's first pthread_create(),
 * and ends with the process. A forked child has none until it makes a thread.
 */
#ifndef FLEXSC_RUNTIME_RUNTIME_H
#define FLEXSC_RUNTIME_RUNTIME_H

#include <stdbool.h>

/*
 * From here on the calling thread, and threads that are made later, are user
 * threads. If that isn't possible, a line on stderr says so, this returns
 * false, and the program runs without the runtime.
 */
bool flexsc__runtime_start(void);

#endif /* FLEXSC_RUNTIME_RUNTIME_H */
