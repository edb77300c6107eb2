/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include <errno.h>
#include <poll.h>

#include "carrier.h"
#include "inbox.h"
#include "lib/base/futex.h"
#include "lib/files/private_fd.h"
#include "lib/calls/table.h"
#include "lib/loop/loop.h"
#include "lib/run/handover.h"
#include "state.h"
#include "uthreads.h"
#include "wait.h"

/* Time limit of an accept() after a poll, in ns. */
#define ATTEMPT_NS	5000000U

_Atomic uint32_t flexsc__moved_accepts;
_Atomic uint32_t flexsc__moved_heirs;
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

void flexsc__moved_wait_for_heirs(void)
{
	uint32_t n;

	while ((n = atomic_load(&flexsc__moved_heirs)))
		futex_wait(&flexsc__moved_heirs, n, UINT64_MAX);
}

void flexsc__moved_begin(void)
{
	/* M5 */
	atomic_fetch_add(&flexsc__moved_heirs, 1);
}

void flexsc__moved_end(void)
{
	atomic_fetch_sub(&flexsc__moved_heirs, 1);
	futex_wake_all(&flexsc__moved_heirs);
}

/* Copies. */

static bool has_copy(const struct uthread *u)
{
	return u->args == u->moved.args;
}

/* Does the descriptor of u's call still mean the file that it meant when posted? */
static bool keeps_file(const struct uthread *u)
{
	return has_copy(u) || u->moved.closings == moved_closings(moved_fd(u));
}

/*
 * From here on u's call uses a copy of its descriptor. False: the descriptor may mean
 * another file already, or it can't be copied. The count is read after the copy is made:
 * if it is the same, the copy has the right file.
 */
static bool use_copy(struct uthread *u)
{
	int copy;

	if (has_copy(u))
		return true;
	copy = flexsc__own_fd_copy((int)u->args[0]);
	if (copy < 0)
		return false;
	if (!keeps_file(u)) {
		flexsc__own_fd_close(copy);
		return false;
	}
	for (unsigned int i = 1; i < 6; i++)
		u->moved.args[i] = u->args[i];
	u->moved.args[0] = (uint64_t)copy;
	u->args = u->moved.args;
	return true;
}

/* Polling first. */

static void wait_ends(struct uthread *u, long ret)
{
	if (has_copy(u))
		flexsc__own_fd_close((int)u->args[0]);
	flexsc__wait_ends(u, ret);
}

/* A call that never polls again is over. */
static void last_over(struct flexsc_cb *cb)
{
	wait_ends(waiter_of(cb), cb->ret);
}

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
		wait_ends(u, cb->ret);
}

/* The poll is over: post the call. */
static void poll_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);
	struct carrier *c = kthread_self()->carrier;

	if (cb->ret < 0) {
		wait_ends(u, cb->ret);
		return;
	}
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	if (moved_polls(u)) {
		u->ns = ATTEMPT_NS;
		flexsc__wait_post(c, u, attempt_over);
	} else {
		flexsc__wait_post(c, u, last_over);
	}
}

void flexsc__moved_poll(struct carrier *c, struct uthread *u)
{
	int err = NO_ENTRY;

	/*
	 * The program may close the descriptor during the poll. Without a copy, the call
	 * after it would find another file, or none.
	 */
	if (!use_copy(u)) {
		flexsc__wait_post(c, u, last_over);
		return;
	}
	/* Here may be the heir of the carrier on which the wait began. */
	__atomic_store_n(&u->carrier, c, __ATOMIC_RELAXED);
	u->moved.poll = (struct pollfd){
		.fd = (int)u->args[0],
		.events = moved_is_connect(u) ? POLLOUT : POLLIN,
	};
	/*
	 * Calls with a time limit of the program's are made on the host, and
	 * don't poll.
	 */
	u->ns = 0;
	u->cb.callback = poll_over;
	if (flexsc__loop_has_entry(c->loop))
		err = flexsc__call_poll(c->loop, &u->cb, &u->moved.poll);
	if (err)
		wait_ends(u, err);
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
		wait_ends(u, cb->ret);
}

void flexsc__moved_repoll(struct carrier *c, struct uthread *u)
{
	/* It polls already, or will when its time limit is reached. */
	if (u->cb.callback == poll_over || u->cb.callback == attempt_over)
		return;
	if (!use_copy(u))
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
	return flexsc__table_row(u->nr)->traits & CALL_REARM;
}

static void take_timer(struct carrier *s, struct carrier *c, struct uthread *u)
{
	uint64_t ns;

	if (!flexsc__handover_take(c->loop, &u->cb, false, &ns))
		return;
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	/* Without memory for the timer, the wait ends, and continues on its host. */
	u->cb.ret = flexsc_loop_timer(s->loop, &u->cb, ns);
	if (u->cb.ret)
		u->cb.callback(&u->cb);
}

/*
 * Does u's call poll when it has moved? A connect() that has begun must be over before
 * it may be made again: then it returns its result.
 */
static bool polls_when_moved(const struct uthread *u)
{
	return flexsc__runtime.polls &&
	       (moved_is_accept(u) || moved_is_connect(u));
}

/* Undo use_copy(), if it has replaced these arguments. */
static void drop_copy(struct uthread *u, const uint64_t *args)
{
	if (u->args != args)
		flexsc__own_fd_close((int)u->args[0]);
	u->args = args;
}

static void take_call(struct carrier *s, struct carrier *c, struct uthread *u)
{
	const bool polls = polls_when_moved(u);
	const uint64_t *args = u->args;

	/* The request stays armed, whether the call moves or not. */
	c->accepts |= polls && moved_is_accept(u);
	if (!flexsc__handover_take(c->loop, &u->cb,
				polls ? use_copy(u) : moves_when_armed(u),
				&u->ns)) {
		drop_copy(u, args);
		return;
	}
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	if (u->cb.ret) {
		/* c had begun to cancel it. */
		drop_copy(u, args);
		u->cb.callback(&u->cb);
	} else if (polls) {
		flexsc__moved_poll(s, u);
	} else {
		flexsc__wait_post(s, u, NULL);
	}
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
				flexsc__inbox_recheck(u);
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
