/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries: what the kernel keeps about each, the arrows of their life that the
 * module takes, and whether any wait to be executed.
 */
#ifndef FLEXSC_KMOD_BASE_ENTRY_H
#define FLEXSC_KMOD_BASE_ENTRY_H

#include <linux/atomic.h>
#include <linux/flexsc.h>

#include "base/registration.h"

/*
 * An entry's companion: what the kernel knows of it, out of user mode's reach.
 */
struct companion {
	struct thread *thread;	/* executes it without a permit; may be stale */
	struct task_struct *task;	/* carries it; never followed */
	u32 next;		/* its successor on the deferred list */
	bool deferred;		/* it is on the deferred list; under the lock */
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
	TAKEN_RETRY,		/* a signal ended its call, to be made again */
	TAKEN_ENDED,		/* a signal ended its call with -EINTR */
};

/*
 * The arrows, twins of those in lib/loop/entry.h; no other file of the module
 * writes an entry's status. User mode may write any status at any time, so
 * there is no wrong one to complain about: an arrow that is a compare-and-swap
 * says whether it was taken, and any status may become DONE.
 */

static inline u8 entry_status(const struct flexsc_entry *entry)
{
	return READ_ONCE(entry->status);
}

static inline bool entry_is_cancelled(const struct flexsc_entry *entry)
{
	return entry_status(entry) == FLEXSC_CANCEL;
}

/* SUBMITTED -> BUSY. False: the owner has cancelled it first. */
static __always_inline bool entry_begin(struct flexsc_entry *entry)
{
	u8 submitted = FLEXSC_SUBMITTED;

	/*
	 * E1: acquires the arguments that U1 published. If it succeeds it is a
	 * full barrier as well, behind thread.executes. Pairs with
	 * cancel_entry().
	 */
	return try_cmpxchg(&entry->status, &submitted, FLEXSC_BUSY);
}

/*
 * BUSY -> SUBMITTED: it is left to another thread. False: the owner cancelled
 * it meanwhile.
 */
static inline bool entry_leave(struct flexsc_entry *entry)
{
	return cmpxchg(&entry->status, FLEXSC_BUSY, FLEXSC_SUBMITTED) ==
	       FLEXSC_BUSY;
}

/* BUSY or CANCEL -> DONE. */
static __always_inline void entry_finish(struct flexsc_entry *entry, long ret)
{
	WRITE_ONCE(entry->ret, ret);
	/* E2: publishes ret and what the call wrote; pairs with U2. */
	smp_store_release(&entry->status, FLEXSC_DONE);
}

static inline bool ring_empty(struct registration *reg)
{
	return (u32)atomic_read(&reg->head) == READ_ONCE(reg->shared->tail);
}

/* Are there entries that a syscall thread may take? */
static inline bool entries_pending(struct registration *reg)
{
	return READ_ONCE(reg->deferred_count) || !ring_empty(reg);
}

/* User mode can't make syscall threads, and none is idle. */
static inline bool entries_without_threads(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/* Has the waiter deferred entries, and no syscall thread is left for them? */
static inline bool entries_stranded(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->deferred_count)) && entries_without_threads(reg);
}

#endif /* FLEXSC_KMOD_BASE_ENTRY_H */
