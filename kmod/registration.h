/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A registration and all that belongs to it. Which file owns what:
 *
 *	main.c		the device: opening, ioctls, loading and unloading
 *	registration.c	memory, mapping, the end of a registration
 *	entry.c		taking, executing and finishing entries
 *	thread.c	syscall threads: records, slots, idling, blocking
 *	caller.c	the owner in FLEXSC_IOC_WAIT, and how it is called back
 *	cancel.c	interrupting the thread that executes an entry
 *	death.c		threads that die in a call
 *	policy.c	cores, and for how long threads poll
 *	dispatch.c	the kernel's system-call table
 *	debug.c		debugfs
 *
 * The OWNER is the thread that waited or kicked last. In names it is the
 * "caller" while it waits.
 *
 *
 * Which threads may execute entries
 *
 * A thread needs a SLOT to take entries: there is one for each core of the
 * policy, or a single one (OSDI 2010, section 3.5: one active syscall thread
 * per core and process). A thread loses its slot when it leaves the run queue
 * while it executes an entry, or while it asks a file whether an entry's call
 * would block. It finishes that entry without a slot.
 *
 *	idle	-> active	a syscall thread was woken and took a slot; or
 *				the owner entered WAIT and took one
 *	active	-> blocked	sched_out() gave up its slot; an irq_work wakes
 *				the next thread, because sched_out() runs with
 *				the run queue's lock held and can't
 *	blocked	-> active	its entry ended, and a slot was free
 *	blocked	-> idle		its entry ended, and no slot was free
 *	active	-> idle		nothing is submitted
 *	any	-> dead		the task died in a call and never comes back:
 *				see death.c
 *
 *
 * What is trusted
 *
 * Nothing in the shared area: any thread of the process may write to it at any
 * time. So each word of it is read once and then checked, and nothing that the
 * kernel relies on is stored there.
 *
 *
 * Locks
 *
 * registration.lock guards the idle list, the aside list and the unused
 * records. It is taken with interrupts off, because irq_works and timers take
 * it as well. No other lock of the module is taken inside it or held around it.
 * A thread is woken inside it, which takes the run queue's lock, so sched_out()
 * must never take it.
 */
#ifndef FLEXSC_KMOD_REGISTRATION_H
#define FLEXSC_KMOD_REGISTRATION_H

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/flexsc.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/task_work.h>
#include <linux/thread_info.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <asm/unistd.h>

struct registration;
struct thread;

/* Events of a registration, counted where they happen and shown by debugfs. */
enum counter {
	COUNT_EXECUTED,		/* entries that syscall threads took */
	COUNT_INLINE,		/* entries that the owner took */
	COUNT_BLOCKED,		/* slots given up because a thread blocked */
	COUNT_BOUNCED,		/* entries given to user mode to make */
	COUNT_ASIDE,		/* entries that the owner put aside */
	COUNT_INTERRUPTED,	/* entries completed as INTERRUPTED */
	COUNT_TAKEOVERS,
	COUNT_CANCELLED,	/* calls interrupted by a cancellation */
	COUNT_RESTARTED,	/* calls to go on after an interruption */
	COUNT_WAKEUPS,		/* of idle syscall threads */
	COUNT_WAITS,
	COUNT_KICKS,
	COUNTERS,
};

/* Events of a slot. */
enum slot_counter {
	SLOT_BATCHES,		/* rounds of looking for entries */
	SLOT_TAKEN,		/* entries that its threads took */
	SLOT_BLOCKED,
	SLOT_BOUNCED,
	SLOT_COUNTERS,
};

/* A right to take and execute entries. */
struct slot {
	struct registration *reg;
	struct thread *active;	/* its holder; NULL: free. Compare-and-swap */
	int core;		/* that its thread runs on; -1: any */
	bool spins;		/* its thread polls, and executes nothing */
	struct irq_work blocked;
	atomic64_t counts[SLOT_COUNTERS];
};

/* What the kernel keeps about an entry, out of user mode's reach. */
struct companion {
	struct thread *thread;	/* executes it without a slot; may be stale */
	struct task_struct *task;	/* carries it; never followed */
	u32 next;		/* its successor on the aside list */
	bool aside;		/* it is on the aside list; under the lock */
	u8 taken;		/* enum taken */
};

/*
 * Why companion.task carries an entry through user mode. If a hostile owner
 * posts the entry again meanwhile, other threads may have it at the same time.
 */
