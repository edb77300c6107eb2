// SPDX-License-Identifier: GPL-2.0-only
/*
 * Publishes completions, transitions E2 and E3 of <linux/flexsc.h>. Run by the
 * thread that completed the entries, in process context. block_sched_out() also
 * calls publish_now(), and so does task_death.c's worker on behalf of a dead
 * thread.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "base/registration.h"
#include "exec/publish.h"
#include "sched/record.h"

/*
 * Rounds of attempts to publish. After the last one the thread's completions
 * are dropped.
 */
#define PUBLISH_ROUNDS	1000

/*
 * Push the thread's completions onto the queue. Any context, also with a run
 * queue's lock held. False: try again later.
 */
bool publish_now(struct thread *thread)
{
	return publish_try(thread->reg, thread);
}

void publish_drop(struct thread *thread)
{
	thread->newest = FLEXSC_NO_ENTRY;
	thread->completed = 0;
}

/*
 * Called when some thread of the process keeps changing the queue's head: retry
 * for a while, then drop the completions. Only that process's calls are
 * affected.
 */
noinline void publish_hard(struct thread *thread)
{
	u32 rounds = PUBLISH_ROUNDS;

	do {
		cond_resched();
		if (publish_now(thread))
			return;
	} while (--rounds && !fatal_signal_pending(current));
	publish_drop(thread);
}

/* End an entry outside of a batch, and publish it at once. */
void publish_finish(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;

	publish_entry(reg, thread, &reg->entries[index], index, ret);
	publish_all(thread);
}

/* End an entry as INTERRUPTED, so that user mode may post it again. */
void publish_interrupted(struct thread *thread, u32 index, long ret)
{
	struct registration *reg = thread->reg;
	struct flexsc_entry *entry = &reg->entries[index];

	count(reg, COUNT_INTERRUPTED, 1);
	WRITE_ONCE(entry->nargs, READ_ONCE(entry->nargs) | FLEXSC_INTERRUPTED);
	publish_finish(thread, index, ret);
}
