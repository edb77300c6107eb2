// SPDX-License-Identifier: GPL-2.0-only
/*
 * The caller: the thread in FLEXSC_IOC_WAIT (flexsc_wait(), OSDI 2010, section
 * 3.4), of which there is one at a time. It executes what is submitted itself,
 * for nothing is cheaper, and sleeps when there is nothing.
 *
 * It may block in an entry like any other thread. Then others go on, and when
 * the caller is wanted in user mode (something has completed, its time is up,
 * it was woken) there are two ways. If it agreed to a hand-over, a syscall
 * thread returns from its ioctl in the caller's place, and the caller finds
 * when it is back that it isn't the caller any more. If not, its entry is
 * interrupted, and comes back as INTERRUPTED, for its owner to post again.
 */
#include <linux/sched/signal.h>

#include "compat.h"
#include "registration.h"

static bool has_completed(struct registration *reg)
{
	return (s64)(atomic64_read(&reg->completed) -
		     (s64)READ_ONCE(reg->seen)) > 0;
}

static bool is_late(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);

	return deadline != KTIME_MAX && deadline && ktime_get() >= deadline;
}

static bool due(struct registration *reg)
{
	return has_completed(reg) || READ_ONCE(reg->woken) || is_late(reg);
}

/* Blocked, though there is something for it in user mode. */
static struct thread *held_up(struct registration *reg)
{
	struct thread *caller = READ_ONCE(reg->caller);

	return caller && READ_ONCE(caller->blocked) && due(reg) ? caller : NULL;
}

/* Should a syscall thread take the role? */
bool caller_wanted(struct registration *reg)
{
	return READ_ONCE(reg->handover) && held_up(reg);
}

/* The current thread takes it, if so. */
bool caller_take_over(struct registration *reg)
{
	struct thread *caller;
	bool taken;

	if (!READ_ONCE(reg->handover))
		return false;
	caller = held_up(reg);
	taken = caller && cmpxchg(&reg->caller, caller, NULL) == caller;
	if (taken) {
		count(reg, COUNT_TAKEOVERS, 1);
		/* By now it may have returned, come back and fallen asleep. */
		wake_up(&reg->wait);
	}
	return taken;
}

/* Have the caller in user mode, if it should be there. Any context. */
void caller_recall(struct registration *reg)
{
	struct thread *caller;
	u64 now;

	smp_mb(); /* Pairs with wait_longer(). */
	/* It sees what is due, or we that it sleeps. */
	if (waitqueue_active(&reg->wait) && due(reg)) {
		wake_up(&reg->wait);
		return;
	}
	caller = held_up(reg);
	if (caller && READ_ONCE(reg->handover)) {
		thread_wake(reg);
	} else if (caller) {
		now = atomic64_read(&caller->now);
		if (now >> 32 == NOW_EXECUTES >> 32)
			cancel_kick(caller, now);
	}
}

/* A thread has blocked. If it is the caller its time limit needs a timer. */
void caller_blocked(struct registration *reg)
{
	ktime_t deadline = READ_ONCE(reg->deadline);
	struct thread *caller;

	if (deadline == KTIME_MAX)
		return;
	caller = READ_ONCE(reg->caller);
	if (caller && READ_ONCE(caller->blocked))
		hrtimer_start(&reg->timer, deadline, HRTIMER_MODE_ABS);
}

static enum hrtimer_restart late(struct hrtimer *timer)
{
	caller_recall(container_of(timer, struct registration, timer));
	return HRTIMER_NORESTART;
}

void caller_init(struct registration *reg)
{
	init_waitqueue_head(&reg->wait);
	timer_setup_hr(&reg->timer, late);
	reg->deadline = KTIME_MAX;
}

/* Without cores there is one slot, which is anybody's. */
static __always_inline bool take_slot(struct registration *reg,
				      struct thread *thread)
{
	struct slot *slot = &reg->slots[0];

	return (likely(READ_ONCE(slot->core) < 0) && slot_take(slot, thread)) ||
	       thread_take_slot(thread);
}

/* Execute what is submitted. */
static __always_inline void execute_inline(struct registration *reg,
					   struct thread *thread)
{
	bool stranded = entries_stranded(reg);

	if ((ring_empty(reg) && !stranded) || !take_slot(reg, thread))
		return;
	entries_execute_inline(reg, thread);
	if (unlikely(stranded))
		entries_retrieve(reg, thread);
	thread_give_slot(thread);
}

/* On the wait queue: sleep until something is due. False: time is up. */
static bool caller_sleep(struct registration *reg, struct thread *thread)
{
	ktime_t deadline = READ_ONCE(reg->deadline);

	if (has_completed(reg) || READ_ONCE(reg->woken) ||
	    READ_ONCE(reg->caller) != thread || thread_must_leave())
		return true;
	return schedule_hrtimeout(&deadline, HRTIMER_MODE_ABS);
}

