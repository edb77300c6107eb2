// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes, and the slots that their registrations share (slot.c). A process is
 * an address space: a forked child, and a program after execve(), are other
 * processes.
 */
#include <linux/cpumask.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "base/entry.h"
#include "base/registration.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/process.h"

static bool slot_suits(struct slot *slot, struct registration *reg)
{
	return reg != READ_ONCE(slot->last) && entries_pending(reg) &&
	       permit_of_slot(reg, slot);
}

/*
 * Give the free slot to the next registration that can use it; they take turns.
 * The last holder isn't one of them: its threads look for entries after they
 * have freed a slot. Runs in an irq_work, because slot_free() may be called with
 * a run queue's lock held, and this function wakes a task.
 */
static void slot_freed(struct irq_work *work)
{
	struct slot *slot = container_of(work, struct slot, freed);
	struct process *process = slot->process;
	struct registration *reg, *next;
	bool granted = false;
	unsigned long flags;

	raw_spin_lock_irqsave(&process->lock, flags);
	WRITE_ONCE(slot->wanted, false);
	/*
	 * Pairs with slot_want(): a registration that isn't found here sets
	 * "wanted" again.
	 */
	smp_mb();
	list_for_each_entry_safe(reg, next, &process->registrations, siblings) {
		if (!slot_suits(slot, reg))
			continue;
		if (granted || READ_ONCE(slot->holder)) {
			WRITE_ONCE(slot->wanted, true);
			break;
		}
		granted = idle_grant(reg, slot);
		if (granted)
			list_move_tail(&reg->siblings, &process->registrations);
	}
	raw_spin_unlock_irqrestore(&process->lock, flags);
}

static DEFINE_MUTEX(process_lock);
/* By address space; guarded by process_lock, and so is process.count. */
static DEFINE_HASHTABLE(processes, 6);

static struct process *process_find(struct mm_struct *mm)
{
	struct process *process;

	lockdep_assert_held(&process_lock);
	hash_for_each_possible(processes, process, node, (unsigned long)mm)
		if (process->mm == mm)
			return process;
	return NULL;
}

static struct process *process_create(struct mm_struct *mm)
{
	struct process *process = kvzalloc(struct_size(process, slots, nr_cpu_ids),
					   GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!process)
		return NULL;
	process->mm = mm;
	raw_spin_lock_init(&process->lock);
	INIT_LIST_HEAD(&process->registrations);
	for (i = 0; i < nr_cpu_ids; i++) {
		process->slots[i].process = process;
		init_irq_work(&process->slots[i].freed, slot_freed);
	}
	hash_add(processes, &process->node, (unsigned long)mm);
	return process;
}

/*
 * Called when the process has no registration any more, so no thread has a
 * slot, and no further irq_work can be queued.
 */
static void process_destroy(struct process *process)
{
	u32 i;

	hash_del(&process->node);
	WARN_ON_ONCE(!list_empty(&process->registrations));
	for (i = 0; i < nr_cpu_ids; i++) {
		WARN_ON_ONCE(process->slots[i].holder);
		irq_work_sync(&process->slots[i].freed);
	}
	kvfree(process);
}

/*
 * Let the registration share the current process's slots. The caller holds
 * mm_count from now on, so no other process gets the same address. 0 or -ENOMEM.
 */
int process_join(struct registration *reg)
{
	struct process *process;

	mutex_lock(&process_lock);
	process = process_find(current->mm) ?: process_create(current->mm);
	if (process) {
		process->count++;
		reg->process = process;
		raw_spin_lock_irq(&process->lock);
		list_add_tail(&reg->siblings, &process->registrations);
		raw_spin_unlock_irq(&process->lock);
	}
	mutex_unlock(&process_lock);
	return process ? 0 : -ENOMEM;
}

/* Called when no thread, irq_work or timer of the registration is left. */
void process_leave(struct registration *reg)
{
	struct process *process = reg->process;

	mutex_lock(&process_lock);
	raw_spin_lock_irq(&process->lock);
	list_del(&reg->siblings);
	raw_spin_unlock_irq(&process->lock);
	if (!--process->count)
		process_destroy(process);
	mutex_unlock(&process_lock);
}
