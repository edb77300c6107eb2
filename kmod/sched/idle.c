// SPDX-License-Identifier: GPL-2.0-only
/*
 * The idle list, guarded by registration.lock: syscall threads that sleep in
 * FLEXSC_IOC_SERVE. Also requests to user mode to create another thread.
 * block_sched_out() must not call these functions, because they would take a
 * run queue's lock twice.
 */
#include "base/registration.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/record.h"
#include "sched/slot.h"

#define WAKE_TRIES	8	/* number of idle threads that are considered */

/*
 * Choose the idle thread to wake. Of the last WAKE_TRIES threads that went
 * idle, prefer one that is on the permit's core already; otherwise take the
 * last one that went idle. NULL: no thread is idle.
 */
static struct thread *idle_first(struct registration *reg,
				 const struct permit *permit)
{
	struct thread *thread;
	int tries = WAKE_TRIES;

	lockdep_assert_held(&reg->lock);
	list_for_each_entry(thread, &reg->idle, idle) {
		if (!permit || !tries--)
			break;
		if (thread->core == READ_ONCE(permit->core))
			return thread;
	}
	return list_first_entry_or_null(&reg->idle, struct thread, idle);
}

static void idle_wake_thread(struct registration *reg, struct thread *thread)
{
	lockdep_assert_held(&reg->lock);
	list_del(&thread->idle);
	atomic_dec(&reg->idle_count);
	WRITE_ONCE(thread->woken, true);
	wake_up_process(thread->task);
	count(reg, COUNT_WAKEUPS, 1);
}

/*
 * Wake an idle thread. False: no thread is idle. block_sched_out() must not
 * call this, because it takes registration.lock and, inside it, a run queue's
 * lock.
 */
bool idle_wake(struct registration *reg)
{
	struct thread *thread;
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread = idle_first(reg, permit_first_free(reg));
	if (thread)
		idle_wake_thread(reg, thread);
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return thread;
}

/*
 * Wake an idle thread for entries that are pending. If other registrations have
 * all slots, don't: one of these registrations wakes the thread later, with a
 * slot. False: no thread is idle.
 */
bool idle_wake_for_entries(struct registration *reg)
{
	return permit_any_free(reg) ? idle_wake(reg) :
				      atomic_read(&reg->idle_count);
}

/*
 * Wake an idle thread with this slot. False: no thread is idle, or another
 * thread has taken the slot. Called with process.lock held.
 */
bool idle_grant(struct registration *reg, struct slot *slot)
{
	struct thread *thread;

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&reg->lock);
	thread = idle_first(reg, permit_of_slot(reg, slot));
	if (thread && slot_claim(slot, reg)) {
		WRITE_ONCE(thread->slot, slot);
		idle_wake_thread(reg, thread);
	} else {
		thread = NULL;
	}
	raw_spin_unlock(&reg->lock);
	return thread;
}

void idle_begin(struct registration *reg, struct thread *thread)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread->woken = false;
	list_add(&thread->idle, &reg->idle);
	atomic_inc(&reg->idle_count);
	WRITE_ONCE(reg->no_more, false);
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

/*
 * Take the thread off the idle list, unless idle_wake() has done so. False: the
 * thread's idle time has expired ("timely" is false), but it is the last idle
 * thread, so it stays on the list.
 */
bool idle_end(struct registration *reg, struct thread *thread, bool timely)
{
	unsigned long flags;
	bool off;

	raw_spin_lock_irqsave(&reg->lock, flags);
	off = timely || thread->woken || atomic_read(&reg->idle_count) > 1;
	if (off && !thread->woken) {
		list_del(&thread->idle);
		atomic_dec(&reg->idle_count);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return off;
}

/* FLEXSC_IOC_END */
void idle_end_all(struct registration *reg)
{
	WRITE_ONCE(reg->ended, true);
	/*
	 * Pairs with serve_idle(): either that function sees "ended", or
	 * idle_wake() finds its thread on the list.
	 */
	smp_mb();
	while (idle_wake(reg))
		cond_resched();
}

/* If many submissions are pending, wake a thread for another core. */
void idle_wake_for_backlog(struct registration *reg)
{
	/*
	 * Read the head before the tail: otherwise another thread could advance
	 * the head beyond the tail that was read.
	 */
	u32 head = (u32)atomic_read(&reg->head);
	u32 backlog = READ_ONCE(reg->shared->tail) - head;

	if (backlog > READ_ONCE(reg->policy.backlog) && permit_any_free(reg))
		idle_wake(reg);
}

/*
 * Called when a thread blocks: is there an idle thread to take over? True: no
 * thread is idle and no request is outstanding, so the caller has to make user
 * mode create one. The new thread ends the request: see serve_settle().
 */
bool idle_request_thread(struct registration *reg)
{
	if (atomic_read(&reg->idle_count) || READ_ONCE(reg->no_more) ||
	    atomic_cmpxchg(&reg->thread_requested, 0, 1))
		return false;
	/*
	 * A new thread may have gone idle after the first check, and ended its
	 * request before the compare-and-swap. Pairs with serve_settle().
	 */
	if (likely(!atomic_read(&reg->idle_count)))
		return true;
	atomic_set(&reg->thread_requested, 0);
	return false;
}

void idle_no_more_threads(struct registration *reg)
{
	WRITE_ONCE(reg->no_more, true);
	atomic_set(&reg->thread_requested, 0);
}
