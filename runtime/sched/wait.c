/* SPDX-License-Identifier: MIT */
#include "wait.h"

#include <errno.h>
#include <pthread.h>

#include "lib/calls/call_info.h"
#include "lib/calls/partial.h"
#include "lib/files/fds.h"
#include "lib/files/kinds.h"
#include "lib/run/handover.h"
#include "carrier.h"
#include "closings.h"
#include "host.h"
#include "inbox.h"
#include "poll_first.h"
#include "post.h"
#include "state.h"
#include "sticky.h"

static const struct wait_ops *futexes;

void flexsc__wait_futexes(const struct wait_ops *ops)
{
	futexes = ops;
}

/* Calls. */

/*
 * The kernel module may execute a write on the carrier's own thread. If a pipe loses its
 * reader after a part, that thread gets SIGPIPE, and the call returns the part's length.
 * flexsc__raise_unseen() then raises the signal for u.
 */
static bool breaks_after_part(const struct uthread *u, long ret)
{
	const struct flexsc_entry entry = {
		.nr = u->nr,
		.args = { u->args[0], u->args[1], u->args[2], u->args[3], u->args[4],
			  u->args[5] },
	};

	return flexsc__runtime.module && ret > 0 &&
	       flexsc__call_info(u->nr)->traits & CALL_PIPE &&
	       (uint64_t)ret < partial_most(&entry) &&
	       flexsc__kind((uint32_t)u->args[0]) & FD_PIPE;
}

static void call_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -EPIPE || breaks_after_part(u, cb->ret))
		u->carrier->pipe_broke = true;
	flexsc__post_wait_ends(u, cb->ret);
}

void flexsc__wait_post(struct carrier *c, struct uthread *u)
{
	if (!flexsc__post_begin(c, u, call_over))
		return;
	if (poll_first_is_needed(u))
		flexsc__poll_first(c, u);
	else
		flexsc__post_call(c, u);
}

static void post(struct kthread *k, struct uthread *u)
{
	flexsc__wait_post(k->carrier, u);
}

void flexsc__wait_test_cancel(struct uthread *u)
{
	if (!u->point)
		return;
	flexsc__exit(u);
	pthread_testcancel();
	flexsc__enter(u);
}

bool flexsc__wait_away(struct uthread *u)
{
	while (on_host()) {
		flexsc__leave_host(u);
		if (!on_host())
			break;
		/* A signal may have called u back to its host before the wait began. */
		flexsc__wait_test_cancel(u);
		if (flexsc__stays(u))
			return false;
	}
	sticky_away(u);
	return true;
}

static long wait_here(struct uthread *u,
		      void (*then)(struct kthread *, struct uthread *))
{
	if (!flexsc__wait_away(u))
		return -ERESTART;
	flexsc__suspend(u, then);
	return u->ret;
}

static long wait_and_settle(struct uthread *u,
			    void (*then)(struct kthread *, struct uthread *))
{
	long ret = wait_here(u, then);

	flexsc__settle(u);
	return ret;
}

long flexsc__wait_call(struct uthread *u, unsigned int nr,
			   const uint64_t args[6], uint64_t ns)
{
	u->nr = nr;
	u->args = args;
	u->ns = ns;
	closings_note(u);
	return wait_here(u, post);
}

/* Time. */

static void timer_over(struct flexsc_cb *cb)
{
	flexsc__post_wait_ends(waiter_of(cb), cb->ret == -ECANCELED ? -EINTR : cb->ret);
}

static void arm(struct kthread *k, struct uthread *u)
{
	int err;

	u->cb.callback = timer_over;
	post_wait_begins(u, WAIT_TIMER);
	err = flexsc_loop_timer(k->carrier->loop, &u->cb, u->ns);
	if (err)
		flexsc__post_wait_ends(u, err);
	else if (atomic_load(&u->wanted) || u->handled)
		flexsc_loop_cancel(k->carrier->loop, &u->cb);
}

long flexsc__wait_time(struct uthread *u, uint64_t ns)
{
	u->ns = ns;
	return wait_and_settle(u, arm);
}

/* Letting others run. */

static void go_last(struct kthread *k, struct uthread *u)
{
	(void)k;
	flexsc__inbox_ready(u);
}

void flexsc__wait_yield(struct uthread *u)
{
	if (on_host()) {
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		return;
	}
	wait_and_settle(u, go_last);
	u->way = WAY_ANSWERED;
}

/* Ending early. */

void flexsc__want(struct uthread *u)
{
	/* P2: set "wanted" before the carrier reads u->wait; pairs with P1. */
	atomic_store(&u->wanted, true);
	/*
	 * If u is the caller and on its host, no recheck is necessary: u reads "wanted"
	 * when it exits from the runtime.
	 */
	if (u != &flexsc__self || u->host.away)
		flexsc__inbox_recheck(u);
}

void flexsc__wait_interrupt(struct carrier *c, struct uthread *u)
{
	RULE(kthread_self()->carrier == c);
	if (carrier_heir(u->carrier) != c)
		return;
	if (!atomic_load(&u->wanted)) {
		if (u->carrier == c && atomic_load(&u->wait) == WAIT_CALL &&
		    poll_first_is_needed(u))
			flexsc__poll_first_instead(c, u);
		return;
	}
	switch ((enum wait_kind)atomic_load(&u->wait)) {
	case WAIT_NOT:
		break;
	case WAIT_CALL:
	case WAIT_TIMER:
		if (u->carrier == c)
			flexsc_loop_cancel(c->loop, &u->cb);
		else
			flexsc__handover_cancel(u->carrier->loop, &u->cb);
		break;
	case WAIT_FUTEX:
		futexes->interrupt(c, u);
		break;
	}
}

void flexsc__wait_move_limit(struct carrier *s, struct carrier *c,
			     struct uthread *u)
{
	futexes->move_limit(s, c, u);
}
