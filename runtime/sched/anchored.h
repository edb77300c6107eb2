/* SPDX-License-Identifier: MIT */
/*
 * User threads that are *tied*: they compute at home only, for as long as there
 * is a reason. A tied thread may still wait on a carrier, which sends it home
 * when the wait is over; so a wait that has begun isn't disturbed when its
 * thread is tied.
 */
#ifndef FLEXSC_RUNTIME_ANCHORED_H
#define FLEXSC_RUNTIME_ANCHORED_H

#include "uthread.h"

/* Reasons: the bits of uthread.tied. */
enum tie {
	TIED_AFFINITY = 1,	/* calls/affinity.h */
	TIED_CLOCK = 2,		/* cputime.h */
	TIED_STATE = 4,		/* flexsc__tie_for_good() */
	TIED_FILTER = 8,	/* calls/filter.h */
};

/*
 * May a filter forbid what the runtime does around the user thread's calls, or
 * for it?
 */
static inline bool filter_is_near(const struct uthread *u)
{
	return atomic_load_explicit(&u->tied, memory_order_relaxed) &
	       TIED_FILTER;
}

/*
 * Under the list's lock (uthreads.h): from here on there is this reason to tie
 * u, or no longer.
 */
void flexsc__tie(struct uthread *u, enum tie reason, bool tied);

/*
 * The calling thread, which is u and inside the runtime, gets state that its kernel
 * thread keeps and carriers lack: it comes home and stays there for good.
 */
void flexsc__tie_for_good(struct uthread *u);

/*
 * From here on there is this reason to tie each user thread. User threads that are
 * away come home, and their waits end. When this returns they are there and outside
 * the runtime, unless one is for long in a call that no signal interrupts. "self" is
 * at home, stays there until then, and isn't tied. Without the list's lock; the monitor
 * runs.
 */
void flexsc__tie_others(const struct uthread *self, enum tie reason);

/*
 * If the thread tid is tied and runs, it runs at home when this returns, even
 * if it is the calling thread. Inside the runtime, without the list's lock;
 * self is the calling thread, if it is a user thread.
 */
void flexsc__tied_settle(struct uthread *self, int32_t tid);

#endif /* FLEXSC_RUNTIME_ANCHORED_H */
