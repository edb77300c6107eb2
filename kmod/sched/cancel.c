// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupting the thread that executes an entry (ATC 2011, section 4.2),
 * without interrupting its next entry.
 *
 * The state of a thread is in "executes":
 *
 *	NOTHING		-> ENTRY	the thread begins an entry
 *	ENTRY		-> NOTHING	the thread has ended it
 *	ENTRY		-> CLAIMED	another thread is about to interrupt it
 *	CLAIMED		-> KICKED	the interruption is pending
 *	KICKED		-> NOTHING	the thread has noticed the interruption.
 *					It goes to user mode, which clears the
 *					interruption, before it begins another
 *					entry
 *
 * All transitions out of ENTRY are compare-and-swaps. The state is CLAIMED only
 * for a short time. Meanwhile the thread spins, so its record keeps its task. A
 * task that died in its call stays in ENTRY until serve/task_death.c ends the
 * entry. The record's reference keeps the task, and interrupting it has no
 * effect.
 *
 * A thread stores what it executes, then makes the entry BUSY. The owner
 * changes BUSY to CANCEL, then searches for the thread. Each side executes a
 * full barrier in between, so the owner finds the thread, in a permit or in the
 * entry's companion. The thread is stored in the companion before it releases
 * its permit in a call, and before it begins an entry without a permit. A
 * thread that continues an entry, which is BUSY all the time, stores itself
 * first, and checks for CANCEL after that.
 *
 * The interruption is TIF_NOTIFY_SIGNAL, which makes a call return as for a
 * signal, although all signals are blocked. The way to user mode clears it.
 */
#include <linux/sched.h>
#include <linux/wait.h>

#include "base/entry.h"
#include "base/registration.h"
#include "sched/cancel.h"

/*
 * Does what set_notify_signal() does, with functions that Linux exports. The
 * wait queue's default function wakes the task if it sleeps interruptibly. A
 * running task needs no notification, because it checks the flag before it
 * enters user mode; unless it runs a virtual machine.
 */
static void cancel_interrupt(struct task_struct *task)
{
	wait_queue_entry_t sleeper = { .private = task };

	if (!test_and_set_tsk_thread_flag(task, TIF_NOTIFY_SIGNAL) &&
	    !default_wake_function(&sleeper, TASK_INTERRUPTIBLE, 0, NULL))
		kick_process(task);
}

/*
 * Interrupt the call that the thread executes, unless the thread has gone on to
 * another entry. Any context, except with a run queue's lock held, because this
 * wakes the task.
 */
bool cancel_kick(struct thread *thread, u64 executes)
{
	u32 index = (u32)executes;
	bool mine;

	/*
	 * Don't get preempted here: the interrupted thread spins in
	 * cancel_await() while its "executes" is CLAIMED.
	 */
	preempt_disable();
	mine = atomic64_cmpxchg(&thread->executes, executes,
				EXECUTES_CLAIMED | index) == executes;
	if (mine) {
		/* A record has a task while its thread executes an entry. */
		WARN_ON_ONCE(!thread->task);
		cancel_interrupt(thread->task);
		/*
		 * A release: the task isn't used after it. Pairs with
		 * cancel_await().
		 */
		atomic64_set_release(&thread->executes,
				     EXECUTES_KICKED | index);
	}
	preempt_enable();
	return mine;
}

/*
 * Wait until the interruption is pending. Called when the thread has ended its
 * entry, and "executes" was CLAIMED or KICKED before that.
 */
noinline bool cancel_await(struct thread *thread, u32 index)
{
	u64 executes = atomic64_read(&thread->executes);

	/*
	 * If "executes" were about another entry, the loop below would never
	 * end.
	 */
	WARN_ON_ONCE(executes != (EXECUTES_CLAIMED | index) &&
		     executes != (EXECUTES_KICKED | index));
	/* Pairs with cancel_kick(). */
	while (atomic64_read_acquire(&thread->executes) !=
	       (EXECUTES_KICKED | index))
		cpu_relax();
	atomic64_set(&thread->executes, EXECUTES_NOTHING);
	return true;
}

/*
 * Find the thread that executes the entry. The result is a hint; NULL: none was
 * found.
 */
static struct thread *cancel_find(struct registration *reg, u32 index)
{
	u64 executes = EXECUTES_ENTRY | index;
	struct thread *thread;
	u32 i;

	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		/*
		 * Pairs with block_sched_out(), which stores the thread in the
		 * companion before it releases the permit.
		 */
		thread = smp_load_acquire(&reg->permits[i].active);
		if (thread && atomic64_read(&thread->executes) == executes)
			return thread;
	}
	return READ_ONCE(reg->companions[index].thread);
}

/* FLEXSC_IOC_CANCEL */
long cancel_entry(struct registration *reg, u32 index)
{
	struct thread *thread;

	if (index >= reg->entry_count)
		return -EINVAL;
	index = array_index_nospec(index, reg->entry_count);
	/*
	 * Orders the search after the owner's store of CANCEL. Pairs with
	 * entry_start() and carry_resume().
	 */
	smp_mb();
	thread = cancel_find(reg, index);
	if (thread && cancel_kick(thread, EXECUTES_ENTRY | index))
		count(reg, COUNT_CANCELLED, 1);
	return 0;
}
