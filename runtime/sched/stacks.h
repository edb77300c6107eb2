/* SPDX-License-Identifier: MIT */
/*
 * Stacks that libc doesn't make. Any thread. A stack that is given back is used again; its
 * memory is never unmapped.
 *
 * SMALL: hosts sleep on them, and carriers handle signals there. There is one for each
 * user thread. They have room for a futex wait, and for the frames of signals that arrive
 * meanwhile. They have no guard pages, because two more mappings for each user thread
 * would halve the number of threads that a process can have.
 *
 * OWNED: those of the runtime's own threads, each with a guard page. libc's stacks aren't
 * suitable: a forked child reuses the stacks of all threads that it doesn't have, so a
 * program's thread that requests a small stack would get a larger one.
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
	void *free;		/* given back; linked at their tops */
	size_t bytes;		/* that can be used of one */
	unsigned int per_slab;	/* mapped at once */
	bool guarded;
};

extern struct stacks flexsc__small, flexsc__owned;

/* Called once, before the first flexsc__stack_get(). */
void flexsc__stacks_init(void);

/* A stack's lowest address; NULL if out of memory. */
void *flexsc__stack_get(struct stacks *stacks);
/* Without effect on NULL. */
void flexsc__stack_put(struct stacks *stacks, void *stack);

/* Where a stack ends, and what grows down on it begins. */
static inline char *stack_top(const struct stacks *stacks, void *stack)
{
	return (char *)stack + stacks->bytes;
}

/* The owned stack that a thread was made on; NULL if it isn't on one. */
void *flexsc__stack_of(pthread_t thread);

/*
 * In a forked child, where no thread is on an owned stack. Small ones that are
 * in use are lost, because the child's thread may run on one.
 */
void flexsc__stacks_forked(void);

#endif /* FLEXSC_RUNTIME_STACKS_H */
