// SPDX-License-Identifier: GPL-2.0-only
/*
 * References to an ECB, and how its owner is woken or gets its task work: see ecb.h.
 * Any context.
 */
#include <linux/sched/signal.h>
#include <linux/task_work.h>

#include "events/ecb.h"

static struct workqueue_struct *ecb_queue;

void ecb_get(struct ecb *ecb)
{
	refcount_inc(&ecb->refs);
}

/*
 * Queue the attendance (ecb.h), and give it the caller's reference. Any
 * context.
 */
void ecb_attend_later(struct ecb *ecb)
{
	/*
	 * If the attendance is queued already, it has a reference of its own,
	 * and may run before this function returns.
	 */
	while (!queue_work(ecb_queue, &ecb->attendance))
		if (refcount_dec_not_one(&ecb->refs))
			break;
}

/* Drop a reference in a context where sleeping isn't allowed. */
void ecb_put_later(struct ecb *ecb)
{
	if (!refcount_dec_not_one(&ecb->refs))
		ecb_attend_later(ecb);
}

/* Close the ECB, because the owner has left its process. Any context. */
static noinline void ecb_abandon(struct ecb *ecb)
{
	ecb_get(ecb);
	ecb_attend_later(ecb);
}

static bool ecb_add_work(struct ecb *ecb)
{
	enum task_work_notify_mode mode =
		ecb->flags & FLEXSC_ECB_INTERRUPTS_CALLS ? TWA_SIGNAL :
							   TWA_RESUME;
	unsigned long flags;
	bool added;

	local_irq_save(flags);
	added = ecb_owner_stays(ecb) &&
		!task_work_add(ecb->owner, &ecb->work, mode);
	local_irq_restore(flags);
	return added;
}

/*
 * Make the owner call ecb_work() before it continues in user mode; an owner
 * that runs in user mode is interrupted. Any context; the caller has a
 * reference to the ECB.
 */
void ecb_kick(struct ecb *ecb)
{
	/* A full barrier. Pairs with ecb_work(). */
	if (atomic_xchg(&ecb->queued, 1))
		return;
	ecb_get(ecb);
	if (!ecb_add_work(ecb))
		ecb_attend_later(ecb);
}

/*
 * Wake the owner if it sleeps interruptibly; it then checks the shared words
 * again.
 */
void ecb_wake(struct ecb *ecb)
{
	wait_queue_entry_t sleeper = { .private = ecb->owner };
	unsigned long flags;
	bool stays;

	local_irq_save(flags);
	stays = ecb_owner_stays(ecb);
	if (stays)
		default_wake_function(&sleeper, TASK_INTERRUPTIBLE, 0, NULL);
	local_irq_restore(flags);
	if (!stays)
		ecb_abandon(ecb);
}

/* Make the owner run its task work, whether it sleeps or not. Any context. */
void ecb_call(struct ecb *ecb)
{
	/* Pairs with ecb_wait(). */
	smp_mb();
	if (READ_ONCE(ecb->waits))
		ecb_wake(ecb);
	else
		ecb_kick(ecb);
}

int __init ecb_init(void)
{
	ecb_queue = alloc_workqueue("flexsc_ecb", WQ_UNBOUND, 0);
	return ecb_queue ? 0 : -ENOMEM;
}

/*
 * Called when no ECB is left: wait for a worker that may still be in the
 * function that freed the last one.
 */
void ecb_exit(void)
{
	destroy_workqueue(ecb_queue);
}
