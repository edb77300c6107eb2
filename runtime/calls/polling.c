/* SPDX-License-Identifier: MIT */
#include "polling.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/poll.h"
#include "lib/calls/call_info.h"
#include "lib/files/fds.h"
#include "lib/files/guard.h"
#include "runtime/base/peek.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/count.h"
#include "runtime/sched/host.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"
#include "perform.h"

/* A polling call's time limit, and the data to make the call without waiting. */
struct time_limit {
	int64_t ns;		/* the limit; negative: none */
	uint64_t nowait[6];	/* the call's arguments, changed not to wait */
	/* the descriptor to wait for; fd < 0: there isn't exactly one */
	struct pollfd fd;
	int set;		/* the program's descriptor of the epoll set */
	/* the program's struct pollfd, if poll() has exactly one; or NULL */
	struct pollfd *one;
};

#define MS	1000000U	/* in ns */

/*
 * The epoll set to wait for. As in the kernel, a set stays open while a thread waits
 * for it: the wait has a guard. If a longjmp() or a cancellation ends the wait, the
 * guard ends when the user thread polls again or ends.
 */
static int set_of(const struct uthread *u, const struct time_limit *p)
{
	return u->guard ? guard_fd(u->guard) : p->set;
}

void flexsc__polling_end(struct uthread *u)
{
	if (u->guard)
		flexsc__guard_end(u->guard);
	u->guard = NULL;
}

static int64_t ns_of_ms(uint64_t ms)
{
	return (int)ms < 0 ? -1 : (int64_t)(int)ms * 1000000;
}

/*
 * Can the carrier's loop wait for the call? If so, fills *p. False if the call has a
 * signal mask or an invalid time limit.
 */
static bool can_poll(long nr, const uint64_t a[6], struct time_limit *p)
{
	static const struct timespec nothing;
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	const uint64_t given = a[row->limit_arg];
	const struct timespec *limit = flexsc__arg_pointer(given);
	uint64_t *none = &p->nowait[row->limit_arg];

	memcpy(p->nowait, a, sizeof(p->nowait));
	p->fd.fd = -1;
	p->one = NULL;
	if (row->mask_arg && a[row->mask_arg])
		return false;
	if (row->limit == LIMIT_MS) {
		p->ns = ns_of_ms(given);
		*none = 0;
	} else {
		if (limit && (!peek_can_read(given, sizeof(*limit)) ||
			      !time_valid(limit)))
			return false;
		p->ns = limit ? (int64_t)time_ns(limit) : -1;
		*none = PTR(&nothing);
	}
	if (row->fds)
		p->fd = (struct pollfd){ (int)a[0], POLLIN, 0 };
	else if (a[1] == 1)
		p->one = (struct pollfd *)(uintptr_t)a[0];
	return true;
}

/*
 * Wait until the descriptor is ready, or until a time of CLOCK_MONOTONIC. Returns
 * 1, -ETIME, or the call's error.
 */
static long await_ready(struct uthread *u, struct time_limit *p, uint64_t until)
{
	/*
	 * The first three are poll()'s arguments. poll() doesn't use args[5], which
	 * holds the descriptor that the user thread waits for: sched/closings.h.
	 */
	const uint64_t args[6] = { PTR(&p->fd), 1, POLL_FOREVER, 0, 0,
				   (uint64_t)p->fd.fd };
	uint64_t time = 0;

	if (p->ns >= 0) {
		time = time_monotonic();
		if (time >= until)
			return -ETIME;
	}
	return flexsc__wait_call(u, POLL_NR, args, p->ns < 0 ? 0 : until - time);
}

/*
 * Call poll() again without waiting, because the descriptor may have been closed, or
 * replaced by another file. -EAGAIN if the wait has to continue.
 */
static long poll_look_again(const struct time_limit *p, long ret)
{
	struct pollfd fd = p->fd;
	long n = poll_now(PTR(&fd));

	p->one->revents = fd.revents;
	return n || ret == -ETIME ? n : -EAGAIN;
}

/* The result of poll() for its one descriptor. */
static long answer(const struct time_limit *p, long ret)
{
	if (!fds_is_polled((uint32_t)p->fd.fd))
		return poll_look_again(p, ret);
	p->one->revents = ret == -ETIME ? 0 : p->fd.revents;
	return p->one->revents != 0;
}

/*
 * Check an epoll set again, because another thread may have taken the event that made
 * it ready. -EAGAIN if the wait has to continue.
 */
static long answer_set(long nr, const struct time_limit *p, long ret)
{
	long n = flexsc__perform_plainly(nr, p->nowait);

	COUNT_HERE(own, 1);
	return n || ret == -ETIME ? n : -EAGAIN;
}

/*
 * Before the handler of the signal that ended the wait runs, check what is ready: as in
 * the kernel, that takes precedence over the signal. 0: nothing is ready.
 */
static long ready_before_handler(long nr, const struct time_limit *p)
{
	long n = p->one ? poll_look_again(p, -EINTR) :
			  answer_set(nr, p, -EINTR);

	return n > 0 ? n : 0;
}

/* Continue the wait on the host, until the same end of the time limit. */
static long poll_on_host(struct uthread *u, long nr, const uint64_t a[6],
			 const struct time_limit *p, uint64_t until)
{
	const uint64_t now = p->ns < 0 ? 0 : time_monotonic();
	const uint64_t left = until > now ? until - now : 0;
	struct timespec limit = { (time_t)(left / SECOND),
				  (long)(left % SECOND) };
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	uint64_t args[6] = { a[0], a[1], a[2], a[3], a[4], a[5] };

	if (p->ns >= 0)
		args[row->limit_arg] = row->limit == LIMIT_MS ?
					       (left + MS - 1) / MS : PTR(&limit);
	if (!p->one)
		args[0] = (uint64_t)set_of(u, p);
	return flexsc__perform_wait_on_host(u, nr, args);
}

