// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which slots are free, and which one a thread may have. A slot belongs to a
 * core of the policy, or to none. Run by threads in an ioctl; slot_first_free()
 * and what asks it also by irq_works and timers.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "base/entry.h"
#include "base/registration.h"
#include "sched/permit.h"

/*
 * May a thread have slot i? Not if its core is offline; but if all cores of the
 * policy are, slot 0 stays usable, so that entries are executed somewhere.
 */
static bool slot_usable(struct registration *reg, u32 i, u32 count)
{
	int core = READ_ONCE(reg->slots[i].core);
	u32 j;

	if (core < 0 || cpu_online(core))
		return true;
	if (i)
		return false;
	for (j = 1; j < count; j++) {
		core = READ_ONCE(reg->slots[j].core);
		if (core < 0 || cpu_online(core))
			return false;
	}
	return true;
}

/*
 * May the owner have a slot of this core? User mode isn't asked to move the
 * owner, so it must run there already, unless no syscall thread is left for its
 * entries.
 */
static bool slot_fits_owner(struct registration *reg, int core)
{
	return core < 0 || core == (int)raw_smp_processor_id() ||
	       entries_alone(reg);
}

bool slot_take_any(struct thread *thread)
{
	struct registration *reg = thread->reg;
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++) {
		struct slot *slot = &reg->slots[i];

		if (READ_ONCE(slot->active) || !slot_usable(reg, i, count))
			continue;
		if (thread->is_owner &&
		    !slot_fits_owner(reg, READ_ONCE(slot->core)))
			continue;
		if (!slot_take(slot, thread))
			continue;
		return true;
	}
	return false;
}

/*
 * Must the thread, which has a slot, move to the slot's core before it works?
 */
bool slot_is_elsewhere(const struct thread *thread)
{
	int core = READ_ONCE(thread->slot->core);

	if (thread->is_owner)
		return false;
	if (core != thread->core)
		return true;
	/*
	 * A thread's affinity may be gone although it was set: the scheduler
	 * lets a thread run anywhere when its core goes offline. The core isn't
	 * active from before that on, and no thread can move there; one that
	 * was asked to would say that it stays.
	 */
	return core >= 0 && cpu_active(core) &&
	       current->nr_cpus_allowed != thread->stays &&
	       (current->nr_cpus_allowed != 1 || task_cpu(current) != core);
}

/* The first slot that a syscall thread may take. A hint, without the lock. */
struct slot *slot_first_free(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->slots[i].active) &&
		    slot_usable(reg, i, count))
			return &reg->slots[i];
	return NULL;
}

/* Is there a core without an active thread? */
bool slot_any_free(struct registration *reg)
{
	return slot_first_free(reg);
}

bool slot_any_active(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (READ_ONCE(reg->slots[i].active))
			return true;
	return false;
}

/*
 * Is a syscall thread active that is not in a call? It needs no help, because
 * it looks for entries before it gives up its slot, and again after that.
 */
bool thread_looks(struct registration *reg)
{
	u32 count = READ_ONCE(reg->slot_count);
	u32 i;

	/*
	 * Pairs with the full barriers of thread_use_slot() and thread_left(),
	 * behind giving up a slot: the thread sees what is pending, or this
	 * sees that it has no slot any more.
	 */
	smp_mb();
	for (i = 0; i < count; i++) {
		struct thread *thread = READ_ONCE(reg->slots[i].active);

		if (thread && !READ_ONCE(thread->is_owner) &&
		    !READ_ONCE(thread->asks) &&
		    !atomic64_read(&thread->executes))
			return true;
	}
	return false;
}
