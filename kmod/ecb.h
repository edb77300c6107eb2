/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event control block (ECB) and all that belongs to it; its contract is
 * <linux/flexsc_send.h>. Which file owns what:
 *
 *	ecb.c		creation, mapping, waiting, the task work, the end
 *	upcall.c	notification: the owner's handler is called
 *
 * The OWNER is the thread that made the ECB.
 *
 *
 * What lives how long
 *
 * The FILE is the descriptor and the mappings. The ECB has references, counted
 * in "refs": one of the file, and one of its task work while that is queued.
 * The one given back last frees it. It also has a reference to the module, to
 * the owner's task_struct, and to the process's mm_struct, which is compared and
 * never used. So nothing that runs late finds anything freed.
 *
 *	open	-> closed	the last descriptor and mapping are gone: no
 *				task is in an ioctl or waits
 *	closed	-> freed	the last reference was given back
 *
 * TASK WORK: a function that the owner calls before it goes on in user mode.
 * There is one, and "queued" tells where it is.
 *
 *	0 -> 1	ecb_kick(), on any core in any context. It takes a reference
 *	1 -> 0	ecb_work(), in the owner's context. What happened before a
 *		kick that finds 1 is seen by it: all of these are full barriers
 *	1	for ever, if the owner ended before it could be queued: nothing
 *		is notified any more
 *
 * An owner that ends calls the function, too, and so does one that executed
 * another program: it does nothing then but to give the reference back.
 */
#ifndef FLEXSC_KMOD_ECB_H
#define FLEXSC_KMOD_ECB_H

#include <linux/atomic.h>
#include <linux/flexsc_send.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "area.h"

struct ecb {
	/* Constant. */
	struct flexsc_event_control *control;	/* shared: believe nothing */
	struct flexsc_event_slot *slots;	/* shared, as well */
	struct task_struct *owner;
	u32 events;
	u32 flags;			/* FLEXSC_ECB_* */
	struct mm_struct *mm;
	struct area area;

	atomic_t queued ____cacheline_aligned;	/* the task work */
	struct callback_head work;
	refcount_t refs;
};

int ecb_create(struct flexsc_ecb_create __user *user);
void ecb_get(struct ecb *ecb);
void ecb_put(struct ecb *ecb);
void ecb_kick(struct ecb *ecb);
void ecb_announce(struct ecb *ecb, u32 groups);

#endif /* FLEXSC_KMOD_ECB_H */
