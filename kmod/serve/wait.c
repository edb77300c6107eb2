// SPDX-License-Identifier: GPL-2.0-only
/*
 * FLEXSC_IOC_WAIT (flexsc_wait(), OSDI 2010, section 3.4), KICK and WAKE. One
 * thread at a time is the waiter. It executes submitted entries itself, because
 * that is cheaper than waking a syscall thread, and sleeps when no entry is
 * pending. If it blocks in an entry, syscall threads continue, and recall.c
 * gets a thread to user mode. Process context.
 */
#include <linux/sched/signal.h>

#include "base/checks.h"
#include "base/compat.h"
#include "base/entry.h"
#include "base/registration.h"
#include "exec/execute.h"
#include "sched/cancel.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/serve.h"

/*
 * Take a permit for the waiter. A policy without cores has one permit, which
 * any thread may take.
 */
static __always_inline bool wait_take_permit(struct registration *reg,
					     struct thread *thread)
{
	struct permit *permit = &reg->permits[0];

	return (likely(READ_ONCE(permit->core) < 0) && permit_take(permit, thread)) ||
	       permit_take_any(thread);
}

/* Execute submitted entries, if a permit is free for the waiter. */
static __always_inline void wait_execute(struct registration *reg,
					 struct thread *thread)
{
	bool stranded = entries_stranded(reg);

	RULE(thread->is_waiter && thread->task == current && !thread->permit);
	if ((ring_empty(reg) && !stranded) || !wait_take_permit(reg, thread))
		return;
	entries_execute_inline(reg, thread);
	if (unlikely(stranded))
		entries_retrieve(reg, thread);
	permit_give(thread);
}

/*
 * Are entries pending that only the waiter can execute? The last active thread may
 * have blocked when the waiter had already tried to take a permit, but wasn't on the
 * wait queue yet: block_continue() woke no thread then.
 */
static bool wait_is_last(struct registration *reg)
{
	return entries_pending(reg) && entries_without_threads(reg) &&
	       !permit_any_active(reg);
}

/*
 * Sleep until the waiter is due, or has to leave the kernel, or to execute entries.
 * The waiter is on the wait queue already, so a wake-up after these checks isn't
 * lost. False: its time is up.
 */
static bool wait_sleep(struct registration *reg, struct thread *thread)
{
	ktime_t deadline = READ_ONCE(reg->deadline);

	if (waiter_has_completed(reg) || READ_ONCE(reg->woken) ||
	    READ_ONCE(reg->waiter) != thread || thread_must_leave() ||
	    wait_is_last(reg))
		return true;
	return schedule_hrtimeout(&deadline, HRTIMER_MODE_ABS);
}

/*
 * Has the waiter deferred an entry for which user mode must first create a
 * thread?
 */
static __always_inline bool wait_take_needs_thread(struct thread *thread)
{
	if (likely(!thread->needs_thread))
		return false;
	thread->needs_thread = false;
	return true;
}

/*
 * Wake a thread for pending entries, if a permit is free for it. MORE: there is
 * no thread, and user mode must create one.
 */
static long wake_for_entries(struct registration *reg)
{
	if (!entries_pending(reg) || !permit_any_unused(reg) ||
	    permit_any_looking(reg) || idle_wake_for_entries(reg))
		return FLEXSC_WAIT_LOOK;
	if (permit_any_active(reg) || !idle_request_thread(reg))
		return FLEXSC_WAIT_LOOK;
	return FLEXSC_WAIT_MORE;
}

/*
 * Called when no entry has completed: may the waiter sleep? Returns
 * THREAD_STAYS if so, or the result of FLEXSC_IOC_WAIT.
 */
static long wait_decide(struct registration *reg, struct thread *thread,
			bool timely)
{
	if (READ_ONCE(reg->waiter) != thread)
		return FLEXSC_WAIT_TAKEN;
	/* End the wait: a thread with other credentials is the owner now. */
	if (READ_ONCE(reg->cred) != current_cred())
		return -EACCES;
	if (READ_ONCE(reg->woken) && xchg(&reg->woken, false))
		return FLEXSC_WAIT_LOOK;
	if (!timely)
		return FLEXSC_WAIT_LOOK;
	/*
	 * A waiter that isn't on a listed core has no permit. Even if it never
	 * sleeps, a thread must execute what is in the ring. For deferred
	 * entries, see wait_leave_deferred().
	 */
	if (!READ_ONCE(reg->deadline))
		return ring_empty(reg) ? FLEXSC_WAIT_LOOK : wake_for_entries(reg);
	if (signal_pending(current))
		return -EINTR;
	if (task_work_pending(current))
		return FLEXSC_WAIT_LOOK;
	if (entries_pending(reg) && !permit_any_looking(reg) && !idle_wake(reg) &&
	    !permit_any_active(reg) && idle_request_thread(reg))
		return FLEXSC_WAIT_MORE;
	return THREAD_STAYS;
}

static noinline long wait_longer(struct registration *reg,
				 struct thread *thread)
{
	bool timely = true;
	DEFINE_WAIT(wait);
	long why;

