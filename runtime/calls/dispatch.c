/* SPDX-License-Identifier: MIT */
/*
 * The way of a user thread's call: plainly, posted, or on its host. It follows
 * from the call's class (lib/calls/syscalls.tbl), from the file that the call
 * is about, and from what the call would do to the kernel thread that makes it.
 */
#include "calls.h"

#include <sys/socket.h>

#include "lib/calls/call_info.h"
#include "lib/files/fds.h"
#include "lib/files/kinds.h"
#include "lib/files/plan.h"
#include "lib/files/probe.h"
#include "runtime/base/peek.h"
#include "runtime/sched/state.h"
#include "filter.h"
#include "perform.h"

/*
 * Can a disk, a network file system or another process delay a call of CLASS_FAST
 * nevertheless? Natively it would stop only the thread that makes it; here it would
 * stop a carrier.
 */
static bool may_hang(const struct call_info *row, const uint64_t a[6])
{
	return call_variant_of(row, (const __u64 *)a)->traits & CALL_HANGS;
}

/* Does the descriptor ask not to wait? Then posting would only cost a switch. */
static bool is_impatient(const struct call_info *row, const uint64_t a[6])
{
	return row->dir != POLL_NONE &&
	       flexsc__fds_find_nonblock((uint32_t)a[0]);
}

/*
 * Is the call a connect() that poll(2) doesn't show to wait? A worker of io_uring's that
 * waits may connect the socket while the carrier is stuck, and a second connect() would
 * fail.
 */
static bool connects_late(long nr, const uint64_t a[6])
{
	const struct sockaddr *address = flexsc__arg_pointer(a[1]);

	return nr == SYS_connect && a[2] >= sizeof(address->sa_family) &&
	       peek_can_read(a[1], sizeof(address->sa_family)) &&
	       flexsc__kind_waits_to_connect(address->sa_family);
}

/*
 * Would the loop need a syscall thread that waits for the call, or io_uring a worker?
 * The user thread's host can wait just as well, and one kernel thread less is needed.
 */
static bool takes_a_thread(long nr, const struct call_info *row,
			   const uint64_t a[6], enum waits waits)
{
	const bool in_ring = row->op && flexsc__runtime.polls &&
			     call_poll(row) == POLL_NONE;

	return (waits == WAITS_OTHER && !in_ring) ||
	       row->traits & CALL_WORKER || connects_late(nr, a);
}

/*
 * Does the call wait for all bytes, which neither an epoll set nor poll(2) notices?
 * parts.c makes those that receive into one buffer, and only streams heed the flag.
 */
static bool wants_all(const struct call_info *row, const uint64_t a[6])
{
	return a[row->flags_arg] & row->all &&
	       !(row->length == LENGTH_BYTES && flexsc__runtime.polls &&
		 flexsc__fds_find_bytes((uint32_t)a[0]));
}

/*
 * Would the call keep a syscall thread for as long as the call waits? It would
 * where neither io_uring nor an epoll set knows the socket's time limit, or how
 * many bytes the call wants. A loop has few syscall threads. If such calls keep
 * all of them, the call that would end their waits may be queued behind.
 * is_impatient() has asked for the facts of the descriptor, so fds_known() has
 * them.
 */
static bool keeps_a_thread(const struct call_info *row, const uint64_t a[6])
{
	const unsigned int poll = row->dir;
	uint32_t fd = (uint32_t)a[0];

	if (wants_all(row, a))
		return true;
	if (poll == POLL_NONE || !(fds_known(fd) & FD_TIMEOUT))
		return false;
	return (poll == POLL_READ && flexsc__fds_find_lowat(fd)) ||
	       flexsc__probe_time_limit(fd, poll);
}

