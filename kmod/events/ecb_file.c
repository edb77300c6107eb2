// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of an ECB: creation, ioctls, mapping, and the owner's wait. Run by threads of
 * the process, in process context. See ecb.h.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "events/accept.h"
#include "events/close_hook.h"
#include "events/ecb.h"
#include "events/listener.h"
#include "events/upcall.h"
#include "events/watch.h"
#include "events/watch_life.h"

/* Waiting. */

/*
 * Is there an event that the owner waits for, or a connection to accept? A
 * pending signal comes before connections: otherwise peers that connect without
 * end would delay the signal.
 */
static bool ecb_has_work(struct ecb *ecb, u32 groups)
{
	return READ_ONCE(ecb->control->pending) & groups ||
	       (ecb_has_accepts(ecb) && !signal_pending(current));
}

/*
 * Does the owner have other task work than the ECB's? Such work releases, for
 * example, a file whose last reference the owner has dropped. The ECB's own
 * work, a notification, doesn't end a wait.
 */
static bool ecb_has_other_work(const struct ecb *ecb)
{
	const struct callback_head *work = READ_ONCE(current->task_works);

	/*
	 * Reading "next" is safe: only the owner takes the ECB's work off the
	 * list.
	 */
	return work && (work != &ecb->work || READ_ONCE(work->next));
}

/*
 * Sleep until the ECB has work, or until "expires". False: the time is up, or
 * the owner has to leave the kernel.
 */
static bool ecb_sleep(struct ecb *ecb, u32 groups, ktime_t *expires)
{
	bool has_work, slept = true;

	for (;;) {
		/* A full barrier: U3. */
		set_current_state(TASK_INTERRUPTIBLE);
		/*
		 * Other task work runs only on the way to user mode.
		 * TIF_NOTIFY_SIGNAL makes signal_pending() true, so the owner
		 * goes there, runs that work, and restarts the wait.
		 */
		if (slept && ecb_has_other_work(ecb))
			set_thread_flag(TIF_NOTIFY_SIGNAL);
		has_work = ecb_has_work(ecb, groups);
		if (has_work || !slept || signal_pending(current))
			break;
		slept = schedule_hrtimeout_range(expires,
						 current->timer_slack_ns,
						 HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return has_work;
}

static long ecb_wait_for(struct ecb *ecb, u32 groups, u64 deadline)
{
	ktime_t expires = min_t(u64, deadline, KTIME_MAX);

	listeners_retry(ecb);
	watch_flush(ecb);
	do {
		accept_run(ecb);
		if (READ_ONCE(ecb->control->pending) & groups)
			return 0;
	} while (ecb_sleep(ecb, groups,
			   deadline == U64_MAX ? NULL : &expires));
	/*
	 * Restart the wait if no signal's handler runs: the owner was only
	 * stopped, frozen or notified without an event, or it has released
	 * files.
	 */
	return signal_pending(current) ? -ERESTARTNOHAND : 0;
}

static long ecb_wait(struct ecb *ecb, u32 groups)
{
	u64 deadline = READ_ONCE(ecb->control->deadline);
	long ret;

	WRITE_ONCE(ecb->waits, true);
	WRITE_ONCE(ecb->control->waiting, groups);
	/* A full barrier: U3. */
	smp_mb();
	ret = ecb_wait_for(ecb, groups, deadline);
	WRITE_ONCE(ecb->control->waiting, 0);
	WRITE_ONCE(ecb->waits, false);
	/* A full barrier. Pairs with ecb_call(). */
	smp_mb();
	if (ecb_has_accepts(ecb))
		ecb_kick(ecb);
	return ret;
}

/* FLEXSC_ECB_FLUSH */
static long ecb_flush_held(struct ecb *ecb)
{
	listeners_retry(ecb);
	watch_flush(ecb);
	accept_run(ecb);
	if (ecb_has_accepts(ecb))
		ecb_kick(ecb);
	return !llist_empty(&ecb->starved);
}

/*
 * FLEXSC_ECB_KICK: a thread that is a source has pushed events from user mode.
 * Do what a source in the kernel does at S3.
 */
static long ecb_kick_groups(struct ecb *ecb, u32 groups)
{
	struct mm_struct *mm = READ_ONCE(ecb->owner->mm);

	/* The owner has ended, so no thread is notified. */
	if (!mm)
		return 0;
	/* The owner has executed another program, or the ECB has been closed. */
	if (mm != ecb->mm || READ_ONCE(ecb->closed))
		return -EPERM;
	/* Pairs with U3. */
	smp_mb();
	ecb_announce(ecb, groups);
	return 0;
}

/* The file. */

static int ecb_check(const struct ecb *ecb)
{
	return current->mm == ecb->mm ? 0 : -EPERM;
}

static int ecb_check_owner(const struct ecb *ecb)
{
	return current == ecb->owner ? ecb_check(ecb) : -EPERM;
}

static loff_t ecb_llseek(struct file *file, loff_t offset, int whence)
{
	struct ecb *ecb = file->private_data;
	int err = ecb_check_owner(ecb);

	if (err)
		return err;
	if (whence != FLEXSC_ECB_WAIT_SEEK)
		return -EINVAL;
	return ecb_wait(ecb, offset);
}

static long ecb_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct ecb *ecb = file->private_data;
	int err = cmd == FLEXSC_ECB_KICK ? ecb_check(ecb) :
					   ecb_check_owner(ecb);

	if (err)
		return err;
	switch (cmd) {
	case FLEXSC_ECB_WATCH:
		return watch_add(ecb, (void __user *)arg);
	case FLEXSC_ECB_FORGET:
		return watch_forget(ecb, arg);
	case FLEXSC_ECB_FLUSH:
		return ecb_flush_held(ecb);
	case FLEXSC_ECB_KICK:
		return ecb_kick_groups(ecb, arg);
	default:
		return -ENOTTY;
	}
}

static int ecb_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ecb *ecb = file->private_data;
	int err = ecb_check(ecb);

	return err ? err : area_map(&ecb->area, vma);
}

