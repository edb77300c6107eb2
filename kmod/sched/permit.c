// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which permits are free, and which one a thread may have. A permit belongs to a
 * core of the policy, or to none. Run by threads in an ioctl; permit_first_free()
 * and its callers also by irq_works and timers.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "base/entry.h"
#include "base/registration.h"
#include "sched/permit.h"

/*
 * May a thread have permit i? Not if its core is offline; but if all cores of the
 * policy are, permit 0 stays usable, so that entries are executed somewhere.
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
 * May the waiter have a permit of this core? User mode isn't requested to move the
 * waiter, so it must run there already, unless no syscall thread is left for its
 * entries.
 */
static bool permit_fits_waiter(struct registration *reg, int core)
{
	return core < 0 || core == (int)raw_smp_processor_id() ||
	       entries_without_threads(reg);
}

bool permit_take_any(struct thread *thread)
{
	struct registration *reg = thread->reg;
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++) {
		struct permit *permit = &reg->permits[i];

		if (READ_ONCE(permit->active) || !permit_usable(reg, i, count))
			continue;
		if (thread->is_waiter &&
		    !permit_fits_waiter(reg, READ_ONCE(permit->core)))
			continue;
		if (!permit_take(permit, thread))
			continue;
		return true;
	}
	return false;
}

/*
 * Must the thread, which has a permit, move to the permit's core before it works?
 */
bool permit_is_elsewhere(const struct thread *thread)
{
	int core = READ_ONCE(thread->permit->core);

	if (thread->is_waiter)
		return false;
	if (core != thread->core)
		return true;
	/*
	 * A thread's affinity may be gone although it was set: the scheduler
	 * lets a thread run anywhere when its core goes offline. The core isn't
	 * active from before that on, and no thread can move there; one that
	 * was requested to would return with FLEXSC_SERVE_STAYS.
	 */
	return core >= 0 && cpu_active(core) &&
	       current->nr_cpus_allowed != thread->stays &&
	       (current->nr_cpus_allowed != 1 || task_cpu(current) != core);
}

/* The first permit that a syscall thread may take. A hint, without the lock. */
struct permit *permit_first_free(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	for (i = 0; i < count; i++)
		if (!READ_ONCE(reg->permits[i].active) &&
		    permit_usable(reg, i, count))
			return &reg->permits[i];
	return NULL;
}

/* Is there a core without an active thread? */
bool permit_any_free(struct registration *reg)
{
	return permit_first_free(reg);
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
 * Is a syscall thread active that is not in a call? It needs no help, because
 * it looks for entries before it gives up its permit, and again after that.
 */
bool permit_any_looking(struct registration *reg)
{
	u32 count = READ_ONCE(reg->permit_count);
	u32 i;

	/*
	 * Pairs with the full barriers of serve_with_permit() and block_thread_left(),
	 * behind giving up a permit: the thread sees what is pending, or this
	 * sees that it has no permit any more.
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
