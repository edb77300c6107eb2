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
 * So a user thread for which home is near, because it was there for a wait a
 * few waits ago, lodges: it makes its next waits at home, whatever they are, as
 * natively. Each time it gets twice as many as the last time, and it leaves
 * when they are used up, to see whether it still needs its home so often. A
 * user thread that seldom needs home for a wait never lodges.
 *
 * An event loop has its home for good. It is a user thread whose waits are all
 * for any one of many things: call_awaits_any() in calls/call.h says which. What
 * it calls in between doesn't wait, so there is nothing to post, and a carrier
 * would only add a call to each wait. A user thread that polls one descriptor is
 * no event loop. It waits for that descriptor with a time limit, and a loop can
 * do so for it.
 *
 * All of this is called by the user thread itself.
 */
#ifndef FLEXSC_THREADS_LODGE_H
#define FLEXSC_THREADS_LODGE_H

#include "state.h"
#include "uthread.h"

/* Waits for any of many, with no posted call between, of an event loop. */
#define LODGE_TURNS	4U

/* The user thread is about to come home for a wait. */
void flexsc__lodge(struct uthread *u);

/*
 * The monitor found the user thread in a wait that kept its carrier, and moves
 * it home.
 */
void flexsc__lodge_stuck(struct uthread *u);

/* The user thread begins a wait away from home. */
static inline void lodge_away(struct uthread *u)
{
	u->lodge.away++;
}

/* The user thread posts a call. It isn't an event loop, or no more. */
static inline void lodge_posts(struct uthread *u)
{
	u->lodge.turns = 0;
}

/* The user thread is about to wait for any of many. Is it an event loop? */
static inline bool lodge_turns(struct uthread *u)
{
	if (!flexsc__runtime.loops)
		return false;
	if (u->lodge.turns < LODGE_TURNS)
		u->lodge.turns++;
	return at_home() || u->lodge.turns == LODGE_TURNS;
}

/* The user thread is about to wait. Is it to wait at home, where it is? */
static inline bool lodge_here(struct uthread *u)
{
	if (!u->lodge.left)
		return false;
	u->lodge.left--;
	return true;
}

#endif /* FLEXSC_THREADS_LODGE_H */
