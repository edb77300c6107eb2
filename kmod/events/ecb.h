/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event control block (ECB) and all that belongs to it; its contract is
 * <linux/flexsc_ecb.h>. Which file owns what:
 *
 *	ecb.c		references, and how the owner is woken or gets its task work
 *	ecb_work.c	the task work, the attendance, the end
 *	ecb_file.c	creation, ioctls, mapping, waiting
 *	event.h		writing an event into the owner's memory
 *	watch.c		watches: memory, references, held events
 *	watch_ioctl.c	FLEXSC_ECB_WATCH, FORGET and FLUSH
 *	watch_life.c	how a watch begins and ends
 *	poller.c	wait queues of watched files
 *	close_hook.c	how a close() of a watched descriptor is noticed
 *	accept.c	connections that are accepted when they are delivered
 *	listener.c	lists of accepting watches
 *	upcall.c	notification: the owner's handler is called
 *
 * The OWNER is the thread that made the ECB.
 *
 *
 * What lives how long
 *
 * The FILE is the descriptor and the mappings. "refs" counts the references to the
 * ECB. The file has one, and so has each watch that isn't free (watch.h). The task work
 * and the attendance have one each while they are queued. Dropping the last reference
 * frees the ECB. The ECB itself has a reference to the module, to the owner's
 * task_struct, and to the process's pid and mm_struct. The pid and the mm_struct are
 * only compared.
 *
 *	open	-> closed	the last descriptor and mapping are gone: no
 *				task is in an ioctl or waits. All watches end.
 *				Or the process is gone: it ended or executed
 *				another program, and a child still has the
 *				descriptor.
 *				Or a source found that the owner ended or
 *				executed another program
 *	closed	-> freed	the last reference was dropped
 *
 * The close hook drops references where it may not sleep, so it leaves dropping the last
 * one to the attendance.
 *
 * TASK WORK: a function that the owner calls before it goes on in user mode. An ECB has
 * one, and "queued" is its state.
 *
 *	0 -> 1	ecb_kick(), on any core in any context. It takes a reference
 *	1 -> 0	ecb_work(), in the owner's context, after the owner has accepted
 *		pending connections (accept.c) and before ecb_work() looks at
 *		pending events. A kick that finds 1 does nothing:
 *		ecb_work() will see what happened before that kick, because both
 *		are full barriers
 *	1	for ever, if the owner ended or executed another program before
 *		the work could be queued: nothing is notified any more
 *
 * An owner that ends calls the function, too, and so does one that executed
 * another program: the ECB is closed then.
 *
 * ATTENDANCE: a work item, for what neither the owner nor a source can do. It
 * closes the ECB if its owner has left. Otherwise it wakes the owner, or queues the task
 * work once more, because each run of the task work accepts only one round of
 * connections (accept.c). Between
 * two runs the owner takes signals, and usually runs in user mode. But if a worker on
 * another core queues the task work before the owner has left the kernel, the owner runs
 * it again before it leaves. At worst this repeats until no slot is free, because only
 * user mode frees slots.
 */
#ifndef FLEXSC_KMOD_ECB_H
#define FLEXSC_KMOD_ECB_H

#include <linux/atomic.h>
#include <linux/flexsc_ecb.h>
#include <linux/llist.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "base/area.h"

struct watch;

struct ecb {
	/* Constant. */
	struct flexsc_event_control *control;	/* shared memory: never trust it */
	struct flexsc_event_slot *slots;	/* shared memory too */
	struct task_struct *owner;
	u32 events;
	u32 flags;			/* FLEXSC_ECB_* */
	struct mm_struct *mm;
	u32 pkru;			/* the owner's protection-key rights: upcall_x86.c */
	struct pid *process;
	struct area area;

	struct watch *watches;		/* one for each slot */

	/*
	 * Guards which watches are live and which are free. No other lock is
	 * taken inside it, and no task is woken.
	 */
	spinlock_t lock ____cacheline_aligned;
	bool closed;
	u32 free_first, free_last;	/* free watches: index + 1; 0: none */
	u32 free_count;
	u32 frees;			/* total number of watches that became free */
	refcount_t refs;

	atomic_t queued ____cacheline_aligned;	/* state of the task work */
	struct callback_head work;
	struct work_struct attendance;
	bool waits;			/* written by the owner, in ecb_wait() */
	bool retry;			/* return "starved" to "accepts" */
	struct llist_head held;		/* watches that hold events */
	/* Accepting watches whose connections are to be accepted. */
	struct llist_head accepts;
	/* Accepting watches that found no free slot or descriptor. */
	struct llist_head starved;
};

int ecb_init(void);
void ecb_exit(void);
void ecb_get(struct ecb *ecb);
void ecb_put_later(struct ecb *ecb);
void ecb_attend_later(struct ecb *ecb);
void ecb_kick(struct ecb *ecb);
void ecb_call(struct ecb *ecb);
void ecb_wake(struct ecb *ecb);

/* ecb_work.c */
void ecb_work_init(struct ecb *ecb);
void ecb_put(struct ecb *ecb);

/* ecb_file.c */
int ecb_file_init(void);
void ecb_file_exit(void);
int ecb_create(struct flexsc_ecb_create __user *user);

/*
 * Is the owner still in its own process? A program that it has executed may
 * have other credentials, and must not be disturbed. The caller keeps
 * interrupts disabled from before the check until it has acted. So if the owner
 * executes a program after the check, it is still in exec when the caller acts.
 * With interrupts enabled, an interrupt handler could delay the caller until
 * the new program runs.
 */
static inline bool ecb_owner_stays(const struct ecb *ecb)
{
	return READ_ONCE(ecb->owner->mm) == ecb->mm;
}

/* May a connection be pending that the kernel has to accept? */
static inline bool ecb_has_accepts(const struct ecb *ecb)
{
	return !llist_empty(&ecb->accepts) || READ_ONCE(ecb->retry);
}

/*
 * S3: called when an event of these groups is in the owner's memory: wake the
 * owner, or notify it if it has requested that. Any context; the caller has
 * executed a full barrier.
 */
static __always_inline void ecb_announce(struct ecb *ecb, u32 groups)
{
	const struct flexsc_event_control *control = ecb->control;

	if (unlikely(READ_ONCE(control->waiting) & groups))
		ecb_wake(ecb);
	else if (READ_ONCE(control->notify) & groups &&
		 !READ_ONCE(control->critical))
		ecb_kick(ecb);
}

#endif /* FLEXSC_KMOD_ECB_H */
