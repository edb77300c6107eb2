/* SPDX-License-Identifier: MIT */
/*
 * User threads that are *anchored*: they compute on their hosts only, for as long as
 * there is a reason. An anchored thread may still wait on a carrier, which sends it to
 * its host when the wait is over; so a wait that has begun isn't disturbed when its
 * thread is anchored.
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
 * May a filter forbid what the runtime does around the user thread's calls, or
 * for it?
 */
static inline bool filter_is_near(const struct uthread *u)
{
	return atomic_load_explicit(&u->anchored, memory_order_relaxed) &
	       ANCHORED_FILTER;
}

/*
 * Under the list's lock (uthreads.h): from here on there is this reason to anchor
 * u, or no longer.
 */
void flexsc__anchor(struct uthread *u, enum anchor reason, bool anchored);

/*
 * The calling thread, which is u and inside the runtime, gets state that its kernel
 * thread keeps and carriers lack: it returns to its host and stays there for good.
 */
void flexsc__anchor_for_good(struct uthread *u);

/*
 * From here on there is this reason to anchor each user thread. User threads that are
 * away return to their hosts, and their waits end. When this returns they are there and
 * outside the runtime, unless one is for long in a call that no signal interrupts.
 * "self" is on its host, stays there until then, and isn't anchored. Without the list's
 * lock; the monitor runs.
 */
void flexsc__anchor_others(const struct uthread *self, enum anchor reason);

/*
 * If the thread tid is anchored and runs, it runs on its host when this returns, even
 * if it is the calling thread. Inside the runtime, without the list's lock;
 * self is the calling thread, if it is a user thread.
 */
void flexsc__anchored_settle(struct uthread *self, int32_t tid);

#endif /* FLEXSC_RUNTIME_ANCHORED_H */
