/* SPDX-License-Identifier: MIT */
#include "polling.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "call.h"
#include "../run/carrier.h"
#include "../base/clock.h"
#include "../report/counters.h"
#include "lib/loop/entry.h"
#include "lib/calls/fds.h"
#include "../run/home.h"
#include "../base/peek.h"
#include "../runtime.h"
#include "../run/wait.h"

/* A time limit, and how to make the call without one. */
struct patience {
	int64_t ns;		/* negative: forever */
	uint64_t now[6];	/* the arguments for "don't wait" */
	struct pollfd fd;	/* to wait for; negative: not just one */
	struct pollfd *one;	/* the program's, if that is what it polls */
};

/*
 * The set that a user thread waits for is kept while it does, as the kernel
 * would keep it: who closes the descriptor makes a copy of it first.
 *
 * The number is in the word's upper half, the copy's in the lower one, each
 * plus one; 0 is none. S1: who closes adds a copy if the word still names the
 * descriptor alone. S2: the waiter takes the word, and closes the copy that is
 * in it. If its wait is left by a jump or its thread is cancelled, it does so
 * when it waits again or ends.
 */

static uint64_t set_word(uint32_t fd, uint32_t copy)
{
	return (uint64_t)(fd + 1) << 32 | copy;
}

static int set_of(struct uthread *u)
{
	uint64_t word = atomic_load(&u->set);
	uint32_t copy = (uint32_t)word;

	return (int)(copy ? copy : word >> 32) - 1;
}

static void close_copy(uint32_t copy)
{
	fds_forget(copy);
	raw_syscall(SYS_close, copy, 0, 0, 0, 0, 0);
}

static void set_begin(struct uthread *u, uint32_t fd)
{
	atomic_store(&u->set, set_word(fd, 0));
	flexsc__fds_park(fd);
}

void flexsc__polling_end(struct uthread *u)
{
	uint32_t copy;

	if (!atomic_load_explicit(&u->set, memory_order_relaxed))
		return;
	/* S2 */
	copy = (uint32_t)atomic_exchange(&u->set, 0);
	if (copy)
		close_copy(copy - 1);
}

static void keep_set(struct uthread *u, uint32_t fd)
{
	uint64_t word = set_word(fd, 0);
	int copy;

	if (atomic_load(&u->set) != word)
		return;
	copy = flexsc__fds_copy((int)fd);
	if (copy < 0)
		return;
	/* S1 */
	if (!atomic_compare_exchange_strong(&u->set, &word,
					    set_word(fd, (uint32_t)copy + 1)))
		close_copy((uint32_t)copy);
}

void flexsc__polling_hold(uint32_t fd)
{
	flexsc__runtime_hold();
	for (struct uthread *u = flexsc__runtime_first(); u; u = u->all_next)
		keep_set(u, fd);
	flexsc__runtime_release();
}

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
	p->fd.fd = -1;
	p->one = NULL;
	switch (nr) {
	case SYS_poll:
		p->ns = ns_of_ms(a[2]);
		p->now[2] = 0;
		break;
	case SYS_ppoll:
		if (a[3] || (limit && (!peek_can_read(a[2], sizeof(*limit)) ||
				       !time_valid(limit))))
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
		return true;
	}
	if (a[1] == 1)
		p->one = (struct pollfd *)(uintptr_t)a[0];
	return true;
}

/* Until it is ready: -ETIME, 1, or what the call ended with. */
static long await_ready(struct uthread *u, struct patience *p, uint64_t until)
{
	/* The last is for who looks at what waits: runtime.c. */
	const uint64_t args[6] = { PTR(&p->fd), 1, -1ULL, POLL_WAITS,
				   (uint64_t)p->fd.fd };
	uint64_t time = 0;

	if (p->ns >= 0) {
		time = time_now(CLOCK_MONOTONIC);
		if (time >= until)
			return -ETIME;
	}
	return flexsc__wait_call_for(u, SYS_poll, args,
				     p->ns < 0 ? 0 : until - time);
}

/* It looks at the descriptor again, which may be another file's, or none. */
static long look_again(const struct patience *p, long ret)
{
	struct pollfd fd = p->fd;
	long n = raw_syscall(SYS_poll, PTR(&fd), 1, 0, 0, 0, 0);

	p->one->revents = fd.revents;
	return n || ret == -ETIME ? n : -EAGAIN;
}

