// SPDX-License-Identifier: GPL-2.0-only
/*
 * Syscall threads (OSDI 2010, section 3.5): threads of the process that called
 * FLEXSC_IOC_SERVE. registration.h draws who runs when. Here are the records
 * of threads, the slots, the idle list, and what happens when one blocks.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "registration.h"

#define WAKE_TRIES	8	/* to wake one that is in the right place */

#define SERVE_FLAGS	(FLEXSC_SERVE_FIRST | FLEXSC_SERVE_NO_MORE | \
			 FLEXSC_SERVE_STAYS)

static struct kmem_cache *records;

/* Records. */

static struct thread *record_unused(struct registration *reg)
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
 * Each call leaves a record as it found it, but for these: so one that is used
 * for callers alone is ready without any of this.
 */
static struct thread *record_get(struct registration *reg, bool is_caller)
{
	struct thread *thread = record_unused(reg);

	if (!thread) {
		thread = kmem_cache_zalloc(records, GFP_KERNEL_ACCOUNT);
		if (!thread)
			return NULL;
		thread->reg = reg;
		thread->newest = FLEXSC_NO_ENTRY;
		preempt_notifier_init(&thread->notifier, &thread_preempt_ops);
	}
	/* thread_looks() may have an old pointer. */
	WRITE_ONCE(thread->is_caller, is_caller);
	thread->carries = FLEXSC_NO_ENTRY;
	thread->stays = 0;
	thread->bounces = false;
	atomic_set(&thread->refs, 1);
	return thread;
}

/* Either the ioctl or a kick doesn't need it any more. */
void thread_put(struct thread *thread)
{
	struct registration *reg = thread->reg;
	unsigned long flags;

	bool last;

	last = atomic_dec_and_test(&thread->refs);
	if (!last || thread->is_usual)
		return;
	raw_spin_lock_irqsave(&reg->lock, flags);
	thread->next_free = reg->records;
	reg->records = thread;
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

void threads_free(struct registration *reg)
{
	struct thread *thread;

	if (reg->usual)
		kmem_cache_free(records, reg->usual);
	while ((thread = reg->records)) {
		reg->records = thread->next_free;
		kmem_cache_free(records, thread);
	}
}

/* The current task, in FLEXSC_IOC_SERVE from now on; NULL: no memory. */
struct thread *thread_enter(struct registration *reg)
{
	struct thread *thread = record_get(reg, false);

	if (thread)
		thread_begin(thread);
	return thread;
}

/* A record for the caller, when the usual one is in use or isn't there. */
struct thread *thread_other(struct registration *reg)
{
	struct thread *thread = record_get(reg, true);

	if (thread && !cmpxchg(&reg->usual, NULL, thread))
		thread->is_usual = true;
	return thread;
}

/* Slots. */

/* A core that is offline has none; if all are, the first has all the same. */
static bool slot_usable(struct registration *reg, u32 i, u32 count)
{
	int core = READ_ONCE(reg->slots[i].core);
	u32 j;

	if (core < 0 || cpu_online(core))
		return true;
	if (i)
		return false;
	for (j = 1; j < count; j++) {
		core = READ_ONCE(reg->slots[j].core);
		if (core < 0 || cpu_online(core))
			return false;
	}
	return true;
}

/*
 * The caller isn't moved. So it has the slot of the core that it is on, or any
 * if there will be nobody else.
 */
static bool caller_fits(struct registration *reg, int core)
{
	return core < 0 || core == (int)raw_smp_processor_id() ||
	       entries_alone(reg);
}

bool thread_take_slot(struct thread *thread)
{
	struct registration *reg = thread->reg;
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++) {
		struct slot *slot = &reg->slots[i];

		if (READ_ONCE(slot->active) || !slot_usable(reg, i, count))
			continue;
		if (thread->is_caller &&
		    !caller_fits(reg, READ_ONCE(slot->core)))
			continue;
		if (!slot_take(slot, thread))
			continue;
		return true;
	}
	return false;
}

/* It has a slot. Does it run elsewhere than there? */
bool thread_misplaced(const struct thread *thread)
{
	int core = READ_ONCE(thread->slot->core);

	if (thread->is_caller)
		return false;
	if (core != thread->core)
		return true;
	/* That its core was offline makes a thread run anywhere. */
	return core >= 0 && cpu_online(core) &&
	       current->nr_cpus_allowed != thread->stays &&
	       (current->nr_cpus_allowed != 1 || task_cpu(current) != core);
}

