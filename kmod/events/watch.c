// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches: their memory, their references, and the events that they hold.
 * watch.h has the states. Never called in interrupts, because the ECB's lock is
 * taken by a plain spin_lock(). Functions marked "owner only" need the owner's
 * context.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/slab.h>

#include "events/event.h"
#include "events/listener.h"
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

/*
 * Maximum number of free watches that watch_take() tries. A free watch can't be
 * taken while its slot is still on a list of user mode.
 */
#define WATCH_TRIES	1024

/* Owner only: take a free watch. NULL: all are in use. */
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

/* Initialise those words of a taken watch's slot that the owner reads. */
void watch_prepare(struct watch *watch, u64 data)
{
	struct flexsc_event_slot *slot = watch->slot;

	watch->mask = BIT(watch->kind >> 16);
	watch->overflowed = false;
	slot->gen = ++watch->gen;
	*(u32 *)&slot->type = watch->kind;
	slot->fd = watch->fd;
	slot->error = 0;
	slot->data = data;
	/* Drop held events of the slot's previous source. */
	atomic_and(WATCH_HELD, &watch->kept);
}

/* References. */

void watch_get(struct watch *watch)
{
	refcount_inc(&watch->refs);
}

/* Get a reference to the watch, if it is live. False: it isn't. */
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

/* Return a taken watch that hasn't been started. */
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
	/*
	 * Orders the store of "frees" before listeners_retry() reads "starved";
	 * pairs with listener_starve().
	 */
	smp_mb();
	listeners_retry(ecb);
	ecb_put_later(ecb);
}

/* Get a reference to a live watch's file. NULL: the watch isn't live. */
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

/* Does the watched descriptor refer to this file in the current process? */
bool watch_in_table(const struct watch *watch, const struct file *file)
{
	bool same;

	if (!current->files || current->files != watch->files)
		return false;
	rcu_read_lock();
	same = files_lookup_fd_raw(current->files, watch->fd) == file;
	rcu_read_unlock();
	return same;
}

/* Delivery. */

/*
 * Owner only: add bits to a claimed slot and push it. If the watch has ended
 * meanwhile, revoke the slot again: see watch.h.
 */
void watch_deliver_claimed(struct watch *watch, u32 bits, u32 kind)
{
	struct flexsc_event_slot *slot = watch->slot;

	atomic_or(bits, event_word(&slot->state));
	event_push(watch->ecb, slot, watch->index, kind);
	/* Read after event_push()'s full barrier; pairs with watch_stop(). */
	if (!READ_ONCE(watch->live))
		event_revoke(slot);
}

/* Deliver an event. Called by the owner, or by a source in watch_hold(). */
void watch_deliver(struct watch *watch, u32 bits)
{
	if (event_claim(watch->slot, bits))
		watch_deliver_claimed(watch, 0, watch->kind);
	else if (!READ_ONCE(watch->live))
		event_revoke(watch->slot);
}

/*
 * S4: hold an event whose group the owner doesn't allow. The owner may have
 * allowed the group meanwhile and have found no held event: then deliver the
 * event after all.
 */
noinline void watch_hold(struct watch *watch, u32 bits)
{
	struct ecb *ecb = watch->ecb;

	if (!(atomic_fetch_or(WATCH_HELD | bits, &watch->kept) & WATCH_HELD)) {
		llist_add(&watch->held, &ecb->held);
		atomic_inc(event_word(&ecb->control->held));
	}
	/*
	 * Orders the store of "held" before the reads of the owner's words;
	 * pairs with U4.
	 */
	smp_mb();
	if (!event_allowed(ecb, watch->mask))
		return;
	bits = atomic_fetch_and(WATCH_HELD, &watch->kept) & ~WATCH_HELD;
	if (!bits)
		return;
	if (watch->inherit)
		listener_enqueue(watch);
	else
		watch_deliver(watch, bits);
}
