/* SPDX-License-Identifier: MIT */
/*
 * Stacks that the runtime maps instead of libc. Any thread. A freed stack is used
 * again; its memory is never unmapped.
 *
 * SMALL: hosts sleep on them, and carriers handle signals on them. Each user thread has
 * one. There is room for a futex wait, and for the frames of signals that arrive
 * meanwhile. There are no guard pages, because two more mappings per user thread would
 * halve the number of threads that a process can have.
 *
 * OWNED: stacks of the runtime's own threads, with guard pages. libc's stacks aren't
 * suitable: in a forked child libc reuses the stacks of all missing threads, so a
 * thread of the program that requests a small stack would get a larger one.
 */
#ifndef FLEXSC_RUNTIME_STACKS_H
#define FLEXSC_RUNTIME_STACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/futex.h"

struct slab;

struct stacks {
	struct lock lock;
	struct slab *slabs;
	void *free;		/* free stacks, linked at their tops */
	size_t bytes;		/* usable size of a stack */
	unsigned int per_slab;	/* stacks mapped at once */
	bool guarded;
};

extern struct stacks flexsc__small, flexsc__owned;

/* Once, before the first flexsc__stack_get(). */
void flexsc__stacks_init(void);

/* Returns a stack's lowest address; NULL: out of memory. */
void *flexsc__stack_get(struct stacks *stacks);
/* stack may be NULL. */
void flexsc__stack_put(struct stacks *stacks, void *stack);

/* The end of a stack, from which it grows down. */
static inline char *stack_top(const struct stacks *stacks, void *stack)
{
	return (char *)stack + stacks->bytes;
}

/* The owned stack on which a thread was created, or NULL. */
void *flexsc__stack_of(pthread_t thread);

/*
 * In a forked child: free all owned stacks, as no thread is on one. Small stacks that
 * were in use are lost, because the child's thread may run on one.
 */
void flexsc__stacks_forked(void);

#endif /* FLEXSC_RUNTIME_STACKS_H */
