/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a user thread is suspended until a call is complete, a time has come, or
 * another thread wakes it. Its carrier runs others meanwhile.
 *
 * A signal or a cancellation wants a user thread on its host, and ends its wait early:
 * flexsc__want(). P1: the waiter sets uthread.wait, then reads "wanted". P2: the other
 * thread sets "wanted", then makes the waiter's carrier read uthread.wait. All four are
 * sequentially consistent, so one of the two threads sees the other's store.
 */
#ifndef FLEXSC_RUNTIME_WAIT_H
#define FLEXSC_RUNTIME_WAIT_H

#include "post.h"
#include "uthread.h"

/*
 * User threads only. These functions leave the host if necessary. They return on the
 * host if the user thread is wanted there.
 */

/*
 * Wait for the system call nr, for ns nanoseconds at most if ns isn't 0. Returns its
 * result, or one of these if the call had no effect: -ETIME at the time limit;
 * -ECANCELED or -ERESTART after a signal; NO_ENTRY. If u is away from its host,
 * -ECANCELED means: out of memory for the limit.
 *
 * The handler of a signal that ended the call hasn't run yet. The caller first checks
 * whether the call is ready, and then calls flexsc__settle(), which runs the handler.
 */
long flexsc__wait_call(struct uthread *u, unsigned int nr,
		       const uint64_t args[6], uint64_t ns);
/* Wait for ns nanoseconds. Returns 0, -EINTR, -ERESTART or -ENOMEM. */
long flexsc__wait_time(struct uthread *u, uint64_t ns);
/* Let other user threads run. */
void flexsc__wait_yield(struct uthread *u);

/*
 * Called when the calling user thread was wanted on its host before its call had an
 * effect: act on a pending cancellation.
 */
void flexsc__wait_test_cancel(struct uthread *u);

/*
 * Moves the calling user thread away from its host, because it waits next. False: a
 * signal or a cancellation wants it to stay there.
 */
bool flexsc__wait_away(struct uthread *u);

/* Any thread, any signal handler: end u's wait, and make u return to its host. */
void flexsc__want(struct uthread *u);

/*
 * Carriers only: post u's call on c, the calling carrier. The call's number and
 * arguments are set. The call polls first if necessary (poll_first.h).
 */
void flexsc__wait_post(struct carrier *c, struct uthread *u);

/*
 * Carriers only. If u waits on c and is wanted on its host, end the wait. If u's
 * accept() has to poll first by now (poll_first.h), cancel the accept().
 */
void flexsc__wait_interrupt(struct carrier *c, struct uthread *u);

/* Heir s only: move the time limit of u's futex wait from the stuck carrier c to s. */
void flexsc__wait_move_limit(struct carrier *s, struct carrier *c,
			     struct uthread *u);

/* Futex waits, which calls/bucket.c implements. */
struct wait_ops {
	/* End u's wait on c, because u is wanted on its host. */
	void (*interrupt)(struct carrier *c, struct uthread *u);
	/* flexsc__wait_move_limit() */
	void (*move_limit)(struct carrier *s, struct carrier *c,
			   struct uthread *u);
};

/* Set the functions for futex waits, before carriers start. */
void flexsc__wait_futexes(const struct wait_ops *ops);

#endif /* FLEXSC_RUNTIME_WAIT_H */