	for (;;) {
		/*
		 * The waiter must be on the queue before wait_decide(), for two
		 * reasons. prepare_to_wait() ends with a full barrier, which
		 * pairs with the one in waiter_recall(). And wait_decide() may
		 * wake a thread for pending entries: if that thread leaves the
		 * kernel without executing them, block_thread_left() wakes a
		 * waiter that is on the queue.
		 */
		prepare_to_wait(&reg->wait, &wait, TASK_INTERRUPTIBLE);
		why = wait_decide(reg, thread, timely);
		if (why == THREAD_STAYS)
			timely = wait_sleep(reg, thread);
		finish_wait(&reg->wait, &wait);
		if (why != THREAD_STAYS)
			return why;
		if (!thread_must_leave())
			wait_execute(reg, thread);
		if (wait_take_needs_thread(thread))
			return FLEXSC_WAIT_MORE;
		if (waiter_has_completed(reg))
			return FLEXSC_WAIT_LOOK;
	}
}

/*
 * The common case: execute submitted entries, and return because some have
 * completed.
 */
static __always_inline long wait_first(struct registration *reg,
				       struct thread *thread)
{
	wait_execute(reg, thread);
	if (wait_take_needs_thread(thread))
		return FLEXSC_WAIT_MORE;
	if (waiter_has_completed(reg))
		return FLEXSC_WAIT_LOOK;
	return wait_longer(reg, thread);
}

/*
 * Returns the time at which a wait ends. KTIME_MAX: never; 0: at once, without
 * sleeping.
 */
static ktime_t wait_deadline(u64 timeout)
{
	if (likely((s64)timeout < 0))
		return KTIME_MAX;
	if (!timeout)
		return 0;
	return ktime_add_safe(ktime_get(), ns_to_ktime(timeout));
}

/* Take the waiter's role for this wait. False: another thread has it. */
static bool wait_begin(struct registration *reg, struct thread *thread,
		       u64 seen)
{
	struct flexsc_shared *shared = reg->shared;
	u32 flags = READ_ONCE(shared->wait_flags);

	if (cmpxchg(&reg->waiter, NULL, thread))
		return false;
	WRITE_ONCE(reg->handover, flags & FLEXSC_WAIT_HANDOVER);
	WRITE_ONCE(reg->seen, seen);
	WRITE_ONCE(reg->deadline, wait_deadline(READ_ONCE(shared->timeout)));
	if (flags & FLEXSC_WAIT_NO_MORE)
		idle_no_more_threads(reg);
	return true;
}

/*
 * The waiter has deferred entries: wake a syscall thread for them. If no thread
 * is idle, but user mode can create one, return MORE instead of LOOK. After
 * MORE, user mode waits again. If the waiter was woken, or its time is up, the
 * next wait must not sleep either.
 */
static noinline long wait_leave_deferred(struct registration *reg, long ret)
{
	if (idle_wake(reg) || ret != FLEXSC_WAIT_LOOK ||
	    permit_any_active(reg) || !idle_request_thread(reg))
		return ret;
	if (!waiter_has_completed(reg))
		WRITE_ONCE(reg->woken, true);
	return FLEXSC_WAIT_MORE;
}

/*
 * Begin FLEXSC_IOC_WAIT for the current task. Most of the time the wait record
 * is free and belongs to this task already; then one compare-and-swap is
 * enough.
 */
static __always_inline struct thread *
wait_enter(struct registration *reg)
{
	struct thread *thread = READ_ONCE(reg->wait_record);

	if (unlikely(!thread || cmpxchg(&thread->in_use, 0, 1)))
		thread = thread_get_for_wait(reg);
	if (likely(thread))
		thread_begin(thread);
	return thread;
}

/* FLEXSC_IOC_WAIT. Process context, with a reference to the file. */
long wait_ioctl(struct registration *reg, u64 seen)
{
	struct thread *thread;
	long ret = -EBUSY;

	thread = wait_enter(reg);
	if (!thread)
		return -ENOMEM;
	if (wait_begin(reg, thread, seen)) {
		count(reg, COUNT_WAITS, 1);
		ret = wait_first(reg, thread);
		if (unlikely(cmpxchg(&reg->waiter, thread, NULL) != thread)) {
			/*
			 * The result TAKEN replaces MORE, so user mode won't
			 * create a thread: allow another thread to request one.
			 */
			if (ret == FLEXSC_WAIT_MORE)
				atomic_set(&reg->thread_requested, 0);
			ret = FLEXSC_WAIT_TAKEN;
			/*
			 * The thread that took the role may sleep until an
			 * entry completes, and the waiter's entry has just
			 * ended: wake it.
			 */
			waiter_recall(reg);
		}
		if (READ_ONCE(reg->deferred_count))
			ret = wait_leave_deferred(reg, ret);
	}
	thread_leave(thread);
	return ret;
}

/* FLEXSC_IOC_KICK */
long kick_ioctl(struct registration *reg)
{
	count(reg, COUNT_KICKS, 1);
	return wake_for_entries(reg);
}

/* FLEXSC_IOC_WAKE */
long wake_ioctl(struct registration *reg)
{
	WRITE_ONCE(reg->woken, true);
	waiter_recall(reg);
	return 0;
}
