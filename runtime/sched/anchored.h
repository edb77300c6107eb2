/* SPDX-License-Identifier: MIT */
/*
 * *Anchored* user threads compute on their hosts only, as long as there is a reason. An
 * anchored thread may still wait on a carrier, which sends it to its host after the
 * wait. So anchoring doesn't disturb a wait that has begun.
 */
#ifndef FLEXSC_RUNTIME_ANCHORED_H
#define FLEXSC_RUNTIME_ANCHORED_H

#include "uthread.h"

/* Reasons: the bits of uthread.anchored. */
enum anchor {
	ANCHORED_AFFINITY = 1,	/* calls/affinity.h */
	ANCHORED_CLOCK = 2,		/* cputime.h */
	ANCHORED_STATE = 4,		/* flexsc__anchor_for_good() */
	ANCHORED_FILTER = 8,	/* calls/filter.h */
};

/*
 * Does u have a filter that may forbid what the runtime does around its calls, or on
 * its behalf?
 */
static inline bool filter_is_near(const struct uthread *u)
{
	return atomic_load_explicit(&u->anchored, memory_order_relaxed) &
	       ANCHORED_FILTER;
}

/* With the list locked (uthreads.h): add or remove a reason to anchor u. */
void flexsc__anchor(struct uthread *u, enum anchor reason, bool anchored);

/*
 * The calling thread, which is u and inside the runtime, gets state that carriers lack.
 * It returns to its host, and stays there for good.
 */
void flexsc__anchor_for_good(struct uthread *u);

/*
 * Anchor all user threads but "self", without the list's lock, while the monitor runs.
 * User threads that are away return to their hosts, and their waits end. On return all
 * are there and outside the runtime, except one that is in a long call which no signal
 * interrupts. "self" is on its host, stays there until then, and isn't anchored.
 */
void flexsc__anchor_others(const struct uthread *self, enum anchor reason);

/*
 * If the thread tid, which may be the calling one, is anchored and runs, it runs on its
 * host when this returns. Inside the runtime, without the list's lock. self: the
 * calling user thread, or NULL.
 */
void flexsc__anchored_settle(struct uthread *self, int32_t tid);

#endif /* FLEXSC_RUNTIME_ANCHORED_H */
