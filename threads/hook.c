/* SPDX-License-Identifier: MIT */
#include "hook.h"

#include <errno.h>
#include <linux/flexsc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "carrier.h"
#include "clock.h"
#include "fds.h"
#include "home.h"
#include "refine.h"
#include "runtime.h"
#include "signals.h"
#include "table.h"
#include "ufutex.h"
#include "wait.h"

static long plain(long nr, const uint64_t a[6])
{
	return raw_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Something that may take long and is nobody else's business. */
static long exposed(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = plain(nr, a);
	flexsc__enter(u);
	return ret;
}

/* At home: as libc would make it, with the race that libc has, too. */
static long at_home_call(struct uthread *u, long nr, const uint64_t a[6])
{
	int type;
	long ret;

	if (!u->point)
		return exposed(u, nr, a);
	flexsc__exit(u);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = plain(nr, a);
	pthread_setcanceltype(type, NULL);
	flexsc__enter(u);
	return ret;
}

static long go_home(struct uthread *u, long nr, const uint64_t a[6])
{
	flexsc__come_home(u);
	return at_home_call(u, nr, a);
}

/* Ending early, and starting again. */

/* Calls that a handler with SA_RESTART doesn't restart: signal(7). */
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

/*
 * Was the wait ended by a signal that the program is to see? What never
 * happened is begun again otherwise.
 */
static bool interrupted(struct uthread *u, long nr)
{
	/* Nothing is lost: the call had no effect. */
	if (u->point) {
		flexsc__exit(u);
		pthread_testcancel();
		flexsc__enter(u);
	}
	return u->handled == HANDLED_RESTART ? !restarts(nr) : u->handled;
}

static bool stays(const struct uthread *u)
{
	return u->stays && at_home();
}

static long post(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	do {
		if (stays(u))
			return at_home_call(u, nr, a);
		u->handled = HANDLED_NOT;
		ret = flexsc__wait_call(u, (unsigned int)nr, a);
		if (ret == NO_ENTRY)
			return go_home(u, nr, a);
		if (ret != -ECANCELED && ret != -EINTR)
			return ret;
	} while (!interrupted(u, nr));
	return -EINTR;
}

/* Sleeping. */

/* Until "until" on this clock; what was left of it when a signal came. */
static uint64_t sleep_until(struct uthread *u, clockid_t clock, uint64_t until)
{
	uint64_t time = time_now(clock);

	u->handled = HANDLED_NOT;
	while (time < until) {
		flexsc__wait_time(u, until - time);
		time = time_now(clock);
		if (time < until && interrupted(u, SYS_pause))
			break;
	}
	return time < until ? until - time : 0;
}

static long sleep(struct uthread *u, long nr, const uint64_t a[6],
		  clockid_t clock, bool absolute, const struct timespec *time,
		  struct timespec *rest)
{
	uint64_t left;

	if (stays(u) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return go_home(u, nr, a);
	if (!time_valid(time))
		return -EINVAL;
	/* What is relative is measured by a clock that nobody sets. */
	if (absolute)
		left = sleep_until(u, clock, time_ns(time));
	else
		left = sleep_until(u, CLOCK_MONOTONIC,
				   time_now(CLOCK_MONOTONIC) + time_ns(time));
	if (!left)
		return 0;
	if (rest && !absolute)
		*rest = (struct timespec){ (time_t)(left / SECOND),
					   (long)(left % SECOND) };
	return -EINTR;
}

static const void *pointer(uint64_t arg)
{
	return (const void *)(uintptr_t)arg;
}

static long nanosleep_call(struct uthread *u, long nr, const uint64_t a[6])
{
	return sleep(u, nr, a, CLOCK_MONOTONIC, false, pointer(a[0]),
		     (struct timespec *)(uintptr_t)a[1]);
}

static long clock_nanosleep_call(struct uthread *u, long nr,
				 const uint64_t a[6])
{
	return sleep(u, nr, a, (clockid_t)a[0], a[1] & TIMER_ABSTIME,
		     pointer(a[2]), (struct timespec *)(uintptr_t)a[3]);
}

/*
 * Polling. One descriptor, be it an epoll set, is polled by the loop; then the
 * call is made again, to see what there is.
 */

/* A time limit, and how to make the call without one. */
struct patience {
	int64_t ns;		/* negative: forever */
	uint64_t now[6];	/* the arguments for "don't wait" */
	struct pollfd fd;
};

static int64_t ns_of_ms(uint64_t ms)
{
	return (int)ms < 0 ? -1 : (int64_t)(int)ms * 1000000;
}

/* False: this is not one of the simple cases. */
static bool can_poll(long nr, const uint64_t a[6], struct patience *p)
{
	static const struct timespec nothing;
	const struct timespec *limit = pointer(a[2]);

	for (unsigned int i = 0; i < 6; i++)
		p->now[i] = a[i];
	switch (nr) {
	case SYS_poll:
		p->ns = ns_of_ms(a[2]);
		p->now[2] = 0;
		break;
	case SYS_ppoll:
		if (a[3] || (limit && !time_valid(limit)))
			return false;
		p->ns = limit ? (int64_t)time_ns(limit) : -1;
		p->now[2] = PTR(&nothing);
		break;
	default:
		if (nr == SYS_epoll_pwait && a[4])
			return false;
		p->ns = ns_of_ms(a[3]);
		p->now[3] = 0;
		p->fd = (struct pollfd){ (int)a[0], POLLIN, 0 };
		break;
	}
	return true;
}

static bool polls_one(long nr, const uint64_t a[6], struct patience *p)
{
	if (!flexsc__carriers_poll)
		return false;
	if (nr == SYS_epoll_wait || nr == SYS_epoll_pwait)
		return true;
	if (a[1] != 1)
		return false;
	/* The kernel has just read it, so it can be read. */
	p->fd = *(const struct pollfd *)pointer(a[0]);
	return p->fd.fd >= 0;
}

static long await_ready(struct uthread *u, struct patience *p, uint64_t until)
{
	const uint64_t args[6] = { PTR(&p->fd), 1, -1ULL };
	uint64_t time = 0;

	if (p->ns >= 0) {
		time = time_now(CLOCK_MONOTONIC);
		if (time >= until)
			return -ETIME;
	}
	return flexsc__wait_call_for(u, SYS_poll, args,
				     p->ns < 0 ? 0 : until - time);
}

static long poll_call(struct uthread *u, long nr, const uint64_t a[6])
{
	struct patience p;
	uint64_t until;
	long ret;

	if (stays(u) || !can_poll(nr, a, &p))
		return go_home(u, nr, a);
	ret = plain(nr, p.now);
	if (ret || !p.ns)
		return ret;
	if (!polls_one(nr, a, &p))
		return go_home(u, nr, a);
	until = time_now(CLOCK_MONOTONIC) + (uint64_t)p.ns;
	u->handled = HANDLED_NOT;
	for (;;) {
		ret = await_ready(u, &p, until);
		if (ret == -ECANCELED || ret == -EINTR) {
			if (interrupted(u, SYS_pause))
				return -EINTR;
		} else if (ret < 0 && ret != -ETIME) {
			return go_home(u, nr, a);
		}
		/* Somebody else may have taken what made it ready. */
		ret = plain(nr, p.now) ? : ret == -ETIME ? 0 : -EAGAIN;
		if (ret != -EAGAIN)
			return ret;
	}
}

/* What is made at home, what plainly, and what is posted. */

static bool reads_identity(long nr)
{
	switch (nr) {
	case SYS_getuid:
	case SYS_geteuid:
	case SYS_getgid:
	case SYS_getegid:
	case SYS_getresuid:
	case SYS_getresgid:
	case SYS_getgroups:
		return true;
	default:
		return false;
	}
}

/* Of those that wait for a device: the ones that do so as a rule. */
static bool syncs(long nr)
{
	switch (nr) {
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_sync_file_range:
	case SYS_msync:
		return true;
	default:
		return false;
	}
}

/* Does the caller not want to wait? Then there is nothing to switch for. */
static bool is_impatient(long nr, const struct table_row *row,
			 const uint64_t a[6])
{
	switch (nr) {
	case SYS_recvfrom:
	case SYS_sendto:
		if (a[3] & MSG_DONTWAIT)
			return true;
		break;
	case SYS_recvmsg:
	case SYS_sendmsg:
		if (a[2] & MSG_DONTWAIT)
			return true;
		break;
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		if (a[3] & MSG_DONTWAIT)
			return true;
		break;
	default:
		break;
	}
	return (row->poll != POLL_NONE || nr == SYS_connect) &&
	       flexsc__fds_never_wait((uint32_t)a[0]);
}

static long may_wait(struct uthread *u, long nr, const struct table_row *row,
		     const uint64_t a[6])
{
	return is_impatient(nr, row, a) ? exposed(u, nr, a) : post(u, nr, a);
}

static long choose_way(struct uthread *u, long nr, const uint64_t a[6],
		       const struct flexsc_entry *entry)
{
	const struct table_row *row = flexsc__table_row((unsigned int)nr);

	switch (flexsc__refine(row, entry)) {
	case CLASS_FAST:
		return plain(nr, a);
	case CLASS_DISK:
		return syncs(nr) ? post(u, nr, a) : exposed(u, nr, a);
	case CLASS_WAIT:
		return may_wait(u, nr, row, a);
	case CLASS_SELF:
		if (reads_identity(nr))
			return plain(nr, a);
		/* fall through */
	case CLASS_NEVER:
	case CLASS_NONE:
		break;
	}
	return go_home(u, nr, a);
}

/*
 * A program that closes what it doesn't know of doesn't reach what is the
 * runtime's: it isn't there.
 */
static long close_others(const uint64_t a[6])
{
	uint64_t first = (uint32_t)a[0], last = (uint32_t)a[1], own;
	long ret = 0;

	for (; !ret && first <= last; first = own + 1) {
		for (own = first; own <= last && own < FDS_MAX; own++)
			if (fds_is_own((uint32_t)own))
				break;
		if (own >= FDS_MAX)
			own = last + 1;
		if (own > first)
			ret = raw_syscall(SYS_close_range, first, own - 1, a[2],
					  0, 0, 0);
	}
	return ret;
}

static bool closes_own(long nr, const uint64_t a[6])
{
	return (nr == SYS_close && fds_is_own((uint32_t)a[0])) ||
	       ((nr == SYS_dup2 || nr == SYS_dup3) &&
		fds_is_own((uint32_t)a[1]));
}

static long by_class(struct uthread *u, long nr, const uint64_t a[6])
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3], a[4], a[5] },
	};
	long ret;

	if (closes_own(nr, a))
		return -EBADF;
	flexsc__fds_note(&entry);
	if (nr == SYS_close_range && a[0] <= a[1] && !a[2])
		ret = close_others(a);
	else
		ret = choose_way(u, nr, a, &entry);
	/* Others may have asked before the call was made. */
	flexsc__fds_note(&entry);
	flexsc__fds_made(&entry, ret);
	return ret;
}

