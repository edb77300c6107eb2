/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include <errno.h>
#include <poll.h>

#include "carrier.h"
#include "lib/loop/loop.h"
#include "lib/run/adopt.h"
#include "state.h"
#include "uthreads.h"
#include "wait.h"

/* Time limit of an accept() after a poll, in ns. */
#define ATTEMPT_NS	5000000U

_Atomic uint32_t flexsc__moved_accepts;
struct moved_closings flexsc__moved_closings;

static void close_chunk(uint32_t chunk)
{
	atomic_fetch_add(&flexsc__moved_closings.of_chunk[chunk], 1);
}

void flexsc__moved_close_range(uint32_t first, uint32_t last)
{
	uint32_t fd = first;

	while (fd <= last && fd < MOVED_CLOSINGS) {
		if (fd % MOVED_CHUNK || last - fd < MOVED_CHUNK - 1) {
			moved_close(fd);
			fd++;
		} else {
			close_chunk(fd / MOVED_CHUNK);
			fd += MOVED_CHUNK;
		}
	}
	if (last >= MOVED_CLOSINGS)
		close_chunk(MOVED_CLOSINGS / MOVED_CHUNK);
}

/* Does the descriptor of u's call still mean the file that it meant when posted? */
static bool keeps_file(const struct uthread *u)
{
	return u->moved.closings == moved_closings(moved_fd(u));
}

/* Polling first. */

/*
 * An accept() after a poll is over. If its time limit was reached, another thread had
 * taken the connection before.
 */
static void attempt_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -ETIME)
		flexsc__moved_poll(kthread_self()->carrier, u);
	else
		flexsc__wait_ends(u, cb->ret);
}

/* The poll is over: post the call. */
static void poll_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);
	struct carrier *c = kthread_self()->carrier;

	if (cb->ret < 0) {
		flexsc__wait_ends(u, cb->ret);
		return;
	}
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	if (moved_polls(u)) {
		u->ns = ATTEMPT_NS;
		flexsc__wait_post(c, u, attempt_over);
	} else {
		flexsc__wait_post(c, u, NULL);
	}
}

void flexsc__moved_poll(struct carrier *c, struct uthread *u)
{
	int err = NO_ENTRY;

	/* Here may be the heir of the carrier on which the wait began. */
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	u->moved.poll = (struct pollfd){
		.fd = (int)u->args[0],
		.events = u->nr == SYS_connect ? POLLOUT : POLLIN,
	};
	/* Calls with a time limit of the program's are made at home, and don't poll. */
	u->ns = 0;
	u->cb.callback = poll_over;
	if (flexsc__loop_has_entry(c->loop))
		err = flexsc__call_poll(c->loop, &u->cb, &u->moved.poll);
	if (err)
		flexsc__wait_ends(u, err);
	else
		flexsc__wait_posted(c, u);
}

/*
 * An accept() that flexsc__moved_repoll() cancelled is over: it polls, unless it has a
 * result or the user thread is wanted.
 */
static void accept_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -ECANCELED && !atomic_load(&u->wanted) && !u->handled)
		flexsc__moved_poll(kthread_self()->carrier, u);
	else
		flexsc__wait_ends(u, cb->ret);
}

void flexsc__moved_repoll(struct carrier *c, struct uthread *u)
{
	/* It polls already, or will when its time limit is reached. */
	if (u->cb.callback == poll_over || u->cb.callback == attempt_over)
		return;
	/* The poll, and the accept() after it, would find another file or none. */
	if (!keeps_file(u))
		return;
	u->cb.callback = accept_over;
	flexsc_loop_cancel(c->loop, &u->cb);
}

/* Taking. */

/*
 * May the call be made once more while its request is armed in the stuck carrier's ring?
 * Such a request has had no effect so far (calls/parts.h).
 */
static bool moves_when_armed(const struct uthread *u)
{
	if (u->nr != SYS_waitid && !keeps_file(u))
		return false;
	switch (u->nr) {
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev2:
	case SYS_poll:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_waitid:
		return true;
	default:
		return false;
	}
}

static void take_timer(struct carrier *s, struct carrier *c, struct uthread *u)
{
	uint64_t ns;

	if (!flexsc__adopt_take(c->loop, &u->cb, false, &ns))
		return;
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	/* Without memory for the timer, the wait ends, and goes on at home. */
	u->cb.ret = flexsc_loop_timer(s->loop, &u->cb, ns);
	if (u->cb.ret)
		u->cb.callback(&u->cb);
}

static void take_call(struct carrier *s, struct carrier *c, struct uthread *u)
{
	/* The request stays armed, whether the call moves or not. */
	c->accepts |= flexsc__runtime.polls && moved_is_accept(u);
	if (!flexsc__adopt_take(c->loop, &u->cb, moves_when_armed(u), &u->ns))
		return;
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	/*
	 * A connect() that has begun must be over before it may be made again: then it
	 * returns its result.
	 */
	if (flexsc__runtime.polls && (moved_is_accept(u) || u->nr == SYS_connect))
		flexsc__moved_poll(s, u);
	else
		flexsc__wait_post(s, u, NULL);
}

static void take_wait(struct carrier *s, struct carrier *c, struct uthread *u)
{
	switch ((enum wait_kind)atomic_load(&u->wait)) {
	case WAIT_NOT:
		break;
	case WAIT_CALL:
		take_call(s, c, u);
		break;
	case WAIT_FUTEX:
		if (!u->futex.timed)
			break;
		/* fall through */
	case WAIT_TIMER:
		take_timer(s, c, u);
		break;
	}
}

static struct carrier *carrier_of(const struct uthread *u)
{
	return __atomic_load_n(&u->carrier, __ATOMIC_RELAXED);
}

void flexsc__moved_take(struct carrier *s, struct carrier *c)
{
	struct uthread *u;

	RULE(kthread_self()->carrier == s && !c->accepts);
	flexsc__uthreads_lock();
	for (u = flexsc__uthreads_first(); u; u = u->all_next)
		if (carrier_of(u) == c)
			take_wait(s, c, u);
	if (c->accepts) {
		/* M3 */
		atomic_fetch_add(&flexsc__moved_accepts, 1);
		for (u = flexsc__uthreads_first(); u; u = u->all_next)
			if (atomic_load(&u->wait) == WAIT_CALL &&
			    moved_is_accept(u))
				flexsc__carrier_want(u);
	}
	flexsc__uthreads_unlock();
}

void flexsc__moved_back(struct carrier *c)
{
	if (c->accepts) {
		c->accepts = false;
		atomic_fetch_sub(&flexsc__moved_accepts, 1);
	}
	flexsc__uthreads_lock();
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next)
		if (carrier_of(u) == c)
			flexsc__wait_interrupt(c, u);
	flexsc__uthreads_unlock();
}
