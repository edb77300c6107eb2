// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched descriptors: how a watch begins and ends, the callbacks that deliver its
 * events, and events that are held. watch.h has the states.
 *
 * Callbacks run in any context, with the lock of a wait queue and with interrupts off.
 * They only store to the shared memory, put a watch on a list, queue the task work, and
 * wake the owner.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/dispatch.h"
#include "events/accept.h"
#include "events/event.h"
#include "events/hook.h"
#include "events/watch.h"

/* The list of free watches. */

int watches_make(struct ecb *ecb)
{
	u32 i;

	ecb->watches = kvcalloc(ecb->events, sizeof(*ecb->watches),
				GFP_KERNEL_ACCOUNT);
	if (!ecb->watches)
		return -ENOMEM;
	for (i = 0; i < ecb->events; i++) {
		ecb->watches[i].ecb = ecb;
		ecb->watches[i].slot = &ecb->slots[i];
		ecb->watches[i].index = i;
		ecb->watches[i].next_free = i + 2;
		cond_resched();
	}
	ecb->watches[ecb->events - 1].next_free = 0;
	ecb->free_first = 1;
	ecb->free_last = ecb->events;
	ecb->free_count = ecb->events;
	return 0;
}

void watches_free(struct ecb *ecb)
{
	kvfree(ecb->watches);
}

static struct watch *watch_pop(struct ecb *ecb)
{
	struct watch *watch = &ecb->watches[ecb->free_first - 1];

	lockdep_assert_held(&ecb->lock);
	ecb->free_first = watch->next_free;
	if (!ecb->free_first)
		ecb->free_last = 0;
	ecb->free_count--;
	return watch;
}

static void watch_push(struct ecb *ecb, struct watch *watch)
{
	u32 last = ecb->free_last;

	lockdep_assert_held(&ecb->lock);
	watch->next_free = 0;
	if (last)
		ecb->watches[last - 1].next_free = watch->index + 1;
	else
		ecb->free_first = watch->index + 1;
	ecb->free_last = watch->index + 1;
	ecb->free_count++;
}

/* Most free watches to try: user mode may still have a slot on one of its lists. */
#define WATCH_TRIES	1024

/* Owner only: take a free watch. NULL: there is none. */
struct watch *watch_take(struct ecb *ecb)
{
	struct watch *watch = NULL;
	u32 tries;

	spin_lock(&ecb->lock);
	tries = min_t(u32, ecb->free_count, WATCH_TRIES);
	while (!watch && tries--) {
		watch = watch_pop(ecb);
		if (!READ_ONCE(watch->slot->state))
			break;
		watch_push(ecb, watch);
		watch = NULL;
	}
	spin_unlock(&ecb->lock);
	if (watch) {
		refcount_set(&watch->refs, 1);
		ecb_get(ecb);
	}
	return watch;
}

/* Write the words of a taken watch's slot that the owner reads. */
void watch_prepare(struct watch *watch, u64 data)
{
	struct flexsc_event_slot *slot = watch->slot;

	watch->mask = BIT(watch->is >> 16);
	watch->overflowed = false;
	slot->gen = ++watch->gen;
	*(u32 *)&slot->type = watch->is;
	slot->fd = watch->fd;
	slot->error = 0;
	slot->data = data;
	/* Drop what is held of the slot's last source. */
	atomic_and(WATCH_HELD, &watch->kept);
}

/* References. */

void watch_get(struct watch *watch)
{
	refcount_inc(&watch->refs);
}

/* A reference to a live watch. False: the watch isn't live. */
bool watch_get_live(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;
	bool live;

	spin_lock(&ecb->lock);
	live = watch->live;
	if (live)
		watch_get(watch);
	spin_unlock(&ecb->lock);
	return live;
}

/* Give back a taken watch that hasn't been started. */
void watch_return(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;

	spin_lock(&ecb->lock);
	watch_push(ecb, watch);
	spin_unlock(&ecb->lock);
	ecb_put_later(ecb);
}

void watch_put(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;

	if (!refcount_dec_and_test(&watch->refs))
		return;
	kfree(watch->inherit);
	watch->inherit = NULL;
	spin_lock(&ecb->lock);
	watch_push(ecb, watch);
	WRITE_ONCE(ecb->frees, ecb->frees + 1);
	spin_unlock(&ecb->lock);
	/* Before accept_retry() reads "starved"; pairs with accept_starve(). */
	smp_mb();
	accept_retry(ecb);
	ecb_put_later(ecb);
}

