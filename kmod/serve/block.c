// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that blocks in an entry, or leaves the kernel, releases its permit
 * and its slot, and other threads continue. The scheduler calls block_sched_out() with the
 * run queue's lock held and interrupts disabled, so that function must not wake
 * a task or take a lock.
 */
#include "base/entry.h"
#include "base/registration.h"
#include "exec/publish.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/serve.h"

/*
 * Called when the task is preempted, or leaves the run queue. If it leaves the
 * queue while it executes an entry or polls a file, release its permit. Right
 * after that, the permit's irq_work wakes another thread. This function can't
 * wake one, because the run queue's lock is held.
 */
static void block_sched_out(struct preempt_notifier *notifier,
			    struct task_struct *next)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);
	struct permit *permit = READ_ONCE(thread->permit);
	u64 executes = atomic64_read(&thread->executes);

	lockdep_assert_irqs_disabled();
	RULE(thread->task == current);
	if (unlikely(READ_ONCE(current->__state) == TASK_DEAD))
		thread_died(thread);
	if (!permit ||
	    (!executes && READ_ONCE(thread->polls) == FLEXSC_NO_ENTRY) ||
	    !task_sleeps(current))
		return;
	/* If publishing fails here, the thread does it when it runs again. */
	publish_now(thread);
	/*
	 * Store the thread before its permit is released: pairs with
	 * cancel_find().
	 */
	if (executes) {
		WRITE_ONCE(thread->reg->entries[(u32)executes].ret,
			   FLEXSC_BLOCKED);
		WRITE_ONCE(thread->reg->companions[(u32)executes].thread,
			   thread);
	}
	WRITE_ONCE(thread->permit, NULL);
	slot_give(thread);
	count(thread->reg, COUNT_BLOCKED, 1);
	atomic64_inc(&permit->counts[PERMIT_BLOCKED]);
	WRITE_ONCE(thread->blocked, true);
	/*
	 * The full barrier in block_permit_freed() follows this store, and
	 * pairs with the owner's barrier between tail and needs_kick.
	 */
	WRITE_ONCE(thread->reg->shared->needs_kick, 1);
	/* Pairs with the cmpxchg() of permit_take(). */
	smp_store_release(&permit->active, NULL);
	irq_work_queue(&permit->blocked);
}

static void block_sched_in(struct preempt_notifier *notifier, int cpu)
{
}

const struct preempt_ops block_ops = {
	.sched_in = block_sched_in,
	.sched_out = block_sched_out,
};

/*
 * Let a thread continue with the pending entries. If no thread is idle, wake
 * the sleeping waiter, to execute entries or to have a thread created.
 */
static void block_continue(struct registration *reg)
{
	if (entries_pending(reg) && permit_any_unused(reg) &&
	    !idle_wake_for_entries(reg))
		wake_up(&reg->wait);
}

/*
 * Called when a thread has blocked and released its permit: let others
 * continue. Runs in an irq_work.
 */
void block_permit_freed(struct irq_work *work)
{
	struct registration *reg =
		container_of(work, struct permit, blocked)->reg;

	/*
	 * Pairs with the owner's full barrier between tail and needs_kick.
	 * Either this sees the new tail, or the owner sees needs_kick and
	 * kicks.
	 */
	smp_mb();
	block_continue(reg);
	waiter_blocked(reg);
	waiter_recall(reg);
}

/* Called when a thread has left the kernel: let others continue. */
void block_thread_left(struct registration *reg)
{
	/* Pairs with the full barrier in permit_any_looking(). */
	smp_mb();
	block_continue(reg);
	/*
	 * The thread that left may have been woken to take the waiter's role:
	 * choose another one.
	 */
	waiter_recall(reg);
}
