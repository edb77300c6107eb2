// SPDX-License-Identifier: GPL-2.0-only
/*
 * Auto-accept (SEND, section 3.6.1): connections are accepted when they are
 * delivered. The owner, in the kernel, accepts them on its way to user mode or
 * while it waits, by the kernel's own accept4(). So the owner's own credentials
 * apply. Each connection gets a watch.
 *
 * An ACCEPTING WATCH, the watch of a listening socket, is on one list at most.
 * In the code it is called "listener":
 *
 *	none	 -> accepts	a connection may be pending, and is to be delivered
 *	accepts	 -> none	all are accepted, or are held
 *	accepts	 -> accepts	more may be pending: its round is over, or the
 *				owner takes a signal first
 *	accepts	 -> starved	no slot or no descriptor is left: an event of the
 *				accepting watch reports it
 *	starved	 -> accepts	a watch ended, or the owner waits or flushes
 *
 * Connections are accepted in rounds: in a task work, which is queued when a
 * watch is put on "accepts", and by the owner before it sleeps or stops waiting.
 * What a round leaves, or what arrives meanwhile, is accepted in a later round
 * (ecb_work.c).
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/dispatch.h"
#include "events/accept.h"
#include "events/event.h"
#include "events/listener.h"
#include "events/watch.h"
#include "events/watch_life.h"

#define ACCEPT_TURN	64	/* most connections per watch and round */

