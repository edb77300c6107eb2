/* SPDX-License-Identifier: MIT */
/*
 * Stacks of the runtime's own threads. libc's wouldn't do: a forked child
 * reuses the stacks of all threads that it doesn't have, so a thread of the
 * program's that asks for a small stack would get a larger one. Any thread.
 */
#ifndef FLEXSC_THREADS_STACKS_H
#define FLEXSC_THREADS_STACKS_H

#include <pthread.h>

#define STACK_BYTES	(256UL << 10)

/*
 * The lowest usable address of a stack, and its size in "bytes"; NULL if out of
 * memory.
 */
void *flexsc__stack_get(size_t *bytes);
/* Without effect on NULL. */
void flexsc__stack_put(void *stack);

/* The stack that a thread was made on; NULL if it isn't one of these. */
void *flexsc__stack_of(pthread_t thread);

/* In a forked child, where no thread is on any of them. */
void flexsc__stacks_forked(void);

#endif /* FLEXSC_THREADS_STACKS_H */