enum taken {
	TAKEN_NOT = 0,
	TAKEN_BOUNCED,		/* user mode makes its call */
	TAKEN_RESTARTS,		/* its restart block is in the task */
	TAKEN_LEAVES,		/* its call is made; delayed work isn't done */
	TAKEN_AGAIN,		/* a signal ended its call, to be made again */
	TAKEN_ENDED,		/* a signal ended its call with -EINTR */
};

struct entry_list {
	u32 head, tail;
};

/*
 * A thread in FLEXSC_IOC_SERVE or FLEXSC_IOC_WAIT. Records are reused, and are
 * freed only with the registration. So a stale pointer to one never leads to
 * freed memory, but perhaps to a record that another thread has by now.
 */
struct thread {
	struct registration *reg;
	/*
	 * A reference, because the task may die in a call, and interrupting it
	 * then must do no harm. The usual record keeps it between waits.
	 */
	struct task_struct *task;
	struct preempt_notifier notifier;
	struct slot *slot;	/* its task writes it, in sched_out() too */
	int core;		/* that it says it moved to; -1: any */
	int stays;		/* nr_cpus_allowed when it said it can't move */
	bool asks;		/* asks a file whether a call would block */
	atomic64_t now;		/* the entry that it executes: see cancel.c */
	bool is_caller;		/* in FLEXSC_IOC_WAIT */
	bool is_usual;		/* it is registration.usual */
	bool blocked;		/* lost its slot in an entry that goes on */
	bool woken;		/* taken off the idle list; under the lock */
	bool wants_more;	/* user mode has to make a thread */
	bool bounces;		/* user mode has to make the call it carries */
	int signalled;		/* result of FLEXSC_IOC_SERVE, if not 0 */
	u32 carries;		/* entry to take to user mode, or NO_ENTRY */
	struct list_head idle;
	struct pt_regs regs;	/* the call's arguments; else zero */
	u32 newest, oldest;	/* completed entries, not published yet */
	u32 completed;		/* how many they are */
	int in_use;		/* the usual record is; compare-and-swap */
	bool fget;		/* ioctl()'s fdget() took a reference */
	struct llist_node dead;
	struct thread *next_free;
};

struct registration {
	/* Constant once registered. */
	struct mm_struct *mm;	/* grabbed: compared, never used */
	struct file *file;	/* uncounted: threads in an ioctl hold it */
	struct user_struct *user;	/* charged for the memory */
	struct page **pages;
	unsigned long page_count;
	struct flexsc_shared *shared;
	u32 *ring;
	struct flexsc_entry *entries;
	struct companion *companions;
	u32 entry_count;	/* of the ring as well; a power of two */
	u32 mask;		/* entry_count - 1 */
	bool filtered;

	/* Submissions and completions. */
	atomic_t head ____cacheline_aligned;	/* of the ring */
	atomic_t idle_count;
	u32 slot_count;
	atomic64_t completed;	/* entries published so far */

	raw_spinlock_t lock ____cacheline_aligned;
	struct list_head idle;
	struct entry_list aside;
	u32 aside_count;	/* written under the lock, read without */
	atomic_t coming;	/* user mode was asked for a thread: 0 or 1 */
	bool no_more;		/* user mode can't make threads */
	bool ended;

	/* The owner. */
	struct thread *caller;	/* in WAIT; NULL: none. Compare-and-swap */
	struct thread *usual;	/* a record for WAIT alone; see in_use */
	wait_queue_head_t wait;
	bool handover;		/* FLEXSC_WAIT_HANDOVER, of this wait */
	bool caller_filtered;	/* an owner has been under a filter */
	const struct cred *cred;	/* the owner's; held and compared */
	int misfits;		/* new threads in a row that were unfit */
	bool woken;		/* FLEXSC_IOC_WAKE, until a wait ends by it */
	u64 seen;		/* completions that this wait needs more than */
	ktime_t deadline;	/* KTIME_MAX: none; 0: don't sleep */
	struct hrtimer timer;

	struct mutex setup;	/* guards registering and the policy */
	struct flexsc_policy policy;
	u32 spin_ns;		/* time to poll; adapted */
	u64 idle_since;		/* ns; polling found no work since; 0: found */
	struct hrtimer watch;	/* finds calls that keep others waiting */
	u32 watched;		/* the ring's head at the watch's last run */
	int watching;		/* the watch runs. Compare-and-swap */
	struct thread *records;	/* that are unused; under the lock */
	struct llist_head dead;	/* records of tasks that died in a call */
	struct irq_work death;
	struct work_struct burial;
	atomic64_t counts[COUNTERS];
	struct list_head all;	/* guarded by the lock of debug.c */
	u32 id;
	pid_t pid;

	struct slot slots[FLEXSC_CORES_MAX];
};

