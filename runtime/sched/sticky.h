/* SPDX-License-Identifier: MIT */
/*
 * Lodging: a user thread stays at home for some of its next waits.
 *
 * Some waits need a kernel thread: select(), a System V semaphore,
 * io_getevents(). A user thread comes home for such a wait, and its next posted
 * call takes it away again: two hand-overs between kernel threads, where
 * natively there is at most one. A wait that the runtime didn't intercept (in a
 * library with system calls of its own) is worse: the carrier stands still
 * until the monitor looks.
 *
 * So a user thread that was at home for a wait a few waits ago lodges: it makes
 * its next waits at home, whatever they are, as natively. The number of waits is
 * the grant, each about twice as large as the last one. When the grant is used
 * up, the user thread leaves, to see whether it still needs its home so often. A
 * user thread that seldom needs its home for a wait never lodges.
 *
 * An event loop is a user thread whose waits are all for any of many descriptors
 * or requests: call_awaits_any() in calls/call.h. It stays at home until it posts
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
#define LODGE_TURNS	4U

/* The user thread is about to come home for a wait. */
void flexsc__lodge(struct uthread *u);

/*
 * The user thread was in a wait that kept its carrier, and goes home because the
 * monitor's signal says so. In the handler of that signal.
 */
void flexsc__lodge_stuck(struct uthread *u);

/* The user thread begins a wait away from home. */
static inline void lodge_away(struct uthread *u)
{
	u->lodge.away++;
}

/* The user thread posts a call, so it isn't an event loop (any more). */
static inline void lodge_posts(struct uthread *u)
{
	u->lodge.turns = 0;
}

/*
 * The user thread is about to wait for any of many. Does it wait at home, because
 * it is there already or because it is an event loop by now? Counts the wait.
 */
static inline bool lodge_turns(struct uthread *u)
{
	if (!flexsc__runtime.loops)
		return false;
	if (u->lodge.turns < LODGE_TURNS)
		u->lodge.turns++;
	return at_home() || u->lodge.turns == LODGE_TURNS;
}

/* The user thread is about to wait. Has it a grant to do so at home? Takes one. */
static inline bool lodge_here(struct uthread *u)
{
	if (!u->lodge.left)
		return false;
	u->lodge.left--;
	return true;
}

#endif /* FLEXSC_RUNTIME_STICKY_H */
