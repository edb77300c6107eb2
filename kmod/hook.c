// SPDX-License-Identifier: GPL-2.0-only
/*
 * The close hook: how a close() of a watched descriptor is noticed.
 *
 * A watch has a reference to the file, so a close() would not reach what is
 * behind it: no FIN would be sent, and a pipe's writer would not get EPIPE. But
 * each close of a descriptor removes the POSIX locks that its process has on the
 * inode. So a watch has such a lock, for reading, of one byte at a place where
 * nothing is, and hears of its removal: in close(), dup2(), close_range(), exec
 * and the process's end, holding no lock, before the file is given up.
 *
 * When the lock is removed,
 *
 *	the descriptor isn't this file any more: the watch ends
 *	the descriptor still is this file: another descriptor of the inode was
 *		closed, or the process has changed a lock of its own that covers
 *		the byte. The lock is set again. The descriptor may be closed
 *		between the look and the setting, so a second look follows
 *	the process has no descriptors, or others than when the watch began (it
 *		ends, or unshared them): the watch ends
 *	the process is being killed: the watch ends
 *
 * watch_end() says that the watch has ended and then removes the lock. A thread
 * that has set a lock looks afterwards whether the watch is live, and removes it
 * otherwise. So no lock is left over.
 *
 * A lock knows its watch, and has a reference to it. If the process itself locks
 * the byte, the kernel may merge the two locks, and copy the result: so a watch may
 * have more locks, or none. The module hears of each lock when it is freed, but
 * copies are made with a lock held.
 *
 * Only sockets, pipes and FIFOs are hooked. Anonymous inodes are shared by many
 * files, and other inodes are locked by programs. A reference to such a file keeps
 * no peer waiting, and its watch is looked at in the owner's context: see
 * watch_sweep().
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/stat.h>

#include "compat.h"
#include "hook.h"
#include "watch.h"

/* Far from each other: the kernel merges a process's locks that touch. */
static atomic64_t hook_last_position = ATOMIC64_INIT(OFFSET_MAX);

bool hook_possible(const struct file *file)
{
	umode_t mode = file_inode(file)->i_mode;

	return (S_ISSOCK(mode) || S_ISFIFO(mode)) && !file->f_op->lock;
}

static struct watch *hook_watch(struct file_lock *lock)
{
	return *(struct watch **)lock_private(lock);
}

/* "new" will be a lock that close() removes. Called with a lock held. */
static void hook_copied(struct file_lock *new, struct file_lock *lock)
{
	struct watch *watch = hook_watch(lock);

	watch_get(watch);
	WRITE_ONCE(watch->hooked, true);
	*(struct watch **)lock_private(new) = watch;
}

/* A lock of the watch is gone; its process does this. No lock is held. */
static void hook_removed(struct file_lock *lock)
{
	struct watch *watch = hook_watch(lock);
	struct file *file = watch_file(watch);

	if (file) {
		/* Setting n locks of an inode anew takes n * n steps. */
		if (watch_in_table(watch, file) &&
		    !fatal_signal_pending(current))
			hook_set(watch, file);
		else
			watch_end(watch, true);
		fput(file);
		cond_resched();
	}
	watch_put(watch);
}

static const struct file_lock_operations hook_operations = {
	.fl_copy_lock = hook_copied,
	.fl_release_private = hook_removed,
};

static int hook_lock(struct watch *watch, struct file *file, unsigned char type,
		     const struct file_lock_operations *operations)
{
	struct file_lock lock;

	lock_init_posix(&lock, file, watch->files, type);
	lock.fl_start = watch->position;
	lock.fl_end = watch->position;
	lock.fl_ops = operations;
	*(struct watch **)lock_private(&lock) = watch;
	/* The lock that is set is a copy, so this one needn't be released. */
	return posix_lock_file(file, &lock, NULL);
}

/*
 * Set the lock of a live watch, in its process. If another lock is in the way,
 * or memory is short, the watch isn't hooked.
 */
void hook_set(struct watch *watch, struct file *file)
{
	if (!watch->position)
		watch->position = atomic64_sub_return(2, &hook_last_position);
	/* hook_copied() says otherwise, unless the process has a lock there. */
	WRITE_ONCE(watch->hooked, false);
	hook_lock(watch, file, F_RDLCK, &hook_operations);
	/* The kernel's lock is a full barrier between the setting and this. */
	if (!READ_ONCE(watch->live))
		hook_clear(watch, file);
	else if (!watch_in_table(watch, file))
		watch_end(watch, false);
}

/* Remove the lock of a watch that has ended. */
void hook_clear(struct watch *watch, struct file *file)
{
	hook_lock(watch, file, F_UNLCK, NULL);
}
