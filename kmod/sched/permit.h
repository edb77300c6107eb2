/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots: the rights to take and execute entries. A thread has at most one, and
 * a slot at most one thread; registration.h draws how a thread gets and loses
 * it.
 */
#ifndef FLEXSC_KMOD_SCHED_PERMIT_H
#define FLEXSC_KMOD_SCHED_PERMIT_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "base/checks.h"
#include "base/registration.h"
#include "sched/record.h"

bool slot_take_any(struct thread *thread);
bool slot_is_elsewhere(const struct thread *thread);
struct slot *slot_first_free(struct registration *reg);
bool slot_any_free(struct registration *reg);
bool slot_any_active(struct registration *reg);
bool thread_looks(struct registration *reg);

/* The slot becomes the current task's, which has none. False: it isn't free. */
static __always_inline bool slot_take(struct slot *slot, struct thread *thread)
{
	RULE(thread->task == current && !thread->slot);
	if (READ_ONCE(slot->active) || cmpxchg(&slot->active, NULL, thread))
		return false;
	/* thread_sched_out() reads it if the task is preempted here. */
	WRITE_ONCE(thread->slot, slot);
	return true;
}

static __always_inline void slot_give(struct thread *thread)
{
	struct slot *slot = thread->slot;

	if (!slot)
		return;
	RULE(READ_ONCE(slot->active) == thread);
	WRITE_ONCE(thread->slot, NULL);
	/* Pairs with the cmpxchg() of slot_take(). */
	smp_store_release(&slot->active, NULL);
}

#endif /* FLEXSC_KMOD_SCHED_PERMIT_H */
