// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupting the thread that executes an entry (ATC 2011, section 4.2), and
 * never the entry after it.
 *
 * A thread's "now" says what it executes:
 *
 *	NOTHING		-> EXECUTES	the thread begins an entry
 *	EXECUTES	-> NOTHING	... and has ended it
 *	EXECUTES	-> CLAIMED	somebody is about to interrupt it
 *	CLAIMED		-> KICKED	the interruption is pending
 *	KICKED		-> NOTHING	the thread has seen that; it goes to
 *					user mode, which takes it away, before
 *					it begins another entry
 *
 * All arrows out of EXECUTES are compare-and-swaps. The thread waits while it
 * is CLAIMED, which is short: so its task can't be gone.
 *
 * A thread says what it executes, then makes the entry BUSY; the owner makes
 * what is BUSY CANCEL, then looks for the thread. There is a full barrier on
 * each side, so it finds it: in a slot, or where a thread notes down what it
 * blocks in before it gives up its slot, and what it begins without one. One
 * that goes on with an entry, which is BUSY all the time, does that first, and
 * looks for CANCEL afterwards.
 *
 * The interruption is a task work that does nothing: it makes the call return
 * as for a signal, though all signals are blocked.
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/task_work.h>

#include "registration.h"

/* The thread is in user mode, or about to be. */
static void kicked(struct callback_head *head)
{
	struct thread *thread = container_of(head, struct thread, kick);
	struct registration *reg = thread->reg;

	thread_put(thread);
	registration_put(reg);
	module_put(THIS_MODULE);
}

/* The thread can't leave its ioctl meanwhile. */
static void interrupt(struct thread *thread)
{
	/* There is one already: a second time it would be queued behind itself. */
	if (atomic_read(&thread->refs) != 1)
		return;
	atomic_inc(&thread->refs);
	refcount_inc(&thread->reg->refs);
	__module_get(THIS_MODULE);
	init_task_work(&thread->kick, kicked);
	if (task_work_add(thread->task, &thread->kick, TWA_SIGNAL)) {
		atomic_dec(&thread->refs);
		refcount_dec(&thread->reg->refs);
		module_put(THIS_MODULE);
	}
}

/* Interrupt what the thread executes, if that still is "now". Any context. */
bool cancel_kick(struct thread *thread, u64 now)
{
	u32 index = (u32)now;
	bool mine;

	/* The thread spins until it is KICKED. */
	preempt_disable();
	mine = atomic64_cmpxchg(&thread->now, now, NOW_CLAIMED | index) == now;
	if (mine) {
		interrupt(thread);
		atomic64_set_release(&thread->now, NOW_KICKED | index);
	}
	preempt_enable();
	return mine;
}

/* The thread has ended its entry, and somebody interrupts it, or did. */
noinline bool cancel_seen(struct thread *thread, u32 index)
{
	while (atomic64_read_acquire(&thread->now) != (NOW_KICKED | index))
		cpu_relax();
	atomic64_set(&thread->now, NOW_NOTHING);
	return true;
}

/* Who executes the entry, as far as one can tell; NULL: nobody. */
static struct thread *executes(struct registration *reg, u32 index)
{
	u64 now = NOW_EXECUTES | index;
	struct thread *thread;
	u32 i;

	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		/* Pairs with sched_out(), which gives up the slot. */
		thread = smp_load_acquire(&reg->slots[i].active);
		if (thread && atomic64_read(&thread->now) == now)
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
	/* The owner has set CANCEL: see above. */
	smp_mb();
	thread = executes(reg, index);
	if (thread && cancel_kick(thread, NOW_EXECUTES | index))
		count(reg, COUNT_CANCELLED, 1);
	return 0;
}
