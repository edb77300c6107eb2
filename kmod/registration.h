/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A registration and all that belongs to it. Which file owns what:
 *
 *	main.c		the device: opening, ioctls, loading and unloading
 *	registration.c	memory, mapping, the end of a registration
 *	entry.c		taking, executing and finishing entries
 *	thread.c	syscall threads: records, idling, what blocking does
 *	caller.c	the thread that waits, and how it is called back
 *	cancel.c	interrupting the thread that executes an entry
 *	policy.c	which cores, and how long to look for work
 *	dispatch.c	the kernel's system-call table
 *	debug.c		debugfs
 *
 *
 * Who may run
 *
 * Whoever executes entries holds a SLOT: there is one for each core of the
 * policy, or a single one (OSDI 2010, section 3.5: one active syscall thread
 * per core and process). A thread loses its slot when it leaves the run queue
 * while it executes an entry, or asks whether it would block, and goes on
 * without one when it is back, until that entry is finished.
 *
 *	idle	-> active	woken, and took a slot; or the caller did
 *	active	-> blocked	sched_out: its slot is free; an irq_work wakes
 *				the next, as sched_out holds the run queue
 *	blocked	-> active	its entry ended and a slot is free
 *	blocked	-> idle		its entry ended and none is
 *	active	-> idle		nothing is submitted
 *
 *
 * Whom to trust
 *
 * Nobody: the shared area may be written at any time by any thread of the
 * process. Words of it are read once and checked; nothing the kernel relies on
 * is stored there.
 *
 *
 * Locks
 *
 * "lock" guards the idle list, the aside list and the unused records. It nests
 * in nothing, and is taken with interrupts off, for irq_works take it too.
 */
#ifndef FLEXSC_KMOD_REGISTRATION_H
#define FLEXSC_KMOD_REGISTRATION_H

#include <linux/atomic.h>
#include <linux/flexsc.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/task_work.h>
#include <linux/thread_info.h>
#include <linux/wait.h>
#include <asm/unistd.h>

struct registration;
struct thread;

/* Counted where it happens, shown by debugfs. */
enum counter {
	COUNT_EXECUTED,		/* entries, by syscall threads */
	COUNT_INLINE,		/* entries, by the caller */
	COUNT_BLOCKED,		/* slots given up by a thread that blocks */
	COUNT_BOUNCED,		/* entries */
	COUNT_ASIDE,		/* entries the caller put aside */
	COUNT_INTERRUPTED,	/* entries, because their thread was needed */
	COUNT_TAKEOVERS,
	COUNT_CANCELLED,	/* interrupted, because they were cancelled */
	COUNT_RESTARTED,	/* entries that went on after an interruption */
	COUNT_WAKEUPS,		/* of syscall threads */
	COUNT_WAITS,
	COUNT_KICKS,
	COUNTERS,
};

/* The same for each slot. */
enum slot_counter {
	SLOT_BATCHES,		/* how often somebody looked for entries */
	SLOT_TAKEN,		/* entries, by syscall threads and the caller */
	SLOT_BLOCKED,
	SLOT_BOUNCED,
	SLOT_COUNTERS,
};

/* A right to execute entries. */
struct slot {
	struct registration *reg;
	struct thread *active;	/* who has it; NULL: free. Compare and swap */
	int core;		/* to run on; -1: any */
	bool spins;		/* and executes nothing */
	struct irq_work blocked;
	atomic64_t counts[SLOT_COUNTERS];
};

/* What the kernel knows of an entry. */
struct companion {
	struct thread *thread;	/* that executes it without a slot, or did */
	struct task_struct *task;	/* that took it along; never followed */
	u32 next;		/* on the aside list */
	bool aside;		/* it is on it; under the lock */
	u8 taken;		/* enum taken */
};

/*
 * Why "task" took an entry along. One that is posted again meanwhile may be
 * anywhere else as well.
 */
enum taken {
	TAKEN_NOT = 0,
	TAKEN_BOUNCED,		/* to make a plain system call of it */
	TAKEN_RESTARTS,		/* it has a restart block in the task */
	TAKEN_LEAVES,		/* it is made; the task has to do the rest */
};

struct entry_list {
	u32 head, tail;
};

/*
 * A thread in one of our ioctls. Records are used again, and freed with the
 * registration, so whoever has an old pointer to one reads no nonsense, only
 * what another thread does.
 */
