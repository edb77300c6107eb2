/* SPDX-License-Identifier: MIT */
/*
 * A loop whose owner is stuck in the kernel. Another thread, the heir, acts as
 * owner until the real one is back: it runs the callbacks of results that are in
 * memory, and takes calls and timers to a loop of its own.
 *
 *	OWNED	-> ACTED	flexsc__adopt_begin(): by the heir
 *	ACTED	-> ACTED	flexsc__adopt_begin(): by an heir's heir
 *	ACTED	-> GIVEN	flexsc__adopt_end(): by the heir
 *	GIVEN	-> OWNED	flexsc__adopt_revoke(): by the owner
 *
 * The caller makes sure that the owner executes no instruction while the loop is
 * ACTED, and doesn't enter its engine before it is OWNED again. In between, the
 * kernel executes nothing that was posted, if flexsc__adopt_take() says so.
 */
#ifndef FLEXSC_ADOPT_H
#define FLEXSC_ADOPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_cb;
struct flexsc_loop;

/* Can another thread act as owner at all? That depends on the engine. */
bool flexsc__adopt_possible(const struct flexsc_loop *loop);

/*
 * The calling thread acts as owner. Whoever notifies the loop from here on
 * notifies "heir", which is a loop of the calling thread's own.
 */
void flexsc__adopt_begin(struct flexsc_loop *loop, struct flexsc_loop *heir);

/* Run the callbacks of what is complete, without entering the kernel. */
void flexsc__adopt_results(struct flexsc_loop *loop);

/*
 * Take a cb's call or timer away from the loop; its callback doesn't run. False
 * if the call stays: it may have an effect before flexsc__adopt_revoke(). A call
 * that the kernel has seen, and that is armed there, is taken only if "armed"
 * allows that. *ns is what is left of the time limit; 0 without one.
 */
bool flexsc__adopt_take(struct flexsc_loop *loop, struct flexsc_cb *cb,
			bool armed, uint64_t *ns);

/*
 * Cancel a call that stayed. Without effect if only the owner can do that: then
 * it is to be cancelled once more when the owner is back.
 */
void flexsc__adopt_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* The heir's last use of the loop, whose owner this thread is. */
void flexsc__adopt_end(struct flexsc_loop *loop, pthread_t owner);

/*
 * Owner: cancel the calls that were taken away, before the kernel is entered for
 * results, which would execute them. Returns how many they were.
 */
unsigned int flexsc__adopt_revoke(struct flexsc_loop *loop);

#endif /* FLEXSC_ADOPT_H */