/* The first that is free, for a syscall thread. */
static struct slot *slot_free(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->slots[i].active) &&
		    slot_usable(reg, i, count))
			return &reg->slots[i];
	return NULL;
}

/* Is there a core without an active thread? */
bool thread_slot_free(struct registration *reg)
{
	return slot_free(reg);
}

bool thread_any_active(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (READ_ONCE(reg->slots[i].active))
			return true;
	return false;
}

/*
 * Is a syscall thread active that is not in a call? It looks at the ring before
 * it gives up its slot, and again after that, so it needs no help yet. Records
 * are never freed before the registration, so an old one does no harm.
 */
bool thread_looks(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	/*
	 * Pairs with those behind giving up a slot: it sees what is pending,
	 * or we that it has gone.
	 */
	smp_mb();
	for (i = 0; i < count; i++) {
		struct thread *thread = READ_ONCE(reg->slots[i].active);

		if (thread && !READ_ONCE(thread->is_caller) &&
		    !READ_ONCE(thread->asks) && !atomic64_read(&thread->now))
			return true;
	}
	return false;
}

/*
 * Blocking. The task leaves the run queue, whose lock is held: the slot is
 * given up here, and the rest is done by an interrupt right after.
 */
static void sched_out(struct preempt_notifier *notifier,
		      struct task_struct *next)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);
	struct slot *slot = READ_ONCE(thread->slot);
	u64 now = atomic64_read(&thread->now);

	if (!slot || (!now && !READ_ONCE(thread->asks)) || !task_sleeps(current))
		return;
	/* What a scribbled queue doesn't take it gets when this one is back. */
	entries_publish_now(thread);
	/* Now cancel_entry() finds it here. */
	if (now)
		WRITE_ONCE(thread->reg->companions[(u32)now].thread, thread);
	WRITE_ONCE(thread->slot, NULL);
	count(thread->reg, COUNT_BLOCKED, 1);
	atomic64_inc(&slot->counts[SLOT_BLOCKED]);
	WRITE_ONCE(thread->blocked, true);
	/* Pairs with the owner's barrier: it sees this, or we its tail. */
	WRITE_ONCE(thread->reg->shared->needs_kick, 1);
	/* Pairs with thread_take_slot(). */
	smp_store_release(&slot->active, NULL);
	irq_work_queue(&slot->blocked);
}

static void sched_in(struct preempt_notifier *notifier, int cpu)
{
}

struct preempt_ops thread_preempt_ops = {
	.sched_in = sched_in,
	.sched_out = sched_out,
};