/* What poll() says of it. */
static long answer(const struct patience *p, long ret)
{
	if (!fds_is_polled((uint32_t)p->fd.fd))
		return look_again(p, ret);
	p->one->revents = ret == -ETIME ? 0 : p->fd.revents;
	return p->one->revents != 0;
}

/*
 * An epoll set is asked again: somebody else may have taken what made it ready;
 * -EAGAIN then.
 */
static long answer_set(long nr, const struct patience *p, long ret)
{
	long n = flexsc__call_plainly(nr, p->now);

	COUNT_HERE(own, 1);
	return n || ret == -ETIME ? n : -EAGAIN;
}

static long poll_at_home(struct uthread *u, long nr, const uint64_t a[6],
			 const struct patience *p)
{
	uint64_t args[6] = { a[0], a[1], a[2], a[3], a[4], a[5] };

	if (!p->one)
		args[0] = (uint64_t)set_of(u);
	return flexsc__call_go_home(u, nr, args);
}

/* It waits in turns: what it waits for may be closed in each of them. */
static void begin_turn(struct uthread *u, struct patience *p)
{
	if (p->one)
		flexsc__fds_poll((uint32_t)p->fd.fd);
	else
		p->fd.fd = set_of(u);
}

static long turns(struct uthread *u, long nr, const uint64_t a[6],
		  struct patience *p)
{
	uint64_t until = p->ns < 0 ? 0 : time_now(CLOCK_MONOTONIC) +
						 (uint64_t)p->ns;
	long ret;

	do {
		if (flexsc__stays(u))
			return poll_at_home(u, nr, a, p);
		begin_turn(u, p);
		ret = await_ready(u, p, until);
		u->way = WAY_POLLED;
		if (!p->one)
			p->now[0] = (uint64_t)set_of(u);
		if (ret == -ECANCELED || ret == -EINTR) {
			if (flexsc__call_interrupted(u, SYS_pause))
				return -EINTR;
			ret = -EAGAIN;
		} else if (ret < 0 && ret != -ETIME) {
			ret = poll_at_home(u, nr, a, p);
		} else {
			ret = p->one ? answer(p, ret) : answer_set(nr, p, ret);
		}
	} while (ret == -EAGAIN);
	return ret;
}

static long wait_for_one(struct uthread *u, long nr, const uint64_t a[6],
			 struct patience *p)
{
	long ret;

	flexsc__polling_end(u);
	if (!p->one)
		set_begin(u, (uint32_t)p->fd.fd);
	ret = turns(u, nr, a, p);
	flexsc__polling_end(u);
	return ret;
}

/* Without waiting: what there is, or 0. */
static long look(long nr, const uint64_t a[6], const struct patience *p)
{
	long ret;

	/* Who polls one descriptor has mostly found that it isn't ready. */
	if (p->ns && p->one && flexsc__carriers_poll && peek_on_stack(a[0]))
		return 0;
	ret = flexsc__call_plainly(nr, p->now);
	if (!ret && p->ns)
		COUNT_HERE(own, 1);
	return ret;
}

/* Of what poll() was asked, which the kernel has read: see hook.c. */
static bool has_signals(const uint64_t a[6])
{
	const struct pollfd *fds = flexsc__arg_pointer(a[0]);

	if (!atomic_load_explicit(&flexsc__fds_any_signals,
				  memory_order_relaxed))
		return false;
	for (uint64_t i = 0; i < a[1]; i++)
		if (fds_has_signals((uint32_t)fds[i].fd))
			return true;
	return false;
}

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6])
{
	struct patience p;
	long ret;

	if (flexsc__stays(u) || !can_poll(nr, a, &p) ||
	    fds_has_signals((uint32_t)p.fd.fd))
		return flexsc__call_go_home(u, nr, a);
	ret = look(nr, a, &p);
	if (ret >= 0 && p.fd.fd < 0 && has_signals(a))
		return flexsc__call_go_home(u, nr, a);
	if (ret || !p.ns)
		return ret;
	/* From here on it is known that the record can be read. */
	if (p.one)
		p.fd = *p.one;
	if (!flexsc__carriers_poll || p.fd.fd < 0)
		return flexsc__call_go_home(u, nr, a);
	return wait_for_one(u, nr, a, &p);
}
