/* SPDX-License-Identifier: MIT */
/*
 * Stacks of the runtime's own threads. libc's wouldn't do: a forked child
 * reuses those of all threads that it doesn't have, so that a thread which
 * asks for a small stack may get a larger one. Any thread.
 */
#ifndef FLEXSC_THREADS_STACKS_H
#define FLEXSC_THREADS_STACKS_H

#include <pthread.h>

#define STACK_BYTES	(256UL << 10)

/* The lowest address that is usable, of "bytes"; NULL: out of memory. */
void *flexsc__stack_get(size_t *bytes);
/* NULL is none. */
void flexsc__stack_put(void *stack);

/* The one that a thread was made on; NULL: none of these. */
void *flexsc__stack_of(pthread_t thread);

/* In a forked child: nobody is on any. */
void flexsc__stacks_forked(void);

#endif /* FLEXSC_THREADS_STACKS_H */