/*
 * Has the process that made the ECB ended or executed another program? Called
 * in that process.
 */
static bool ecb_process_is_gone(const struct ecb *ecb)
{
	if (task_tgid(current) != ecb->process)
		return false;
	/*
	 * Without an mm the process is ending: its last thread is closing the
	 * descriptors.
	 */
	return current->mm ? current->mm != ecb->mm :
			     !atomic_read(&current->signal->live);
}

/*
 * Called when a descriptor of the file is closed. If the process has ended,
 * drop the watched files now, even if a child of the process has another
 * descriptor.
 */
static int ecb_flush(struct file *file, fl_owner_t files)
{
	struct ecb *ecb = file->private_data;

	if (ecb_process_is_gone(ecb))
		watches_end(ecb);
	return 0;
}

static int ecb_release(struct inode *inode, struct file *file)
{
	watches_end(file->private_data);
	ecb_put(file->private_data);
	return 0;
}

static const struct file_operations ecb_operations = {
	.owner = THIS_MODULE,
	.flush = ecb_flush,
	.release = ecb_release,
	.unlocked_ioctl = ecb_ioctl,
	.mmap = ecb_mmap,
	.llseek = ecb_llseek,
};

/* Creation. */

static int ecb_check_args(const struct flexsc_ecb_create *args)
{
	int i;

	if (args->size != sizeof(*args))
		return -EINVAL;
	if (args->abi != FLEXSC_ECB_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (!args->events || args->events > FLEXSC_ECB_EVENTS_MAX ||
	    args->flags & ~(FLEXSC_ECB_INTERRUPTS_CALLS | FLEXSC_ECB_TIMES))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(args->reserved); i++)
		if (args->reserved[i])
			return -EINVAL;
	return task_filtered() ? -EPERM : 0;
}

static u64 ecb_area(u32 events)
{
	return PAGE_ALIGN(FLEXSC_ECB_SLOTS_OFFSET +
			  events * sizeof(struct flexsc_event_slot));
}

static int ecb_make_memory(struct ecb *ecb, u64 area)
{
	int err = area_make(&ecb->area, area);

	if (err)
		return err;
	ecb->control = ecb->area.memory;
	ecb->slots = ecb->area.memory + FLEXSC_ECB_SLOTS_OFFSET;
	err = watches_make(ecb);
	if (err)
		area_free(&ecb->area);
	return err;
}

static struct ecb *ecb_make(const struct flexsc_ecb_create *args)
{
	struct ecb *ecb = kzalloc(sizeof(*ecb), GFP_KERNEL_ACCOUNT);
	int err;

	if (!ecb)
		return ERR_PTR(-ENOMEM);
	ecb->events = args->events;
	ecb->flags = args->flags;
	err = ecb_make_memory(ecb, args->area);
	if (err) {
		kfree(ecb);
		return ERR_PTR(err);
	}
	err = hook_arm();
	if (err) {
		watches_free(ecb);
		area_free(&ecb->area);
		kfree(ecb);
		return ERR_PTR(err);
	}
	spin_lock_init(&ecb->lock);
	ecb->pkru = upcall_rights();
	ecb->owner = get_task_struct(current);
	ecb->process = get_pid(task_tgid(current));
	ecb->mm = current->mm;
	mmgrab(ecb->mm);
	ecb_work_init(ecb);
	__module_get(THIS_MODULE);
	return ecb;
}

/* FLEXSC_IOC_ECB: make an ECB, and return its descriptor. */
int ecb_create(struct flexsc_ecb_create __user *user)
{
	struct flexsc_ecb_create args;
	struct ecb *ecb;
	int err, fd;

	if (copy_from_user(&args, user, sizeof(args)))
		return -EFAULT;
	err = ecb_check_args(&args);
	if (err)
		return err;
	args.area = ecb_area(args.events);
	if (copy_to_user(user, &args, sizeof(args)))
		return -EFAULT;
	ecb = ecb_make(&args);
	if (IS_ERR(ecb))
		return PTR_ERR(ecb);
	fd = anon_inode_getfd("[flexsc_ecb]", &ecb_operations, ecb,
			      O_RDWR | O_CLOEXEC);
	if (fd < 0)
		ecb_put(ecb);
	return fd;
}

int __init ecb_file_init(void)
{
	int err = watches_init();

	if (err)
		return err;
	hook_init();
	return ecb_init();
}

/* Called when no ECB is left. */
void ecb_file_exit(void)
{
	ecb_exit();
	hook_exit();
}
