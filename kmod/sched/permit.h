/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Permits: rights to take and execute entries. A thread has at most one permit,
 * and a permit belongs to at most one thread. registration.h has the states.
 */
#ifndef FLEXSC_KMOD_SCHED_PERMIT_H
#define FLEXSC_KMOD_SCHED_PERMIT_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "base/checks.h"
#include "base/registration.h"
#include "sched/record.h"
#include "sched/slot.h"

bool permit_take_any(struct thread *thread);
bool permit_is_elsewhere(const struct thread *thread);
struct permit *permit_first_free(struct registration *reg);
struct permit *permit_of_slot(struct registration *reg, const struct slot *slot);
bool permit_any_free(struct registration *reg);
bool permit_any_unused(struct registration *reg);
bool permit_any_active(struct registration *reg);
bool permit_any_looking(struct registration *reg);

/*
 * Take the permit for the current task, which has none. False: another thread
 * has it.
 */
static __always_inline bool permit_take(struct permit *permit, struct thread *thread)
{
	RULE(thread->task == current && !thread->permit);
	if (READ_ONCE(permit->active) || cmpxchg(&permit->active, NULL, thread))
		return false;
	/*
	 * WRITE_ONCE(): block_sched_out() reads this field if the task is
	 * preempted here.
	 */
	WRITE_ONCE(thread->permit, permit);
	return true;
}

/* Release the waiter's permit. */
static __always_inline void permit_give(struct thread *thread)
{
	struct permit *permit = thread->permit;

	if (!permit)
		return;
	RULE(READ_ONCE(permit->active) == thread);
	WRITE_ONCE(thread->permit, NULL);
	/* Pairs with the cmpxchg() of permit_take(). */
	smp_store_release(&permit->active, NULL);
}

/* Release a thread's permit and slot, if it has them. */
static inline void permit_release(struct thread *thread)
{
	permit_give(thread);
	slot_give(thread);
}

#endif /* FLEXSC_KMOD_SCHED_PERMIT_H */
