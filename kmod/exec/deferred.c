// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deferred list: entries that the waiter, or a thread that may not execute
 * them, has left to syscall threads. The list is linked through the entries'
 * companions and guarded by registration.lock. Any context, but never with a
 * run queue's lock held.
 */
#include <linux/spinlock.h>

#include "base/entry.h"
#include "base/registration.h"
#include "exec/deferred.h"

/* Put an entry at the front or at the back of the list. */
void deferred_put(struct registration *reg, u32 index, bool front)
{
	struct companion *companion = &reg->companions[index];
	unsigned long flags;

	raw_spin_lock_irqsave(&reg->lock, flags);
	/* User mode has posted the entry twice; enqueue it only once. */
	if (companion->deferred)
		goto unlock;
	companion->deferred = true;
	companion->next = front ? reg->deferred_head : FLEXSC_NO_ENTRY;
	if (reg->deferred_count && !front)
		reg->companions[reg->deferred_tail].next = index;
	if (!reg->deferred_count || front)
		reg->deferred_head = index;
	if (!reg->deferred_count || !front)
		reg->deferred_tail = index;
	WRITE_ONCE(reg->deferred_count, reg->deferred_count + 1);
unlock:
	raw_spin_unlock_irqrestore(&reg->lock, flags);
}

/*
 * Take the first entry of the list, which wasn't empty when the caller checked.
 * False: it is empty now.
 */
bool deferred_take_first(struct registration *reg, u32 *index)
{
	unsigned long flags;
	bool any;

	raw_spin_lock_irqsave(&reg->lock, flags);
	any = reg->deferred_count;
	if (any) {
		*index = reg->deferred_head;
		reg->deferred_head = reg->companions[*index].next;
		reg->companions[*index].deferred = false;
		WRITE_ONCE(reg->deferred_count, reg->deferred_count - 1);
	}
	raw_spin_unlock_irqrestore(&reg->lock, flags);
	return any;
}