/* A reference to the file of a live watch; NULL: the watch isn't live. */
struct file *watch_file(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;
	struct file *file = NULL;

	spin_lock(&ecb->lock);
	if (watch->live && watch->file)
		file = get_file(watch->file);
	spin_unlock(&ecb->lock);
	return file;
}

/* Does the watched descriptor still mean this file, in the current process? */
bool watch_in_table(const struct watch *watch, const struct file *file)
{
	bool is;

	if (!current->files || current->files != watch->files)
		return false;
	rcu_read_lock();
	is = files_lookup_fd_raw(current->files, watch->fd) == file;
	rcu_read_unlock();
	return is;
}

/* Sources. */

/*
 * Owner only: push a slot that was claimed, with more bits. If the watch has ended
 * meanwhile, revoke the slot: see watch.h.
 */
void watch_deliver_claimed(struct watch *watch, u32 bits, u32 is)
{
	struct flexsc_event_slot *slot = watch->slot;

	atomic_or(bits, event_word(&slot->state));
	event_push(watch->ecb, slot, watch->index, is);
	/* After event_push()'s full barrier; pairs with watch_stop(). */
	if (!READ_ONCE(watch->live))
		event_revoke(slot);
}

/* By the owner, or by a source in watch_hold(). */
static void watch_deliver(struct watch *watch, u32 bits)
{
	if (event_claim(watch->slot, bits))
		watch_deliver_claimed(watch, 0, watch->is);
	else if (!READ_ONCE(watch->live))
		event_revoke(watch->slot);
}

/*
 * S4: hold an event whose group the owner doesn't allow. The owner may have allowed it
 * meanwhile, and found nothing held: then the source delivers the event after all.
 */
noinline void watch_hold(struct watch *watch, u32 bits)
{
	struct ecb *ecb = watch->ecb;

	if (!(atomic_fetch_or(WATCH_HELD | bits, &watch->kept) & WATCH_HELD)) {
		llist_add(&watch->held, &ecb->held);
		atomic_inc(event_word(&ecb->control->held));
	}
	/* After "held" is stored, before the owner's words are read; pairs with U4. */
	smp_mb();
	if (!event_allowed(ecb, watch->mask))
		return;
	bits = atomic_fetch_and(WATCH_HELD, &watch->kept) & ~WATCH_HELD;
	if (!bits)
		return;
	if (watch->inherit)
		accept_later(watch);
	else
		watch_deliver(watch, bits);
}

/* An event of the watched file. Any context. */
static __always_inline void watch_happened(struct watch *watch, u32 bits)
{
	struct ecb *ecb = watch->ecb;

	if (unlikely(!event_allowed(ecb, watch->mask)))
		return watch_hold(watch, bits);
	if (unlikely(watch->inherit))
		return accept_later(watch);
	if (!event_claim(watch->slot, bits))
		return;
	event_push(ecb, watch->slot, watch->index, watch->is);
}

/* The wait queue is about to be freed: leave it at once (POLLFREE). */
static noinline int watch_queue_freed(wait_queue_entry_t *entry)
{
	struct poller *poller = container_of(entry, struct poller, entry);

	watch_happened(entry->private, POLLHUP | FLEXSC_EVENT_CHECK);
	list_del_init(&entry->entry);
	/* After all uses of the watch: it may be freed now. Pairs with poller_leave(). */
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
	/* Without a key the owner has to check what happened. */
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

	/* A wait queue that sends POLLFREE is freed by RCU. */
	rcu_read_lock();
	/* Pairs with the store in watch_queue_freed(). */
	head = smp_load_acquire(&poller->head);
	if (head)
		remove_wait_queue(head, &poller->entry);
	rcu_read_unlock();
	poller->head = NULL;
}

/* When this returns, no callback of the watch runs any more. */
static void watch_leave_queues(struct watch *watch)
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
static int watch_enter_queues(struct watch *watch, struct file *file)
{
	struct watch_table table = { .watch = watch };
	u32 level;

	watch->pollers = 0;
	init_poll_funcptr(&table.table, poller_enter);
	table.table._key = (__force __poll_t)watch->want;
	level = (__force u32)vfs_poll(file, &table.table) & watch->want;
	return watch->pollers > WATCH_POLLERS ? -ENOSPC : level;
}

/* Begin and end. */

/* Any thread may end the watch from here on. False: the ECB is closed. */
static bool watch_go_live(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;
	bool open;

	spin_lock(&ecb->lock);
	open = !ecb->closed;
	watch->live = open;
	if (open)
		watch_get(watch);
	spin_unlock(&ecb->lock);
	return open;
}

