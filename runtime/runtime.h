/* SPDX-License-Identifier: MIT */
/*
 * Starting the runtime, with the program's first pthread_create(). It ends with the
 * process. A forked child has no runtime until it creates a thread.
 */
#ifndef FLEXSC_RUNTIME_RUNTIME_H
#define FLEXSC_RUNTIME_RUNTIME_H

#include <stdbool.h>

/*
 * From here on the calling thread, and threads that are created later, are user
 * threads. False: that isn't possible. A message on stderr gives the reason, and the
 * program runs natively.
 */
bool flexsc__runtime_start(void);

#endif /* FLEXSC_RUNTIME_RUNTIME_H */