static long may_wait(struct uthread *u, const struct call_info *row,
		     const struct flexsc_entry *entry, enum waits waits)
{
	const uint64_t *a = (const uint64_t *)entry->args;
	const long nr = entry->nr;

	if (is_impatient(row, a))
		return flexsc__perform_exposed(u, nr, a);
	if (takes_a_thread(nr, row, a, waits) || keeps_a_thread(row, a))
		return flexsc__perform_attempt(u, nr, a);
	return flexsc__parts_post(u, entry);
}

/*
 * Make a call that may wait, where poll(2) doesn't report when it would return. A
 * terminal may stop a process in the background, unless the user thread blocks the
 * signal for that: the kernel uses the host's mask.
 */
static long wait_unpolled(struct uthread *u, long nr, const uint64_t a[6])
{
	uint32_t fd = (uint32_t)a[0];

	if (flexsc__fds_kind(fd) & (FD_UNKNOWN | FD_WORKER | FD_OLD_WORKER) &&
	    flexsc__fds_find_nonblock(fd))
		return flexsc__perform_exposed(u, nr, a);
	return flexsc__perform_wait_on_host(u, nr, a);
}

/* Facts of descriptors whose calls may need the user thread's own kernel thread. */
#define NEEDY		(FD_SIGNALS | FD_WORKER | FD_OLD_WORKER)

/*
 * A signalfd shows the signals of the kernel thread that reads it. If the posting
 * carrier is stuck, no thread gets what an io_uring worker has read for it. Other
 * processes may wait for the answer, as with an event of fanotify.
 */
static bool needs_host(const struct call_info *row, uint32_t fd)
{
	uint32_t facts = fds_known(fd);

	if (facts & FD_SIGNALS)
		return row->dir == POLL_READ;
	return call_poll(row) != POLL_NONE && flexsc__runtime.polls &&
	       (facts & FD_WORKER || !flexsc__runtime.makes_ready);
}

long flexsc__dispatch(struct uthread *u, long nr,
		   const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	const uint64_t *a = (const uint64_t *)entry->args;
	enum waits waits = WAITS_OTHER;

	if (filter_is_near(u) && row->class != CLASS_SELF)
		return flexsc__perform_on_host(u, nr, a);
	if (row->class == CLASS_WAIT)
		waits = flexsc__plan_waits(row, entry);
	switch (waits) {
	case WAITS_DEVICE:
		/* io_uring doesn't wait for other calls at the position. */
		if (!flexsc__plan_at_position(row, entry->args))
			break;
		/* fall through */
	case WAITS_NEVER:
		return flexsc__perform_exposed(u, nr, a);
	case WAITS_UNKNOWN:
		return wait_unpolled(u, nr, a);
	case WAITS_POLLED:
	case WAITS_OTHER:
		break;
	}
	if (fds_known((uint32_t)a[0]) & NEEDY && needs_host(row, (uint32_t)a[0]))
		return wait_unpolled(u, nr, a);
	switch (flexsc__call_class(row, entry)) {
	case CLASS_FAST:
		return may_hang(row, a) ? flexsc__perform_exposed(u, nr, a) :
					 flexsc__perform_plainly(nr, a);
	case CLASS_DISK:
		return row->traits & CALL_SYNC ? flexsc__perform_post(u, nr, a) :
				   flexsc__perform_exposed(u, nr, a);
	case CLASS_ADMIN:
		return flexsc__perform_exposed(u, nr, a);
	case CLASS_WAIT:
		return may_wait(u, row, entry, waits);
	case CLASS_SELF:
		if (row->traits & CALL_SAME)
			return flexsc__perform_plainly(nr, a);
		/* fall through */
	case CLASS_NEVER:
	case CLASS_NONE:
	case CLASS_RING:
	case CLASS_WORK:
		/* The library's own numbers: to the kernel they are unknown calls. */
		break;
	}
	if (call_variant_of(row, (const __u64 *)a)->traits & CALL_INHERITS)
		atomic_store(&flexsc__runtime.inherited, true);
	return flexsc__apart_make(u, nr, a);
}
