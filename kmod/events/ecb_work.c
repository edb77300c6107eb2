// SPDX-License-Identifier: GPL-2.0-only
/*
 * The owner's task work, the attendance, and the end of an ECB: see ecb.h. The
 * task work runs in the owner's context, the attendance in a worker. Both
 * contexts may sleep, so both may drop the last reference.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "base/area.h"
#include "events/accept.h"
#include "events/close_hook.h"
#include "events/ecb.h"
#include "events/upcall.h"
#include "events/watch.h"
#include "events/watch_life.h"

static void ecb_free(struct ecb *ecb)
{
	might_sleep();
	put_task_struct(ecb->owner);
	put_pid(ecb->process);
	mmdrop(ecb->mm);
	watches_free(ecb);
	area_free(&ecb->area);
	kfree(ecb);
	hook_disarm();
	/*
	 * The current task may still be in this function after the reference is
	 * dropped: flexsc_exit() waits for it.
	 */
	module_put(THIS_MODULE);
}

void ecb_put(struct ecb *ecb)
{
	if (refcount_dec_and_test(&ecb->refs))
		ecb_free(ecb);
}

static void ecb_attend(struct work_struct *work)
{
	struct ecb *ecb = container_of(work, struct ecb, attendance);

	if (!ecb_owner_stays(ecb))
		watches_end(ecb);
	else if (ecb_has_accepts(ecb))
		ecb_call(ecb);
	ecb_put(ecb);
}

/*
 * Will the current task, which is the owner, return to user mode in its own
 * process?
 */
static bool ecb_owner_goes_on(const struct ecb *ecb)
{
	return ecb_owner_stays(ecb) && !(current->flags & PF_EXITING);
}

static void ecb_work(struct callback_head *work)
{
	struct ecb *ecb = container_of(work, struct ecb, work);
	bool goes_on = ecb_owner_goes_on(ecb);

	WARN_ON_ONCE(current != ecb->owner);
	if (goes_on)
		accept_run(ecb);
	else
		watches_end(ecb);
	/*
	 * A full barrier. A kick that found "queued" set has done nothing, so
	 * the checks below must see what happened before that kick.
	 */
	WARN_ON_ONCE(!atomic_xchg(&ecb->queued, 0));
	if (goes_on)
		upcall_notify(ecb);
	if (goes_on && ecb_has_accepts(ecb))
		ecb_attend_later(ecb);
	else
		ecb_put(ecb);
}

/* Initialise the work items of a new ECB, which has one reference. */
void ecb_work_init(struct ecb *ecb)
{
	INIT_WORK(&ecb->attendance, ecb_attend);
	init_task_work(&ecb->work, ecb_work);
	refcount_set(&ecb->refs, 1);
}
