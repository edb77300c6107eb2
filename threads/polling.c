/* SPDX-License-Identifier: MIT */
#include "polling.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "call.h"
#include "carrier.h"
#include "clock.h"
#include "wait.h"

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
	const struct timespec *limit = flexsc__arg_pointer(a[2]);

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
	p->fd = *(const struct pollfd *)flexsc__arg_pointer(a[0]);
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

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6])
{
	struct patience p;
	uint64_t until;
	long ret;

	if (flexsc__call_stays(u) || !can_poll(nr, a, &p))
		return flexsc__call_go_home(u, nr, a);
	ret = flexsc__call_plainly(nr, p.now);
	if (ret || !p.ns)
		return ret;
	if (!polls_one(nr, a, &p))
		return flexsc__call_go_home(u, nr, a);
	until = time_now(CLOCK_MONOTONIC) + (uint64_t)p.ns;
	u->handled = HANDLED_NOT;
	for (;;) {
		ret = await_ready(u, &p, until);
		if (ret == -ECANCELED || ret == -EINTR) {
			if (flexsc__call_interrupted(u, SYS_pause))
				return -EINTR;
		} else if (ret < 0 && ret != -ETIME) {
			return flexsc__call_go_home(u, nr, a);
		}
		/* Somebody else may have taken what made it ready. */
		ret = flexsc__call_plainly(nr, p.now) ? :
		      ret == -ETIME ? 0 : -EAGAIN;
		if (ret != -EAGAIN)
			return ret;
	}
}