static long choose(struct uthread *u, long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_futex:
		return flexsc__ufutex(u, a);
	case SYS_rt_sigaction:
		return flexsc__signal_action(a);
	case SYS_gettid:
		return u->home.k.tid;
	case SYS_sched_yield:
		flexsc__wait_turn(u);
		return 0;
	case SYS_nanosleep:
		return nanosleep_call(u, nr, a);
	case SYS_clock_nanosleep:
		return clock_nanosleep_call(u, nr, a);
	case SYS_poll:
	case SYS_ppoll:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return poll_call(u, nr, a);
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_pwait2:
		return go_home(u, nr, a);
	case SYS_exit_group:
		return plain(nr, a);
	default:
		return by_class(u, nr, a);
	}
}

/* A signal handler on a parked kernel thread has its user thread's TLS. */
static bool is_parked(const struct uthread *u)
{
	return at_home() && u->home.away;
}

/* For threads that aren't user threads, and for the runtime itself. */
static long without(long nr, const uint64_t a[6])
{
	switch (nr) {
	case SYS_futex:
		return flexsc__ufutex(NULL, a);
	case SYS_rt_sigaction:
		return flexsc__runtime_runs() ? flexsc__signal_action(a) :
						plain(nr, a);
	default:
		return plain(nr, a);
	}
}

static long hook(long nr, const uint64_t a[6], bool site)
{
	struct uthread *u = &flexsc__self;
	long ret;

	if (!u->alive || u->busy || is_parked(u))
		return without(nr, a);
	flexsc__enter(u);
	u->site = site;
	if (atomic_load_explicit(&u->wanted, memory_order_relaxed))
		flexsc__come_home(u);
	ret = choose(u, nr, a);
	u->site = false;
	flexsc__exit(u);
	return ret;
}

long flexsc__hook(long nr, const uint64_t a[6])
{
	return hook(nr, a, false);
}

long flexsc__hook_site(long nr, const uint64_t a[6])
{
	return hook(nr, a, true);
}
