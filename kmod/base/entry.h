/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries: the module's private data about each one, the transitions that the
 * module makes, and checks for pending entries.
 */
#ifndef FLEXSC_KMOD_BASE_ENTRY_H
#define FLEXSC_KMOD_BASE_ENTRY_H

#include <linux/atomic.h>
#include <linux/flexsc.h>

#include "base/registration.h"

/* The module's private data about an entry, which user mode can't access. */
struct companion {
	/* The thread that executes the entry, if without a permit; may be stale. */
	struct thread *thread;
	/*
	 * The task that keeps its claim on the entry while in user mode;
	 * only compared.
	 */
	struct task_struct *task;
	u32 next;		/* the next entry on the deferred list */
	bool deferred;		/* on the deferred list; guarded by registration.lock */
	u8 taken;		/* enum taken */
};

/*
 * Why a task keeps its claim on an entry (companion.task) while the task is in
 * user mode. If a hostile owner posts the entry again meanwhile, other threads
 * may execute it at the same time.
 */
enum taken {
	TAKEN_NOT = 0,
	TAKEN_BOUNCED,		/* user mode has to make its call */
	TAKEN_RESTARTS,		/* its call continues from the task's restart block */
	TAKEN_LEAVES,		/* its call has left work for the way to user mode */
	TAKEN_RETRY,		/* a signal ended its call, which has to be made again */
	TAKEN_ENDED,		/* a signal ended its call with -EINTR */
};

/*
 * Transitions, twins of those in lib/loop/entry.h. No other file of the module
 * writes an entry's status. User mode may write any status at any time, so no
 * status is an error. A transition by compare-and-swap returns whether it was
 * made; DONE is stored without a comparison, and may replace any status.
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
	 * E1: acquires the arguments that U1 published. If it succeeds, it is
	 * also a full barrier after the store to thread.executes. Pairs with
	 * cancel_entry().
	 */
	return try_cmpxchg(&entry->status, &submitted, FLEXSC_BUSY);
}

/*
 * BUSY -> SUBMITTED: let another thread execute the entry. False: the owner has
 * cancelled it meanwhile.
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

/* Is there no idle syscall thread, and can user mode create none? */
static inline bool entries_without_threads(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/* Are there deferred entries, but no syscall thread left to execute them? */
static inline bool entries_stranded(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->deferred_count)) && entries_without_threads(reg);
}

#endif /* FLEXSC_KMOD_BASE_ENTRY_H */
