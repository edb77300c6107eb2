// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recall: getting the waiter, the thread in FLEXSC_IOC_WAIT, back to user mode.
 * The waiter is due there when an entry has completed, its time is up, or
 * FLEXSC_IOC_WAKE was called. If it sleeps, it is woken. If it is blocked in an
 * entry, there are two ways to get a thread to user mode:
 *
 * 1. With FLEXSC_WAIT_HANDOVER a syscall thread takes the role and returns from
 *    its ioctl in the waiter's place. When the waiter's call ends, the waiter
 *    finds that it has lost the role (FLEXSC_WAIT_TAKEN).
 * 2. Otherwise the waiter's call is interrupted, and its entry completes as
 *    FLEXSC_INTERRUPTED, so that user mode can post it again.
 *
 * Threads take and release the role by a compare-and-swap of
 * registration.waiter. Any context, except with a run queue's lock held.
 */
#include "base/compat.h"
#include "base/registration.h"
#include "sched/cancel.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"

static bool waiter_is_late(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);

	return deadline != KTIME_MAX && ktime_get() >= deadline;
}

static bool waiter_is_due(struct registration *reg)
{
	return waiter_has_completed(reg) || READ_ONCE(reg->woken) ||
	       waiter_is_late(reg);
}

/*
 * Returns the waiter, if it is blocked in an entry although it is due in user
 * mode.
 */
static struct thread *waiter_delayed(struct registration *reg)
{
	struct thread *waiter = READ_ONCE(reg->waiter);

	if (!waiter || !READ_ONCE(waiter->blocked) || !waiter_is_due(reg))
		return NULL;
	return waiter;
}

/* Should a syscall thread take the waiter's role? */
bool waiter_needs_takeover(struct registration *reg)
{
	return READ_ONCE(reg->handover) && waiter_delayed(reg);
}

/*
 * Take the role from a delayed waiter, for the current syscall thread. True:
 * this thread has the role now, and must return FLEXSC_SERVE_TAKEOVER.
 */
bool waiter_take_over(struct registration *reg)
{
	struct thread *waiter;
	bool taken;

	if (!READ_ONCE(reg->handover))
		return false;
	waiter = waiter_delayed(reg);
	taken = waiter && cmpxchg(&reg->waiter, waiter, NULL) == waiter;
	if (taken) {
		WARN_ON_ONCE(READ_ONCE(waiter->task) == current);
		count(reg, COUNT_TAKEOVERS, 1);
		/*
		 * The waiter's call may have ended meanwhile, and the waiter
		 * may sleep: wake it, so that it notices that it has lost the
		 * role.
		 */
		wake_up(&reg->wait);
	}
	return taken;
}

static void waiter_interrupt(struct thread *waiter)
{
	u64 executes = atomic64_read(&waiter->executes);

	if (executes >> 32 == EXECUTES_ENTRY >> 32)
		cancel_kick(waiter, executes);
}

/*
 * If the waiter is due in user mode, get it there, or a thread in its place.
 * Called after anything that may make it due. Any context, except with a run
 * queue's lock held, because this may wake a task.
 */
void waiter_recall(struct registration *reg)
{
	struct thread *waiter;

	smp_mb(); /* Pairs with wait_longer() and block_permit_freed(). */
	/*
	 * Either this sees that the waiter sleeps or is blocked in an entry, or
	 * the waiter sees that it is due: in wait_longer(), or in the irq_work
	 * that runs after it has blocked.
	 */
	if (waitqueue_active(&reg->wait) && waiter_is_due(reg)) {
		wake_up(&reg->wait);
		return;
	}
	waiter = waiter_delayed(reg);
	if (waiter && READ_ONCE(reg->handover))
		idle_wake(reg);
	else if (waiter)
		waiter_interrupt(waiter);
}

/*
 * Called by a syscall thread that has to end, although waiter_recall() may have
 * woken it to take the waiter's role. If no other syscall thread is left,
 * interrupt the waiter's call as without FLEXSC_WAIT_HANDOVER: otherwise the
 * waiter would be delayed until that call ends by itself.
 */
void waiter_deserted(struct registration *reg)
{
	struct thread *waiter = waiter_delayed(reg);

	if (waiter && READ_ONCE(reg->handover) &&
	    !atomic_read(&reg->idle_count) && !permit_any_active(reg))
		waiter_interrupt(waiter);
}

/*
 * Called when a thread has blocked, in an irq_work: if it is the waiter, start
 * a timer for its time limit, because the waiter isn't in schedule_hrtimeout(),
 * but blocked in an entry. A waiter with a time limit of 0 is late already;
 * waiter_recall() handles that.
 */
void waiter_blocked(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);
	struct thread *waiter;

	if (deadline == KTIME_MAX || !deadline)
		return;
	waiter = READ_ONCE(reg->waiter);
	if (waiter && READ_ONCE(waiter->blocked))
		hrtimer_start(&reg->timer, deadline, HRTIMER_MODE_ABS);
}

/*
 * Called when the waiter's time is up while it is blocked in an entry. Timer
 * context.
 */
static enum hrtimer_restart waiter_run_late(struct hrtimer *timer)
{
	waiter_recall(container_of(timer, struct registration, timer));
	return HRTIMER_NORESTART;
}

void waiter_init(struct registration *reg)
{
	init_waitqueue_head(&reg->wait);
	timer_setup_hr(&reg->timer, waiter_run_late);
	reg->deadline = KTIME_MAX;
}
