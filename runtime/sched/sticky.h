/* SPDX-License-Identifier: MIT */
/*
 * Sticky: a user thread stays on its host for some of its next waits.
 *
 * Some waits need a kernel thread: select(), a System V semaphore,
 * io_getevents(). A user thread returns to its host for such a wait, and its next posted
 * call takes it away again: two hand-overs between kernel threads, where
 * natively there is at most one. A wait that the runtime didn't intercept (in a
 * library with system calls of its own) is worse: the carrier stands still
 * until the monitor looks.
 *
 * So a user thread that was on its host for a wait a few waits ago is sticky: it makes
 * its next waits on its host, whatever they are, as natively. The number of waits is
 * the grant, each about twice as large as the last one. When the grant is used
 * up, the user thread leaves, to see whether it still needs its host so often. A
 * user thread that seldom needs its host for a wait is never sticky.
 *
 * An event loop is a user thread whose waits are all for any of many descriptors
 * or requests: call_awaits_any() in calls/call.h. It stays on its host until it posts
 * a call. Its calls between two waits don't wait, so there is nothing to post, and
 * a carrier would only add a call to each wait. A user thread that polls one
 * descriptor is no event loop: the carrier's loop can wait for that descriptor in
 * its place.
 *
 * All functions are called by the user thread itself.
 */
#ifndef FLEXSC_RUNTIME_STICKY_H
#define FLEXSC_RUNTIME_STICKY_H

#include "state.h"
#include "uthread.h"

/* So many waits for any of many, with no call posted between, make an event loop. */
#define STICKY_LOOP_WAITS	4U

/* The user thread is about to return to its host for a wait. */
void flexsc__sticky_wait(struct uthread *u);

/*
 * The user thread was in a wait that kept its carrier, and goes to its host because the
 * monitor's signal says so. In the handler of that signal.
 */
void flexsc__sticky_stuck(struct uthread *u);

/* The user thread begins a wait away from its host. */
static inline void sticky_away(struct uthread *u)
{
	u->sticky.away++;
}

/* The user thread posts a call, so it isn't an event loop (any more). */
static inline void sticky_posts(struct uthread *u)
{
	u->sticky.loop_waits = 0;
}

/*
 * The user thread is about to wait for any of many. Does it wait on its host, because
 * it is there already or because it is an event loop by now? Counts the wait.
 */
static inline bool sticky_loop_wait(struct uthread *u)
{
	if (!flexsc__runtime.loops)
		return false;
	if (u->sticky.loop_waits < STICKY_LOOP_WAITS)
		u->sticky.loop_waits++;
	return on_host() || u->sticky.loop_waits == STICKY_LOOP_WAITS;
}

/* The user thread is about to wait. Has it a grant to do so on its host? Takes one. */
static inline bool sticky_take(struct uthread *u)
{
	if (!u->sticky.left)
		return false;
	u->sticky.left--;
	return true;
}

#endif /* FLEXSC_RUNTIME_STICKY_H */
