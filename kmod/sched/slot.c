// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots: a process has one active syscall thread per core (OSDI 2010, section
 * 3.5). Its registrations share a slot for each core.
 *
 *	free	-> held		slot_take(); or idle_grant(), for a thread that
 *				sleeps
 *	held	-> free		slot_free(): the thread releases its permit
 *
 * A registration that has entries for a core, but not the core's slot, sets
 * "wanted" and looks once more whether the slot is free. The holder frees the
 * slot and then looks at "wanted". A full barrier is in between on both sides,
 * so at least one of the two sees the other's store.
 *
 * If a slot that is wanted becomes free, an irq_work gives it to an idle thread
 * of another registration, and wakes that thread (process.c). Otherwise the
 * thread that has freed it could always be first to take it again. A thread
 * whose slot is wanted stops polling, and executes no more than a limited
 * number of entries.
 */
#include <linux/irq_work.h>
#include <linux/sched.h>

#include "base/registration.h"
#include "sched/record.h"
#include "sched/slot.h"

/*
 * Free the thread's slot. Called by the thread, also from block_sched_out() with
 * the run queue's lock held; or on behalf of a dead one.
 */
noinline void slot_free(struct thread *thread)
{
	struct slot *slot = thread->slot;

	RULE(READ_ONCE(slot->holder) == thread->reg);
	WRITE_ONCE(thread->slot, NULL);
	/* Pairs with the cmpxchg() of slot_claim(). */
	smp_store_release(&slot->holder, NULL);
	/* Pairs with slot_want(). */
	smp_mb();
	if (READ_ONCE(slot->wanted))
		irq_work_queue(&slot->freed);
}

/* Take the slot for a registration. False: a thread has it. */
bool slot_claim(struct slot *slot, struct registration *reg)
{
	if (READ_ONCE(slot->holder) || cmpxchg(&slot->holder, NULL, reg))
		return false;
	WRITE_ONCE(slot->last, reg);
	return true;
}

/*
 * Have the slot offered when it becomes free, unless a thread of this
 * registration has it. Afterwards the caller looks again whether it is free.
 */
static void slot_want(struct slot *slot, struct registration *reg)
{
	struct registration *holder = READ_ONCE(slot->holder);

	if (holder && holder != reg)
		WRITE_ONCE(slot->wanted, true);
	/* Pairs with slot_free(). */
	smp_mb();
}

/* May a syscall thread of the registration take the slot of this core? */
bool slot_is_free(struct registration *reg, int core)
{
	struct slot *slot = slot_of(reg, core);

	if (!slot || !READ_ONCE(slot->holder))
		return true;
	slot_want(slot, reg);
	return !READ_ONCE(slot->holder);
}

/*
 * Take the core's slot for the current task, a syscall thread. True, too, if
 * the thread has it already, or the policy has no core. False: another thread
 * has it.
 */
bool slot_take(struct thread *thread, int core)
{
	struct slot *slot = slot_of(thread->reg, core);

	RULE(thread->task == current && !thread->is_waiter);
	if (slot == thread->slot)
		return true;
	if (!slot_claim(slot, thread->reg)) {
		slot_want(slot, thread->reg);
		if (!slot_claim(slot, thread->reg))
			return false;
	}
	WRITE_ONCE(thread->slot, slot);
	return true;
}
