/* SPDX-License-Identifier: MIT */
#include "wait.h"

#include <errno.h>
#include <pthread.h>

#include "carrier.h"
#include "inbox.h"
#include "runtime/counters/counters.h"
#include "host.h"
#include "sticky.h"
#include "lib/loop/loop.h"
#include "lib/run/handover.h"
#include "moved.h"

static const struct wait_ops *futexes;

void flexsc__wait_futexes(const struct wait_ops *ops)
{
	futexes = ops;
}

static void wait_begin(struct uthread *u, enum wait_kind kind)
{
	/* P1: before end_if_wanted() looks at "wanted"; pairs with P2. */
	atomic_store(&u->wait, kind);
}

/* Runs on the carrier that the wait began on, or on that one's heir. */
static void wait_ends(struct uthread *u, long ret)
{
	struct carrier *c = kthread_self()->carrier;

	RULE(c == carrier_heir(u->carrier));
	u->ret = ret;
	atomic_store_explicit(&u->wait, WAIT_NOT, memory_order_relaxed);
	flexsc__runqueue_put(c, u);
}

void flexsc__wait_ends(struct uthread *u, long ret)
{
	wait_ends(u, ret);
}

/*
 * A thread that wanted u before the wait began found no wait to end. On u's way
 * here, a signal handler may even have run.
 */
static void end_if_wanted(struct carrier *c, struct uthread *u)
{
	if (atomic_load(&u->wanted) || u->handled)
		flexsc_loop_cancel(c->loop, &u->cb);
}

/* Calls. */

static void call_over(struct flexsc_cb *cb)
{
	struct uthread *u = waiter_of(cb);

	if (cb->ret == -EPIPE)
		u->carrier->pipe_broke = true;
	wait_ends(u, cb->ret);
}

/* A poll() that is posted is calls/polling.c's: it has one descriptor. */
static int post_call(struct flexsc_loop *loop, struct uthread *u)
{
	const uint64_t *args = u->args;

	if (u->nr == SYS_poll)
		return flexsc__call_poll(loop, &u->cb,
					 (struct pollfd *)(uintptr_t)args[0]);
	return flexsc_loop_call(loop, &u->cb, u->nr, args[0], args[1], args[2],
				args[3], args[4], args[5]);
}

static void post_failed(struct uthread *u, long err)
{
	u->cb.ret = err;
	u->cb.callback(&u->cb);
}

void flexsc__wait_posted(struct carrier *c, struct uthread *u)
{
	/* Without memory for the time limit, the caller makes the call on its host. */
	if (u->ns && flexsc_loop_deadline(c->loop, &u->cb, u->ns))
		flexsc_loop_cancel(c->loop, &u->cb);
	end_if_wanted(c, u);
}

void flexsc__wait_post(struct carrier *c, struct uthread *u,
		       void (*over)(struct flexsc_cb *cb))
{
	int err;

	u->cb.callback = over ? over : call_over;
	/*
	 * A user thread that waited for a free entry would wait for calls of
	 * others, which may wait for it themselves.
	 */
	if (!flexsc__loop_has_entry(c->loop)) {
		post_failed(u, NO_ENTRY);
		return;
	}
	wait_begin(u, WAIT_CALL);
	if (!over && moved_polls(u)) {
		flexsc__moved_poll(c, u);
		return;
	}
	err = post_call(c->loop, u);
	if (err)
		post_failed(u, err);
	else
		flexsc__wait_posted(c, u);
}

static void post(struct kthread *k, struct uthread *u)
{
	flexsc__wait_post(k->carrier, u, NULL);
}

void flexsc__wait_test_cancel(struct uthread *u)
{
	if (!u->point)
		return;
	flexsc__exit(u);
	pthread_testcancel();
	flexsc__enter(u);
}

static long wait_here(struct uthread *u,
		      void (*then)(struct kthread *, struct uthread *))
{
	while (on_host()) {
		flexsc__leave_host(u);
		if (!on_host())
			break;
		/* A signal may have called u to its host before it began to wait. */
		flexsc__wait_test_cancel(u);
		if (flexsc__stays(u))
			return -ERESTART;
	}
	sticky_away(u);
	flexsc__suspend(u, then);
	flexsc__settle(u);
	return u->ret;
}

long flexsc__wait_call_for(struct uthread *u, unsigned int nr,
			   const uint64_t args[6], uint64_t ns)
{
	u->nr = nr;
	u->args = args;
	u->ns = ns;
	moved_note(u);
	return wait_here(u, post);
}

long flexsc__wait_call(struct uthread *u, unsigned int nr,
		       const uint64_t args[6])
{
	return flexsc__wait_call_for(u, nr, args, 0);
}

/* Time. */

static void timer_over(struct flexsc_cb *cb)
{
	wait_ends(waiter_of(cb), cb->ret == -ECANCELED ? -EINTR : cb->ret);
}

static void arm(struct kthread *k, struct uthread *u)
{
	int err;

	u->cb.callback = timer_over;
	wait_begin(u, WAIT_TIMER);
	err = flexsc_loop_timer(k->carrier->loop, &u->cb, u->ns);
	if (err)
		wait_ends(u, err);
	else
		end_if_wanted(k->carrier, u);
}

long flexsc__wait_time(struct uthread *u, uint64_t ns)
{
	u->ns = ns;
	return wait_here(u, arm);
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
	wait_here(u, go_last);
	u->way = WAY_ANSWERED;
}

/* Ending early. */

void flexsc__want(struct uthread *u)
{
	/* P2: before the carrier looks at u->wait; pairs with P1. */
	atomic_store(&u->wanted, true);
	/* If u is the calling thread, on its host, it looks on its way out. */
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
		    moved_polls(u))
			flexsc__moved_repoll(c, u);
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

bool flexsc__wait_over(struct uthread *u)
{
	if (atomic_load(&u->wait) != WAIT_FUTEX)
		return true;
	/* Its timer is another carrier's: it came by way of an heir. */
	if (carrier_heir(u->carrier) != kthread_self()->carrier) {
		flexsc__inbox_return(u);
		return false;
	}
	return futexes->is_over(u->carrier, u);
}
