/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots: the rights to take and execute entries. A thread has at most one, and
 * a slot at most one thread; registration.h draws how a thread gets and loses
 * it.
 */
#ifndef FLEXSC_KMOD_SLOT_H
#define FLEXSC_KMOD_SLOT_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/types.h>

#include "base/checks.h"
#include "sched/record.h"

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
	struct thread *active;	/* that has it; NULL: free. Compare-and-swap */
	int core;		/* that its thread runs on; -1: any */
	bool spins;		/* its thread polls, and executes nothing */
	struct irq_work blocked;
	atomic64_t counts[SLOT_COUNTERS];
};

bool slot_take_any(struct thread *thread);
bool slot_is_elsewhere(const struct thread *thread);
struct slot *slot_first_free(struct registration *reg);
bool slot_any_free(struct registration *reg);
bool slot_any_active(struct registration *reg);
void slot_spill(struct registration *reg);

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

#endif /* FLEXSC_KMOD_SLOT_H */