struct thread {
	struct registration *reg;
	struct task_struct *task;	/* valid while the ioctl runs */
	struct preempt_notifier notifier;
	struct slot *slot;	/* written by its own task and sched_out */
	int core;		/* that it runs on, and on no other; -1: any */
	int stays;		/* ... or would, but it may only be on so many */
	bool asks;		/* a file whether it's ready */
	atomic64_t now;		/* what it executes: see cancel.c */
	bool is_caller;
	bool is_usual;		/* registration.usual */
	bool blocked;		/* lost its slot in an entry */
	bool woken;		/* taken off the idle list */
	bool wants_more;	/* left an entry that may sleep: nobody's idle */
	bool bounces;		/* carries an entry to be made by user mode */
	u32 carries;		/* to user mode and back, or NO_ENTRY */
	struct list_head idle;
	struct pt_regs regs;	/* zero, but for the arguments */
	u32 newest, oldest;	/* of what is completed, not published */
	u32 completed;		/* how many that are */
	atomic_t refs;		/* its ioctl, and a kick that is pending */
	struct callback_head kick;
	struct thread *next_free;
};

struct registration {
	/* Constant once registered. */
	struct mm_struct *mm;	/* grabbed: compared, never used */
	struct user_struct *user;	/* whose memory it is */
	struct page **pages;
	unsigned long page_count;
	struct flexsc_shared *shared;
	u32 *ring;
	struct flexsc_entry *entries;
	struct companion *companions;
	u32 entry_count;	/* a power of two, the ring's size as well */
	u32 mask;		/* entry_count - 1 */
	bool filtered;

	/* Submissions and completions. */
	atomic_t head ____cacheline_aligned;	/* of the ring */
	atomic_t idle_count;
	u32 slot_count;
	atomic64_t completed;

	raw_spinlock_t lock ____cacheline_aligned;
	struct list_head idle;
	struct entry_list aside;
	u32 aside_count;
	atomic_t coming;	/* threads that were asked for */
	bool no_more;		/* they can't be made */
	bool ended;

	/* The caller. */
	struct thread *caller;	/* compare and swap */
	struct thread *usual;	/* a record for callers, unless in use */
	wait_queue_head_t wait;
	bool handover;
	bool caller_filtered;	/* it has come under a filter */
	bool woken;		/* FLEXSC_IOC_WAKE */
	u64 seen;
	ktime_t deadline;
	struct hrtimer timer;

	struct mutex setup;	/* registering, and the policy */
	struct flexsc_policy policy;
	u32 spin_ns;		/* what is adapted */
	u64 idle_since;		/* in ns: nobody found work by spinning */
	struct hrtimer watch;	/* for calls that keep others waiting */
	u32 watched;		/* the ring's head when it ran last */
	int watching;
	struct thread *records;	/* that nobody uses */
	refcount_t refs;	/* the file, and kicks that are pending */
	atomic64_t counts[COUNTERS];
	struct list_head all;	/* under the lock of debug.c */
	u32 id;
	pid_t pid;

	struct slot slots[FLEXSC_CORES_MAX];
};

/* registration.c */
struct registration *registration_create(void);
void registration_put(struct registration *reg);
int registration_register(struct registration *reg,
			  struct flexsc_register __user *user);
int registration_map(struct registration *reg, struct vm_area_struct *vma);

/* entry.c */
void entries_execute(struct registration *reg, struct thread *thread);
void entries_retrieve(struct registration *reg, struct thread *thread);
void entries_execute_inline(struct registration *reg, struct thread *thread);
bool entries_publish_now(struct thread *thread);
void entry_carry_on(struct registration *reg, struct thread *thread, u32 index,
		    long ret);

static inline bool ring_empty(struct registration *reg)
{
	return (u32)atomic_read(&reg->head) == READ_ONCE(reg->shared->tail);
}

static __always_inline void count(struct registration *reg, enum counter what,
				  u64 n)
{
	atomic64_add(n, &reg->counts[what]);
}

/* Is there something for a syscall thread? */
static inline bool entries_pending(struct registration *reg)
{
	return READ_ONCE(reg->aside_count) || !ring_empty(reg);
}

/* No more threads can be made, and none is left to take over. */
static inline bool entries_alone(struct registration *reg)
{
	return READ_ONCE(reg->no_more) && !atomic_read(&reg->idle_count);
}

/* Did the caller put entries aside for others whom there are none of? */
static inline bool entries_stranded(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->aside_count)) && entries_alone(reg);
}

/* thread.c */
extern struct preempt_ops thread_preempt_ops;
struct thread *thread_enter(struct registration *reg);
struct thread *thread_other(struct registration *reg);
void thread_put(struct thread *thread);
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
long thread_serve(struct registration *reg, struct flexsc_serve __user *user);
void thread_end_all(struct registration *reg);
int threads_init(void);
void threads_exit(void);

/* Is the task in one of our calls that execute? */
static inline bool thread_inside(void)
{
	struct preempt_notifier *notifier;

	hlist_for_each_entry(notifier, &current->preempt_notifiers, link)
		if (notifier->ops == &thread_preempt_ops)
			return true;
	return false;
}

/*
 * The current task, in one of our calls from now on. This is what
 * preempt_notifier_register() does, without the call, for waiting has to be
 * cheap; preempt_notifier_inc() was called when the module was loaded.
 */
static __always_inline void thread_begin(struct thread *thread)
{
	thread->task = current;
	hlist_add_head(&thread->notifier.link, &current->preempt_notifiers);
}

