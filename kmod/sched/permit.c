// SPDX-License-Identifier: GPL-2.0-only
/*
 * Permits: which are free, and which one a thread may take. A permit belongs to
 * a core of the policy, or to no core. A syscall thread also needs that core's
 * slot (slot.c). Run by threads in an ioctl; irq_works
 * and timers also run permit_first_free() and its callers.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "base/entry.h"
#include "base/registration.h"
#include "sched/permit.h"

/*
 * May a thread take permit i? Not if its core is offline. But if all cores of
 * the policy are offline, permit 0 may be taken, so that entries are executed
 * somewhere.
 */
static bool permit_usable(struct registration *reg, u32 i, u32 count)
{
	int core = READ_ONCE(reg->permits[i].core);
	u32 j;

	if (core < 0 || cpu_online(core))
		return true;
	if (i)
		return false;
	for (j = 1; j < count; j++) {
		core = READ_ONCE(reg->permits[j].core);
		if (core < 0 || cpu_online(core))
			return false;
	}
	return true;
}

/*
 * May the waiter take a permit of this core? Yes if the waiter runs on that core
 * already. It isn't requested to move there (FLEXSC_SERVE_MOVE), as syscall
 * threads are. Yes, too, if no syscall thread is active, and no other one can be
 * created: blocked threads may be waiting for the entries.
 */
static bool permit_fits_waiter(struct registration *reg, int core)
{
	return core < 0 || core == (int)raw_smp_processor_id() ||
	       (entries_without_threads(reg) && !permit_any_active(reg));
}

/* Take the permit for a syscall thread, with the slot of the permit's core. */
static bool permit_take_with_slot(struct permit *permit, struct thread *thread)
{
	int core = READ_ONCE(permit->core);

	if (!slot_take(thread, core))
		return false;
	if (permit_take(permit, thread)) {
		if (likely(READ_ONCE(permit->core) == core))
			return true;
		/* The policy has changed meanwhile: the slot isn't this core's. */
		permit_give(thread);
	}
	slot_give(thread);
	return false;
}

static bool permit_take_for(struct permit *permit, struct thread *thread)
{
	if (!thread->is_waiter)
		return permit_take_with_slot(permit, thread);
	return permit_fits_waiter(thread->reg, READ_ONCE(permit->core)) &&
	       permit_take(permit, thread);
}

static bool permit_take_first(struct thread *thread)
{
	struct registration *reg = thread->reg;
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->permits[i].active) &&
		    permit_usable(reg, i, count) &&
		    permit_take_for(&reg->permits[i], thread))
			return true;
	return false;
}

/* Take the permit whose slot idle_grant() has given to the thread. */
static bool permit_take_granted(struct thread *thread)
{
	struct registration *reg = thread->reg;
	struct permit *permit = permit_of_slot(reg, thread->slot);

	if (permit && permit_take_with_slot(permit, thread))
		return true;
	slot_give(thread);
	return false;
}

bool permit_take_any(struct thread *thread)
{
	if (unlikely(thread->slot) && permit_take_granted(thread))
		return true;
	return permit_take_first(thread);
}

/*
 * Must the thread, which has a permit, move to that permit's core before it
 * works?
 */
bool permit_is_elsewhere(const struct thread *thread)
{
	int core = READ_ONCE(thread->permit->core);

	if (thread->is_waiter)
		return false;
	if (core != thread->core)
		return true;
	/*
	 * A thread may have lost its affinity: when a core goes offline, the
	 * scheduler lets its threads run anywhere. The core is marked inactive
	 * before that, and no thread can move there. So don't request the move:
	 * the thread would only return with FLEXSC_SERVE_STAYS.
	 */
	return core >= 0 && cpu_active(core) &&
	       (current->nr_cpus_allowed != 1 || task_cpu(current) != core) &&
	       thread_cores() != thread->stays;
}

/*
 * Returns the first permit that a syscall thread may take. The result is a
 * hint, found without the lock. If other registrations have the slots of all
 * unused permits, they offer these slots later: slot_is_free().
 */
struct permit *permit_first_free(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->permits[i].active) &&
		    permit_usable(reg, i, count) &&
		    slot_is_free(reg, READ_ONCE(reg->permits[i].core)))
			return &reg->permits[i];
	return NULL;
}

/* Is there a core of the policy without an active thread of the process? */
bool permit_any_free(struct registration *reg)
{
	return permit_first_free(reg);
}

/* Is there a core of the policy without an active thread of this registration? */
bool permit_any_unused(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->permits[i].active) &&
		    permit_usable(reg, i, count))
			return true;
	return false;
}

/* Returns the unused permit of the slot's core, or NULL. */
struct permit *permit_of_slot(struct registration *reg, const struct slot *slot)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (slot_of(reg, READ_ONCE(reg->permits[i].core)) == slot &&
		    !READ_ONCE(reg->permits[i].active) &&
		    permit_usable(reg, i, count))
			return &reg->permits[i];
	return NULL;
}

bool permit_any_active(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (READ_ONCE(reg->permits[i].active))
			return true;
	return false;
}

/*
 * Is a syscall thread active that isn't in a call? If so, none has to be woken:
 * that thread looks for entries before it releases its permit, and again
 * afterwards.
 */
bool permit_any_looking(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	/*
	 * Pairs with the full barriers in serve_with_permit() and
	 * block_thread_left(), after a thread has released its permit: either
	 * that thread sees the pending entries, or this function sees that the
	 * permit is released.
	 */
	smp_mb();
	for (i = 0; i < count; i++) {
		struct thread *thread = READ_ONCE(reg->permits[i].active);

		if (thread && !READ_ONCE(thread->is_waiter) &&
		    READ_ONCE(thread->polls) == FLEXSC_NO_ENTRY &&
		    !atomic64_read(&thread->executes))
			return true;
	}
	return false;
}
