// SPDX-License-Identifier: GPL-2.0-only
/*
 * Syscall threads (OSDI 2010, section 3.5): threads of the process that called
 * FLEXSC_IOC_SERVE. registration.h draws their states. This file has the
 * records of threads (the owner's, too), the idle list, and what happens when a
 * thread blocks.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/entry.h"
#include "base/registration.h"
#include "exec/carry.h"
#include "exec/publish.h"
#include "sched/permit.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/death.h"
#include "serve/policy.h"

#define WAKE_TRIES	8	/* idle threads whose core is looked at */
#define MISFITS_MOST	4	/* unfit new threads in a row: ask no more */

#define SERVE_FLAGS	(FLEXSC_SERVE_FIRST | FLEXSC_SERVE_NO_MORE | \
			 FLEXSC_SERVE_STAYS | FLEXSC_SERVE_HANDLED)

static struct kmem_cache *thread_cache;

/* Records. */

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
 * A call leaves the other fields of its record as it found them. WAIT leaves
 * the fields set here as well, so the usual record, which is for WAIT alone, is
 * set up only once.
 */
static struct thread *thread_get(struct registration *reg, bool is_owner)
{
	struct thread *thread = thread_take_unused(reg);

	if (!thread) {
		thread = kmem_cache_zalloc(thread_cache, GFP_KERNEL_ACCOUNT);
		if (!thread)
			return NULL;
		thread->reg = reg;
		thread->newest = FLEXSC_NO_ENTRY;
		preempt_notifier_init(&thread->notifier, &thread_preempt_ops);
	}
	/* thread_looks() may read it now, by a stale pointer. */
	WRITE_ONCE(thread->is_owner, is_owner);
	thread->carries = FLEXSC_NO_ENTRY;
	thread->stays = 0;
	thread->bounces = false;
	thread->signalled = 0;
	thread->in_use = 1;
	return thread;
}

/*
 * Make the current task the record's. The record has a reference to it,
 * because the task may die in a call. Process context.
 */
noinline void thread_become(struct thread *thread)
{
	struct task_struct *was = thread->task;

	/*
	 * Only a thread on the idle list or in an entry has its task followed,
	 * and this one is in neither: the old task can be let go at once.
	 */
	thread->task = get_task_struct(current);
	if (was)
		put_task_struct(was);
}

/* Give back a record that isn't the usual one. */
void thread_put(struct thread *thread)
{
	struct registration *reg = thread->reg;
	unsigned long flags;

	WARN_ON_ONCE(thread->slot || atomic64_read(&thread->executes));
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

	if (reg->usual) {
		WARN_ON_ONCE(reg->usual->in_use || reg->usual->slot);
		put_task_struct(reg->usual->task);
		kmem_cache_free(thread_cache, reg->usual);
	}
	while ((thread = reg->records)) {
		reg->records = thread->next_free;
		WARN_ON_ONCE(thread->task || thread->slot);
		kmem_cache_free(thread_cache, thread);
	}
}

/* Begin FLEXSC_IOC_SERVE for the current task. NULL: no memory. */
struct thread *thread_enter(struct registration *reg)
{
	struct thread *thread = thread_get(reg, false);

	if (thread)
		thread_begin(thread);
	return thread;
}

/* A record for WAIT, if the usual one is in use or there is none yet. */
struct thread *thread_other(struct registration *reg)
{
	struct thread *thread = thread_get(reg, true);

	if (thread && !cmpxchg(&reg->usual, NULL, thread))
		thread->is_usual = true;
	return thread;
}

/*
 * Is a syscall thread active that is not in a call? It needs no help, because
 * it looks for entries before it gives up its slot, and again after that.
 */
bool thread_looks(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	/*
	 * Pairs with the full barriers of thread_use_slot() and thread_left(),
	 * behind giving up a slot: the thread sees what is pending, or this
	 * sees that it has no slot any more.
	 */
	smp_mb();
	for (i = 0; i < count; i++) {
		struct thread *thread = READ_ONCE(reg->slots[i].active);

		if (thread && !READ_ONCE(thread->is_owner) &&
		    !READ_ONCE(thread->asks) &&
		    !atomic64_read(&thread->executes))
			return true;
	}
	return false;
}

/*
 * The task is preempted, or leaves the run queue. If it leaves in an entry, or
 * while it asks a file, it gives up its slot. This runs with the run queue's
 * lock held and interrupts off, so it can't wake a thread to take over: the
 * slot's irq_work does, right after.
 */
