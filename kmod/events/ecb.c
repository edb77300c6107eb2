// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event control blocks: creation, mapping, waiting, the owner's task work, and
 * the end. See ecb.h.
 */
#include <linux/anon_inodes.h>
#include <linux/compat.h>
#include <linux/file.h>
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
#include "events/ecb.h"
#include "events/hook.h"
#include "events/upcall.h"
#include "events/upcall_x86.h"
#include "events/watch.h"

static struct workqueue_struct *ecb_queue;

/* References. */

void ecb_get(struct ecb *ecb)
{
	refcount_inc(&ecb->refs);
}

static void ecb_free(struct ecb *ecb)
{
	might_sleep();
	put_task_struct(ecb->owner);
	put_pid(ecb->process);
	mmdrop(ecb->mm);
	watches_free(ecb);
	area_free(&ecb->area);
	kfree(ecb);
	hook_disarm();
	/* flexsc_exit() waits until the current task has left this function. */
	module_put(THIS_MODULE);
}

static void ecb_put(struct ecb *ecb)
{
	if (refcount_dec_and_test(&ecb->refs))
		ecb_free(ecb);
}

/* Queue the attendance, which gets the caller's reference. Any context. */
static void ecb_attend_later(struct ecb *ecb)
{
	/* A queued attendance has a reference, but may have run by now. */
	while (!queue_work(ecb_queue, &ecb->attendance))
		if (refcount_dec_not_one(&ecb->refs))
			break;
}

/* Give a reference back where it isn't allowed to sleep. */
void ecb_put_later(struct ecb *ecb)
{
	if (!refcount_dec_not_one(&ecb->refs))
		ecb_attend_later(ecb);
}

/* The owner. */

/*
 * Is the owner still in its own process? A program that it executed may have other
 * rights, and may not be disturbed. The caller keeps interrupts off until it has
 * acted. So it acts on an outdated answer within microseconds, while the owner is
 * still in exec: an interrupt handler in between could last until the new program runs.
 */
static bool ecb_owner_stays(const struct ecb *ecb)
{
	return READ_ONCE(ecb->owner->mm) == ecb->mm;
}

static void ecb_attend(struct work_struct *work)
{
	struct ecb *ecb = container_of(work, struct ecb, attendance);

	if (!ecb_owner_stays(ecb))
		watches_end(ecb);
	else if (ecb_has_accepts(ecb))
		ecb_call(ecb);
	ecb_put(ecb);
}

/* The owner has left its process: close the ECB. Any context. */
static noinline void ecb_abandon(struct ecb *ecb)
{
	ecb_get(ecb);
	ecb_attend_later(ecb);
}

/* The task work. */

/* Is the current task, the owner, to go on in its own process? */
static bool ecb_owner_goes_on(const struct ecb *ecb)
{
	return ecb_owner_stays(ecb) && !(current->flags & PF_EXITING);
}

static void ecb_work(struct callback_head *work)
{
	struct ecb *ecb = container_of(work, struct ecb, work);
	bool goes_on = ecb_owner_goes_on(ecb);

	WARN_ON_ONCE(current != ecb->owner);
	if (goes_on)
		accept_run(ecb);
	else
		watches_end(ecb);
	/* A full barrier: what came until now is looked at below. */
	WARN_ON_ONCE(!atomic_xchg(&ecb->queued, 0));
	if (goes_on)
		upcall_notify(ecb);
	if (goes_on && ecb_has_accepts(ecb))
		ecb_attend_later(ecb);
	else
		ecb_put(ecb);
}

static bool ecb_add_work(struct ecb *ecb)
{
	enum task_work_notify_mode mode =
		ecb->flags & FLEXSC_ECB_INTERRUPTS_CALLS ? TWA_SIGNAL :
							   TWA_RESUME;
	unsigned long flags;
	bool added;

	local_irq_save(flags);
	added = ecb_owner_stays(ecb) &&
		!task_work_add(ecb->owner, &ecb->work, mode);
	local_irq_restore(flags);
	return added;
}

/*
 * Have the owner call ecb_work() before it goes on in user mode: at once if it
 * is there. Any context; the caller has a reference.
 */
void ecb_kick(struct ecb *ecb)
{
	/* A full barrier. Pairs with ecb_work(). */
	if (atomic_xchg(&ecb->queued, 1))
		return;
	ecb_get(ecb);
	if (!ecb_add_work(ecb))
		ecb_attend_later(ecb);
}

