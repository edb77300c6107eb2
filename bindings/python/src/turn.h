/* SPDX-License-Identifier: MIT */
/*
 * A turn: what a loop does when its outer loop calls it. It harvests complete
 * calls, once, which also starts posted ones, and runs the callbacks of
 * complete calls. Calls that these callbacks post are left to the next turn, so
 * that the outer loop's other work runs in between.
 */
#ifndef TURN_H
#define TURN_H

#include "loop.h"

/*
 * Schedule a turn soon, for calls that were posted or cancelled. Returns 0, or
 * -1 with an exception set.
 */
int turn_soon(struct loop *loop);

/*
 * Make a turn; readable: the descriptor may be readable. Returns 0, or -1 with
 * an exception set.
 */
int turn_make(struct loop *loop, bool readable);

/* Stop the outer loop's timer from making turns. */
void turn_stop(struct loop *loop);

/*
 * Add a complete call to those whose callbacks the current or next turn runs.
 */
void turn_append(struct loop *loop, struct call *call);

/* The flexsc_cb callback of calls that aren't harvested; doesn't use Python. */
void turn_ended(struct flexsc_cb *cb);

/*
 * The last turn: pending calls are cancelled. Their callbacks run only if the
 * outer loop is still alive.
 */
void turn_last(struct loop *loop, bool alive);

/* Returns 0, or -1 with an exception set. */
int turn_init(void);

#endif /* TURN_H */
