/* SPDX-License-Identifier: MIT */
/*
 * Posting a suspended user thread's call to its carrier's loop, and ending its wait.
 * Carriers only, on their own stack.
 */
#ifndef FLEXSC_RUNTIME_POST_H
#define FLEXSC_RUNTIME_POST_H

#include "uthread.h"

struct carrier;

/* Differs from all results of calls: the carrier's loop has no entry, or timer, left. */
#define NO_ENTRY	(-4096L)

/* u begins to wait. P1 in wait.h: before "wanted" is read. */
static inline void post_wait_begins(struct uthread *u, enum wait_kind kind)
{
	atomic_store(&u->wait, kind);
}

/* u's wait is over, with this result; it can run on the calling carrier. */
void flexsc__post_wait_ends(struct uthread *u, long ret);

/*
 * u's number and arguments are set. Begin to wait for its call on c, whose end calls
 * "over". False: c's loop has no entry left, and "over" has been called.
 */
bool flexsc__post_begin(struct carrier *c, struct uthread *u,
			void (*over)(struct flexsc_cb *cb));

/* After flexsc__post_begin(): post the call. */
void flexsc__post_call(struct carrier *c, struct uthread *u);

/*
 * u->cb was posted: start its time limit, and cancel it if u is wanted on its host. A
 * thread that wanted u before the wait began found no wait to end, and a signal handler
 * may have run on u's way here.
 */
void flexsc__post_done(struct carrier *c, struct uthread *u);

#endif /* FLEXSC_RUNTIME_POST_H */
