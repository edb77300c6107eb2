// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dead tasks: a task may end inside an entry's call, or while it polls the
 * entry's file, and never return from its ioctl. An oops does that. reboot() in
 * a pid namespace would do it too, and is refused for this reason
 * (base/dispatch.c).
 *
 *	executes	-> queued	the task's last block_sched_out()
 *					queues its record, with the run queue's
 *					lock held
 *	queued		-> finished	right after that, an irq_work queues a
 *					work. When the task is off its processor
 *					for good, the work does what leaving the
 *					ioctl would have done
 *
 * Until then the record looks like that of a task that blocks: its permit is
 * free, and its entry is BUSY, or SUBMITTED if the task polled. A cancellation
 * finds the task, because the record holds a reference to it. The dead task's
 * references to the file keep the registration alive.
 */
#include <linux/file.h>
#include <linux/rcupdate.h>

#include "base/entry.h"
#include "base/registration.h"
#include "exec/execute.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/serve.h"

/*
 * Queues the work. This is an irq_work, because a work can't be queued with the
 * run queue's lock held.
 */
static void death_queue_work(struct irq_work *work)
{
	schedule_work(&container_of(work, struct registration, death)->finish_dead);
}

/*
 * Release everything that the dead task had. Returns how many references to the
 * file the task had. Run by a worker.
 */
static unsigned int death_finish(struct thread *thread)
{
	struct registration *reg = thread->reg;
	unsigned int files = 1 + thread->fget;

	might_sleep();
	WARN_ON_ONCE(READ_ONCE(thread->task->__state) != TASK_DEAD);
	WRITE_ONCE(thread->blocked, false);
	/* The dead task was to request a thread: let another task do it. */
	if (thread->needs_thread)
		atomic_set(&reg->thread_requested, 0);
	thread->needs_thread = false;
	permit_release(thread);
	cmpxchg(&reg->waiter, thread, NULL);
	/*
	 * End the entry after the waiter's role is released. An owner that sees
	 * the entry's end may wait again at once, and must not get -EBUSY.
	 */
	execute_finish_dead(thread);
	thread_release(thread);
	return files;
}

/* Finish all tasks that have died. Run by a worker, because it sleeps. */
static void death_finish_all(struct work_struct *work)
{
	struct registration *reg =
		container_of(work, struct registration, finish_dead);
	struct llist_node *dead = llist_del_all(&reg->dead);
	struct thread *thread, *next;
	struct file *file = reg->file;
	unsigned int n = 0;

	/*
	 * The irq_work of one task may find the record of another task that is
	 * still in its last block_sched_out(). That function runs with
	 * preemption disabled, so waiting for a grace period suffices.
	 */
	synchronize_rcu();
	llist_for_each_entry_safe(thread, next, dead, dead)
		n += death_finish(thread);
	block_thread_left(reg);
	/* The last fput() may destroy the registration. */
	while (n--)
		fput(file);
}

void death_init(struct registration *reg)
{
	init_irq_work(&reg->death, death_queue_work);
	INIT_WORK(&reg->finish_dead, death_finish_all);
}

/*
 * Called when the file is gone, and with it every reference that a dead task
 * had to it.
 */
void death_fini(struct registration *reg)
{
	irq_work_sync(&reg->death);
	/*
	 * Wait for the last run of the work: it may still be about to return
	 * from its fput().
	 */
	flush_work(&reg->finish_dead);
	WARN_ON_ONCE(!llist_empty(&reg->dead));
}
