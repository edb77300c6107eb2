/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a user thread is suspended until a call is complete, a time has
 * come, or somebody wakes it, and its carrier runs others meanwhile.
 *
 * Whoever wants a user thread at home (a signal, a cancellation) says so and
 * its wait ends early: flexsc__want(). P1: the waiter makes its wait known,
 * then looks at "wanted". P2: who wants it sets "wanted", then has its carrier
 * look at its wait. Both sequentially consistent: one of the two sees the
 * other.
 */
#ifndef FLEXSC_THREADS_WAIT_H
#define FLEXSC_THREADS_WAIT_H

#include "uthread.h"

/*
 * User threads only. They leave home if need be; they may return at home, if
 * wanted there.
 */

/* No result of any call: the carrier's loop has no entry left. */
#define NO_ENTRY	(-4096L)

/*
 * Have call nr executed: its result; -ECANCELED or NO_ENTRY: it never happened.
 */
long flexsc__wait_call(struct uthread *u, unsigned int nr,
		       const uint64_t args[6]);
/* The same, for ns nanoseconds at most; -ETIME: it never happened. */
long flexsc__wait_call_for(struct uthread *u, unsigned int nr,
			   const uint64_t args[6], uint64_t ns);
/* Let ns nanoseconds pass: 0, or -EINTR. */
long flexsc__wait_time(struct uthread *u, uint64_t ns);
/* Let others run. */
void flexsc__wait_turn(struct uthread *u);

/* Any thread, any signal handler: end u's wait and have it come home. */
void flexsc__want(struct uthread *u);

/* Carriers only: u is wanted; if it waits on c, that ends. */
void flexsc__wait_interrupt(struct carrier *c, struct uthread *u);

/* Carriers only: u came through the inbox. Can it run? */
bool flexsc__wait_over(struct uthread *u);

#endif /* FLEXSC_THREADS_WAIT_H */
