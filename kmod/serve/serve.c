// SPDX-License-Identifier: GPL-2.0-only
/*
 * Syscall threads (OSDI 2010, section 3.5): threads of the process in FLEXSC_IOC_SERVE.
 * They execute entries while they have a permit, and sleep while no entry is pending.
 * base/registration.h draws their states. Process context.
 */
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "base/entry.h"
#include "base/registration.h"
#include "exec/carry.h"
#include "exec/execute.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/serve.h"

/* Consecutive unfit new threads, after which no more are requested. */
#define UNFIT_MOST	4

#define SERVE_FLAGS	(FLEXSC_SERVE_FIRST | FLEXSC_SERVE_NO_MORE | \
			 FLEXSC_SERVE_STAYS | FLEXSC_SERVE_HANDLED)

/*
 * End the request for a new thread: the thread is idle, or executes entries while
 * another thread is idle, or it leaves the kernel.
 */
static void serve_settle(struct registration *reg, struct thread *thread)
{
	if (likely(!thread->arrives))
		return;
	thread->arrives = false;
	/* Pairs with idle_request_thread(). */
	atomic_set_release(&reg->thread_requested, 0);
}

/*
 * Has the current thread, which may block in the next entry, to request another
 * one first? A new thread that is active at once passes on the request for itself.
 */
static bool serve_needs_thread(struct registration *reg, struct thread *thread)
{
	if (unlikely(thread->arrives) && !atomic_read(&reg->idle_count) &&
	    !READ_ONCE(reg->no_more)) {
		thread->arrives = false;
		return true;
	}
	serve_settle(reg, thread);
	return idle_request_thread(reg);
}

/*
 * Sleep until there is work. False: there was no work for idle_ms, so the
 * thread may end.
 */
static bool serve_idle(struct registration *reg, struct thread *thread)
{
	u32 ms = READ_ONCE(reg->policy.idle_ms);
	ktime_t until = ms ? ktime_add_ms(ktime_get(), ms) : KTIME_MAX;

	WARN_ON_ONCE(thread->permit || thread->slot ||
		     thread->carries != FLEXSC_NO_ENTRY);
	idle_begin(reg, thread);
	serve_settle(reg, thread);
	/*
	 * The thread enters the list, then looks for work. Any code that
	 * creates work (a kick, a recall, idle_end_all()) executes a full
	 * barrier afterwards, then looks at the list. So at least one of the
	 * two sees the other.
	 */
	smp_mb();
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(thread->woken) || READ_ONCE(reg->ended) ||
		    thread_must_leave() ||
		    (entries_pending(reg) && permit_any_free(reg)) ||
		    waiter_needs_takeover(reg))
			break;
		if (schedule_hrtimeout(&until, HRTIMER_MODE_ABS))
			continue;
		if (idle_end(reg, thread, false))
			return thread->woken;
		until = KTIME_MAX;
	}
	__set_current_state(TASK_RUNNING);
	idle_end(reg, thread, true);
	return true;
}

/*
 * Execute entries with the permit, then poll for more as the policy says.
 * Releases the permit; afterwards serve_go_on() checks once more for pending
 * entries.
 */
static void serve_with_permit(struct registration *reg, struct thread *thread)
{
	do {
		/*
		 * Clear needs_kick, which another thread sets when it releases
		 * its permit.
		 */
		if (READ_ONCE(reg->shared->needs_kick))
			WRITE_ONCE(reg->shared->needs_kick, 0);
		policy_begin(reg, thread->permit);
		entries_execute(reg, thread);
		waiter_recall(reg);
		if (!thread->permit || thread->carries != FLEXSC_NO_ENTRY ||
		    thread_must_leave() || current_is_unfit(reg) ||
		    permit_is_elsewhere(thread) || slot_is_wanted(thread))
			break;
	} while (policy_spin(reg, thread));
	WRITE_ONCE(reg->shared->needs_kick, 1);
	permit_release(thread);
	/*
	 * Pairs with the owner's full barrier between tail and needs_kick, and
	 * with permit_any_looking(). If the other side missed this thread's
	 * changes, this thread's next check sees the other side's entries.
	 */
	smp_mb();
}

