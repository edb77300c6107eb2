/* SPDX-License-Identifier: MIT */
/*
 * Signals that the kernel sends along with a call's error, to the kernel thread that
 * made the call. If that isn't the user thread's host, the runtime sends the signal to
 * the host. User threads only, inside the runtime.
 */
#include "calls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib/base/poll.h"
#include "lib/files/fds.h"
#include "lib/files/kinds.h"
#include "runtime/counters/run_page.h"
#include "runtime/sched/closings.h"
#include "runtime/sched/host.h"
#include "runtime/signals/signals.h"

/* Does the kernel send SIGPIPE if the call fails with EPIPE? */
static bool raises_pipe(const struct call_info *row, const uint64_t a[6])
{
	return row->traits & CALL_PIPE ||
	       (row->traits & CALL_SEND && !(a[row->flags_arg] & MSG_NOSIGNAL));
}

/*
 * Does the kernel send SIGXFSZ if the call fails with EFBIG? True if the file exceeded
 * a limit of the process, false if it exceeded a limit of the file system.
 */
static bool raises_size(const struct call_info *row)
{
	struct rlimit limit;

	return row->traits & CALL_FSIZE &&
	       !raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, PTR(&limit), 0,
			    0) &&
	       limit.rlim_cur != RLIM_INFINITY;
}

/* Did the host make the call? Then the kernel has sent the error's signal there. */
static bool made_on_host(const struct uthread *u)
{
	return u->way != WAY_POSTED && on_host();
}

void flexsc__raise_error(struct uthread *u, const struct call_info *row,
			 const uint64_t a[6], long ret)
{
	int signo = 0;

	if (ret == -EPIPE && raises_pipe(row, a))
		signo = SIGPIPE;
	else if (ret == -EFBIG && raises_size(row))
		signo = SIGXFSZ;
	if (signo && !made_on_host(u))
		flexsc__signal_self(u, signo);
}

void flexsc__raise_unseen(struct uthread *u, uint64_t fd)
{
	struct pollfd end = { .fd = (int)fd, .events = POLLOUT };

	if (!on_host() && flexsc__kind((uint32_t)fd) & FD_PIPE &&
	    u->closings == closings_of(fd) && poll_now(PTR(&end)) > 0 &&
	    end.revents & POLLERR)
		flexsc__signal_self(u, SIGPIPE);
}

void flexsc__raise_after_part(struct uthread *u, uint64_t fd, long ret)
{
	if (ret == -EPIPE && !on_host() && flexsc__kind((uint32_t)fd) & FD_PIPE)
		flexsc__signal_self(u, SIGPIPE);
}
