/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/calls/fds.h"
#include "lib/calls/kinds.h"
#include "runtime/sched/count.h"
#include "runtime/sched/host.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"

const uint8_t flexsc__call_kinds[CALL_KINDS] = {
	[SYS_read] = CALL_TRANSFERS,
	[SYS_write] = CALL_TRANSFERS,
	[SYS_readv] = CALL_TRANSFERS,
	[SYS_writev] = CALL_TRANSFERS,
	[SYS_recvfrom] = CALL_TRANSFERS,
	[SYS_sendto] = CALL_TRANSFERS,
	[SYS_recvmsg] = CALL_TRANSFERS,
	[SYS_sendmsg] = CALL_TRANSFERS,
	[SYS_accept] = CALL_ACCEPTS,
	[SYS_accept4] = CALL_ACCEPTS,
	[SYS_io_submit] = CALL_SUBMITS,
	[SYS_epoll_wait] = CALL_AWAITS,
	[SYS_epoll_pwait] = CALL_AWAITS,
	[SYS_epoll_pwait2] = CALL_AWAITS,
	[SYS_select] = CALL_AWAITS,
	[SYS_pselect6] = CALL_AWAITS,
	[SYS_io_getevents] = CALL_AWAITS,
	[SYS_io_pgetevents] = CALL_AWAITS,
	[SYS_poll] = CALL_POLLS,
	[SYS_ppoll] = CALL_POLLS,
};

long flexsc__call_plainly(long nr, const uint64_t a[6])
{
	return raw_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long flexsc__call_exposed(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = flexsc__call_plainly(nr, a);
	flexsc__enter(u);
	u->way = WAY_EXPOSED;
	return ret;
}

long flexsc__call_point(long nr, const uint64_t a[6])
{
	int type;
	long ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__call_plainly(nr, a);
	pthread_setcanceltype(type, NULL);
	return ret;
}

long flexsc__call_of_other(long nr, const uint64_t a[6])
{
	const struct uthread *u = &flexsc__self;
	bool own = u->alive && (u->busy || flexsc__is_asleep(u));

	return u->point && !own ? flexsc__call_point(nr, a) :
				  flexsc__call_plainly(nr, a);
}

long flexsc__call_at_home(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = u->point ? flexsc__call_point(nr, a) :
			 flexsc__call_plainly(nr, a);
	flexsc__enter(u);
	u->way = WAY_AT_HOME;
	return ret;
}

long flexsc__call_go_home(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = counters_cause(nr);
	flexsc__come_home(u);
	return flexsc__call_at_home(u, nr, a);
}

long flexsc__call_wait_home(struct uthread *u, long nr, const uint64_t a[6])
{
	flexsc__lodge(u);
	return flexsc__call_go_home(u, nr, a);
}

/* Attempting. */

/*
 * Have the call not wait, if there is a way that has no other effect. A
 * flock(2) that is refused may have lost the lock it was to replace, but
 * flock(2) lets go of that before it waits, too.
 */
static bool refuse_to_wait(long nr, uint64_t a[6])
{
	switch (nr) {
	case SYS_flock:
		a[1] |= LOCK_NB;
		return true;
	case SYS_fcntl:
		a[1] = a[1] == F_SETLKW ? F_SETLK : F_OFD_SETLK;
		return true;
	case SYS_msgsnd:
		a[3] |= IPC_NOWAIT;
		return true;
	case SYS_msgrcv:
		a[4] |= IPC_NOWAIT;
		return true;
	case SYS_wait4:
		a[2] |= WNOHANG;
		return true;
	case SYS_recvfrom:
		/* A part can't be put back while the rest has to come. */
		a[3] |= MSG_DONTWAIT;
		return !(a[3] & MSG_WAITALL);
	case SYS_recvmsg:
		a[2] |= MSG_DONTWAIT;
		return !(a[2] & MSG_WAITALL);
	default:
		return false;
	}
}

static bool would_wait(long nr, const uint64_t a[6], long ret)
{
	switch (nr) {
	case SYS_recvfrom:
	case SYS_recvmsg:
		return ret == -EAGAIN &&
		       !(a[nr == SYS_recvfrom ? 3 : 2] & MSG_ERRQUEUE &&
			 flexsc__kind_has_errors((uint32_t)a[0]));
	case SYS_msgrcv:
		return ret == -ENOMSG;
	case SYS_wait4:
		return !ret;
	default:
		return ret == -EAGAIN || ret == -EACCES;
	}
}

long flexsc__call_attempt(struct uthread *u, long nr, const uint64_t a[6])
{
	uint64_t nowait[6] = { a[0], a[1], a[2], a[3], a[4], a[5] };
	long ret;

	if (!at_home() && refuse_to_wait(nr, nowait)) {
		ret = flexsc__call_exposed(u, nr, nowait);
		if (!would_wait(nr, a, ret))
			return ret;
		COUNT_HERE(own, 1);
	}
	return flexsc__call_wait_home(u, nr, a);
}

/* Ending early, and starting again. */

/* Is the call begun again after a handler with SA_RESTART? See signal(7). */
static bool restarts(long nr)
{
	switch (nr) {
	case SYS_pause:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
	case SYS_semtimedop:
		return false;
	default:
		return true;
	}
}

bool flexsc__call_interrupted(struct uthread *u, long nr)
{
	flexsc__wait_test_cancel(u);
	return u->handled == HANDLED_RESTART ? !restarts(nr) : u->handled;
}

static long no_entry(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = CAUSE_ENTRY;
	flexsc__come_home(u);
	return flexsc__call_at_home(u, nr, a);
}

/* After a part, a call ends at any handler. */
static bool ends(struct uthread *u, long nr, bool after_part)
{
	if (!after_part)
		return flexsc__call_interrupted(u, nr);
	flexsc__wait_test_cancel(u);
	return u->handled;
}

static long post(struct uthread *u, long nr, const uint64_t a[6],
		 bool after_part)
{
	long ret;

	for (;;) {
		if (flexsc__stays(u) || lodge_here(u))
			return flexsc__call_at_home(u, nr, a);
		lodge_posts(u);
		ret = flexsc__wait_call(u, (unsigned int)nr, a);
		if (ret == NO_ENTRY)
			return no_entry(u, nr, a);
		u->way = WAY_POSTED;
		/*
		 * The loop's engine failed, or no thread can be made for it.
		 * io_uring cancels a call that it can't make a thread for, and
		 * no signal ended this one.
		 */
		if ((ret == -ERESTART || ret == -ECANCELED) && !at_home())
			return flexsc__call_go_home(u, nr, a);
		if (ret != -ECANCELED && ret != -EINTR && ret != -ERESTART)
			return ret;
		if (ends(u, nr, after_part))
			break;
		u->handled = HANDLED_NOT;
	}
	u->way = WAY_POSTED;
	return -EINTR;
}

long flexsc__call_post(struct uthread *u, long nr, const uint64_t a[6])
{
	return post(u, nr, a, false);
}

long flexsc__call_post_part(struct uthread *u, long nr, const uint64_t a[6])
{
	return post(u, nr, a, true);
}