/* registration.c */
struct registration *registration_create(void);
void registration_destroy(struct registration *reg);
int registration_register(struct registration *reg, struct file *file,
			  struct flexsc_register __user *user);
void registration_own(struct registration *reg);
int registration_map(struct registration *reg, struct vm_area_struct *vma);

/* entry.c */
void entries_execute(struct registration *reg, struct thread *thread);
void entries_retrieve(struct registration *reg, struct thread *thread);
void entries_execute_inline(struct registration *reg, struct thread *thread);
bool entries_publish_now(struct thread *thread);
void entry_carry_on(struct registration *reg, struct thread *thread,
		    const struct flexsc_serve *args);
void entry_bury(struct thread *thread, u32 index);

static inline bool ring_empty(struct registration *reg)
{
	return (u32)atomic_read(&reg->head) == READ_ONCE(reg->shared->tail);
}

static __always_inline void count(struct registration *reg, enum counter what,
				  u64 n)
{
	atomic64_add(n, &reg->counts[what]);
}

/* Are there entries that a syscall thread may take? */
static inline bool entries_pending(struct registration *reg)
{
	return READ_ONCE(reg->aside_count) || !ring_empty(reg);
}

/* User mode can't make syscall threads, and none is idle. */
static inline bool entries_alone(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/* Did the owner put entries aside, and no syscall thread is left for them? */
static inline bool entries_stranded(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->aside_count)) && entries_alone(reg);
}

/* thread.c */
extern struct preempt_ops thread_preempt_ops;
struct thread *thread_enter(struct registration *reg);
struct thread *thread_other(struct registration *reg);
void thread_put(struct thread *thread);
void thread_become(struct thread *thread);
bool thread_unfiltered(void);
void threads_free(struct registration *reg);
bool thread_take_slot(struct thread *thread);
bool thread_ask(struct registration *reg);
void thread_no_more(struct registration *reg);
bool thread_slot_free(struct registration *reg);
bool thread_misplaced(const struct thread *thread);
bool thread_any_active(struct registration *reg);
bool thread_looks(struct registration *reg);
bool thread_wake(struct registration *reg);
void thread_blocked(struct irq_work *work);
void thread_left(struct registration *reg);
long thread_serve(struct registration *reg, struct flexsc_serve __user *user);
void thread_end_all(struct registration *reg);
int threads_init(void);
void threads_exit(void);

/*
 * Is the current task in FLEXSC_IOC_SERVE or FLEXSC_IOC_WAIT already? Its
 * notifier is registered for as long.
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
 * The current task has the record from now on. Process context.
 *
 * The notifier is registered as preempt_notifier_register() does it, but
 * inline, because a wait has to be cheap. preempt_notifier_inc() was called
 * when the module was loaded.
 */
static __always_inline void thread_begin(struct thread *thread)
{
	if (unlikely(thread->task != current))
		thread_become(thread);
	/*
	 * Has ioctl() a reference to the file? fdget() takes none while the
	 * table of files is this task's alone. If the table was shared at
	 * fdget() and isn't now, a task that dies here leaves a reference
	 * behind; the opposite, giving up one that it hasn't, can't happen.
	 */
	thread->fget = atomic_read(&current->files->count) > 1;
	hlist_add_head(&thread->notifier.link, &current->preempt_notifiers);
}

/*
 * The current task is in FLEXSC_IOC_WAIT from now on. Most of the time the
 * usual record is free and has this task already: one compare-and-swap then.
 */
static __always_inline struct thread *
thread_enter_caller(struct registration *reg)
{
	struct thread *thread = READ_ONCE(reg->usual);

	if (unlikely(!thread || cmpxchg(&thread->in_use, 0, 1)))
		thread = thread_other(reg);
	if (likely(thread))
		thread_begin(thread);
	return thread;
}

/* The ioctl needs its record no more. Process context, or death.c's worker. */
static inline void thread_release(struct thread *thread)
{
	if (likely(thread->is_usual))
		/* Pairs with the cmpxchg() of thread_enter_caller(). */
		smp_store_release(&thread->in_use, 0);
	else
		thread_put(thread);
}

static inline void thread_leave(struct thread *thread)
{
	/* As preempt_notifier_unregister() does, but inline. */
	__hlist_del(&thread->notifier.link);
	thread_release(thread);
}

static __always_inline bool slot_take(struct slot *slot, struct thread *thread)
{
	if (READ_ONCE(slot->active) || cmpxchg(&slot->active, NULL, thread))
		return false;
	/* sched_out() reads it if the task is preempted here. */
	WRITE_ONCE(thread->slot, slot);
	return true;
}

