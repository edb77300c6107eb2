/* SPDX-License-Identifier: MIT */
#include "perform.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/poll.h"
#include "lib/calls/call_info.h"
#include "lib/files/fds.h"
#include "lib/files/kinds.h"
#include "runtime/sched/closings.h"
#include "runtime/sched/count.h"
#include "runtime/sched/host.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"

long flexsc__perform_plainly(long nr, const uint64_t a[6])
{
	return raw_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long flexsc__perform_exposed(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = flexsc__perform_plainly(nr, a);
	flexsc__enter(u);
	u->way = WAY_EXPOSED;
	return ret;
}

long flexsc__perform_point(long nr, const uint64_t a[6])
{
	int type;
	long ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__perform_plainly(nr, a);
	pthread_setcanceltype(type, NULL);
	return ret;
}

long flexsc__perform_of_other(long nr, const uint64_t a[6])
{
	const struct uthread *u = &flexsc__self;
	bool own = u->alive && (u->busy || kthread_is_asleep(u));

	return u->point && !own ? flexsc__perform_point(nr, a) :
				  flexsc__perform_plainly(nr, a);
}

long flexsc__perform_on_host(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = u->point ? flexsc__perform_point(nr, a) :
			 flexsc__perform_plainly(nr, a);
	flexsc__enter(u);
	u->way = WAY_ON_HOST;
	return ret;
}

long flexsc__perform_go_to_host(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = counters_cause(nr);
	flexsc__return_to_host(u);
	return flexsc__perform_on_host(u, nr, a);
}

long flexsc__perform_wait_on_host(struct uthread *u, long nr, const uint64_t a[6])
{
	flexsc__sticky_wait(u);
	return flexsc__perform_go_to_host(u, nr, a);
}

/* Attempting. */

/*
 * Change the arguments so that the call doesn't wait. False if the changed call could
 * have another effect. A flock(2) that replaces a lock may lose the old lock when it
 * fails. That is permitted, because a waiting flock(2) releases the old lock, too.
 */
static bool refuse_to_wait(const struct call_info *row, const uint64_t a[6],
			   uint64_t nowait[6])
{
	const struct call_info *info = call_variant_of(row, (const __u64 *)a);

	memcpy(nowait, a, 6 * sizeof(*a));
	if (!(info->traits & CALL_TRY))
		return false;
	if (!info->nowait) {
		nowait[1] = info->attempt;
		return true;
	}
	nowait[info->flags_arg] |= info->attempt;
	/*
	 * Without waiting, a call that requests all bytes could receive a part, which
	 * can't be put back into the socket.
	 */
	return !(a[info->flags_arg] & info->all);
}

static bool would_wait(const struct call_info *row, const uint64_t a[6],
		       long ret)
{
	const struct call_info *info = call_variant_of(row, (const __u64 *)a);

	if (a[info->flags_arg] & info->unpolled & MSG_ERRQUEUE &&
	    flexsc__kind_has_errors((uint32_t)a[0]))
		return false;
	if (ret == info->would)
		return true;
	/* Some file systems return EACCES if another process has the lock. */
	return ret == -EACCES && info->would == -EAGAIN && !info->length;
}

long flexsc__perform_attempt(struct uthread *u, long nr, const uint64_t a[6])
{
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	uint64_t nowait[6];
	long ret;

	if (!on_host() && refuse_to_wait(row, a, nowait)) {
		ret = flexsc__perform_exposed(u, nr, nowait);
		if (!would_wait(row, a, ret))
			return ret;
		COUNT_HERE(own, 1);
	}
	if (call_awaits_any(nr, a))
		sticky_needs_host(u);
	return flexsc__perform_wait_on_host(u, nr, a);
}

/* Ending calls early, and making them again. */

/* Is the call restarted after a handler with SA_RESTART? See signal(7). */
static bool restarts(long nr)
{
	return !(flexsc__call_info((unsigned int)nr)->traits & CALL_NORESTART);
}

bool flexsc__perform_handled(struct uthread *u)
{
	flexsc__wait_test_cancel(u);
	return u->handled;
}

/*
 * Did a signal handler end the wait so that the program must see EINTR? If not, a call
 * that had no effect is made again.
 */
static bool is_interrupted(struct uthread *u, long nr)
{
	return flexsc__perform_handled(u) &&
	       (u->handled != HANDLED_RESTART || !restarts(nr));
}

static long no_entry(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = CAUSE_ENTRY;
	flexsc__return_to_host(u);
	return flexsc__perform_on_host(u, nr, a);
}

/* Would a waitid(2) return now? WNOWAIT leaves the child waitable. */
static bool has_child(const uint64_t a[6])
{
	siginfo_t info = { 0 };

	return raw_syscall(SYS_waitid, a[0], a[1], PTR(&info),
			   a[3] | WNOHANG | WNOWAIT, 0, 0) || info.si_pid;
}

/*
 * A signal ended the call before it had an effect. Could the call end at once now? If
 * so, the call takes precedence over the signal, as in the kernel. Calls that wait for
 * a device count as ready, because a signal doesn't interrupt them. False if the
 * descriptor was closed, because its number may mean another file.
 */
static bool is_ready(const struct uthread *u, long nr, const uint64_t a[6])
{
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	const enum call_poll poll = call_poll(row);
	struct pollfd fd = {
		.fd = (int)a[0],
		.events = poll == POLL_READ ? POLLIN : POLLOUT,
	};

	if (row->shape == SHAPE_WAITID)
		return has_child(a);
	if (u->closings != closings_of(a[0]))
		return false;
	if (row->traits & CALL_SYNC)
		return true;
	return poll != POLL_NONE && poll_now(PTR(&fd)) > 0;
}

/*
 * A call that is ready is made again and again for READY_NS, because another signal may
 * interrupt a try, or a syscall thread may not get the processor of a busy machine. Each
 * try ends after TRY_NS, because another thread may take what is ready.
 */
#define READY_NS	500000000U
#define TRY_NS		50000000U
/*
 * Maximum number of tries that end after TRY_NS. Such a try shows that the call can't
 * take what poll(2) has reported.
 */
#define LATE_TRIES	2

/* Did a signal end the posted call before it had an effect? */
static bool was_interrupted(long ret)
{
	return ret == -ECANCELED || ret == -EINTR || ret == -ERESTART;
}

/*
 * Wait for a posted call, and run the handlers of the signals that ended it. *ready:
 * the call could have ended at once before the handlers ran. A handler may itself make
 * the call ready; then the call fails with EINTR, as in the kernel.
 */
static long wait_call(struct uthread *u, long nr, const uint64_t a[6], uint64_t ns,
		      bool *ready)
{
	const long ret = flexsc__wait_call(u, (unsigned int)nr, a, ns);

	*ready = (was_interrupted(ret) || ret == -ETIME) && is_ready(u, nr, a);
	flexsc__settle(u);
	return ret;
}

/*
 * Make a call again after the handler of the signal that ended it, if the call can end
 * at once. The call has a time limit, because another thread may take what is ready,
 * and there may be no further signal to end the wait.
 */
static long make_ready(struct uthread *u, long nr, const uint64_t a[6])
{
	const uint8_t handled = u->handled;
	bool ready = is_ready(u, nr, a);
	long ret = -EINTR;
	int late = 0;
	uint64_t end;

	if (!ready)
		return -EINTR;
	if (flexsc__call_info((unsigned int)nr)->traits & CALL_SYNC)
		return flexsc__perform_go_to_host(u, nr, a);
	/*
	 * On the host, the call would have no time limit: if another thread took what
	 * is ready, the wait would not end. So don't make the call.
	 */
	if (flexsc__stays(u))
		return -EINTR;
	for (end = time_monotonic() + READY_NS;
	     ready && late < LATE_TRIES && time_monotonic() < end; late += ret == -ETIME) {
		u->handled = HANDLED_NOT;
		ret = wait_call(u, nr, a, TRY_NS, &ready);
	}
	if (u->handled < handled)
		u->handled = handled;
	if (ret == NO_ENTRY)
		return no_entry(u, nr, a);
	u->way = WAY_POSTED;
	return was_interrupted(ret) || ret == -ETIME ? -EINTR : ret;
}

/* Does the handler that ran end the call? Any handler does after a partial transfer. */
static bool ends(struct uthread *u, long nr, bool after_part)
{
	if (!after_part)
		return is_interrupted(u, nr);
	flexsc__wait_test_cancel(u);
	return u->handled;
}

static long post(struct uthread *u, long nr, const uint64_t a[6],
		 bool after_part)
{
	bool ready;
	long ret;

	for (;;) {
		if (flexsc__stays(u) || sticky_take(u))
			return flexsc__perform_on_host(u, nr, a);
		sticky_posts(u);
		ret = wait_call(u, nr, a, 0, &ready);
		if (ret == NO_ENTRY)
			return no_entry(u, nr, a);
		u->way = WAY_POSTED;
		/*
		 * No signal ended this call. Either the loop's engine failed, or no
		 * thread is available for the call: io_uring cancels a call if it can't
		 * create a worker.
		 */
		if ((ret == -ERESTART || ret == -ECANCELED) && !on_host())
			return flexsc__perform_go_to_host(u, nr, a);
		if (!was_interrupted(ret))
			return ret;
		if (ends(u, nr, after_part))
			break;
		u->handled = HANDLED_NOT;
	}
	u->way = WAY_POSTED;
	return after_part || !ready ? -EINTR : make_ready(u, nr, a);
}

long flexsc__perform_post(struct uthread *u, long nr, const uint64_t a[6])
{
	return post(u, nr, a, false);
}

long flexsc__perform_post_part(struct uthread *u, long nr, const uint64_t a[6])
{
	return post(u, nr, a, true);
}
