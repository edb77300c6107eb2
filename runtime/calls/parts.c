/* SPDX-License-Identifier: MIT */
/*
 * Transfers in parts. Runs on the user thread itself, inside the runtime.
 *
 * A plain write() to a pipe or a socket waits until all is written, and a receive with
 * MSG_WAITALL until all has arrived. io_uring can do the same in one request. But only
 * the kernel knows how much an armed request has transferred, so the heir of a stuck
 * carrier could not make the call again (sched/moved.h). Instead each request transfers
 * what it can at once, and the user thread posts another request for the rest.
 *
 * The program may close the descriptor meanwhile, and its number may then mean another
 * file. So the rest is transferred through a duplicate of the descriptor.
 *
 * Natively, if a connection is reset while a call waits, the call returns what it has
 * transferred, and the next call gets the error. A request for the rest would consume
 * the error, and the program's next call would get EPIPE with its signal, or the end of
 * the stream. So on TCP, a poll precedes each request for the rest.
 */
#include "calls.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "lib/base/poll.h"
#include "lib/calls/call_info.h"
#include "lib/calls/partial.h"
#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "lib/files/probe.h"
#include "runtime/counters/run_page.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/closings.h"
#include "runtime/sched/host.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "perform.h"

/* A call that has transferred a part. */
struct parts {
	struct uthread *u;
	struct flexsc_entry rest;
	struct partial *partial;
	/* result of the first request, finally of the call */
	long some;
	uint32_t closings;		/* of the descriptor, when the call began */
	int copy;			/* duplicate of the descriptor; negative: none */
	bool polls;			/* poll before each request */
};

/*
 * A send isn't attempted inline if u has already run for this many ticks, about 20 us:
 * the carrier checks for completed calls only when u is suspended.
 */
#define SHORT_TICKS	50000U

#define RESET		(POLLERR | POLLHUP)
/*
 * Maximum length of an inline attempt without io_uring, where no poll precedes the
 * request for the rest. Such a send usually transfers all bytes, or none.
 */
#define WHOLE_BYTES	16384U

static bool receives(const struct flexsc_entry *entry)
{
	return flexsc__call_info(entry->nr)->dir == POLL_READ;
}

/* Is there a rest after a part of "part" bytes? If so, p->rest describes it. */
static bool parts_cut(struct parts *p, long part)
{
	if (!receives(&p->rest))
		return flexsc__partial_rest(&p->rest, &p->partial, part);
	return part > 0 && (__u64)part < partial_most(&p->rest) &&
	       flexsc__partial_read(&p->rest, &p->partial, part);
}

/*
 * Does the number still mean the call's file? If the descriptor may have been closed
 * since the first part was posted, the call returns what it has transferred.
 */
static bool parts_have_file(const struct parts *p)
{
	return p->copy >= 0 || p->closings == closings_of(p->rest.args[0]);
}

/*
 * Duplicate the descriptor for the rest. The count of closings is read after the
 * duplication: if it is unchanged, the duplicate refers to the right file. A duplicate
 * that a close_range() may close is of no use: its number may then mean the duplicate of
 * another thread. Without a duplicate, the count is read before each request.
 */
static bool parts_keep_file(struct parts *p)
{
	const uint64_t fd = p->rest.args[0];

	p->closings = p->u->closings;
	p->copy = flexsc__private_fd_safe_copy((int)fd);
	if (p->closings != closings_of(fd))
		return false;
	if (p->copy >= 0)
		p->rest.args[0] = (__u64)p->copy;
	return true;
}

/* Also called when the user thread is cancelled, and then outside the runtime. */
static void parts_end(void *arg)
{
	struct parts *p = arg;
	bool enters = !p->u->busy;

	if (enters)
		flexsc__enter(p->u);
	if (p->copy >= 0)
		flexsc__private_fd_close(p->copy);
	if (p->partial)
		flexsc__partial_result(&p->rest, &p->partial, 0);
	if (enters)
		flexsc__exit(p->u);
}

/* On the host, a plain write sends the whole rest, unless a signal ends the write. */
static bool parts_go_on(const struct parts *p)
{
	return receives(&p->rest) || p->u->way == WAY_POSTED;
}

static void quieten(struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	if (row->traits & CALL_SEND) {
		__u64 *flags = &entry->args[row->flags_arg];

		*flags = (*flags | MSG_NOSIGNAL) & ~(__u64)MSG_FASTOPEN;
	}
}

/* Wait until bytes can be transferred. Returns 1; 0 after a reset; or an error. */
static long await_turn(struct parts *p)
{
	struct pollfd fd = {
		.fd = (int)p->rest.args[0],
		.events = receives(&p->rest) ? POLLIN : POLLOUT,
	};
	/* poll(2) ignores the last argument, which is for closings_fd(). */
	const uint64_t args[6] = { PTR(&fd), 1, POLL_FOREVER, 0, 0, p->rest.args[0] };
	const long ret = flexsc__perform_post_part(p->u, POLL_NR, args);

	return ret > 0 ? (fd.revents & RESET) != RESET : ret;
}

/*
 * The previous part may have returned its length because of a signal or a cancellation.
 * Then no further signal or cancellation would end the wait for the next part.
 */
static long next_part(struct parts *p)
{
	long ret = flexsc__perform_handled(p->u) ? -EINTR : 1;

	if (ret > 0 && p->polls)
		ret = await_turn(p);
	return ret > 0 ? flexsc__perform_post_part(p->u, p->rest.nr,
						   (uint64_t *)p->rest.args) : ret;
}

