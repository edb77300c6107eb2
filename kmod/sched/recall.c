// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the waiting owner is called back to user mode when it is due there: an entry has
 * completed, its time is up, or it was woken. If it sleeps, it is woken. If it is
 * blocked in an entry, there are two ways:
 *
 * 1. With FLEXSC_WAIT_HANDOVER a syscall thread takes the role and returns from
 *    its ioctl in the owner's place. When the owner's call ends, the owner
 *    finds that it has lost the role (FLEXSC_WAIT_TAKEN).
 * 2. Otherwise the owner's call is interrupted, and its entry completes as
 *    FLEXSC_INTERRUPTED, so that user mode can post it again.
 */
#include "base/compat.h"
#include "base/registration.h"
#include "sched/cancel.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"

static bool owner_is_late(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);

	return deadline != KTIME_MAX && ktime_get() >= deadline;
}

static bool owner_is_due(struct registration *reg)
{
	return owner_has_completed(reg) || READ_ONCE(reg->woken) ||
	       owner_is_late(reg);
}

/* The waiting owner, if it is blocked in an entry and due in user mode. */
static struct thread *owner_delayed(struct registration *reg)
{
	struct thread *owner = READ_ONCE(reg->owner);

	if (!owner || !READ_ONCE(owner->blocked) || !owner_is_due(reg))
		return NULL;
	return owner;
}

/* Should a syscall thread take the owner's role? */
bool owner_needs_takeover(struct registration *reg)
{
	return READ_ONCE(reg->handover) && owner_delayed(reg);
}

/*
 * Take the role from an owner that is delayed, for the current syscall thread.
 * True: this thread has it now, and must return FLEXSC_SERVE_TAKEOVER.
 */
bool owner_take_over(struct registration *reg)
{
	struct thread *owner;
	bool taken;

	if (!READ_ONCE(reg->handover))
		return false;
	owner = owner_delayed(reg);
	taken = owner && cmpxchg(&reg->owner, owner, NULL) == owner;
	if (taken) {
		WARN_ON_ONCE(READ_ONCE(owner->task) == current);
		count(reg, COUNT_TAKEOVERS, 1);
		/*
		 * The owner may have left its entry since, and sleep: wake it,
		 * so that it sees that it has lost the role.
		 */
		wake_up(&reg->wait);
	}
	return taken;
}

static void owner_interrupt(struct thread *owner)
{
	u64 executes = atomic64_read(&owner->executes);

	if (executes >> 32 == EXECUTES_ENTRY >> 32)
		cancel_kick(owner, executes);
}

/*
 * Get the waiting owner, or a thread in its place, to user mode if it is due
 * there. To be called after anything that may make it due. Any context but with
 * a run queue's lock held, because this may wake a task.
 */
void owner_recall(struct registration *reg)
{
	struct thread *owner;

	smp_mb(); /* Pairs with owner_wait_longer() and thread_blocked(). */
	/*
	 * Either this sees that the owner sleeps, or is blocked in an entry; or
	 * the owner in owner_wait_longer(), or the irq_work that runs after it
	 * has blocked, sees that it is due.
	 */
	if (waitqueue_active(&reg->wait) && owner_is_due(reg)) {
		wake_up(&reg->wait);
		return;
	}
	owner = owner_delayed(reg);
	if (owner && READ_ONCE(reg->handover))
		thread_wake(reg);
	else if (owner)
		owner_interrupt(owner);
}

/*
 * A syscall thread was sent home, and owner_recall() may have woken just this
 * one to take the owner's role. If no other is left, interrupt the owner's call
 * as without FLEXSC_WAIT_HANDOVER: otherwise the owner would be delayed until
 * that call ends by itself.
 */
void owner_deserted(struct registration *reg)
{
	struct thread *owner = owner_delayed(reg);

	if (owner && READ_ONCE(reg->handover) &&
	    !atomic_read(&reg->idle_count) && !slot_any_active(reg))
		owner_interrupt(owner);
}

/*
 * A thread has blocked. If it is the waiting owner, it isn't in
 * schedule_hrtimeout(), so its time limit needs a timer. An owner that isn't to
 * wait at all is late already, and owner_recall() sees that. Runs in an
 * irq_work.
 */
void owner_blocked(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);
	struct thread *owner;

	if (deadline == KTIME_MAX || !deadline)
		return;
	owner = READ_ONCE(reg->owner);
	if (owner && READ_ONCE(owner->blocked))
		hrtimer_start(&reg->timer, deadline, HRTIMER_MODE_ABS);
}

/* The owner's time is up while it is blocked in an entry. Timer context. */
static enum hrtimer_restart owner_run_late(struct hrtimer *timer)
{
	owner_recall(container_of(timer, struct registration, timer));
	return HRTIMER_NORESTART;
}

void owner_init(struct registration *reg)
{
	init_waitqueue_head(&reg->wait);
	timer_setup_hr(&reg->timer, owner_run_late);
	reg->deadline = KTIME_MAX;
}
