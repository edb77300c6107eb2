// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device, /dev/flexsc. An open file is a registration, whether registered
 * yet or not. One ioctl of the device creates event control blocks, which have
 * files of their own.
 */
#include <linux/file.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "base/checks.h"
#include "base/compat.h"
#include "base/dispatch.h"
#include "base/registration.h"
#include "events/ecb.h"
#include "kmod.h"
#include "sched/cancel.h"
#include "sched/idle.h"
#include "sched/record.h"
#include "serve/serve.h"
#define CREATE_TRACE_POINTS
#include "base/trace.h"

static int device_open(struct inode *inode, struct file *file)
{
	file->private_data = registration_create();
	return file->private_data ? 0 : -ENOMEM;
}

static int device_release(struct inode *inode, struct file *file)
{
	registration_destroy(file->private_data);
	return 0;
}

/* Is the file registered, and by the current process? Returns 0 or -errno. */
static __always_inline int device_check(struct registration *reg)
{
	/* Pairs with registration_register(), which sets "mm" last. */
	struct mm_struct *mm = smp_load_acquire(&reg->mm);

	/*
	 * NULL must not match: it is the mm of a kernel thread, and that of an
	 * unregistered file.
	 */
	if (likely(mm && mm == current->mm))
		return 0;
	return mm ? -EPERM : -ENOTCONN;
}

/*
 * Is the current thread, about to become the owner, under a seccomp filter that
 * FLEXSC_REGISTER_FILTERED* didn't announce? If the filter was announced,
 * record it: from now on, syscall threads without a filter must not execute the
 * owner's entries.
 */
static __always_inline bool device_forbids(struct registration *reg)
{
	if (likely(!task_filtered()))
		return false;
	if (reg->filtered)
		WRITE_ONCE(reg->owner_filtered, true);
	return !reg->filtered;
}

/*
 * Make the current thread the owner, because it waits or kicks. Its credentials
 * apply from now on; see current_is_unfit(). "checked": security modules have
 * checked this call. They check an ioctl(), but not an lseek(). So an owner
 * with new credentials must use an ioctl() first; user mode does that when it
 * gets -EACCES.
 */
static __always_inline int device_own(struct registration *reg, bool checked)
{
	if (device_forbids(reg))
		return -EPERM;
	if (likely(READ_ONCE(reg->cred) == current_cred()))
		return 0;
	if (!checked)
		return -EACCES;
	registration_own(reg);
	return 0;
}

/* Hold a reference to the file while the current thread executes entries. */
static __always_inline int device_get(struct file *file)
{
	/*
	 * Refuse an ioctl that is itself the call of an entry: entries that
	 * execute entries could nest until the stack overflows.
	 */
	if (thread_inside())
		return -ELOOP;
	/*
	 * ioctl() itself holds no reference to the file if the process has a
	 * single thread, but an entry may close the file: hold one here.
	 */
	get_file(file);
	return 0;
}

/* FLEXSC_IOC_SERVE */
static long device_serve(struct file *file, struct flexsc_serve __user *user)
{
	long ret;

	might_sleep();
	ret = device_get(file);
	if (ret)
		return ret;
	ret = serve_ioctl(file->private_data, user);
	fput(file);
	return ret;
}

/* FLEXSC_IOC_WAIT. Inlined, because each instruction counts on this path. */
static __always_inline long device_wait(struct file *file,
					struct registration *reg, u64 seen,
					bool checked)
{
	long ret;

	RULE_MAY_SLEEP();
	ret = device_own(reg, checked);
	if (ret)
		return ret;
	ret = device_get(file);
	if (ret)
		return ret;
	ret = wait_ioctl(reg, seen);
	fput(file);
	return ret;
}

static u64 device_seen(const struct registration *reg)
{
	return READ_ONCE(reg->shared->seen);
}

/* The ioctls without a struct. */
static long device_command(struct registration *reg, unsigned int cmd, u64 arg,
			   bool checked)
{
	int err;

	switch (cmd) {
	case FLEXSC_IOC_KICK:
		err = device_own(reg, checked);
		return err ? err : kick_ioctl(reg);
	case FLEXSC_IOC_CANCEL:
		return cancel_entry(reg, (u32)arg);
	case FLEXSC_IOC_WAKE:
		return wake_ioctl(reg);
	case FLEXSC_IOC_END:
		idle_end_all(reg);
		return 0;
	default:
		return -ENOTTY;
	}
}

/*
 * FLEXSC_IOC_WAIT through lseek(), which costs less than ioctl(). The file's
 * "next data" is the number of completions beyond those that the owner has
 * seen. It also accepts the commands without a struct, for threads whose filter
 * forbids ioctl().
 */
static loff_t device_llseek(struct file *file, loff_t offset, int whence)
{
	struct registration *reg = file->private_data;
	int err = device_check(reg);

	if (err)
		return err;
	/*
	 * Refuse a 32-bit caller: its entries would be executed as 32-bit
	 * calls, too.
	 */
	if (in_compat_syscall())
		return -EINVAL;
	if (likely(whence == FLEXSC_WAIT_SEEK))
		return device_wait(file, reg, offset, false);
	if (whence != FLEXSC_CALL_SEEK)
		return -EINVAL;
	return device_command(reg, _IO(FLEXSC_IOC_MAGIC, offset & 0xff),
		       (u64)offset >> 8, false);
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct registration *reg = file->private_data;
	void __user *user = (void __user *)arg;
	int err;

	if (cmd == FLEXSC_IOC_REGISTER)
		return registration_register(reg, file, user);
	if (cmd == FLEXSC_IOC_ECB)
		return ecb_create(user);
	err = device_check(reg);
	if (err)
		return err;
	switch (cmd) {
	case FLEXSC_IOC_SERVE:
		return device_serve(file, user);
	case FLEXSC_IOC_WAIT:
		return device_wait(file, reg, device_seen(reg), true);
	case FLEXSC_IOC_SET_POLICY:
		return policy_set(reg, user);
	case FLEXSC_IOC_GET_POLICY:
		return policy_get(reg, user);
	default:
		return device_command(reg, cmd, arg, true);
	}
}

static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct registration *reg = file->private_data;
	int err = device_check(reg);

	return err ? err : area_map(&reg->area, vma);
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.mmap = device_mmap,
	.llseek = device_llseek,
};

static struct miscdevice device_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "flexsc",
	.mode = 0660,
	.fops = &device_operations,
};

static int __init flexsc_init(void)
{
	int err = dispatch_init();

	if (err)
		return err;
	err = threads_init(&block_ops);
	if (err)
		return err;
	err = ecb_file_init();
	if (err) {
		threads_exit();
		return err;
	}
	preempt_notifier_inc();
	debug_init();
	err = misc_register(&device_misc);
	if (err) {
		debug_exit();
		preempt_notifier_dec();
		ecb_file_exit();
		threads_exit();
	}
	return err;
}

static void __exit flexsc_exit(void)
{
	misc_deregister(&device_misc);
	/*
	 * Wait until the tasks that freed the last ECBs have left the module's
	 * code.
	 */
	synchronize_rcu_tasks();
	ecb_file_exit();
	debug_exit();
	preempt_notifier_dec();
	threads_exit();
}

module_init(flexsc_init);
module_exit(flexsc_exit);

MODULE_DESCRIPTION("FlexSC: system calls without mode switches");
MODULE_LICENSE("GPL");
