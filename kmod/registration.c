// SPDX-License-Identifier: GPL-2.0-only
/*
 * A registration: created once, mapped by its process, destroyed with the last
 * reference to its file. Each thread in an ioctl and each mapping holds such a
 * reference, so no thread uses the memory any more when it is destroyed.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/seccomp.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/entry.h"
#include "base/registration.h"
#include "kmod.h"
#include "sched/permit.h"
#include "sched/process.h"
#include "sched/recall.h"
#include "sched/record.h"
#include "serve/serve.h"

struct registration *registration_create(void)
{
	struct registration *reg = kvzalloc(sizeof(*reg), GFP_KERNEL_ACCOUNT);
	int i;

	if (!reg)
		return NULL;
	mutex_init(&reg->setup);
	raw_spin_lock_init(&reg->lock);
	INIT_LIST_HEAD(&reg->idle);
	INIT_LIST_HEAD(&reg->all);
	INIT_LIST_HEAD(&reg->siblings);
	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		reg->permits[i].reg = reg;
		reg->permits[i].core = -1;
		init_irq_work(&reg->permits[i].blocked, block_permit_freed);
	}
	death_init(reg);
	waiter_init(reg);
	policy_init(reg);
	return reg;
}

/* Memory. */

/* Lay out the area, and describe it for user mode. */
static void registration_lay_out(struct flexsc_register *args)
{
	args->ring_entries = args->pages * FLEXSC_PAGE_ENTRIES;
	args->ring_offset = PAGE_SIZE;
	args->entries_offset = PAGE_SIZE +
		PAGE_ALIGN(args->ring_entries * sizeof(u32));
	args->area = args->entries_offset +
		PAGE_ALIGN(args->ring_entries * sizeof(struct flexsc_entry));
	args->features = FLEXSC_FEATURE_CORES | FLEXSC_FEATURE_TAKEOVER |
			 FLEXSC_FEATURE_BLOCKED;
	if (syscall_traced())
		args->features |= FLEXSC_FEATURE_TRACED;
}

static int registration_make_area(struct registration *reg,
				  const struct flexsc_register *args)
{
	int err;

	lockdep_assert_held(&reg->setup);
	reg->entry_count = args->ring_entries;
	reg->mask = reg->entry_count - 1;
	reg->companions = kvcalloc(reg->entry_count, sizeof(*reg->companions),
				   GFP_KERNEL_ACCOUNT);
	if (!reg->companions)
		return -ENOMEM;
	err = area_make(&reg->area, args->area);
	if (err) {
		kvfree(reg->companions);
		return err;
	}
	reg->shared = reg->area.memory;
	reg->ring = reg->area.memory + args->ring_offset;
	reg->entries = reg->area.memory + args->entries_offset;
	reg->shared->completions.head = FLEXSC_NO_ENTRY;
	reg->shared->needs_kick = 1;
	return 0;
}

static void registration_free_area(struct registration *reg)
{
	area_free(&reg->area);
	kvfree(reg->companions);
}

/* Registering. */

static int registration_check(const struct flexsc_register *args)
{
	if (args->size != sizeof(*args))
		return args->size < sizeof(*args) ? -EINVAL : -E2BIG;
	if (args->abi != FLEXSC_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (args->flags & ~(FLEXSC_REGISTER_FILTERED |
			    FLEXSC_REGISTER_FILTERED_LATER) ||
	    args->reserved[0] || args->reserved[1] || args->reserved[2])
		return -EINVAL;
	if (!is_power_of_2(args->pages) || args->pages > FLEXSC_PAGES_MAX)
		return -EINVAL;
	return 0;
}

int registration_register(struct registration *reg, struct file *file,
			  struct flexsc_register __user *user)
{
	struct flexsc_register args;
	int err;

	if (copy_from_user(&args, user, sizeof(args)))
		return -EFAULT;
	err = registration_check(&args);
	if (err)
		return err;
	if (task_filtered() && !(args.flags & FLEXSC_REGISTER_FILTERED))
		return -EPERM;
	/* Before the file is registered, so that an error leaves it unregistered. */
	registration_lay_out(&args);
	if (copy_to_user(user, &args, sizeof(args)))
		return -EFAULT;
	mutex_lock(&reg->setup);
	err = reg->mm ? -EALREADY : registration_make_area(reg, &args);
	if (!err) {
		err = process_join(reg);
		if (err)
			registration_free_area(reg);
	}
	if (!err) {
		reg->filtered = args.flags;
		reg->file = file;
		reg->cred = get_current_cred();
		reg->pid = task_tgid_nr(current);
		mmgrab(current->mm);
		/*
		 * Pairs with device_check(). All fields but "id" are set by
		 * now.
		 */
		smp_store_release(&reg->mm, current->mm);
		debug_add(reg);
	}
	mutex_unlock(&reg->setup);
	return err;
}

/*
 * Make the current task the owner: entries are executed with its credentials
 * from now on. If several tasks do so at the same time, any of them may end up
 * as the owner.
 */
void registration_own(struct registration *reg)
{
	put_cred(xchg(&reg->cred, get_current_cred()));
	/*
	 * Threads created from now on inherit these credentials, so they may
	 * execute entries, even if earlier new threads were unfit.
	 */
	WRITE_ONCE(reg->unfit_threads, 0);
	WRITE_ONCE(reg->no_more, false);
	/*
	 * Wake a thread that waits with other credentials: it isn't the owner
	 * any more, so its wait has to end.
	 */
	wake_up(&reg->wait);
}

/*
 * Wait for the permits' irq_works that were queued. No task is in an ioctl, so
 * no task has a permit, and no further irq_work can be queued.
 */
static void registration_end_permits(struct registration *reg)
{
	int i;

	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		WARN_ON_ONCE(reg->permits[i].active);
		irq_work_sync(&reg->permits[i].blocked);
	}
}

/*
 * End the timers of the waiter and of the progress checks. Everything that
 * starts them has ended: the irq_works, and the handling of dead threads.
 */
static void registration_end_timers(struct registration *reg)
{
	hrtimer_cancel(&reg->timer);
	hrtimer_cancel(&reg->progress);
}

/*
 * Check that no thread waits or is idle, and that nothing is left that could
 * wake one.
 */
static void registration_check_deserted(struct registration *reg)
{
	WARN_ON_ONCE(hrtimer_active(&reg->timer));
	WARN_ON_ONCE(hrtimer_active(&reg->progress));
	WARN_ON_ONCE(reg->waiter);
	/* Needs no barrier, because no task can enter any more. */
	WARN_ON_ONCE(waitqueue_active(&reg->wait));
	WARN_ON_ONCE(!list_empty(&reg->idle));
	WARN_ON_ONCE(atomic_read(&reg->idle_count));
}

/*
 * Destroy a registration. Called when the file is gone, so no task is in an
 * ioctl. Each task that died in one has been finished, which drops its
 * reference to the file last of all. Each step relies on those before it, and
 * checks that. Leftovers of user mode, such as entries on the deferred list,
 * are not an error.
 */
void registration_destroy(struct registration *reg)
{
	might_sleep();
	if (reg->mm) {
		/*
		 * Remove the registration from debugfs first, because debugfs
		 * reads it.
		 */
		debug_remove(reg);
		registration_end_permits(reg);
		death_fini(reg);
		registration_end_timers(reg);
		registration_check_deserted(reg);
		process_leave(reg);
		/*
		 * Free the records and the memory last: nothing refers to them
		 * any more.
		 */
		threads_free(reg);
		put_cred(reg->cred);
		mmdrop(reg->mm);
		registration_free_area(reg);
	}
	kvfree(reg);
}