/* Returns the result of FLEXSC_IOC_SERVE, or THREAD_STAYS. */
static long serve_decide(struct registration *reg, struct thread *thread)
{
	if (thread->bounces)
		return FLEXSC_SERVE_BOUNCE;
	if (thread->signalled)
		return thread->signalled;
	if (READ_ONCE(reg->ended))
		return FLEXSC_SERVE_END;
	if (thread_must_leave() ||
	    thread->carries != FLEXSC_NO_ENTRY)
		return FLEXSC_SERVE_AGAIN;
	if (current_is_unfit(reg))
		return FLEXSC_SERVE_END;
	if (waiter_take_over(reg))
		return FLEXSC_SERVE_TAKEOVER;
	return THREAD_STAYS;
}

static long serve_go_on(struct registration *reg, struct thread *thread)
{
	long why;

	for (;;) {
		why = serve_decide(reg, thread);
		if (why != THREAD_STAYS)
			return why;
		cond_resched();
		if (entries_pending(reg) && permit_take_any(thread)) {
			if (serve_needs_thread(reg, thread)) {
				permit_release(thread);
				return FLEXSC_SERVE_MORE;
			}
			if (permit_is_elsewhere(thread)) {
				thread->core = READ_ONCE(thread->permit->core);
				permit_release(thread);
				return FLEXSC_SERVE_MOVE;
			}
			serve_with_permit(reg, thread);
			continue;
		}
		/* The slot may have been granted for entries that have ended. */
		slot_give(thread);
		if (!serve_idle(reg, thread))
			return FLEXSC_SERVE_IDLE;
	}
}

/*
 * Called when a thread serves for the first time. The request for it remains for a
 * moment, because no other thread is needed until this one is active: see
 * serve_settle(). An unfit thread ends at once, and another one is requested. But
 * if every new thread is unfit (a thread keyring gives each thread its own
 * credentials), no more are requested after UNFIT_MOST.
 */
static void serve_arrive(struct registration *reg, struct thread *thread)
{
	int unfit_threads = current_is_unfit(reg) ? READ_ONCE(reg->unfit_threads) + 1 : 0;

	WRITE_ONCE(reg->unfit_threads, unfit_threads);
	thread->arrives = true;
	if (unfit_threads >= UNFIT_MOST)
		idle_no_more_threads(reg);
}

/* FLEXSC_IOC_SERVE. Process context, with a reference to the file. */
long serve_ioctl(struct registration *reg, struct flexsc_serve __user *user)
{
	struct flexsc_serve args;
	struct thread *thread;
	long ret;

	if (copy_from_user(&args, user, sizeof(args)))
		return -EFAULT;
	if (args.flags & ~SERVE_FLAGS || args.reserved)
		return -EINVAL;
	thread = thread_enter(reg);
	if (!thread)
		return -ENOMEM;
	thread->core = args.core;
	if (args.flags & FLEXSC_SERVE_STAYS)
		thread->stays = thread_cores();
	if (args.flags & FLEXSC_SERVE_FIRST)
		serve_arrive(reg, thread);
	if (args.flags & FLEXSC_SERVE_NO_MORE)
		idle_no_more_threads(reg);
	if (args.index != FLEXSC_NO_ENTRY) {
		carry_on(reg, thread, &args);
		waiter_recall(reg);
	}
	ret = serve_go_on(reg, thread);
	serve_settle(reg, thread);
	args.index = thread->carries;
	args.flags = 0;
	args.core = thread->core;
	slot_give(thread);
	thread_leave(thread);
	/*
	 * If this thread moves to another core, no other thread is woken for
	 * the pending entries: this thread comes back soon and executes them.
	 */
	if (ret == FLEXSC_SERVE_MOVE)
		waiter_recall(reg);
	else
		block_thread_left(reg);
	if (ret == FLEXSC_SERVE_END)
		waiter_deserted(reg);
	return copy_to_user(user, &args, sizeof(args)) ? -EFAULT : ret;
}
