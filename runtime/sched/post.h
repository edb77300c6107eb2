/* SPDX-License-Identifier: MIT */
/*
 * Posting a suspended user thread's call to its carrier's loop, and ending its wait.
 * Carriers only, on their own stack.
 */
#ifndef FLEXSC_RUNTIME_POST_H
#define FLEXSC_RUNTIME_POST_H

#include "uthread.h"

struct carrier;

/* No call returns this: the loop has no free entry, or no timer, left. */
#define NO_ENTRY	(-4096L)

/* Mark u as waiting. P1 in wait.h: called before "wanted" is read. */
static inline void post_wait_begins(struct uthread *u, enum wait_kind kind)
{
	atomic_store(&u->wait, kind);
}

/* End u's wait with this result, and enqueue u on the calling carrier. */
void flexsc__post_wait_ends(struct uthread *u, long ret);

/*
 * Begin to wait on c for u's call, whose number and arguments are set. "over" is called
 * at its end. False: c's loop has no entry left, and "over" has been called.
 */
bool flexsc__post_begin(struct carrier *c, struct uthread *u,
			void (*over)(struct flexsc_cb *cb));

/* Post the call. Called after flexsc__post_begin(). */
void flexsc__post_call(struct carrier *c, struct uthread *u);

/*
 * Called after u->cb was posted: start the call's time limit. Cancel the call if u is
 * wanted on its host, or if a signal handler has run since the call began: a thread
 * that wanted u before the wait began found no wait to end.
 */
void flexsc__post_done(struct carrier *c, struct uthread *u);

#endif /* FLEXSC_RUNTIME_POST_H */
