// SPDX-License-Identifier: GPL-2.0-only
/*
 * The close hook: how the module notices the close() of a watched descriptor.
 *
 * A watch has a reference to the file, so close() alone would not release the
 * file: no FIN would be sent, and a pipe's writer would not get EPIPE. But
 * close(), dup2(), close_range(), exec and the end of the process all call
 * locks_remove_posix(file, files), without a lock. At that point the number has
 * left the table of descriptors, and the closing thread still has its
 * reference. A kprobe there ends the watches of that descriptor, which drops
 * their references. So the closing thread's reference is the last one, and the
 * file is released inside close().
 *
 * Live watches are in a hash table, by the address of their file. The probe
 * runs for every close on the machine, and reads one word if the file's bucket
 * is empty. It runs in the closing thread's context with preemption disabled.
 * So it may not sleep, and leaves freeing an ECB to others: see
 * ecb_put_later().
 *
 *	out	-> in		hook_set(), by the owner, of a live watch
 *	in	-> out		watch_stop(), by the probe or by watch_end()
 *
 * Both hold the lock of the file's bucket. A watch that ends drops its
 * reference before it leaves the bucket. So if a probe finds the bucket empty,
 * the watch's reference is gone, too.
 *
 * No close is missed between hook_set() and the probe. A closing thread takes
 * the number out of the table of descriptors under files->file_lock, and its
 * probe runs later. hook_set() puts the watch in, then looks into that table
 * under the same lock. Either hook_set() finds the number gone, or the closing
 * thread's probe finds the watch.
 *
 * The probe is armed while there are ECBs, and for some seconds after the last
 * one, because arming and disarming it rewrites the kernel's code and waits for
 * all processors. If root disables kprobes or ftrace meanwhile, watches end
 * later: by FORGET, or with their ECB.
 */
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "base/compat.h"
#include "events/close_hook.h"
#include "events/watch.h"
#include "events/watch_life.h"

#define HOOK_BITS	15	/* the hash table has 2^15 buckets, 256 KiB */
/* Locks of buckets; taken before the locks of ECBs and wait queues. */
#define HOOK_LOCKS	256
#define HOOK_LINGERS	(10 * HZ)

static struct hlist_head hook_watches[1 << HOOK_BITS];
static spinlock_t hook_locks[HOOK_LOCKS];

static DEFINE_MUTEX(hook_mutex);	/* guards the next three variables */
static unsigned int hook_users;
static bool hook_armed;
static struct kprobe hook_probe;

static u32 hook_bucket(const struct file *file)
{
	return hash_ptr(file, HOOK_BITS);
}

/* Returns the lock of the file's bucket. */
spinlock_t *hook_lock(const struct file *file)
{
	return &hook_locks[hook_bucket(file) % HOOK_LOCKS];
}

/*
 * Is the watched descriptor closed? "files" is the closing thread's table of
 * descriptors.
 */
static bool hook_is_closed(const struct watch *watch, const struct file *file,
			   const void *files)
{
	/*
	 * A table other than the current task's was dropped by its last task,
	 * so all of its descriptors are being closed.
	 */
	if (current->files != files)
		return true;
	return !watch_in_table(watch, file);
}

/* End the file's watches whose descriptor is closed. */
static noinline void hook_end(const struct file *file, const void *files)
{
	struct hlist_node *next;
	struct watch *watch;
	u32 bucket = hook_bucket(file);

	spin_lock(hook_lock(file));
	hlist_for_each_entry_safe(watch, next, &hook_watches[bucket], hook)
		if (watch->file == file && watch->files == files &&
		    hook_is_closed(watch, file, files) && watch_stop(watch))
			watch_put(watch);
	spin_unlock(hook_lock(file));
}

static int hook_called(struct kprobe *probe, struct pt_regs *regs)
{
	const struct file *file = (void *)regs_get_kernel_argument(regs, 0);

	/*
	 * Reads the bucket after the closing thread has released
	 * files->file_lock; pairs with hook_is_open().
	 */
	if (unlikely(!hlist_empty(&hook_watches[hook_bucket(file)])))
		hook_end(file, (void *)regs_get_kernel_argument(regs, 1));
	return 0;
}

/* Insert a live watch. False: the file has too many watches already. */
static bool hook_insert(struct watch *watch)
{
	u32 bucket = hook_bucket(watch->file);
	const struct watch *other;
	unsigned int same = 0;

	lockdep_assert_held(hook_lock(watch->file));
	/* Don't insert the watch if another thread has ended it meanwhile. */
	if (!READ_ONCE(watch->live))
		return true;
	hlist_for_each_entry(other, &hook_watches[bucket], hook)
		same += other->file == watch->file;
	if (same >= FLEXSC_ECB_FILE_WATCHES)
		return false;
	watch->hooked = true;
	hlist_add_head(&watch->hook, &hook_watches[bucket]);
	return true;
}

/* Is the owner's descriptor still open? The lock pairs with hook_called(). */
static bool hook_is_open(const struct watch *watch)
{
	struct files_struct *files = current->files;
	bool open;

	spin_lock(&files->file_lock);
	open = watch_in_table(watch, watch->file);
	spin_unlock(&files->file_lock);
	return open;
}

/*
 * Put a live watch into the hook's table. The caller is the owner, and has a
 * reference to the file. False: the file has too many watches. The watch may
 * have ended on return.
 */
bool hook_set(struct watch *watch)
{
	bool set;

	spin_lock(hook_lock(watch->file));
	set = hook_insert(watch);
	spin_unlock(hook_lock(watch->file));
	if (!set || !hook_is_open(watch))
		watch_end(watch);
	return set;
}

/* Remove a watch that ends. The caller holds the bucket's lock. */
void hook_clear(struct watch *watch)
{
	lockdep_assert_held(hook_lock(watch->file));
	if (watch->hooked)
		hlist_del(&watch->hook);
	watch->hooked = false;
}

/* Arming. */

static int hook_register(void)
{
	int err;

	hook_probe = (struct kprobe){
		.symbol_name = "locks_remove_posix",
		.pre_handler = hook_called,
	};
	err = register_kprobe(&hook_probe);
	if (!err)
		hook_armed = true;
	return err == -ENOMEM ? err : err ? -EOPNOTSUPP : 0;
}

/* Arm the probe for a new ECB. Returns 0 or -errno. */
int hook_arm(void)
{
	int err = 0;

	mutex_lock(&hook_mutex);
	if (!hook_armed)
		err = hook_register();
	if (!err)
		hook_users++;
	mutex_unlock(&hook_mutex);
	return err;
}

static void hook_unregister(struct work_struct *work)
{
	mutex_lock(&hook_mutex);
	if (!hook_users && hook_armed) {
		unregister_kprobe(&hook_probe);
		hook_armed = false;
	}
	mutex_unlock(&hook_mutex);
}

static DECLARE_DELAYED_WORK(hook_work, hook_unregister);

/*
 * Called when an ECB is freed: disarm the probe some seconds after the last
 * one.
 */
void hook_disarm(void)
{
	mutex_lock(&hook_mutex);
	if (!--hook_users)
		schedule_delayed_work(&hook_work, HOOK_LINGERS);
	mutex_unlock(&hook_mutex);
}

void __init hook_init(void)
{
	int i;

	for (i = 0; i < HOOK_LOCKS; i++)
		spin_lock_init(&hook_locks[i]);
}

/*
 * Disarm the probe at once. The caller guarantees that there are no ECBs any
 * more.
 */
void hook_exit(void)
{
	cancel_delayed_work_sync(&hook_work);
	hook_unregister(NULL);
}