/* The interrupt after that. */
void thread_blocked(struct irq_work *work)
{
	struct registration *reg =
		container_of(work, struct slot, blocked)->reg;

	/* sched_out() has said so; who submits after that kicks. */
	smp_mb();
	if (entries_pending(reg) && thread_slot_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	caller_blocked(reg);
	caller_recall(reg);
}

/*
 * Somebody should be idle, to take over from a thread that blocks. If nobody
 * is, and none is on its way, true: user mode has to make a thread.
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
 * With the lock: the one that went idle last, or among the last ones one that
 * is where the first free slot is. NULL: none is.
 */
static struct thread *idle_first(struct registration *reg)
{
	struct slot *slot = slot_free(reg);
	struct thread *thread;
	int tries = WAKE_TRIES;

	list_for_each_entry(thread, &reg->idle, idle) {
		if (!slot || !tries--)
			break;
		if (thread->core == READ_ONCE(slot->core))
			return thread;
	}
	return list_first_entry_or_null(&reg->idle, struct thread, idle);
}

/* Wake an idle thread. Any context. False: none is. */
bool thread_wake(struct registration *reg)
{
	struct thread *thread;
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread = idle_first(reg);
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

static void idle_begin(struct registration *reg, struct thread *thread)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	thread->woken = false;
	list_add(&thread->idle, &reg->idle);
	atomic_inc(&reg->idle_count);
	WRITE_ONCE(reg->no_more, false);
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

/* Off the list, unless that is done. False: the last one stays on it. */
static bool idle_end(struct registration *reg, struct thread *thread,
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
 * Sleep until there is something to do. False: there was nothing for so long
 * that the thread may end. Who makes work looks for idle threads after that,
 * and a thread looks for work once it is on the list.
 */
static bool idle(struct registration *reg, struct thread *thread)
{
	u32 ms = READ_ONCE(reg->policy.idle_ms);
	ktime_t until = ms ? ktime_add_ms(ktime_get(), ms) : KTIME_MAX;

	idle_begin(reg, thread);
	/* On the list first, then looking: see above. */
	smp_mb();
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(thread->woken) || READ_ONCE(reg->ended) ||
		    thread_must_leave() ||
		    (entries_pending(reg) && thread_slot_free(reg)) ||
		    caller_wanted(reg))
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

/* Serving. */

bool thread_unfiltered(void)
{
	return !task_filtered();
}

/* With a slot: work, look for more for a while, and say that nobody does. */
static void serve_slot(struct registration *reg, struct thread *thread)
{
	do {
		/* One that blocked, and has no slot now, may have set it. */
		if (READ_ONCE(reg->shared->needs_kick))
			WRITE_ONCE(reg->shared->needs_kick, 0);
		policy_begin(reg, thread->slot);
		entries_execute(reg, thread);
		caller_recall(reg);
		if (!thread->slot || thread->carries != FLEXSC_NO_ENTRY ||
		    thread_must_leave() || thread_unfit(reg) ||
		    thread_misplaced(thread))
			break;
	} while (policy_spin(reg, thread));
	WRITE_ONCE(reg->shared->needs_kick, 1);
	thread_give_slot(thread);
	/* The owner looks at needs_kick behind a barrier, too. */
	smp_mb();
}

/* What to tell the thread's user mode; negative: go on. */
static long why_leave(struct registration *reg, struct thread *thread)
{
	if (thread->bounces)
		return FLEXSC_SERVE_BOUNCE;
	if (READ_ONCE(reg->ended))
		return FLEXSC_SERVE_END;
	if (thread_must_leave() ||
	    thread->carries != FLEXSC_NO_ENTRY)
		return FLEXSC_SERVE_AGAIN;
	if (thread_unfit(reg))
		return FLEXSC_SERVE_END;
	if (caller_take_over(reg))
		return FLEXSC_SERVE_TAKEOVER;
	return -1;
}

static long serve(struct registration *reg, struct thread *thread)
{
	long why;

	for (;;) {
		why = why_leave(reg, thread);
		if (why >= 0)
			return why;
		if (entries_pending(reg) && thread_take_slot(thread)) {
			if (thread_ask(reg)) {
				thread_give_slot(thread);
				return FLEXSC_SERVE_MORE;
			}
			if (thread_misplaced(thread)) {
				thread->core = READ_ONCE(thread->slot->core);
				thread_give_slot(thread);
				return FLEXSC_SERVE_MOVE;
			}
			serve_slot(reg, thread);
		} else if (!idle(reg, thread)) {
			return FLEXSC_SERVE_IDLE;
		}
	}
}

/* FLEXSC_IOC_SERVE */
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
		atomic_set(&reg->coming, 0);
	if (args.flags & FLEXSC_SERVE_NO_MORE)
		thread_no_more(reg);
	if (args.index != FLEXSC_NO_ENTRY) {
		entry_carry_on(reg, thread, args.index, args.ret);
		caller_recall(reg);
	}
	ret = serve(reg, thread);
	args.index = thread->carries;
	args.core = thread->core;
	thread_leave(thread);
	/*
	 * What is left behind is for another, whom the caller makes if there is
	 * none; unless this one comes back. The barrier pairs with the one in
	 * thread_looks().
	 */
	smp_mb();
	if (ret != FLEXSC_SERVE_MOVE && entries_pending(reg) &&
	    thread_slot_free(reg) && !thread_wake(reg))
		wake_up(&reg->wait);
	/* Nor does it take the caller's role, if it was woken for that. */
	caller_recall(reg);
	if (put_user(args.index, &user->index) ||
	    put_user(args.core, &user->core))
		return -EFAULT;
	return ret;
}

/* FLEXSC_IOC_END */
void thread_end_all(struct registration *reg)
{
	WRITE_ONCE(reg->ended, true);
	/* Pairs with idle(): it sees this, or we that it is on the list. */
	smp_mb();
	while (thread_wake(reg))
		;
}

int threads_init(void)
{
	records = KMEM_CACHE(thread, SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN);
	return records ? 0 : -ENOMEM;
}

void threads_exit(void)
{
	kmem_cache_destroy(records);
}
