/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A WATCH is the kernel's part of an event slot. There is one for each slot, made with
 * the ECB.
 *
 *	free	-> taken	watch_take(), by the owner: the "state" of its slot
 *				in the shared memory is zero
 *	taken	-> live		watch_go_live(): it is in the file's wait queues; or
 *				it has no file, because threads push to its slot
 *				from user mode
 *	taken	-> free		it couldn't go live
 *	live	-> ended	watch_stop(), by the first caller that finds it
 *				live: the owner's FORGET, the close hook in any
 *				thread, or the end of the ECB
 *	ended	-> free		the last reference is dropped
 *
 * The references of a watch: one while it is being started, until watch_start()
 * returns; one while it is live; one during a round of accepting (accept.c). A watch that
 * isn't free has a reference to the ECB. Only the owner takes watches, so a watch gets
 * another source in the owner's context alone.
 *
 * watch_stop() first takes the watch off its wait queues, so that its callbacks no longer
 * run, then revokes the slot, then drops the watched file. The owner delivers too,
 * from WATCH, FLUSH and auto-accept, and the watch may end meanwhile. So after each
 * delivery the owner checks whether the watch is live, and revokes the slot again if it
 * isn't. The owner is in the kernel until then, so it can't have taken the event.
 *
 * A watch is on up to two lists of the ECB, once each; "kept" and "lists" show on which.
 * While on a list, a watch may end, and even get another source. So a list's reader
 * skips a watch that has nothing to do there.
 */
#ifndef FLEXSC_KMOD_WATCH_H
#define FLEXSC_KMOD_WATCH_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/refcount.h>
#include <linux/wait.h>

#include "events/ecb.h"

/* One wait queue of a watched file. */
struct poller {
	wait_queue_entry_t entry;
	wait_queue_head_t *head;	/* NULL: none, or freed (POLLFREE) */
};

#define WATCH_POLLERS	4	/* wait queues per watch */

/*
 * Bit of watch.kept: the watch is on ecb.held. The other bits are the held
 * events.
 */
#define WATCH_HELD	FLEXSC_EVENT_QUEUED

/* Bit numbers in watch.lists. */
enum {
	WATCH_ACCEPTS,		/* on ecb.accepts or ecb.starved */
};

/* How to watch the connections that an accepting watch accepts. */
struct inherit {
	u32 want;
	u16 group;
	u32 flags;
	u64 data;
};

struct watch {
	/* Constant while the watch is live. */
	struct ecb *ecb;
	struct flexsc_event_slot *slot;
	struct file *file;	/* counted reference; NULL: the slot of a user-mode source */
	void *files;		/* the owner's table of descriptors; only compared */
	struct inherit *inherit;	/* NULL: not an accepting watch */
	struct poller poller;
	struct poller *more;	/* WATCH_POLLERS - 1 further pollers, or NULL */
	struct hlist_node hook;	/* owned by close_hook.c, like "hooked" */
	int fd;
	u32 want;		/* bits of poll(2) to deliver */
	u32 index;
	u32 gen;
	u32 kind;			/* type and group of its events: event_kind() */
	u32 mask;		/* the group's bit */
	u8 pollers;		/* wait queues in use; WATCH_POLLERS + 1: more are needed */

	bool live;		/* written under ecb.lock */
	bool hooked;		/* in the close hook's table */
	/*
	 * An overflow was reported. Cleared when a connection is accepted, or
	 * none is pending.
	 */
	bool overflowed;
	refcount_t refs;
	u32 next_free;		/* next free watch: index + 1; under ecb.lock */
	atomic_t kept;
	unsigned long lists;
	struct llist_node held, accepts;
};

int watches_make(struct ecb *ecb);
void watches_free(struct ecb *ecb);

struct watch *watch_take(struct ecb *ecb);
void watch_prepare(struct watch *watch, u64 data);
void watch_return(struct watch *watch);
void watch_get(struct watch *watch);
bool watch_get_live(struct watch *watch);
void watch_put(struct watch *watch);
struct file *watch_file(struct watch *watch);
bool watch_in_table(const struct watch *watch, const struct file *file);

void watch_hold(struct watch *watch, u32 bits);
void watch_deliver(struct watch *watch, u32 bits);
void watch_deliver_claimed(struct watch *watch, u32 bits, u32 kind);

/* watch_ioctl.c */
int watches_init(void);
long watch_add(struct ecb *ecb, const struct flexsc_ecb_watch __user *user);
long watch_forget(struct ecb *ecb, unsigned long index);
void watch_flush(struct ecb *ecb);

#endif /* FLEXSC_KMOD_WATCH_H */