/* A wait consists of tries, because the descriptor may be closed during a try. */
static void begin_try(struct uthread *u, struct time_limit *p)
{
	if (p->one)
		flexsc__fds_poll((uint32_t)p->fd.fd);
	else
		p->fd.fd = set_of(u, p);
}

static long tries(struct uthread *u, long nr, const uint64_t a[6],
		  struct time_limit *p)
{
	uint64_t until = p->ns < 0 ? 0 : time_monotonic() +
						 (uint64_t)p->ns;
	bool ended;
	long ret, n;

	do {
		if (flexsc__stays(u))
			return poll_on_host(u, nr, a, p, until);
		begin_try(u, p);
		ret = await_ready(u, p, until);
		u->way = WAY_POLLED;
		if (!p->one)
			p->nowait[0] = (uint64_t)set_of(u, p);
		ended = ret == -ECANCELED || ret == -EINTR;
		n = ended ? ready_before_handler(nr, p) : 0;
		flexsc__settle(u);
		if (n)
			return n;
		if (ended) {
			if (flexsc__perform_handled(u))
				return -EINTR;
			/*
			 * No signal ended the wait: the loop had no memory for the time
			 * limit.
			 */
			if (!on_host())
				return poll_on_host(u, nr, a, p, until);
			ret = -EAGAIN;
		} else if (ret < 0 && ret != -ETIME) {
			ret = poll_on_host(u, nr, a, p, until);
		} else {
			ret = p->one ? answer(p, ret) : answer_set(nr, p, ret);
		}
	} while (ret == -EAGAIN);
	return ret;
}

static long wait_for_one(struct uthread *u, long nr, const uint64_t a[6],
			 struct time_limit *p)
{
	long ret;

	flexsc__polling_end(u);
	if (!p->one) {
		p->set = p->fd.fd;
		u->guard = flexsc__guard_begin((uint32_t)p->set);
	}
	ret = tries(u, nr, a, p);
	flexsc__polling_end(u);
	return ret;
}

/* Make the call without waiting. Returns its result, or 0 if the call is left out. */
static long poll_look(long nr, const uint64_t a[6], const struct time_limit *p)
{
	long ret;

	/*
	 * A program that polls one descriptor has usually found just before that the
	 * descriptor isn't ready. So a call here would be wasted.
	 */
	if (p->ns && p->one && flexsc__runtime.polls && peek_on_stack(a[0]))
		return 0;
	ret = flexsc__perform_plainly(nr, p->nowait);
	if (!ret && p->ns)
		COUNT_HERE(own, 1);
	return ret;
}

/*
 * Does the list of poll() contain a signalfd, which reports the signals of the kernel
 * thread that polls? The list is readable, because the kernel has read it. In a list of
 * several descriptors, only those count that are already known to be signalfds.
 */
static bool has_signals(const uint64_t a[6])
{
	const struct pollfd *fds = flexsc__arg_pointer(a[0]);

	if (a[1] == 1)
		return fds->fd >= 0 && fds_find_signals((uint32_t)fds->fd);
	if (!atomic_load_explicit(&flexsc__fds_any_signals,
				  memory_order_relaxed))
		return false;
	for (uint64_t i = 0; i < a[1]; i++)
		if (fds_has_signals((uint32_t)fds[i].fd))
			return true;
	return false;
}

/* Must the call be made on the host, without a poll_look() before? */
static bool polls_on_host(struct uthread *u, long nr, const uint64_t a[6],
			  const struct time_limit *p)
{
	if (fds_has_signals((uint32_t)p->fd.fd))
		return true;
	/* If the engine can't poll, a user thread that is on its host waits there. */
	if (on_host() && !flexsc__runtime.polls) {
		if (p->ns && call_awaits_any(nr, a))
			sticky_counts_loop_wait(u);
		return true;
	}
	return p->ns && call_awaits_any(nr, a) &&
	       sticky_loop_wait(u, p->fd.fd >= 0 && flexsc__runtime.polls);
}

static long wait_on_host(struct uthread *u, long nr, const uint64_t a[6])
{
	sticky_needs_host(u);
	return flexsc__perform_wait_on_host(u, nr, a);
}

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6])
{
	struct time_limit p;
	long ret;

	if (flexsc__stays(u) || sticky_take(u)) {
		if (call_awaits_any(nr, a))
			sticky_counts_loop_wait(u);
		return flexsc__perform_wait_on_host(u, nr, a);
	}
	if (!can_poll(nr, a, &p))
		return wait_on_host(u, nr, a);
	if (polls_on_host(u, nr, a, &p))
		return flexsc__perform_wait_on_host(u, nr, a);
	ret = poll_look(nr, a, &p);
	if (ret >= 0 && p.fd.fd < 0 && has_signals(a))
		return wait_on_host(u, nr, a);
	if (ret || !p.ns)
		return ret;
	/* The program's pollfd is readable: on the stack, or the kernel has read it. */
	if (p.one)
		p.fd = *p.one;
	if (!flexsc__runtime.polls || p.fd.fd < 0)
		return wait_on_host(u, nr, a);
	return wait_for_one(u, nr, a, &p);
}