static void thread_sched_out(struct preempt_notifier *notifier,
			     struct task_struct *next)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);
	struct slot *slot = READ_ONCE(thread->slot);
	u64 executes = atomic64_read(&thread->executes);

	lockdep_assert_irqs_disabled();
	RULE(thread->task == current);
	if (unlikely(READ_ONCE(current->__state) == TASK_DEAD))
		death_note(thread);
	if (!slot || (!executes && !READ_ONCE(thread->asks)) ||
	    !task_sleeps(current))
		return;
	/* If publishing fails, the thread publishes when it runs again. */
	publish_now(thread);
	/* Before the slot is free: pairs with cancel_find(). */
	if (executes)
		WRITE_ONCE(thread->reg->companions[(u32)executes].thread,
			   thread);
	WRITE_ONCE(thread->slot, NULL);
	count(thread->reg, COUNT_BLOCKED, 1);
	atomic64_inc(&slot->counts[SLOT_BLOCKED]);
	WRITE_ONCE(thread->blocked, true);
	/* With the barrier of thread_blocked(): pairs with the owner's kick. */
	WRITE_ONCE(thread->reg->shared->needs_kick, 1);
	/* Pairs with the cmpxchg() of slot_take(). */
	smp_store_release(&slot->active, NULL);
	irq_work_queue(&slot->blocked);
}

static void thread_sched_in(struct preempt_notifier *notifier, int cpu)
{
}

struct preempt_ops thread_preempt_ops = {
	.sched_in = thread_sched_in,
	.sched_out = thread_sched_out,
};

/* A thread blocked and gave up its slot: others go on. Runs in an irq_work. */
void thread_blocked(struct irq_work *work)
{
	struct registration *reg =
		container_of(work, struct slot, blocked)->reg;

	/*
	 * Pairs with the full barrier of the owner between tail and needs_kick:
	 * this sees the new tail, or the owner sees needs_kick, and kicks.
	 */
	smp_mb();
	if (entries_pending(reg) && slot_any_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	owner_blocked(reg);
	owner_recall(reg);
}

/*
 * A thread has left the kernel: others go on with what is pending. If none is
 * idle, the sleeping owner is woken, to execute or to have a thread made.
 */
void thread_left(struct registration *reg)
{
	/* Pairs with the full barrier in thread_looks(). */
	smp_mb();
	if (entries_pending(reg) && slot_any_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	/* The thread may have been woken to take the owner's role. */
	owner_recall(reg);
}

/*
 * An idle thread should be there, to take over from a thread that blocks. True:
 * there is none, and none was asked for yet, so user mode has to make one. The
 * next thread that serves for the first time ends the request: see
 * thread_arrive().
 */
bool thread_ask(struct registration *reg)
{
	return !atomic_read(&reg->idle_count) && !READ_ONCE(reg->no_more) &&
	       !atomic_cmpxchg(&reg->coming, 0, 1);
}

void thread_no_more(struct registration *reg)
{
	WRITE_ONCE(reg->no_more, true);
	atomic_set(&reg->coming, 0);
}

/* Idling. */

/*
 * The idle thread to wake. Of the last WAKE_TRIES that went idle it is one that
 * is on the first free slot's core already; if there is none, the very last one
 * that went idle. NULL: none is idle.
 */
static struct thread *thread_idle_first(struct registration *reg)
{
	struct slot *slot = slot_first_free(reg);
	struct thread *thread;
	int tries = WAKE_TRIES;

	lockdep_assert_held(&reg->lock);
	list_for_each_entry(thread, &reg->idle, idle) {
		if (!slot || !tries--)
			break;
		if (thread->core == READ_ONCE(slot->core))
			return thread;
	}
	return list_first_entry_or_null(&reg->idle, struct thread, idle);
}

/*
 * Wake an idle thread. False: none is idle. Any context but thread_sched_out(),
 * because it takes registration.lock and, inside it, a run queue's.
 */
bool thread_wake(struct registration *reg)
{
	struct thread *thread;
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread = thread_idle_first(reg);
	if (thread) {
		list_del(&thread->idle);
		atomic_dec(&reg->idle_count);
		WRITE_ONCE(thread->woken, true);
		wake_up_process(thread->task);
		count(reg, COUNT_WAKEUPS, 1);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return thread;
}

static void thread_idle_begin(struct registration *reg, struct thread *thread)
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
 * Take the thread off the idle list, unless thread_wake() has done so. False:
 * its time is up (not timely), but it is the last idle thread, and stays there.
 */
static bool thread_idle_end(struct registration *reg, struct thread *thread,
			    bool timely)
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

/*
 * Sleep until there is something to do. False: there was nothing for idle_ms,
 * and the thread may end.
 */
static bool thread_idle(struct registration *reg, struct thread *thread)
{
	u32 ms = READ_ONCE(reg->policy.idle_ms);
	ktime_t until = ms ? ktime_add_ms(ktime_get(), ms) : KTIME_MAX;

	WARN_ON_ONCE(thread->slot || thread->carries != FLEXSC_NO_ENTRY);
	thread_idle_begin(reg, thread);
	/*
	 * The thread is on the list, then looks for work. Whatever makes work
	 * (a kick, a recall, thread_end_all()) has a full barrier behind that,
	 * then looks at the list. So one of them sees the other.
	 */
	smp_mb();
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(thread->woken) || READ_ONCE(reg->ended) ||
		    thread_must_leave() ||
		    (entries_pending(reg) && slot_any_free(reg)) ||
		    owner_needs_takeover(reg))
			break;
		if (schedule_hrtimeout(&until, HRTIMER_MODE_ABS))
			continue;
		if (thread_idle_end(reg, thread, false))
			return thread->woken;
		until = KTIME_MAX;
	}
	__set_current_state(TASK_RUNNING);
	thread_idle_end(reg, thread, true);
	return true;
}

/* Serving. */

/*
 * With a slot: execute entries, then poll for more as the policy says. Gives up
 * the slot; thread_go_on() looks once more after that whether entries are
 * pending.
 */
static void thread_use_slot(struct registration *reg, struct thread *thread)
{
	do {
		/* Another thread sets needs_kick when it gives up its slot. */
		if (READ_ONCE(reg->shared->needs_kick))
			WRITE_ONCE(reg->shared->needs_kick, 0);
		policy_begin(reg, thread->slot);
		entries_execute(reg, thread);
		owner_recall(reg);
		if (!thread->slot || thread->carries != FLEXSC_NO_ENTRY ||
		    thread_must_leave() || owner_bars(reg) ||
		    slot_is_elsewhere(thread))
			break;
	} while (policy_spin(reg, thread));
	WRITE_ONCE(reg->shared->needs_kick, 1);
	slot_give(thread);
	/*
	 * Pairs with the owner's full barrier between tail and needs_kick, and
	 * with thread_looks(): what they miss is seen by the next look.
	 */
	smp_mb();
}

/* The result of FLEXSC_IOC_SERVE, or THREAD_STAYS. */
static long thread_decide(struct registration *reg, struct thread *thread)
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
	if (owner_bars(reg))
		return FLEXSC_SERVE_END;
	if (owner_take_over(reg))
		return FLEXSC_SERVE_TAKEOVER;
	return THREAD_STAYS;
}

