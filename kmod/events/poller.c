// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wait queues of watched files: how a watch enters and leaves them, and what their
 * callbacks do.
 *
 * Callbacks run in any context, with the lock of a wait queue and with interrupts off.
 * They only store to the shared memory, put a watch on a list, queue the task work, and
 * wake the owner.
 */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "events/event.h"
#include "events/listener.h"
#include "events/poller.h"
#include "events/watch.h"

/* Callbacks. */

/* The wait queue's callback: the watched file has an event. Any context. */
static __always_inline void watch_happened(struct watch *watch, u32 bits)
{
	struct ecb *ecb = watch->ecb;

	if (unlikely(!event_allowed(ecb, watch->mask)))
		return watch_hold(watch, bits);
	if (unlikely(watch->inherit))
		return listener_enqueue(watch);
	if (!event_claim(watch->slot, bits))
		return;
	event_push(ecb, watch->slot, watch->index, watch->kind);
}

/* POLLFREE: leave the wait queue at once, because it is about to be freed. */
static noinline int watch_queue_freed(wait_queue_entry_t *entry)
{
	struct poller *poller = container_of(entry, struct poller, entry);

	watch_happened(entry->private, POLLHUP | FLEXSC_EVENT_CHECK);
	list_del_init(&entry->entry);
	/*
	 * The last use of the watch: as soon as poller_leave() reads NULL, the
	 * poller may be freed. Pairs with poller_leave().
	 */
	smp_store_release(&poller->head, NULL);
	return 1;
}

static int watch_called(wait_queue_entry_t *entry, unsigned int mode, int sync,
			void *key)
{
	struct watch *watch = entry->private;
	u32 bits = (__force u32)key_to_poll(key);

	if (unlikely(bits & (__force u32)POLLFREE))
		return watch_queue_freed(entry);
	/*
	 * A wake-up without a key names no events: make the owner call poll(2).
	 */
	bits = bits ? bits & watch->want : FLEXSC_EVENT_CHECK;
	if (bits)
		watch_happened(watch, bits);
	return 1;
}

/* Wait queues. */

struct watch_table {
	poll_table table;
	struct watch *watch;
};

static struct poller *poller_next(struct watch *watch)
{
	u8 n = watch->pollers;

	if (!n)
		return &watch->poller;
	if (n == 1)
		watch->more = kcalloc(WATCH_POLLERS - 1, sizeof(*watch->more),
				      GFP_KERNEL_ACCOUNT);
	return n < WATCH_POLLERS && watch->more ? &watch->more[n - 1] : NULL;
}

static void poller_enter(struct file *file, wait_queue_head_t *head,
			 poll_table *table)
{
	struct watch *watch =
		container_of(table, struct watch_table, table)->watch;
	struct poller *poller;

	if (watch->pollers > WATCH_POLLERS)
		return;
	poller = poller_next(watch);
	if (!poller) {
		watch->pollers = WATCH_POLLERS + 1;
		return;
	}
	watch->pollers++;
	init_waitqueue_func_entry(&poller->entry, watch_called);
	poller->entry.private = watch;
	poller->head = head;
	add_wait_queue(head, &poller->entry);
}

static void poller_leave(struct poller *poller)
{
	wait_queue_head_t *head;

	/* RCU protects the memory of a wait queue that sends POLLFREE. */
	rcu_read_lock();
	/* Pairs with the store in watch_queue_freed(). */
	head = smp_load_acquire(&poller->head);
	if (head)
		remove_wait_queue(head, &poller->entry);
	rcu_read_unlock();
	poller->head = NULL;
}

/*
 * Leave all wait queues. After the return, no callback of the watch runs any
 * more.
 */
void watch_leave_queues(struct watch *watch)
{
	int i;

	poller_leave(&watch->poller);
	if (!watch->more)
		return;
	for (i = 0; i < WATCH_POLLERS - 1; i++)
		poller_leave(&watch->more[i]);
	kfree(watch->more);
	watch->more = NULL;
}

/* Enter the file's wait queues. Returns what poll(2) reports now, or -errno. */
int watch_enter_queues(struct watch *watch, struct file *file)
{
	struct watch_table table = { .watch = watch };
	u32 level;

	watch->pollers = 0;
	init_poll_funcptr(&table.table, poller_enter);
	table.table._key = (__force __poll_t)watch->want;
	level = (__force u32)vfs_poll(file, &table.table) & watch->want;
	return watch->pollers > WATCH_POLLERS ? -ENOSPC : level;
}
