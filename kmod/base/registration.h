/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A registration: the structures of all that belongs to it. Which file owns
 * what:
 *
 *	main.c			the device: opening, ioctls, loading and unloading
 *	registration.c		registering, the end of a registration
 *	debug.c			debugfs
 *	base/area.c		memory that user mode maps
 *	base/dispatch.c		the kernel's system-call table
 *	base/entry.h		the arrows of an entry's life
 *	sched/record.c		records of threads
 *	sched/permit.c		permits: which are free, and for which thread
 *	sched/slot.c		slots: which registration of a process uses a core
 *	sched/process.c		processes, and slots that become free
 *	sched/idle.c		the idle list
 *	sched/recall.c		how the waiter is called back to user mode
 *	sched/cancel.c		interrupting the thread that executes an entry
 *	exec/execute.c		taking and executing entries
 *	exec/deferred.c		entries that are left to syscall threads
 *	exec/publish.c		completed entries
 *	exec/carry.c		entries carried through user mode, or interrupted
 *	serve/serve.c		syscall threads, in FLEXSC_IOC_SERVE
 *	serve/wait.c		the waiter, in FLEXSC_IOC_WAIT
 *	serve/block.c		threads that block in an entry, or leave
 *	serve/task_death.c	threads that die in a call
 *	serve/policy.c		cores, and for how long threads poll
 *	events/			event control blocks: see events/ecb.h
 *
 * The OWNER is the thread that waited or kicked last: entries are executed with
 * its credentials. While it waits it is the WAITER, and registration.waiter is
 * its record.
 *
 *
 * Which threads may execute entries
 *
 * A thread needs a PERMIT to take entries: a registration has one for each core
 * of its policy, or a single one. A process has one active syscall thread per
 * core (OSDI 2010, section 3.5), although it may have several registrations. So
 * a syscall thread also needs the SLOT of its permit's core, which all
 * registrations of the process share. The waiter needs no slot: it is a thread
 * of the application, and runs anyway. A policy without cores has no slot
 * either.
 *
 * A thread loses its permit and its slot when it leaves the run queue while it
 * executes an entry, or while it polls a file to see whether an entry's call
 * would block. It finishes that entry without them.
 *
 *	idle	-> active	a syscall thread was woken and took a permit; or
 *				the waiter took one
 *	active	-> blocked	block_sched_out() released its permit. It holds the
 *				run queue's lock, so it can't wake the next
 *				thread: an irq_work does
 *	blocked	-> active	its entry ended, and a permit was free
 *	blocked	-> idle		its entry ended, and no permit was free
 *	active	-> idle		nothing is submitted
 *	any	-> dead		the task died in a call and never comes back:
 *				see serve/task_death.c
 *
 *
 * What is trusted
 *
 * Nothing in the shared area: any thread of the process may write to it at any
 * time. So each word of it is read once and then checked, and nothing that the
 * module relies on is stored there.
 *
 *
 * Locks
 *
 * registration.lock guards the idle list, the deferred list and the unused
 * records. process.lock guards the list of a process's registrations, and may be
 * held around registration.lock. No other lock of the module is taken inside
 * them or around them. Interrupts are off while they are held, because irq_works
 * and timers take them as well. Threads are woken inside them, which takes the
 * run queue's lock, so block_sched_out() must never take them.
 */
#ifndef FLEXSC_KMOD_BASE_REGISTRATION_H
#define FLEXSC_KMOD_BASE_REGISTRATION_H

#include <linux/atomic.h>
#include <linux/flexsc.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "base/area.h"

struct companion;
struct cred;
struct file;
struct mm_struct;
struct thread;

/* Events of a registration, counted where they happen. debugfs shows them. */
enum counter {
	COUNT_EXECUTED,		/* entries taken by syscall threads */
	COUNT_INLINE,		/* entries taken by the waiter */
	COUNT_BLOCKED,		/* permits given up because a thread blocked */
	COUNT_BOUNCED,		/* entries whose call user mode had to make */
	COUNT_DEFERRED,		/* entries deferred by the waiter */
	COUNT_INTERRUPTED,	/* entries completed as INTERRUPTED */
	COUNT_TAKEOVERS,
	COUNT_CANCELLED,	/* calls interrupted because their entry was cancelled */
	COUNT_RESTARTED,	/* interrupted calls that will continue */
	COUNT_WAKEUPS,		/* wake-ups of idle syscall threads */
	COUNT_WAITS,
	COUNT_KICKS,
	COUNTERS,
};

