/* SPDX-License-Identifier: MIT */
/*
 * Chooses how a user thread's call is made: plainly, posted, or on its host. The choice
 * depends on the call's class (lib/calls/syscalls.tbl), on the file that the call uses,
 * and on its effect on the kernel thread that makes it. User threads only, inside the
 * runtime.
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
 * Can a disk, a network file system or another process delay this call, although it is
 * in CLASS_FAST? Natively the delay would stop one thread; here it would stop a
 * carrier.
 */
static bool may_hang(const struct call_info *row, const uint64_t a[6])
{
	return call_variant_of(row, (const __u64 *)a)->traits & CALL_HANGS;
}

/*
 * Is the descriptor non-blocking? Then the call needn't be posted, as it doesn't wait.
 */
static bool is_impatient(const struct call_info *row, const uint64_t a[6])
{
	return row->dir != POLL_NONE &&
	       flexsc__fds_find_nonblock((uint32_t)a[0]);
}

/*
 * Is this a connect() that may wait for something that poll(2) doesn't report? Such a
 * call isn't posted: if the carrier became stuck, an io_uring worker could still
 * connect the socket, and the connect() that the heir repeats would fail.
 */
static bool connects_late(long nr, const uint64_t a[6])
{
	const struct sockaddr *address = flexsc__arg_pointer(a[1]);

	return nr == SYS_connect && a[2] >= sizeof(address->sa_family) &&
	       peek_can_read(a[1], sizeof(address->sa_family)) &&
	       flexsc__kind_waits_to_connect(address->sa_family);
}

/*
 * Would the call occupy a syscall thread of the loop, or an io_uring worker, while it
 * waits? The host can wait just as well, which saves a kernel thread.
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
 * Does the call wait until all requested bytes have arrived? Neither an epoll set nor
 * poll(2) reports that. False for a receive from a stream into one buffer, because
 * parts.c makes it.
 */
static bool wants_all(const struct call_info *row, const uint64_t a[6])
{
	return a[row->flags_arg] & row->all &&
	       !(row->length == LENGTH_BYTES && flexsc__runtime.polls &&
		 flexsc__fds_find_bytes((uint32_t)a[0]));
}

/*
 * Would the call occupy a syscall thread for its whole wait? It would if the socket has
 * a time limit or the call waits for all bytes, because neither io_uring nor an epoll
 * set takes these into account. A loop has few syscall threads. If such calls occupied
 * all of them, the call that ends their waits could be queued behind them.
 * is_impatient() has already queried the descriptor's facts, so fds_known() returns
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
 * Make a call that may wait, but whose readiness poll(2) doesn't report, on u's host.
 * For example, if a background process accesses a terminal, the kernel raises SIGTTIN
 * or SIGTTOU, unless the calling kernel thread blocks the signal.
 */
static long wait_unpolled(struct uthread *u, long nr, const uint64_t a[6])
{
	uint32_t fd = (uint32_t)a[0];

	if (flexsc__fds_kind(fd) & (FD_UNKNOWN | FD_WORKER | FD_OLD_WORKER) &&
	    flexsc__fds_find_nonblock(fd))
		return flexsc__perform_exposed(u, nr, a);
	return flexsc__perform_wait_on_host(u, nr, a);
}

/* Facts of descriptors whose calls may need the host. */
#define NEEDY		(FD_SIGNALS | FD_WORKER | FD_OLD_WORKER)

/*
 * Must the host make the call? A signalfd reports the signals of the kernel thread that
 * reads it. For some other files, such as fanotify's, an io_uring worker would make the
 * read. If the carrier that posted it became stuck, the data that the worker has read
 * would be lost, although another process may wait for an answer.
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
		/* io_uring doesn't serialise calls that use the file's position. */
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
		/* These numbers are the library's own, and unknown to the kernel. */
		break;
	}
	if (call_variant_of(row, (const __u64 *)a)->traits & CALL_INHERITS)
		atomic_store(&flexsc__runtime.inherited, true);
	return flexsc__apart_make(u, nr, a);
}
