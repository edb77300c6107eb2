/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completed entries. A thread collects those that it has completed, and pushes
 * them onto the completion queue together.
 */
#ifndef FLEXSC_KMOD_PUBLISH_H
#define FLEXSC_KMOD_PUBLISH_H

#include <linux/atomic.h>
#include <linux/flexsc.h>

#include "base/checks.h"
#include "base/entry.h"
#include "base/registration.h"
#include "base/trace.h"
#include "sched/record.h"

/*
 * Attempts to publish in one round. Completions by other threads make only a
 * few attempts fail. All of them fail only if a thread of the process keeps
 * writing to the queue. block_sched_out() makes one round with interrupts
 * disabled, so a round has to be short.
 */
#define PUBLISH_TRIES	1000

bool publish_now(struct thread *thread);
void publish_hard(struct thread *thread);
void publish_drop(struct thread *thread);
void publish_finish(struct thread *thread, u32 index, long ret);
void publish_interrupted(struct thread *thread, u32 index, long ret);

/*
 * Push the thread's completions, which are linked to each other, onto the queue
 * together. Called when the thread has no more work, blocks, or is about to
 * make a call that may take long. False: the queue's head changed too often, so
 * the completions remain to be pushed.
 */
static __always_inline bool publish_try(struct registration *reg,
					struct thread *thread)
{
	u32 *queue = &reg->shared->completions.head;
	u32 head = READ_ONCE(*queue);
	u32 tries = PUBLISH_TRIES;

	if (thread->newest == FLEXSC_NO_ENTRY)
		return true;
	do {
		WRITE_ONCE(reg->entries[thread->oldest].link, head);
		/* E3: publishes the links; pairs with U3. */
		if (likely(try_cmpxchg(queue, &head, thread->newest)))
			goto published;
	} while (--tries);
	return false;
published:
	/*
	 * Relaxed: afterwards a syscall thread calls waiter_recall(), whose
	 * full barrier pairs with wait_longer().
	 */
	atomic64_add(thread->completed, &reg->completed);
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
	return true;
}

/*
 * Publish the thread's completions. Called by the thread itself, while it
 * executes no entry. May sleep.
 */
static inline void publish_all(struct thread *thread)
{
	RULE_MAY_SLEEP();
	RULE(thread->task == current && !atomic64_read(&thread->executes));
	if (thread->newest != FLEXSC_NO_ENTRY && !publish_now(thread))
		publish_hard(thread);
}

/* Add an entry, which is DONE, to those that publish_try() will push. */
static __always_inline void publish_entry(struct registration *reg,
					  struct thread *thread,
					  struct flexsc_entry *entry,
					  u32 index, long ret)
{
	u32 newest = thread->newest;

	/*
	 * The thread must execute no entry here. Otherwise a cancellation of
	 * this entry could interrupt the next one.
	 */
	RULE(!atomic64_read(&thread->executes));
	trace_flexsc_complete(reg, index, ret);
	WRITE_ONCE(entry->link, newest);
	entry_finish(entry, ret);
	if (newest == FLEXSC_NO_ENTRY)
		thread->oldest = index;
	thread->newest = index;
	thread->completed++;
}

#endif /* FLEXSC_KMOD_PUBLISH_H */
