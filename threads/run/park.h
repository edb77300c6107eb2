/* SPDX-License-Identifier: MIT */
/*
 * The small stacks that kernel threads are parked on. There is one for each
 * user thread. They have to hold little: a futex wait, and the frames of
 * signals that arrive meanwhile. Any thread.
 */
#ifndef FLEXSC_THREADS_PARK_H
#define FLEXSC_THREADS_PARK_H

#include <stddef.h>

extern size_t flexsc__park_bytes;

#define PARK_BYTES	flexsc__park_bytes

/* The lowest address of a stack of PARK_BYTES; NULL if out of memory. */
void *flexsc__park_get(void);
void flexsc__park_put(void *stack);

/* Called once, before the first flexsc__park_get(). */
void flexsc__park_init(void);

/* In a forked child, where no thread is parked any more. */
void flexsc__park_forked(void);

#endif /* FLEXSC_THREADS_PARK_H */
