// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens when a thread blocks in an entry, or leaves the kernel: it gives up its
 * slot, and others go on. The scheduler calls thread_sched_out() with the run queue's
 * lock held and interrupts off. It may not wake a task or take a lock.
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
 * while it asks a file, it gives up its slot. This runs with the run queue's
 * lock held and interrupts off, so it can't wake a thread to take over: the
 * slot's irq_work does, right after.
 */
static void thread_sched_out(struct preempt_notifier *notifier,
			     struct task_struct *next)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);
	struct slot *slot = READ_ONCE(thread->slot);
	u64 executes = atomic64_read(&thread->executes);

	lockdep_assert_irqs_disabled();
	RULE(thread->task == current);
	if (unlikely(READ_ONCE(current->__state) == TASK_DEAD))
		death_note(thread);
	if (!slot || (!executes && !READ_ONCE(thread->asks)) ||
	    !task_sleeps(current))
		return;
	/* If publishing fails, the thread publishes when it runs again. */
	publish_now(thread);
	/* Before the slot is free: pairs with cancel_find(). */
	if (executes)
		WRITE_ONCE(thread->reg->companions[(u32)executes].thread,
			   thread);
	WRITE_ONCE(thread->slot, NULL);
	count(thread->reg, COUNT_BLOCKED, 1);
	atomic64_inc(&slot->counts[SLOT_BLOCKED]);
	WRITE_ONCE(thread->blocked, true);
	/* With the barrier of thread_blocked(): pairs with the owner's kick. */
	WRITE_ONCE(thread->reg->shared->needs_kick, 1);
	/* Pairs with the cmpxchg() of slot_take(). */
	smp_store_release(&slot->active, NULL);
	irq_work_queue(&slot->blocked);
}

static void thread_sched_in(struct preempt_notifier *notifier, int cpu)
{
}

const struct preempt_ops block_ops = {
	.sched_in = thread_sched_in,
	.sched_out = thread_sched_out,
};

/* A thread blocked and gave up its slot: others go on. Runs in an irq_work. */
void thread_blocked(struct irq_work *work)
{
	struct registration *reg =
		container_of(work, struct slot, blocked)->reg;

	/*
	 * Pairs with the full barrier of the owner between tail and needs_kick:
	 * this sees the new tail, or the owner sees needs_kick, and kicks.
	 */
	smp_mb();
	if (entries_pending(reg) && slot_any_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	owner_blocked(reg);
	owner_recall(reg);
}

/*
 * A thread has left the kernel: others go on with what is pending. If none is
 * idle, the sleeping owner is woken, to execute or to have a thread made.
 */
void thread_left(struct registration *reg)
{
	/* Pairs with the full barrier in thread_looks(). */
	smp_mb();
	if (entries_pending(reg) && slot_any_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	/* The thread may have been woken to take the owner's role. */
	owner_recall(reg);
}