static long thread_go_on(struct registration *reg, struct thread *thread)
{
	long why;

	for (;;) {
		why = thread_decide(reg, thread);
		if (why != THREAD_STAYS)
			return why;
		cond_resched();
		if (entries_pending(reg) && slot_take_any(thread)) {
			if (thread_ask(reg)) {
				slot_give(thread);
				return FLEXSC_SERVE_MORE;
			}
			if (slot_is_elsewhere(thread)) {
				thread->core = READ_ONCE(thread->slot->core);
				slot_give(thread);
				return FLEXSC_SERVE_MOVE;
			}
			thread_use_slot(reg, thread);
		} else if (!thread_idle(reg, thread)) {
			return FLEXSC_SERVE_IDLE;
		}
	}
}

/*
 * A thread serves for the first time: it was asked for, and another may be now.
 * If it is unfit it is sent home at once, and another one is asked for. But if
 * every new thread is unfit (a thread keyring gives each credentials of its
 * own), no more are asked for after MISFITS_MOST.
 */
static void thread_arrive(struct registration *reg)
{
	int misfits = owner_bars(reg) ? READ_ONCE(reg->misfits) + 1 : 0;

	WRITE_ONCE(reg->misfits, misfits);
	atomic_set(&reg->coming, 0);
	if (misfits >= MISFITS_MOST)
		thread_no_more(reg);
}

/* FLEXSC_IOC_SERVE. Process context, with a reference to the file. */
long thread_serve(struct registration *reg, struct flexsc_serve __user *user)
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
		thread->stays = current->nr_cpus_allowed;
	if (args.flags & FLEXSC_SERVE_FIRST)
		thread_arrive(reg);
	if (args.flags & FLEXSC_SERVE_NO_MORE)
		thread_no_more(reg);
	if (args.index != FLEXSC_NO_ENTRY) {
		carry_on(reg, thread, &args);
		owner_recall(reg);
	}
	ret = thread_go_on(reg, thread);
	args.index = thread->carries;
	args.flags = 0;
	args.core = thread->core;
	thread_leave(thread);
	/* A thread that moves is about to come back for what is pending. */
	if (ret == FLEXSC_SERVE_MOVE)
		owner_recall(reg);
	else
		thread_left(reg);
	if (ret == FLEXSC_SERVE_END)
		owner_deserted(reg);
	return copy_to_user(user, &args, sizeof(args)) ? -EFAULT : ret;
}

/* FLEXSC_IOC_END */
void thread_end_all(struct registration *reg)
{
	WRITE_ONCE(reg->ended, true);
	/*
	 * Pairs with thread_idle(): it sees "ended", or this finds it on the
	 * list.
	 */
	smp_mb();
	while (thread_wake(reg))
		;
}

int threads_init(void)
{
	thread_cache = KMEM_CACHE(thread, SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN);
	return thread_cache ? 0 : -ENOMEM;
}

void threads_exit(void)
{
	kmem_cache_destroy(thread_cache);
}