/* Has it left an entry that needs another thread to be there? */
static __always_inline bool wants_more(struct thread *thread)
{
	if (likely(!thread->wants_more))
		return false;
	thread->wants_more = false;
	return true;
}

#define GO_ON	LONG_MIN

/* Nothing has completed. Why not to sleep? */
static long why_return(struct registration *reg, struct thread *thread,
		       bool timely)
{
	if (READ_ONCE(reg->caller) != thread)
		return FLEXSC_WAIT_TAKEN;
	if (READ_ONCE(reg->woken) && xchg(&reg->woken, false))
		return FLEXSC_WAIT_LOOK;
	if (!timely || !READ_ONCE(reg->deadline))
		return FLEXSC_WAIT_LOOK;
	if (signal_pending(current))
		return -EINTR;
	if (task_work_pending(current))
		return FLEXSC_WAIT_LOOK;
	if (entries_pending(reg) && !thread_looks(reg) && !thread_wake(reg) &&
	    !thread_any_active(reg) && thread_ask(reg))
		return FLEXSC_WAIT_MORE;
	return GO_ON;
}

static noinline long wait_longer(struct registration *reg,
				 struct thread *thread)
{
	bool timely = true;
	DEFINE_WAIT(wait);
	long why;

	for (;;) {
		/*
		 * A full barrier: pairs with caller_recall(). And who is asked
		 * for help, but leaves, wakes us from here on.
		 */
		prepare_to_wait(&reg->wait, &wait, TASK_INTERRUPTIBLE);
		why = why_return(reg, thread, timely);
		if (why == GO_ON)
			timely = caller_sleep(reg, thread);
		finish_wait(&reg->wait, &wait);
		if (why != GO_ON)
			return why;
		if (!thread_must_leave())
			execute_inline(reg, thread);
		if (wants_more(thread))
			return FLEXSC_WAIT_MORE;
		if (has_completed(reg))
			return FLEXSC_WAIT_LOOK;
	}
}

/* Most of the time, what is submitted completes at once. */
static __always_inline long wait(struct registration *reg,
				 struct thread *thread)
{
	execute_inline(reg, thread);
	if (wants_more(thread))
		return FLEXSC_WAIT_MORE;
	if (has_completed(reg))
		return FLEXSC_WAIT_LOOK;
	return wait_longer(reg, thread);
}

/* When to stop waiting; 0: at once. */
static ktime_t deadline_of(u64 timeout)
{
	if (likely((s64)timeout < 0))
		return KTIME_MAX;
	if (!timeout)
		return 0;
	return ktime_add_safe(ktime_get(), ns_to_ktime(timeout));
}

/* Be the caller; false: another is. */
static bool begin(struct registration *reg, struct thread *thread, u64 seen)
{
	struct flexsc_shared *shared = reg->shared;
	u32 flags = READ_ONCE(shared->wait_flags);

	if (cmpxchg(&reg->caller, NULL, thread))
		return false;
	WRITE_ONCE(reg->handover, flags & FLEXSC_WAIT_HANDOVER);
	WRITE_ONCE(reg->seen, seen);
	WRITE_ONCE(reg->deadline, deadline_of(READ_ONCE(shared->timeout)));
	if (flags & FLEXSC_WAIT_NO_MORE)
		thread_no_more(reg);
	return true;
}

/* FLEXSC_IOC_WAIT */
long caller_wait(struct registration *reg, u64 seen)
{
	struct thread *thread;
	long ret = -EBUSY;

	thread = thread_enter_caller(reg);
	if (!thread)
		return -ENOMEM;
	if (begin(reg, thread, seen)) {
		count(reg, COUNT_WAITS, 1);
		ret = wait(reg, thread);
		if (unlikely(cmpxchg(&reg->caller, thread, NULL) != thread)) {
			/* It can't say that a thread is to be made. */
			if (ret == FLEXSC_WAIT_MORE)
				atomic_set(&reg->coming, 0);
			ret = FLEXSC_WAIT_TAKEN;
			/* Who has the role may sleep until what ended here. */
			caller_recall(reg);
		}
		if (READ_ONCE(reg->aside_count))
			thread_wake(reg);
	}
	thread_leave(thread);
	return ret;
}

/* FLEXSC_IOC_KICK */
long caller_kick(struct registration *reg)
{
	count(reg, COUNT_KICKS, 1);
	if (!entries_pending(reg) || !thread_slot_free(reg) ||
	    thread_looks(reg) || thread_wake(reg))
		return FLEXSC_WAIT_LOOK;
	if (thread_any_active(reg) || !thread_ask(reg))
		return FLEXSC_WAIT_LOOK;
	return FLEXSC_WAIT_MORE;
}

/* FLEXSC_IOC_WAKE */
long caller_wake(struct registration *reg)
{
	WRITE_ONCE(reg->woken, true);
	caller_recall(reg);
	return 0;
}