static int watch_go(struct watch *watch, struct file *file)
{
	int level = watch_enter_queues(watch, file);

	if (level >= 0 && !watch_go_live(watch))
		level = -ENOENT;
	if (level < 0) {
		watch_leave_queues(watch);
		event_revoke(watch->slot);
		fput(file);
		return level;
	}
	if (!hook_set(watch))
		return -ENOSPC;
	return READ_ONCE(watch->live) ? level : -EBADF;
}

/*
 * Owner only: start a taken watch for the file of its descriptor. Returns what poll(2)
 * reports of the file, or -errno if the watch has ended.
 */
int watch_start(struct watch *watch, struct file *file)
{
	int level;

	watch->file = get_file(file);
	watch->files = current->files;
	watch->hooked = false;
	level = watch_go(watch, file);
	watch_put(watch);
	return level;
}

/*
 * End the watch if it is live. The caller has hook_lock() if the watch has a file. True:
 * the caller gives back the watch's reference of being live.
 */
bool watch_stop(struct watch *watch)
{
	struct ecb *ecb = watch->ecb;
	bool live;

	spin_lock(&ecb->lock);
	live = watch->live;
	WRITE_ONCE(watch->live, false);
	spin_unlock(&ecb->lock);
	if (!live)
		return false;
	watch_leave_queues(watch);
	/* "live" before the slot is revoked; pairs with watch_deliver_claimed(). */
	smp_mb();
	event_revoke(watch->slot);
	atomic_and(WATCH_HELD, &watch->kept);
	if (watch->file) {
		fput(watch->file);
		/* Last: a probe that finds the bucket empty relies on the fput(). */
		hook_clear(watch);
	}
	return true;
}

/*
 * End the watch if it is live. The caller is the owner, or has closed the ECB, so the
 * watch can't go live with another file meanwhile.
 */
void watch_end(struct watch *watch)
{
	const struct file *file = watch->file;
	bool ended;

	if (file) {
		spin_lock(hook_lock(file));
		ended = watch_stop(watch);
		spin_unlock(hook_lock(file));
	} else {
		ended = watch_stop(watch);
	}
	if (ended)
		watch_put(watch);
}

/* Close the ECB: by a thread of the process that ends, or by the ECB's last user. */
void watches_end(struct ecb *ecb)
{
	u32 i;

	spin_lock(&ecb->lock);
	WRITE_ONCE(ecb->closed, true);
	spin_unlock(&ecb->lock);
	for (i = 0; i < ecb->events; i++) {
		watch_end(&ecb->watches[i]);
		cond_resched();
	}
}

/* FLEXSC_ECB_WATCH */

static int watch_check(const struct flexsc_ecb_watch *args)
{
	if (args->flags & ~(FLEXSC_WATCH_ACCEPT | FLEXSC_WATCH_CHECKED) ||
	    args->want & ~FLEXSC_EVENT_POLL ||
	    args->type >= FLEXSC_EVT_TYPES ||
	    args->group >= FLEXSC_ECB_GROUPS || args->reserved1 ||
	    args->reserved2 || args->reserved3[0] || args->reserved3[1])
		return -EINVAL;
	if (args->type == FLEXSC_EVT_USER ? args->fd != -1 : args->fd == -1)
		return -EINVAL;
	if (args->flags & FLEXSC_WATCH_ACCEPT)
		return accept_check(args);
	return args->accept_want || args->accept_group || args->accept_flags ||
	       args->accept_data ? -EINVAL : 0;
}

/* Files that wait for other files: callbacks could call each other in a circle. */
static const char *const watch_watchers[] = {
#ifdef CONFIG_EPOLL
	"eventpoll_fops",
#endif
#ifdef CONFIG_IO_URING
	"io_uring_fops",
#endif
};

/* Their addresses. One element more, as an array may not be empty. */
static const void *watch_watcher_ops[ARRAY_SIZE(watch_watchers) + 1]
	__ro_after_init;

/* Returns 0, or -EOPNOTSUPP if such files can't be recognised on this kernel. */
int __init watches_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(watch_watchers); i++) {
		watch_watcher_ops[i] = dispatch_address(watch_watchers[i]);
		if (!watch_watcher_ops[i]) {
			pr_err("the kernel's %s isn't found: this kernel isn't supported\n",
			       watch_watchers[i]);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static bool watch_is_watcher(const struct file *file)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(watch_watchers); i++)
		if (file->f_op == watch_watcher_ops[i])
			return true;
	return file->f_op->owner == THIS_MODULE;
}