static long parts_transfer(struct parts *p, long ret)
{
	bool more = parts_cut(p, ret);

	if (more && parts_keep_file(p)) {
		quieten(&p->rest);
		p->polls = flexsc__runtime.polls &&
			   flexsc__probe_option((uint32_t)p->rest.args[0],
						SO_PROTOCOL) == IPPROTO_TCP;
		do {
			ret = next_part(p);
			more = parts_cut(p, ret);
		} while (more && parts_go_on(p) && parts_have_file(p));
		flexsc__raise_after_part(p->u, p->rest.args[0], ret);
	}
	return flexsc__partial_result(&p->rest, &p->partial, more ? 0 : ret);
}

/* The call has transferred "some" bytes: transfer the rest, unless a signal comes. */
static long transfer_rest(struct uthread *u, const struct flexsc_entry *entry,
			  long some)
{
	struct parts p = { .u = u, .rest = *entry, .copy = -1, .some = some };

	pthread_cleanup_push(parts_end, &p);
	p.some = parts_transfer(&p, p.some);
	pthread_cleanup_pop(1);
	return p.some;
}

/* Would the plain call continue after it has transferred "ret" bytes? */
static bool goes_on(const struct flexsc_entry *entry, long ret)
{
	/*
	 * If io_uring has no operation for the call, a syscall thread makes it, and
	 * transfers all bytes.
	 */
	return ret > 0 && flexsc__call_info(entry->nr)->op &&
	       flexsc__partial(entry) && (__u64)ret < partial_most(entry);
}

/*
 * Can a posted call have returned a part where the plain call would have continued?
 * With io_uring it can. A syscall thread transfers the rest itself, unless a signal
 * called the user thread to its host. If a handler ran for that signal, the part is the
 * call's result.
 */
static bool ended_early(const struct uthread *u)
{
	return flexsc__runtime.polls || (on_host() && !u->handled);
}

/* MSG_WAITALL on a stream. In other cases, dispatch.c makes the call on the host. */
static long receive_all(struct uthread *u, const struct call_info *row,
			const struct flexsc_entry *entry)
{
	struct flexsc_entry some = *entry;
	long ret;

	if (flexsc__stays(u) || sticky_take(u))
		return flexsc__perform_on_host(u, entry->nr,
					    (const uint64_t *)entry->args);
	some.args[row->flags_arg] &= ~(__u64)row->all;
	ret = flexsc__perform_post(u, some.nr, (uint64_t *)some.args);
	return ret > 0 && (__u64)ret < partial_most(&some) ?
		       transfer_rest(u, &some, ret) : ret;
}

/*
 * Change *now so that the transfer doesn't wait. False: don't attempt the call inline.
 * Only a send is worth an attempt, because a receive usually has to wait.
 */
static bool sends_now(const struct call_info *row, struct flexsc_entry *now)
{
	/* The kernel rejects a negative length of write(), but not of sendto(). */
	if (row->length == LENGTH_BYTES && now->args[row->length_arg] > INT32_MAX)
		return false;
	/* sendmmsg() could send only some messages; this file can't send the rest. */
	if (row->traits & CALL_SEND) {
		now->args[row->flags_arg] |= MSG_DONTWAIT;
		return flexsc__partial(now) &&
		       !(now->args[row->flags_arg] & MSG_FASTOPEN);
	}
	/* Replace a write to a socket by sendto(), which try_filter() tests, too. */
	if (!flexsc__runtime.sends || row->shape != SHAPE_RW || row->length != LENGTH_BYTES ||
	    row->dir != POLL_WRITE || !(fds_known((uint32_t)now->args[0]) & FD_BYTES))
		return false;
	now->nr = SYS_sendto;
	now->args[3] = MSG_DONTWAIT;
	now->args[4] = now->args[5] = 0;
	return true;
}

/*
 * Attempt a send inline if no other user thread can run here: a posted send would be
 * alone in its batch. An attempt takes one system call, too, but neither a request nor
 * switches between user threads. Returns -EAGAIN if the send was not attempted or has
 * to wait, and must be posted.
 */
static long send_now(struct uthread *u, const struct call_info *row,
		     const struct flexsc_entry *entry)
{
	const struct carrier *c = kthread_self()->carrier;
	struct flexsc_entry now = *entry;
	long ret;

	if (!c || runqueue_waiting(c) ||
	    context_ticks() - c->began >= SHORT_TICKS || !sends_now(row, &now))
		return -EAGAIN;
	if (!flexsc__runtime.polls &&
	    (row->length != LENGTH_BYTES || now.args[2] > WHOLE_BYTES))
		return -EAGAIN;
	sticky_posts(u);
	/*
	 * Store the count of closings before the attempt: if only a part is sent,
	 * parts_keep_file() compares the counts.
	 */
	u->closings = closings_of(entry->args[0]);
	ret = flexsc__perform_exposed(u, now.nr, (const uint64_t *)now.args);
	/* ENOTSOCK: the descriptor means another file since its facts were queried. */
	return ret == -ENOTSOCK ? -EAGAIN : ret;
}

long flexsc__parts_post(struct uthread *u, const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	long ret;

	if (entry->args[row->flags_arg] & row->all)
		return receive_all(u, row, entry);
	ret = send_now(u, row, entry);
	if (ret != -EAGAIN)
		return goes_on(entry, ret) ? transfer_rest(u, entry, ret) : ret;
	ret = flexsc__perform_post(u, entry->nr, (const uint64_t *)entry->args);
	if (u->way != WAY_POSTED || !goes_on(entry, ret))
		return ret;
	if (ended_early(u))
		return transfer_rest(u, entry, ret);
	flexsc__raise_unseen(u, entry->args[0]);
	return ret;
}
