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
 * Does u have a seccomp filter of its own? Such a filter may forbid calls that the
 * runtime makes around u's calls or on u's behalf.
 */
static inline bool filter_is_near(const struct uthread *u)
{
	return atomic_load_explicit(&u->anchored, memory_order_relaxed) &
	       ANCHORED_FILTER;
}

/* With the list locked (uthreads.h): add or remove a reason to anchor u. */
void flexsc__anchor(struct uthread *u, enum anchor reason, bool anchored);

/*
 * The calling thread u, inside the runtime, is going to get state that carriers lack:
 * return to the host, and stay there for good.
 */
void flexsc__anchor_for_good(struct uthread *u);

/*
 * Anchor all user threads but "self". Called without the list's lock, while the monitor
 * runs. User threads that are away return to their hosts, which ends their waits. On
 * return all user threads are on their hosts and outside the runtime, except one that
 * is in a long call which no signal interrupts. "self" is on its host, and isn't
 * anchored.
 */
void flexsc__anchor_others(const struct uthread *self, enum anchor reason);

/*
 * If the thread tid, which may be the calling one, is anchored and runs, make it run on
 * its host. Called inside the runtime, without the list's lock. self: the calling user
 * thread, or NULL.
 */
void flexsc__anchored_settle(struct uthread *self, int32_t tid);

#endif /* FLEXSC_RUNTIME_ANCHORED_H */
