/* SPDX-License-Identifier: MIT */
/*
 * The time limit of a futex wait: a timer in the loop of a carrier, its owner. Any
 * thread may end the wait. Then the user thread may run, wait again, or end, before the
 * owner uses its loop again. So the timer is an object of its own, which only the owner
 * frees.
 *
 *	free	-> live		owner: a wait begins
 *	live	-> live		an heir becomes the owner (moved.h)
 *	live	-> dead		any thread: it took the user thread off its bucket
 *	dead	-> free		owner, from its list of dead timers
 *
 * A live timer points to the bucket of its user thread. Only a thread that has this
 * bucket's lock changes the pointer, so exactly one ends the wait: a waker, an
 * interruption, or the timer's expiry. That thread also puts the timer into the list. A
 * dead timer that expires has no effect.
 *
 * Adding to the list doesn't wake the owner, which empties the list when it collects
 * completions (carrier_run.c). So a carrier has at most one timer for each unfinished
 * timed wait that began on it or moved to it, plus one for each that has ended since it
 * last emptied the list.
 */
#ifndef FLEXSC_RUNTIME_FUTEX_TIMER_H
#define FLEXSC_RUNTIME_FUTEX_TIMER_H

#include "carrier.h"

struct bucket;

struct futex_timer {
	struct flexsc_cb cb;
	/* bucket that the user thread waits in; NULL: dead */
	_Atomic(struct bucket *) bucket;
	struct uthread *u;	/* may have ended if the timer is dead */
	/* while the timer is live, changes only under the bucket's lock */
	struct carrier *owner;
	struct futex_timer *next;	/* next free or dead timer */
};

/*
 * Carrier c only: start a timer that calls "over" after ns nanoseconds, on c or its
 * heir. The caller then sets the bucket. NULL: out of memory.
 */
struct futex_timer *flexsc__futex_timer_start(struct carrier *c,
					      struct uthread *u,
					      void (*over)(struct flexsc_cb *cb),
					      uint64_t ns);

/* Any thread: put a timer whose bucket is NULL into its owner's list of dead timers. */
void flexsc__futex_timer_end(struct futex_timer *timer);

/*
 * Heir s only, with the bucket's lock: move a live timer of a stuck carrier to s.
 * False: s has no memory for it, so the caller must end the wait.
 */
bool flexsc__futex_timer_move(struct futex_timer *timer, struct carrier *s);

/* Carrier c only: free its dead timers. */
void flexsc__futex_timers_free_dead(struct carrier *c);

/* Free c's timers, when all carriers have ended and c has destroyed its loop. */
void flexsc__futex_timers_fini(struct carrier *c);

/* The timer that contains this cb. */
static inline struct futex_timer *futex_timer_of(struct flexsc_cb *cb)
{
	return (struct futex_timer *)((char *)cb -
				      offsetof(struct futex_timer, cb));
}

#endif /* FLEXSC_RUNTIME_FUTEX_TIMER_H */