/* Events, counted per permit. */
enum permit_counter {
	PERMIT_BATCHES,		/* rounds of looking for entries */
	PERMIT_TAKEN,		/* entries taken by its threads */
	PERMIT_BLOCKED,
	PERMIT_BOUNCED,
	PERMIT_COUNTERS,
};

/* The right to have the process's active syscall thread of one core: slot.c. */
struct slot {
	/*
	 * The registration whose thread has the slot; NULL: it is free. Changed
	 * by compare-and-swap. Only compared: it may be gone by now.
	 */
	struct registration *holder;
	struct registration *last;	/* the last holder; only compared */
	bool wanted;		/* another registration has entries for this core */
	struct irq_work freed;
	struct process *process;
};

/* The registrations of one process, that is, of one address space. */
struct process {
	/* Only compared; each registration holds mm_count. */
	struct mm_struct *mm;
	struct hlist_node node;	/* in the table of processes */
	u32 count;		/* number of registrations */
	raw_spinlock_t lock;
	struct list_head registrations;	/* first the one whose turn is next */
	struct slot slots[];	/* one for each core of the machine */
};

struct permit {
	struct registration *reg;
	/*
	 * The thread that has the permit; NULL: it is free. Changed by
	 * compare-and-swap.
	 */
	struct thread *active;
	int core;		/* the core that its thread must run on; -1: any */
	bool spins;		/* its thread polls for work, and executes no entry */
	struct irq_work blocked;
	atomic64_t served;	/* entries taken by syscall threads */
	atomic64_t counts[PERMIT_COUNTERS];
};

struct registration {
	/* Constant once registered. */
	struct mm_struct *mm;	/* holds mm_count; only compared, never dereferenced */
	/* the device's file; not counted: each thread in an ioctl has a reference */
	struct file *file;
	struct process *process;
	struct area area;
	struct flexsc_shared *shared;
	u32 *ring;
	struct flexsc_entry *entries;
	struct companion *companions;
	u32 entry_count;	/* also the ring's size; a power of two */
	u32 mask;		/* entry_count - 1 */
	bool filtered;

	/* Submissions and completions. */
	atomic_t head ____cacheline_aligned;	/* the ring's head */
	atomic_t idle_count;
	u32 permit_count;
	atomic64_t completed;	/* entries published so far */

	raw_spinlock_t lock ____cacheline_aligned;
	struct list_head idle;
	u32 deferred_head, deferred_tail;	/* ends of the deferred list */
	u32 deferred_count;	/* written under the lock, also read without it */
	/* 1: user mode has been requested to create a thread. */
	atomic_t thread_requested;
	bool no_more;		/* user mode can't create threads any more */
	bool ended;

	/* State of the current wait, and the owner's credentials. */
	struct thread *waiter;	/* the thread in WAIT, or NULL. Set by compare-and-swap */
	struct thread *wait_record;	/* a record that only WAIT uses; see thread.in_use */
	wait_queue_head_t wait;
	bool handover;		/* the current wait has FLEXSC_WAIT_HANDOVER */
	bool owner_filtered;	/* some owner was under a seccomp filter */
	/* the owner's credentials; counted reference; only compared */
	const struct cred *cred;
	int unfit_threads;		/* consecutive new threads that were unfit */
	bool woken;		/* FLEXSC_IOC_WAKE was called; the next wait clears this */
	u64 seen;		/* the wait ends when "completed" exceeds this */
	ktime_t deadline;	/* end of the wait; KTIME_MAX: none; 0: don't sleep */
	struct hrtimer timer;

	struct mutex setup;	/* serialises registering and changes of the policy */
	struct flexsc_policy policy;
	u32 spin_ns;		/* how long to poll, in ns; adapted to the load */
	/* When polling ended without finding work, in ns; 0: work was found. */
	u64 idle_since;
	struct hrtimer progress;	/* detects calls that delay other entries */
	u32 progress_head;	/* the ring's head at the last check */
	/* Nonzero while the timer "progress" runs. Changed by compare-and-swap. */
	int progress_checks;
	struct thread *records;	/* unused records; guarded by the lock */
	struct llist_head dead;	/* records of tasks that died in a call */
	struct irq_work death;
	struct work_struct finish_dead;
	atomic64_t counts[COUNTERS];
	struct list_head siblings;	/* guarded by process.lock */
	struct list_head all;	/* guarded by the lock of debug.c */
	u32 id;
	pid_t pid;

	struct permit permits[FLEXSC_CORES_MAX];
};

static __always_inline void count(struct registration *reg, enum counter what,
				  u64 n)
{
	atomic64_add(n, &reg->counts[what]);
}

#endif /* FLEXSC_KMOD_BASE_REGISTRATION_H */