static int watch_check_file(const struct flexsc_ecb_watch *args,
			    struct file *file)
{
	if (watch_is_watcher(file))
		return -ELOOP;
	if (!file_can_poll(file))
		return -EPERM;
	return args->flags & FLEXSC_WATCH_ACCEPT ? accept_check_file(file) : 0;
}

static struct watch *watch_fill(struct ecb *ecb,
				const struct flexsc_ecb_watch *args)
{
	struct watch *watch = watch_take(ecb);

	if (!watch)
		return ERR_PTR(-ENOSPC);
	watch->fd = args->fd;
	watch->want = args->want | POLLERR | POLLHUP;
	watch->is = event_is(args->type, array_index_nospec(args->group,
							    FLEXSC_ECB_GROUPS));
	if (args->flags & FLEXSC_WATCH_ACCEPT) {
		watch->inherit = accept_inherit(args);
		if (!watch->inherit) {
			watch_put(watch);
			return ERR_PTR(-ENOMEM);
		}
	}
	watch_prepare(watch, args->data);
	return watch;
}

/* A slot that threads push from user mode: no file. */
static long watch_add_user(struct ecb *ecb, const struct flexsc_ecb_watch *args)
{
	struct watch *watch = watch_fill(ecb, args);
	long ret;

	if (IS_ERR(watch))
		return PTR_ERR(watch);
	watch->file = NULL;
	ret = watch_go_live(watch) ? watch->index : -ENOENT;
	watch_put(watch);
	return ret;
}

/* Deliver what poll(2) reported when the watch was started. */
static void watch_report(struct watch *watch, u32 level)
{
	if (!event_allowed(watch->ecb, watch->mask))
		watch_hold(watch, level);
	else if (watch->inherit)
		accept_later(watch);
	else
		watch_deliver(watch, level);
}

static long watch_add_file(struct ecb *ecb, struct file *file,
			   const struct flexsc_ecb_watch *args)
{
	struct watch *watch = watch_fill(ecb, args);
	int level;

	if (IS_ERR(watch))
		return PTR_ERR(watch);
	/* Keeps "inherit" for watch_report() if another thread closes the file. */
	watch_get(watch);
	level = watch_start(watch, file);
	if (level > 0)
		watch_report(watch, level);
	watch_put(watch);
	return level < 0 ? level : (long)watch->index;
}

long watch_add(struct ecb *ecb, const struct flexsc_ecb_watch __user *user)
{
	struct flexsc_ecb_watch args;
	struct file *file;
	long ret;

	if (copy_from_user(&args, user, sizeof(args)))
		return -EFAULT;
	ret = watch_check(&args);
	if (ret)
		return ret;
	if (args.fd == -1)
		return watch_add_user(ecb, &args);
	file = fget(args.fd);
	if (!file)
		return -EBADF;
	ret = watch_check_file(&args, file);
	if (!ret)
		ret = watch_add_file(ecb, file, &args);
	fput(file);
	return ret;
}

/* FLEXSC_ECB_FORGET */
long watch_forget(struct ecb *ecb, unsigned long index)
{
	struct watch *watch;

	if (index >= ecb->events)
		return -ENOENT;
	watch = &ecb->watches[array_index_nospec(index, ecb->events)];
	if (!READ_ONCE(watch->live))
		return -ENOENT;
	watch_end(watch);
	return 0;
}

/* Held events: the owner only. */

/* Deliver a held event, if poll(2) still reports it. */
static void watch_release(struct watch *watch, u32 bits)
{
	struct file *file = watch_file(watch);
	u32 level;

	if (!file)
		return;
	if (!event_allowed(watch->ecb, watch->mask)) {
		watch_hold(watch, bits);
	} else if (watch->inherit) {
		accept_later(watch);
	} else {
		level = (__force u32)vfs_poll(file, NULL) & watch->want;
		if (level)
			watch_deliver(watch, level);
	}
	fput(file);
}

/* Deliver all held events whose groups are allowed by now. */
void watch_flush(struct ecb *ecb)
{
	struct llist_node *node;
	struct watch *watch, *next;
	u32 bits;

	/* The list has the newest first. */
	node = llist_reverse_order(llist_del_all(&ecb->held));
	llist_for_each_entry_safe(watch, next, node, held) {
		atomic_dec(event_word(&ecb->control->held));
		/* From here on a source may put it on the list. */
		bits = atomic_xchg(&watch->kept, 0) & ~WATCH_HELD;
		if (bits)
			watch_release(watch, bits);
		cond_resched();
	}
}