/* The same as the caller. There is a record for that, most of the time. */
static __always_inline struct thread *
thread_enter_caller(struct registration *reg)
{
	struct thread *thread = READ_ONCE(reg->usual);

	if (unlikely(!thread || atomic_cmpxchg(&thread->refs, 0, 1)))
		thread = thread_other(reg);
	if (likely(thread))
		thread_begin(thread);
	return thread;
}

static inline void thread_leave(struct thread *thread)
{
	/* As preempt_notifier_unregister() does. */
	__hlist_del(&thread->notifier.link);
	if (likely(thread->is_usual))
		atomic_dec_return_release(&thread->refs);
	else
		thread_put(thread);
}

static __always_inline bool slot_take(struct slot *slot, struct thread *thread)
{
	if (READ_ONCE(slot->active) || cmpxchg(&slot->active, NULL, thread))
		return false;
	/* sched_out() may look at it here. */
	WRITE_ONCE(thread->slot, slot);
	return true;
}

static __always_inline void thread_give_slot(struct thread *thread)
{
	struct slot *slot = thread->slot;

	if (!slot)
		return;
	WRITE_ONCE(thread->slot, NULL);
	/* Pairs with slot_take(), which is a full barrier. */
	smp_store_release(&slot->active, NULL);
}

/* Has the thread to go to user mode? */
static inline bool thread_must_leave(void)
{
	return signal_pending(current) || task_work_pending(current);
}

/* Is there anything of that kind, or is somebody else to run? */
static __always_inline bool thread_stirs(void)
{
	return (READ_ONCE(current_thread_info()->flags) &
		(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NEED_RESCHED)) ||
	       task_work_pending(current);
}

/* A thread under no filter is no longer one for a caller that is under one. */
static __always_inline bool thread_unfit(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->caller_filtered)) && thread_unfiltered();
}

/* Is there so much to do that another core should help? */
static __always_inline void thread_spill(struct registration *reg)
{
	u32 backlog;

	if (likely(READ_ONCE(reg->slot_count) == 1))
		return;
	backlog = READ_ONCE(reg->shared->tail) - (u32)atomic_read(&reg->head);
	if (backlog > READ_ONCE(reg->policy.backlog) && thread_slot_free(reg))
		thread_wake(reg);
}

/* caller.c */
long caller_wait(struct registration *reg, u64 seen);
long caller_kick(struct registration *reg);
long caller_wake(struct registration *reg);
void caller_recall(struct registration *reg);
void caller_blocked(struct registration *reg);
bool caller_wanted(struct registration *reg);
bool caller_take_over(struct registration *reg);
void caller_init(struct registration *reg);

/* cancel.c */
#define NOW(state)	((u64)(state) << 32)	/* the rest is the index */
#define NOW_NOTHING	NOW(0)
#define NOW_EXECUTES	NOW(1)
#define NOW_CLAIMED	NOW(2)
#define NOW_KICKED	NOW(3)
bool cancel_kick(struct thread *thread, u64 now);
bool cancel_seen(struct thread *thread, u32 index);
long cancel_entry(struct registration *reg, u32 index);

/* The thread has ended its entry. Was it interrupted? */
static __always_inline bool cancel_settle(struct thread *thread, u32 index)
{
	u64 now = NOW_EXECUTES | index;

	if (likely(atomic64_try_cmpxchg(&thread->now, (s64 *)&now, NOW_NOTHING)))
		return false;
	return cancel_seen(thread, index);
}

/* policy.c */
void policy_init(struct registration *reg);
long policy_set(struct registration *reg, struct flexsc_policy __user *user);
long policy_get(struct registration *reg, struct flexsc_policy __user *user);
void policy_begin(struct registration *reg, struct slot *slot);
bool policy_spin(struct registration *reg, struct thread *thread);

/* dispatch.c */
typedef asmlinkage long (*call_fn)(const struct pt_regs *regs);
#define DISPATCH_SIZE	512	/* a power of two, for a mask */
extern call_fn dispatch_table[DISPATCH_SIZE];
extern call_fn dispatch_restart;	/* goes on with this task's last call */
int dispatch_init(void);
bool dispatch_accepts(unsigned int nr);

asmlinkage long dispatch_unknown(const struct pt_regs *regs);

static __always_inline call_fn dispatch_of(unsigned int nr)
{
	if (unlikely(nr >= DISPATCH_SIZE))
		return dispatch_unknown;
	/* Nor does speculation go beyond; not optimised away. */
	OPTIMIZER_HIDE_VAR(nr);
	return dispatch_table[nr & (DISPATCH_SIZE - 1)];
}

/* debug.c */
void debug_add(struct registration *reg);
void debug_remove(struct registration *reg);
void debug_init(void);
void debug_exit(void);

#endif /* FLEXSC_KMOD_REGISTRATION_H */