int accept_check(const struct flexsc_ecb_watch *args)
{
	if (args->fd == -1 || args->accept_want & ~FLEXSC_EVENT_POLL ||
	    args->accept_group >= FLEXSC_ECB_GROUPS ||
	    args->accept_flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return -EINVAL;
	return 0;
}

int accept_check_file(const struct file *file)
{
	return S_ISSOCK(file_inode(file)->i_mode) &&
	       READ_ONCE(file->f_flags) & O_NONBLOCK ? 0 : -EOPNOTSUPP;
}

struct inherit *accept_inherit(const struct flexsc_ecb_watch *args)
{
	struct inherit *inherit = kmalloc(sizeof(*inherit), GFP_KERNEL_ACCOUNT);

	if (!inherit)
		return NULL;
	inherit->want = args->accept_want;
	inherit->group = array_index_nospec(args->accept_group,
					    FLEXSC_ECB_GROUPS);
	inherit->flags = args->accept_flags;
	inherit->data = args->accept_data;
	return inherit;
}

/* Accepting. */

/*
 * May the kernel accept connections of this file on behalf of the program? Not
 * if accept4() would block, or if a tracer or filter must see the call.
 */
static bool accept_possible(const struct file *file)
{
	return READ_ONCE(file->f_flags) & O_NONBLOCK && !syscall_traced();
}

/*
 * Clear TIF_SIGPENDING, unless a signal is pending. Done under siglock, under
 * which the kernel sends signals. Otherwise a signal that arrives between the
 * check and the clearing would stay unnoticed until the next signal, and a
 * SIGKILL for ever, because no signal follows it.
 */
static void accept_clear_sigpending(void)
{
	/* Needs no RCU lock: the current thread's own sighand never changes. */
	spinlock_t *lock = &rcu_dereference_raw(current->sighand)->siglock;

	spin_lock_irq(lock);
	recalc_sigpending();
	spin_unlock_irq(lock);
}

/*
 * Call accept4() so that it takes a pending connection, but doesn't wait for
 * one: TIF_SIGPENDING is set during the call, because another thread may have
 * cleared the socket's O_NONBLOCK meanwhile.
 */
static long accept_call(int fd, u32 flags)
{
	const struct flexsc_entry entry = { .args = { fd, 0, 0, flags } };
	struct pt_regs regs = { 0 };
	long ret;

	regs_load(&regs, &entry, __NR_accept4);
	set_thread_flag(TIF_SIGPENDING);
	ret = dispatch_of(__NR_accept4)(&regs);
	accept_clear_sigpending();
	return ret;
}

static void accept_store_peer(struct file *file, struct flexsc_event_slot *slot)
{
	struct flexsc_event_peer *peer = (void *)slot->payload;
	struct sockaddr_storage address = { 0 };
	struct socket *socket = sock_from_file(file);
	const struct sockaddr_in *in = (void *)&address;
	const struct sockaddr_in6 *in6 = (void *)&address;

	BUILD_BUG_ON(sizeof(*peer) != sizeof(slot->payload));
	memset(peer, 0, sizeof(*peer));
	if (!socket || kernel_getpeername(socket, (void *)&address) < 0)
		return;
	if (address.ss_family == AF_INET) {
		peer->family = AF_INET;
		peer->port = (__force u16)in->sin_port;
		memcpy(peer->address, &in->sin_addr, sizeof(in->sin_addr));
	} else if (address.ss_family == AF_INET6) {
		peer->family = AF_INET6;
		peer->port = (__force u16)in6->sin6_port;
		peer->scope = in6->sin6_scope_id;
		memcpy(peer->address, &in6->sin6_addr, sizeof(in6->sin6_addr));
	}
}

/*
 * Watch a connection and deliver its first event. The slot is claimed before
 * the watch's callbacks can run, so they only add bits to that event. Even if
 * the descriptor has been closed already, the slot is pushed, and then revoked.
 */
static void accept_deliver(struct watch *listener, struct watch *watch,
			   struct file *file)
{
	struct ecb *ecb = watch->ecb;
	struct flexsc_event_slot *slot = &ecb->slots[watch->index];
	int level;

	event_claim(slot, 0);
	accept_store_peer(file, slot);
	level = watch_start(watch, file);
	/*
	 * The watch has failed: close the connection, unless its descriptor
	 * refers to another file by now.
	 */
	if ((level == -ENOSPC || level == -ENOENT) &&
	    watch_in_table(watch, file))
		close_fd(watch->fd);
	watch_deliver_claimed(watch, max(level, 0),
			      event_kind(FLEXSC_EVT_IPACCEPT,
					 listener->kind >> 16));
}

static void accept_one(struct watch *listener, struct watch *watch, int fd)
{
	const struct inherit *inherit = listener->inherit;
	struct file *file = fget(fd);

	/*
	 * Drop the connection: another thread has closed or replaced the
	 * descriptor.
	 */
	if (!file || !sock_from_file(file)) {
		if (file)
			fput(file);
		return watch_put(watch);
	}
	watch->fd = fd;
	watch->want = inherit->want | POLLERR | POLLHUP;
	watch->kind = event_kind(FLEXSC_EVT_IOREADY, inherit->group);
	watch_prepare(watch, inherit->data);
	accept_deliver(listener, watch, file);
	fput(file);
}

/* Deliver an event of the accepting watch itself. */
static void listener_report(struct watch *listener, u32 kind, long error)
{
	struct flexsc_event_slot *slot =
		&listener->ecb->slots[listener->index];

	if (!event_claim(slot, error ? FLEXSC_EVENT_CHECK : POLLIN))
		return;
	slot->error = error;
	watch_deliver_claimed(listener, 0, kind);
}

/*
 * Report an error of accepting, unless one was reported already since a
 * connection was accepted, or none was pending.
 */
static void listener_overflow(struct watch *listener, long error, u32 frees)
{
	if (!listener->overflowed) {
		listener->overflowed = true;
		atomic_inc(event_word(&listener->ecb->control->overflows));
		listener_report(listener, event_kind(FLEXSC_EVT_OVERFLOW,
						     listener->kind >> 16), error);
	}
	listener_starve(listener, frees);
}

/*
 * Would another accept4() return something? Poll first: on an empty queue
 * accept4() would allocate a file in vain. Also, some protocols check for
 * signals before O_NONBLOCK, and under accept_call() return -EINTR instead of
 * -EAGAIN.
 */
static bool accept_pending(struct file *file)
{
	return vfs_poll(file, NULL) & (EPOLLIN | EPOLLERR | EPOLLHUP);
}

/* Handle an error of accept4(). True: another connection may be pending. */
static bool accept_failed(struct watch *listener, struct file *file, long error,
			  u32 frees)
{
	switch (error) {
	case -ECONNABORTED:
	case -EPROTO:
	case -ERESTARTSYS:	/* O_NONBLOCK has been cleared */
	case -EINTR:
		return accept_pending(file);
	case -EAGAIN:
		listener->overflowed = false;
		return false;
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ENOBUFS:
	case -ENOSPC:
		listener_overflow(listener, error, frees);
		return false;
	default:
		listener_report(listener, listener->kind, error);
		return false;
	}
}

/* Accept one connection. True: more may be pending. */
static bool accept_next(struct watch *listener, struct file *file)
{
	u32 frees = READ_ONCE(listener->ecb->frees);
	struct watch *watch;
	long fd;

	if (!event_allowed(listener->ecb, BIT(listener->kind >> 16))) {
		watch_hold(listener, POLLIN);
		return false;
	}
	if (!accept_possible(file) || !watch_in_table(listener, file)) {
		listener_report(listener, listener->kind, 0);
		return false;
	}
	watch = watch_take(listener->ecb);
	if (!watch)
		return accept_failed(listener, file, -ENOSPC, frees);
	fd = accept_call(listener->fd, listener->inherit->flags);
	if (fd >= 0) {
		listener->overflowed = false;
		accept_one(listener, watch, fd);
		return accept_pending(file);
	}
	watch_return(watch);
	return accept_failed(listener, file, fd, frees);
}

static void accept_some(struct watch *listener, struct file *file)
{
	int i;

	for (i = 0; i < ACCEPT_TURN && !task_sigpending(current); i++) {
		if (!accept_next(listener, file))
			return;
		cond_resched();
	}
	listener_put_back(listener);
}

static void accept_turn(struct watch *listener)
{
	struct file *file;

	/*
	 * With this reference, the watch's slot can't be reused for a
	 * connection.
	 */
	if (!watch_get_live(listener))
		return;
	file = watch_file(listener);
	/*
	 * Do nothing if the watch has been reused for a source that doesn't
	 * accept.
	 */
	if (file && listener->inherit)
		accept_some(listener, file);
	if (file)
		fput(file);
	watch_put(listener);
}

/*
 * Accept what is pending, for one round, in the owner's context, without locks.
 * A signal ends the round.
 */
void accept_run(struct ecb *ecb)
{
	struct llist_node *node;
	struct watch *listener, *next;

	if (!ecb_has_accepts(ecb) || task_sigpending(current))
		return;
	listeners_requeue(ecb);
	node = llist_del_all(&ecb->accepts);
	llist_for_each_entry_safe(listener, next, node, accepts) {
		if (task_sigpending(current)) {
			llist_add(&listener->accepts, &ecb->accepts);
			continue;
		}
		clear_bit(WATCH_ACCEPTS, &listener->lists);
		/*
		 * A full barrier. A callback that found the bit still set
		 * hasn't queued the watch again, so accept_turn() must see the
		 * callback's connection.
		 */
		smp_mb__after_atomic();
		accept_turn(listener);
		cond_resched();
	}
}
