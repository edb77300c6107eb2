/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include "lib/calls/call_info.h"
#include "lib/run/handover.h"
#include "carrier.h"
#include "inbox.h"
#include "poll_first.h"
#include "state.h"
#include "uthreads.h"
#include "wait.h"

/*
 * May s make u's call again while c's request for that call stays armed in c's ring? An
 * armed request has had no effect yet (calls/parts.c).
 */
static bool moves_when_armed(const struct uthread *u)
{
	if (u->nr != SYS_waitid && !flexsc__poll_first_keeps_file(u))
		return false;
	return flexsc__call_info(u->nr)->traits & CALL_REARM;
}

static void take_timer(struct carrier *s, struct carrier *c, struct uthread *u)
{
	uint64_t ns;

	if (!flexsc__handover_take(c->loop, &u->cb, false, &ns))
		return;
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	/* If there is no memory for the timer, u waits on its host. */
	u->cb.ret = flexsc_loop_timer(s->loop, &u->cb, ns);
	if (u->cb.ret)
		u->cb.callback(&u->cb);
}

/*
 * Does u's call have to poll once it has moved? True for an accept() (poll_first.h) and
 * for a connect(): a second connect() returns the result of the first, but only after
 * the first has ended.
 */
static bool polls_when_moved(const struct uthread *u)
{
	return flexsc__runtime.polls &&
	       (poll_first_is_accept(u) || poll_first_is_connect(u));
}

static void take_call(struct carrier *s, struct carrier *c, struct uthread *u)
{
	const bool polls = polls_when_moved(u);
	const uint64_t *args = u->args;

	/*
	 * An accept()'s request stays armed in c's ring, even if the call moves. A
	 * poller executes the request, so that no connection is lost to it.
	 */
	c->accepts |= polls && poll_first_is_accept(u) &&
		      !flexsc__handover_cancels(c->loop);
	if (!flexsc__handover_take(c->loop, &u->cb,
				polls ? flexsc__poll_first_copy(u) : moves_when_armed(u),
				&u->ns)) {
		flexsc__poll_first_drop_copy(u, args);
		return;
	}
	__atomic_store_n(&u->carrier, s, __ATOMIC_RELAXED);
	if (u->cb.ret) {
		/* c had begun to cancel the call, so end the wait. */
		flexsc__poll_first_drop_copy(u, args);
		u->cb.callback(&u->cb);
	} else if (polls) {
		flexsc__poll_first(s, u);
	} else {
		flexsc__wait_post(s, u);
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
		flexsc__wait_move_limit(s, c, u);
		break;
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
		atomic_fetch_add(&flexsc__poll_first_stuck, 1);
		for (u = flexsc__uthreads_first(); u; u = u->all_next)
			if (atomic_load(&u->wait) == WAIT_CALL &&
			    poll_first_is_accept(u))
				flexsc__inbox_recheck(u);
	}
	flexsc__uthreads_unlock();
}

void flexsc__moved_back(struct carrier *c)
{
	if (c->accepts) {
		c->accepts = false;
		atomic_fetch_sub(&flexsc__poll_first_stuck, 1);
	}
	flexsc__uthreads_lock();
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next)
		if (carrier_of(u) == c)
			flexsc__wait_interrupt(c, u);
	flexsc__uthreads_unlock();
}
