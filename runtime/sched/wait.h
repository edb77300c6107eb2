/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a user thread is suspended until a call is complete, a time has come, or
 * another thread wakes it. Its carrier runs others meanwhile.
 *
 * A signal or a cancellation wants a user thread on its host, and ends its wait early:
 * flexsc__want(). P1: the waiter sets uthread.wait, then reads "wanted". P2: the other
 * thread sets "wanted", then has the waiter's carrier read uthread.wait. All four are
 * sequentially consistent, so one of the two threads sees the other's store.
 */
#ifndef FLEXSC_RUNTIME_WAIT_H
#define FLEXSC_RUNTIME_WAIT_H

#include "post.h"
#include "uthread.h"

/*
 * User threads only. The functions leave the host if need be, and may return on
 * its host, if the user thread is wanted there.
 */

/*
 * Have call nr executed, for ns nanoseconds at most, if ns isn't 0. Returns its result, or
 * one of these if the call had no effect: -ETIME at the time limit; -ECANCELED or -ERESTART
 * after a signal; NO_ENTRY. -ECANCELED away from its host: there is no memory for the limit.
 *
 * The handler of a signal that ended the call hasn't run yet. The caller looks at what was
 * ready before, then calls flexsc__settle(), which runs the handler.
 */
long flexsc__wait_call(struct uthread *u, unsigned int nr,
		       const uint64_t args[6], uint64_t ns);
/* Let ns nanoseconds pass. Returns 0, -EINTR, -ERESTART or -ENOMEM. */
long flexsc__wait_time(struct uthread *u, uint64_t ns);
/* Let other user threads run. */
void flexsc__wait_yield(struct uthread *u);

/*
 * The calling user thread was wanted on its host before its call began. The call had no
 * effect yet, so a cancellation may take effect here.
 */
void flexsc__wait_test_cancel(struct uthread *u);

/* Any thread, any signal handler: end u's wait, and have u return to its host. */
void flexsc__want(struct uthread *u);

/*
 * Carriers only, with u's number and arguments set: post u's call on c, the calling
 * carrier. It polls first if need be (poll_first.h).
 */
void flexsc__wait_post(struct carrier *c, struct uthread *u);

/* Carriers only: u is wanted on its host. If it waits on c, end that wait. */
void flexsc__wait_interrupt(struct carrier *c, struct uthread *u);

/* Heir s only: u waits for a futex on the stuck carrier c. Move its time limit to s. */
void flexsc__wait_move_limit(struct carrier *s, struct carrier *c,
			     struct uthread *u);

/* Waits of a kind that this file doesn't know: WAIT_FUTEX. */
struct wait_ops {
	/* On c, which u waits on. u is wanted on its host: end its wait. */
	void (*interrupt)(struct carrier *c, struct uthread *u);
	/* flexsc__wait_move_limit() */
	void (*move_limit)(struct carrier *s, struct carrier *c,
			   struct uthread *u);
};

/* Set the functions for futex waits, before there are carriers. */
void flexsc__wait_futexes(const struct wait_ops *ops);

#endif /* FLEXSC_RUNTIME_WAIT_H */
