// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of threads: allocated, reused, and freed with the registration. Run
 * by the thread whose record it is, in process context, unless a comment says
 * otherwise.
 */
#include <linux/slab.h>

#include "base/registration.h"
#include "sched/record.h"

static struct kmem_cache *thread_cache;

struct preempt_ops thread_preempt_ops __ro_after_init;

static struct thread *thread_take_unused(struct registration *reg)
{
	struct thread *thread;
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread = reg->records;
	if (thread)
		reg->records = thread->next_free;
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return thread;
}

/*
 * Get a record. The fields that aren't set here have their initial values,
 * because each ioctl restores them. WAIT also leaves the fields that are set
 * here unchanged. So the wait record, which only WAIT uses, is set up once.
 */
static struct thread *thread_get(struct registration *reg, bool is_waiter)
{
	struct thread *thread = thread_take_unused(reg);

	if (!thread) {
		thread = kmem_cache_zalloc(thread_cache, GFP_KERNEL_ACCOUNT);
		if (!thread)
			return NULL;
		thread->reg = reg;
		thread->newest = FLEXSC_NO_ENTRY;
		thread->polls = FLEXSC_NO_ENTRY;
		preempt_notifier_init(&thread->notifier, &thread_preempt_ops);
	}
	/*
	 * WRITE_ONCE(): permit_any_looking() may read it now, through a stale
	 * pointer.
	 */
	WRITE_ONCE(thread->is_waiter, is_waiter);
	thread->carries = FLEXSC_NO_ENTRY;
	thread->stays = 0;
	thread->bounces = false;
	thread->signalled = 0;
	thread->in_use = 1;
	return thread;
}

/*
 * Assign the record to the current task. The record holds a reference to the
 * task, because the task may die in a call. Process context.
 */
noinline void thread_become(struct thread *thread)
{
	struct task_struct *former = thread->task;

	/*
	 * The reference to the former task can be dropped at once. Other
	 * threads use a record's task only while the record's thread is on the
	 * idle list or executes an entry. This thread does neither.
	 */
	thread->task = get_task_struct(current);
	if (former)
		put_task_struct(former);
}

/* Return a record to the unused ones. Not for the wait record. */
void thread_put(struct thread *thread)
{
	struct registration *reg = thread->reg;
	unsigned long flags;

	WARN_ON_ONCE(thread->permit || thread->slot ||
		     atomic64_read(&thread->executes));
	put_task_struct(thread->task);
	thread->task = NULL;
	raw_spin_lock_irqsave(&reg->lock, flags);
	thread->next_free = reg->records;
	reg->records = thread;
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

void threads_free(struct registration *reg)
{
	struct thread *thread;

	if (reg->wait_record) {
		WARN_ON_ONCE(reg->wait_record->in_use || reg->wait_record->permit);
		put_task_struct(reg->wait_record->task);
		kmem_cache_free(thread_cache, reg->wait_record);
	}
	while ((thread = reg->records)) {
		reg->records = thread->next_free;
		WARN_ON_ONCE(thread->task || thread->permit);
		kmem_cache_free(thread_cache, thread);
	}
}

/* Begin FLEXSC_IOC_SERVE for the current task. NULL: memory is short. */
struct thread *thread_enter(struct registration *reg)
{
	struct thread *thread = thread_get(reg, false);

	if (thread)
		thread_begin(thread);
	return thread;
}

/*
 * Returns a new record for WAIT. Called if the wait record is in use, or if
 * there is none. If there is none, the new record becomes the wait record.
 */
struct thread *thread_get_for_wait(struct registration *reg)
{
	struct thread *thread = thread_get(reg, true);

	if (thread && !cmpxchg(&reg->wait_record, NULL, thread))
		thread->is_wait_record = true;
	return thread;
}

/*
 * Called when the current task dies in a call: arrange for its record to be
 * finished. Called from block_sched_out() with the run queue's lock held; the
 * task is TASK_DEAD.
 */
void thread_died(struct thread *thread)
{
	lockdep_assert_irqs_disabled();
	WARN_ON_ONCE(thread->task != current);
	llist_add(&thread->dead, &thread->reg->dead);
	irq_work_queue(&thread->reg->death);
}

/*
 * Register the functions that the scheduler calls for each thread that has a
 * record.
 */
int __init threads_init(const struct preempt_ops *ops)
{
	thread_preempt_ops = *ops;
	thread_cache = KMEM_CACHE(thread, SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN);
	return thread_cache ? 0 : -ENOMEM;
}

void threads_exit(void)
{
	kmem_cache_destroy(thread_cache);
}