static __always_inline void thread_give_slot(struct thread *thread)
{
	struct slot *slot = thread->slot;

	if (!slot)
		return;
	WRITE_ONCE(thread->slot, NULL);
	/* Pairs with the cmpxchg() of slot_take(). */
	smp_store_release(&slot->active, NULL);
}

/* Has the current task work to do on its way to user mode? */
static inline bool thread_must_leave(void)
{
	return signal_pending(current) || task_work_pending(current);
}

/* May the current task have to leave the kernel, or give way to another? */
static __always_inline bool thread_stirs(void)
{
	return (READ_ONCE(current_thread_info()->flags) &
		(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NEED_RESCHED)) ||
	       task_work_pending(current);
}

/*
 * Must the current task not execute the owner's entries? The owner's rights, as
 * they were at its last wait or kick, are those that entries are executed with.
 * So a thread with other credentials is unfit. If the owner is under a seccomp
 * filter, a thread under none is unfit as well: it would pass by the filter.
 */
static __always_inline bool thread_unfit(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->cred) != current_cred()) ||
	       (unlikely(READ_ONCE(reg->caller_filtered)) &&
		thread_unfiltered());
}

/* If the backlog of submissions is long, wake a thread for another core. */
static __always_inline void thread_spill(struct registration *reg)
{
	u32 backlog;

	if (likely(READ_ONCE(reg->slot_count) == 1))
		return;
	backlog = READ_ONCE(reg->shared->tail) - (u32)atomic_read(&reg->head);
	if (backlog > READ_ONCE(reg->policy.backlog) && thread_slot_free(reg))
		thread_wake(reg);
}

/* A result of why_leave() and why_return(): stay in the kernel. */
#define GO_ON	LONG_MIN

/* caller.c */
long caller_wait(struct registration *reg, u64 seen);
long caller_kick(struct registration *reg);
long caller_wake(struct registration *reg);
void caller_recall(struct registration *reg);
void caller_deserted(struct registration *reg);
void caller_blocked(struct registration *reg);
bool caller_wanted(struct registration *reg);
bool caller_take_over(struct registration *reg);
void caller_init(struct registration *reg);

/* cancel.c */
#define NOW(state)	((u64)(state) << 32)	/* the low half is the index */
#define NOW_NOTHING	NOW(0)
#define NOW_EXECUTES	NOW(1)
#define NOW_CLAIMED	NOW(2)
#define NOW_KICKED	NOW(3)
bool cancel_kick(struct thread *thread, u64 now);
bool cancel_seen(struct thread *thread, u32 index);
long cancel_entry(struct registration *reg, u32 index);

/* The thread's call of entry "index" has returned. Was it interrupted? */
static __always_inline bool cancel_settle(struct thread *thread, u32 index)
{
	u64 now = NOW_EXECUTES | index;

	if (likely(atomic64_try_cmpxchg(&thread->now, (s64 *)&now, NOW_NOTHING)))
		return false;
	return cancel_seen(thread, index);
}

/* death.c */
void death_init(struct registration *reg);
void death_fini(struct registration *reg);
void death_note(struct thread *thread);

/* policy.c */
void policy_init(struct registration *reg);
long policy_set(struct registration *reg, struct flexsc_policy __user *user);
long policy_get(struct registration *reg, struct flexsc_policy __user *user);
void policy_begin(struct registration *reg, struct slot *slot);
bool policy_spin(struct registration *reg, struct thread *thread);

/* dispatch.c */
typedef asmlinkage long (*call_fn)(const struct pt_regs *regs);
#define DISPATCH_SIZE	512	/* a power of two, to mask numbers */
extern call_fn dispatch_table[DISPATCH_SIZE];
extern call_fn dispatch_restart;	/* restart_syscall() */
int dispatch_init(void);
long dispatch_refusal(unsigned int nr);

asmlinkage long dispatch_unknown(const struct pt_regs *regs);

static __always_inline call_fn dispatch_of(unsigned int nr)
{
	if (unlikely(nr >= DISPATCH_SIZE))
		return dispatch_unknown;
	/*
	 * Masked as well as checked, so that speculation doesn't go beyond the
	 * table either; hidden, so that the compiler keeps the mask.
	 */
	OPTIMIZER_HIDE_VAR(nr);
	return dispatch_table[nr & (DISPATCH_SIZE - 1)];
}

/* debug.c */
void debug_add(struct registration *reg);
void debug_remove(struct registration *reg);
void debug_init(void);
void debug_exit(void);

#endif /* FLEXSC_KMOD_REGISTRATION_H */
