/* SPDX-License-Identifier: MIT */
/*
 * The calls of an event loop that runs in a user thread on its host (sched/sticky.h).
 * They are made as in a plain thread and must cost only a few instructions more, so the
 * functions are inline. The calling user thread only, outside the runtime.
 */
#ifndef FLEXSC_RUNTIME_LOOP_CALLS_H
#define FLEXSC_RUNTIME_LOOP_CALLS_H

#include "lib/calls/call_info.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "runtime/sched/count.h"
#include "runtime/sched/host.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/uthread.h"
#include "perform.h"

/*
 * May a user thread on its host make a call natively? If not, it makes the call in one
 * of the other ways that hook.h lists.
 */
enum make_natively {
	NATIVELY_NOT = 0,
	NATIVELY_AT_ONCE,	/* the call doesn't wait, so it can't be cancelled */
	NATIVELY_POINT,		/* the call may wait: a cancellation point, as in libc */
};

/*
 * A call is made natively if its descriptor is known to have O_NONBLOCK. Without
 * FD_ALONE, the program may have cleared the flag through another descriptor of the
 * same file. Then the call waits on the host, and must be a cancellation point.
 */
static inline enum make_natively loop_call_by_descriptor(uint32_t fd)
{
	uint32_t facts = fds_known(fd);

	if (!(facts & FD_NEVER_WAITS))
		return NATIVELY_NOT;
	return facts & FD_ALONE ? NATIVELY_AT_ONCE : NATIVELY_POINT;
}

/*
 * How to make the call natively, if at all. Native calls are those of an event loop:
 * accepting, receiving and sending where nothing waits, submitting requests, and
 * waiting for any of many descriptors or requests.
 */
static inline enum make_natively
loop_call_how(const struct uthread *u, enum call_turn turn, const uint64_t a[6])
{
	if (!on_host() || !u->natively ||
	    atomic_load_explicit(&u->wanted, memory_order_relaxed))
		return NATIVELY_NOT;
	switch (turn) {
	case TURN_TRANSFER:
	case TURN_SOCKET:
	case TURN_MESSAGE:
		return loop_call_by_descriptor((uint32_t)a[0]);
	case TURN_ACCEPT:
		/*
		 * The caller may be a vfork() child, whose new descriptors must not be
		 * recorded as the parent's.
		 */
		return u->forks ? NATIVELY_NOT : loop_call_by_descriptor((uint32_t)a[0]);
	case TURN_SUBMIT:
	case TURN_AWAIT:
		return NATIVELY_POINT;
	case TURN_POLL:
		return a[1] != 1 ? NATIVELY_POINT : NATIVELY_NOT;
	case TURN_OTHER:
		break;
	}
	return NATIVELY_NOT;
}

/* Record the call's effects. Not inline, or its variables enlarge callers' frames. */
void flexsc__loop_call_noted(struct uthread *u, long nr, const uint64_t a[6],
			     enum call_turn turn, long ret);

/* Called after a wait for any of many descriptors or requests. */
static inline void loop_call_awaited(struct uthread *u, long ret)
{
	if (ret > 0)
		sticky_counts_barren(u);
}

/* Make a call natively. "how" isn't NATIVELY_NOT. */
static inline long loop_call(struct uthread *u, long nr, const uint64_t a[6],
			     enum call_turn turn, enum make_natively how)
{
	long ret = u->point && how == NATIVELY_POINT ?
			   flexsc__perform_point(nr, a) :
			   flexsc__perform_plainly(nr, a);

	if (turn <= TURN_SOCKET)
		sticky_transfers(u);
	else if (turn >= TURN_AWAIT)
		loop_call_awaited(u, ret);
	else if (turn != TURN_SUBMIT)
		flexsc__loop_call_noted(u, nr, a, turn, ret);
	u->way = WAY_NATIVELY;
	counters_call(u);
	return ret;
}

#endif /* FLEXSC_RUNTIME_LOOP_CALLS_H */
