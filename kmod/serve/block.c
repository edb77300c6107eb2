// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens when a thread blocks in an entry, or leaves the kernel: it gives up its
 * permit, and others go on. The scheduler calls block_sched_out() with the run queue's
 * lock held and interrupts off. So that function may not wake a task or take a lock.
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
 * The task is preempted, or leaves the run queue. If it leaves in an entry, or
 * while it polls a file, it gives up its permit. This runs with the run queue's
 * lock held and interrupts off, so it can't wake a thread to take over: the
 * permit's irq_work does, right after.
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
	/* If publishing fails, the thread publishes when it runs again. */
	publish_now(thread);
	/* Before the permit is free: pairs with cancel_find(). */
	if (executes)
		WRITE_ONCE(thread->reg->companions[(u32)executes].thread,
			   thread);
	WRITE_ONCE(thread->permit, NULL);
	count(thread->reg, COUNT_BLOCKED, 1);
	atomic64_inc(&permit->counts[PERMIT_BLOCKED]);
	WRITE_ONCE(thread->blocked, true);
	/* With the barrier of block_permit_freed(): pairs with the owner's kick. */
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

/* A thread blocked and gave up its permit: others go on. Runs in an irq_work. */
void block_permit_freed(struct irq_work *work)
{
	struct registration *reg =
		container_of(work, struct permit, blocked)->reg;

	/*
	 * Pairs with the full barrier of the owner between tail and needs_kick:
	 * this sees the new tail, or the owner sees needs_kick, and kicks.
	 */
	smp_mb();
	if (entries_pending(reg) && permit_any_free(reg) && !idle_wake(reg))
		wake_up(&reg->wait);
	waiter_blocked(reg);
	waiter_recall(reg);
}

/*
 * A thread has left the kernel: others go on with what is pending. If none is
 * idle, the sleeping waiter is woken, to execute or to have a thread made.
 */
void block_thread_left(struct registration *reg)
{
	/* Pairs with the full barrier in permit_any_looking(). */
	smp_mb();
	if (entries_pending(reg) && permit_any_free(reg) && !idle_wake(reg))
		wake_up(&reg->wait);
	/* The thread may have been woken to take the waiter's role. */
	waiter_recall(reg);
}
