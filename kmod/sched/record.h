/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread of the process in one of the two ioctls that execute entries: its
 * record, and checks of the current task.
 */
#ifndef FLEXSC_KMOD_SCHED_RECORD_H
#define FLEXSC_KMOD_SCHED_RECORD_H

#include <linux/atomic.h>
#include <linux/fdtable.h>
#include <linux/flexsc.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/task_work.h>
#include <linux/thread_info.h>

#include "base/checks.h"

struct registration;
struct permit;
struct slot;

/*
 * A thread in FLEXSC_IOC_SERVE or FLEXSC_IOC_WAIT. Records are reused, and
 * freed only with the registration. So a stale pointer never leads to freed
 * memory, but may lead to a record that another thread uses by now.
 */
struct thread {
	struct registration *reg;
	/*
	 * A counted reference, because the task may die in a call, and may be
	 * interrupted after that. The wait record keeps its reference between
	 * waits.
	 */
	struct task_struct *task;
	struct preempt_notifier notifier;
	/* NULL: none; only the record's own task writes it, also in block_sched_out() */
	struct permit *permit;
	/*
	 * NULL: none. Written like "permit", and by idle_grant() while the thread is on
	 * the idle list.
	 */
	struct slot *slot;
	/* the core to which the thread has moved, as it reported; -1: any */
	int core;
	/* thread_cores() when the thread reported that it can't move */
	u32 stays;
	/* the entry whose file the thread polls, or NO_ENTRY; see execute.c */
	u32 polls;
	/* the entry that the thread executes, or nothing: see cancel.c */
	atomic64_t executes;
	bool is_waiter;		/* in FLEXSC_IOC_WAIT */
	bool is_wait_record;		/* it is registration.wait_record */
	/* the thread lost its permit in an entry that it still executes */
	bool blocked;
	/* idle_wake() took it off the idle list; guarded by registration.lock */
	bool woken;
	/* its ioctl has to request another thread from user mode */
	bool needs_thread;
	/* it is new, and the request for it is outstanding: serve.c */
	bool arrives;
	bool bounces;		/* user mode has to make the call of "carries" */
	int signalled;		/* the result of FLEXSC_IOC_SERVE, if not 0 */
	u32 carries;		/* the entry to carry through user mode, or NO_ENTRY */
	struct list_head idle;
	struct pt_regs regs;	/* the call's arguments; zero between calls */
	u32 newest, oldest;	/* completed entries, not published yet */
	u32 completed;		/* number of these entries */
	int in_use;		/* 1 while the wait record is in use; compare-and-swap */
	bool fget;		/* ioctl()'s fdget() has taken a reference */
	struct llist_node dead;
	struct thread *next_free;
};

/* Result of serve_decide(), wait_decide(): the thread stays in the kernel. */
#define THREAD_STAYS	LONG_MIN

extern struct preempt_ops thread_preempt_ops;
int threads_init(const struct preempt_ops *ops);
void threads_exit(void);
void threads_free(struct registration *reg);
struct thread *thread_enter(struct registration *reg);
struct thread *thread_get_for_wait(struct registration *reg);
void thread_become(struct thread *thread);
void thread_put(struct thread *thread);
void thread_died(struct thread *thread);

/*
 * Is the current task in FLEXSC_IOC_SERVE or FLEXSC_IOC_WAIT already? Then its
 * notifier is registered.
 */
static inline bool thread_inside(void)
{
	struct preempt_notifier *notifier;

	hlist_for_each_entry(notifier, &current->preempt_notifiers, link)
		if (notifier->ops == &thread_preempt_ops)
			return true;
	return false;
}

/*
 * Assign the record to the current task for one ioctl. Process context.
 *
 * The notifier is registered as in preempt_notifier_register(), but inline,
 * because a wait has to be cheap. preempt_notifier_inc() was called when the
 * module was loaded.
 */
static __always_inline void thread_begin(struct thread *thread)
{
	RULE(!thread_inside());
	RULE(!thread->permit && !thread->slot);
	RULE(!atomic64_read(&thread->executes));
	if (unlikely(thread->task != current))
		thread_become(thread);
	/*
	 * Does ioctl() hold a reference to the file? fdget() takes none while
	 * only this task uses the table of files. If the table was shared at
	 * fdget() and isn't now, a task that dies here leaks a reference. The
	 * opposite, dropping a reference that isn't held, can't happen.
	 */
	thread->fget = atomic_read(&current->files->count) > 1;
	hlist_add_head(&thread->notifier.link, &current->preempt_notifiers);
}

/*
 * Release the record at the end of an ioctl. Process context, or task_death.c's
 * worker.
 */
static inline void thread_release(struct thread *thread)
{
	if (likely(thread->is_wait_record))
		/* Pairs with the cmpxchg() of wait_enter(). */
		smp_store_release(&thread->in_use, 0);
	else
		thread_put(thread);
}

/*
 * Release the current task's record, whose fields have their initial values
 * again. Process context.
 */
static inline void thread_leave(struct thread *thread)
{
	RULE(thread->task == current);
	RULE(!thread->permit && !thread->slot);
	RULE(!atomic64_read(&thread->executes));
	RULE(thread->newest == FLEXSC_NO_ENTRY);
	RULE(thread->polls == FLEXSC_NO_ENTRY);
	RULE(!thread->blocked && !thread->needs_thread && !thread->arrives);
	/* As preempt_notifier_unregister() does, but inline. */
	__hlist_del(&thread->notifier.link);
	thread_release(thread);
}

/*
 * Returns a number that differs if the current task may run on more cores, on fewer, or
 * on others, unless these begin with the same core.
 */
static inline u32 thread_cores(void)
{
	return (u32)current->nr_cpus_allowed << 16 |
	       cpumask_first(current->cpus_ptr);
}

/* Does the current task have work to do on its way to user mode? */
static inline bool thread_must_leave(void)
{
	return signal_pending(current) || task_work_pending(current);
}

/* May the current task have to leave the kernel, or to reschedule? */
static __always_inline bool thread_has_work(void)
{
	return (READ_ONCE(current_thread_info()->flags) &
		(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NEED_RESCHED)) ||
	       task_work_pending(current);
}

#endif /* FLEXSC_KMOD_SCHED_RECORD_H */
