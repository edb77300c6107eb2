// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a watch begins and ends. watch.h has the states. A watch is started by the owner,
 * in process context, and stopped by any thread.
 */
#include <linux/file.h>
#include <linux/fs.h>

#include "events/close_hook.h"
#include "events/event.h"
#include "events/poller.h"
#include "events/watch.h"
#include "events/watch_life.h"

/*
 * Make a watch live: from here on any thread may end it. False: the ECB is
 * closed.
 */
bool watch_go_live(struct watch *watch)
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
 * Owner only: start a taken watch for its descriptor's file. Returns what
 * poll(2) reports for the file, or -errno if the watch has ended.
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
 * End the watch if it is live. The caller holds hook_lock() if the watch has a
 * file. True: the caller has to drop the reference of the live watch.
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
	/*
	 * Orders the store of "live" before the slot's revocation; pairs with
	 * watch_deliver_claimed().
	 */
	smp_mb();
	event_revoke(watch->slot);
	atomic_and(WATCH_HELD, &watch->kept);
	if (watch->file) {
		fput(watch->file);
		/*
		 * Remove the watch from the bucket last: a probe that finds the
		 * bucket empty relies on the fput() before this.
		 */
		hook_clear(watch);
	}
	return true;
}

/*
 * End the watch if it is live. The caller is the owner, or has closed the ECB:
 * otherwise the watch could go live again meanwhile, with another file.
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

/*
 * Close the ECB. Called by a thread of the process that ends, or by the last
 * user of the ECB.
 */
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
