/* SPDX-License-Identifier: MIT */
/*
 * A turn: what a loop does when its outer loop calls it. It harvests what is
 * complete, once, which starts what was posted as well, and wakes those who
 * wait. What these post is for the next turn, so others have theirs between.
 */
#ifndef TURN_H
#define TURN_H

#include "loop.h"

/* Have one soon, for what was posted or cancelled. 0, or -1: raised. */
int turn_soon(struct loop *loop);

/* Make one; the descriptor may be readable. 0, or -1: raised. */
int turn_make(struct loop *loop, bool readable);

/* The outer loop's timer makes none any more. */
void turn_stop(struct loop *loop);

/* Have the next turn, or this one, wake a call that is complete. */
void turn_append(struct loop *loop, struct call *call);

/* The callback of calls that aren't harvested, without Python. */
void turn_ended(struct flexsc_cb *cb);

/* The last one: such calls are cancelled, and woken if the outer loop lives. */
void turn_last(struct loop *loop, bool alive);

/* 0, or -1: raised. */
int turn_init(void);

#endif /* TURN_H */
