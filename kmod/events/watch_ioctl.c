// SPDX-License-Identifier: GPL-2.0-only
/*
 * FLEXSC_ECB_WATCH, FORGET and FLUSH: start a watch for a descriptor, end it,
 * and deliver its held events. Run by the owner, in process context.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/dispatch.h"
#include "events/accept.h"
#include "events/event.h"
#include "events/listener.h"
#include "events/watch.h"
#include "events/watch_life.h"

static int watch_check(const struct flexsc_ecb_watch *args)
{
	if (args->flags & ~FLEXSC_WATCH_ACCEPT ||
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

/*
 * Files that wait for other files, such as epoll sets, can't be watched:
 * callbacks could call each other in a circle.
 */
static const char *const watch_watchers[] = {
#ifdef CONFIG_EPOLL
	"eventpoll_fops",
#endif
#ifdef CONFIG_IO_URING
	"io_uring_fops",
#endif
};

/*
 * The addresses of the structures in watch_watchers. The extra element keeps
 * the array from being empty, which C forbids.
 */
static const void *watch_watcher_ops[ARRAY_SIZE(watch_watchers) + 1]
	__ro_after_init;

/*
 * Returns 0, or -EOPNOTSUPP if this kernel lacks a symbol by which files that
 * wait for other files are recognised.
 */
int __init watches_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(watch_watchers); i++) {
		watch_watcher_ops[i] = dispatch_address(watch_watchers[i]);
		if (!watch_watcher_ops[i]) {
			pr_err("no function %s: this kernel isn't supported\n",
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
	watch->kind = event_kind(args->type, array_index_nospec(args->group,
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

/* Watch a slot that threads push from user mode. The watch has no file. */
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

/* Deliver the events that poll(2) reported when the watch was started. */
static void watch_report(struct watch *watch, u32 level)
{
	if (!event_allowed(watch->ecb, watch->mask))
		watch_hold(watch, level);
	else if (watch->inherit)
		listener_enqueue(watch);
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
	/*
	 * Another thread may close the file, which ends the watch. This
	 * reference keeps the ended watch from being reused, because
	 * watch_report() reads its "inherit".
	 */
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
		listener_enqueue(watch);
	} else {
		level = (__force u32)vfs_poll(file, NULL) & watch->want;
		if (level)
			watch_deliver(watch, level);
	}
	fput(file);
}

/* Deliver all held events whose groups are allowed now. */
void watch_flush(struct ecb *ecb)
{
	struct llist_node *node;
	struct watch *watch, *next;
	u32 bits;

	/*
	 * The list begins with the newest watch, but the oldest event must be
	 * delivered first.
	 */
	node = llist_reverse_order(llist_del_all(&ecb->held));
	llist_for_each_entry_safe(watch, next, node, held) {
		atomic_dec(event_word(&ecb->control->held));
		/*
		 * Clears WATCH_HELD, so from here on a source may put the watch
		 * on the list again.
		 */
		bits = atomic_xchg(&watch->kept, 0) & ~WATCH_HELD;
		if (bits)
			watch_release(watch, bits);
		cond_resched();
	}
}