/* Wake the owner if it sleeps interruptibly. The owner looks at the words again. */
void ecb_wake(struct ecb *ecb)
{
	wait_queue_entry_t sleeper = { .private = ecb->owner };
	unsigned long flags;
	bool stays;

	local_irq_save(flags);
	stays = ecb_owner_stays(ecb);
	if (stays)
		default_wake_function(&sleeper, TASK_INTERRUPTIBLE, 0, NULL);
	local_irq_restore(flags);
	if (!stays)
		ecb_abandon(ecb);
}

/* The owner has to run something in its context. Any context. */
void ecb_call(struct ecb *ecb)
{
	/* Pairs with ecb_wait(). */
	smp_mb();
	if (READ_ONCE(ecb->waits))
		ecb_wake(ecb);
	else
		ecb_kick(ecb);
}

/* Waiting. */

/*
 * Is there an event that the owner waits for, or a connection to accept? A signal
 * comes before connections, because peers can connect without end.
 */
static bool ecb_stirs(struct ecb *ecb, u32 groups)
{
	return READ_ONCE(ecb->control->pending) & groups ||
	       (ecb_has_accepts(ecb) && !signal_pending(current));
}

/* Sleep until it does, or until "expires". False: a signal or the time came. */
static bool ecb_sleep(struct ecb *ecb, u32 groups, ktime_t *expires)
{
	bool stirs, slept = true;

	for (;;) {
		/* A full barrier: U3. */
		set_current_state(TASK_INTERRUPTIBLE);
		stirs = ecb_stirs(ecb, groups);
		if (stirs || !slept || signal_pending(current))
			break;
		slept = schedule_hrtimeout_range(expires,
						 current->timer_slack_ns,
						 HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return stirs;
}

static long ecb_wait_for(struct ecb *ecb, u32 groups, u64 deadline)
{
	ktime_t expires = min_t(u64, deadline, KTIME_MAX);

	accept_retry(ecb);
	watch_flush(ecb);
	do {
		accept_run(ecb);
		if (READ_ONCE(ecb->control->pending) & groups)
			return 0;
	} while (ecb_sleep(ecb, groups,
			   deadline == U64_MAX ? NULL : &expires));
	/* Being stopped, frozen, or notified in vain is no reason to return. */
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
	accept_retry(ecb);
	watch_flush(ecb);
	accept_run(ecb);
	if (ecb_has_accepts(ecb))
		ecb_kick(ecb);
	return !llist_empty(&ecb->starved);
}

/*
 * FLEXSC_ECB_KICK: what a source in the kernel does at S3, for one that is a
 * thread.
 */
static long ecb_kick_groups(struct ecb *ecb, u32 groups)
{
	struct mm_struct *mm = READ_ONCE(ecb->owner->mm);

	/* An owner that ended isn't notified. */
	if (!mm)
		return 0;
	/* It executed another program, or the ECB has been closed. */
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

/* Has the current process, the ECB's, ended or executed another program? */
static bool ecb_process_is_gone(const struct ecb *ecb)
{
	if (task_tgid(current) != ecb->process)
		return false;
	/* Its threads end, and the last one closes the descriptors. */
	return current->mm ? current->mm != ecb->mm :
			     !atomic_read(&current->signal->live);
}

/*
 * A descriptor of the file is closed. If the process has ended, the watched files are
 * given up, even if a child of the process has another descriptor.
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
	INIT_WORK(&ecb->attendance, ecb_attend);
	ecb->pkru = upcall_rights();
	ecb->owner = get_task_struct(current);
	ecb->process = get_pid(task_tgid(current));
	ecb->mm = current->mm;
	mmgrab(ecb->mm);
	init_task_work(&ecb->work, ecb_work);
	refcount_set(&ecb->refs, 1);
	__module_get(THIS_MODULE);
	return ecb;
}

/* FLEXSC_IOC_ECB: its descriptor. */
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

int __init ecb_init(void)
{
	int err = watches_init();

	if (err)
		return err;
	hook_init();
	ecb_queue = alloc_workqueue("flexsc_ecb", WQ_UNBOUND, 0);
	return ecb_queue ? 0 : -ENOMEM;
}

/* No ECB is left, but a worker may be about to leave the last one. */
void ecb_exit(void)
{
	destroy_workqueue(ecb_queue);
	hook_exit();
}
