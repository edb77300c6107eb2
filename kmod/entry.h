/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries: what the kernel keeps about each, and whether any wait to be
 * executed.
 */
#ifndef FLEXSC_KMOD_ENTRY_H
#define FLEXSC_KMOD_ENTRY_H

#include <linux/atomic.h>
#include <linux/flexsc.h>

#include "registration.h"

/* What the kernel keeps about an entry, out of user mode's reach. */
struct companion {
	struct thread *thread;	/* executes it without a slot; may be stale */
	struct task_struct *task;	/* carries it; never followed */
	u32 next;		/* its successor on the aside list */
	bool aside;		/* it is on the aside list; under the lock */
	u8 taken;		/* enum taken */
};

/*
 * Why companion.task carries an entry through user mode. If a hostile owner
 * posts the entry again meanwhile, other threads may have it at the same time.
 */
enum taken {
	TAKEN_NOT = 0,
	TAKEN_BOUNCED,		/* user mode makes its call */
	TAKEN_RESTARTS,		/* its restart block is in the task */
	TAKEN_LEAVES,		/* its call is made; delayed work isn't done */
	TAKEN_AGAIN,		/* a signal ended its call, to be made again */
	TAKEN_ENDED,		/* a signal ended its call with -EINTR */
};

void entries_execute(struct registration *reg, struct thread *thread);
void entries_retrieve(struct registration *reg, struct thread *thread);
void entries_execute_inline(struct registration *reg, struct thread *thread);
void entry_bury(struct thread *thread, u32 index);

static inline bool ring_empty(struct registration *reg)
{
	return (u32)atomic_read(&reg->head) == READ_ONCE(reg->shared->tail);
}

/* Are there entries that a syscall thread may take? */
static inline bool entries_pending(struct registration *reg)
{
	return READ_ONCE(reg->aside_count) || !ring_empty(reg);
}

/* User mode can't make syscall threads, and none is idle. */
static inline bool entries_alone(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/* Did the owner put entries aside, and no syscall thread is left for them? */
static inline bool entries_stranded(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->aside_count)) && entries_alone(reg);
}

#endif /* FLEXSC_KMOD_ENTRY_H */
