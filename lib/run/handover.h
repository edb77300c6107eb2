/* SPDX-License-Identifier: MIT */
/*
 * A loop whose owner is stuck in the kernel. Another thread, the heir, acts as owner
 * until the real one is back: it runs the callbacks of results that are in memory, and
 * moves calls and timers to a loop of its own.
 *
 *	OWNED	-> ACTED	flexsc__handover_begin(), by the heir
 *	ACTED	-> ACTED	flexsc__handover_begin(), by the heir of a stuck heir
 *	ACTED	-> GIVEN	flexsc__handover_end(), by the heir
 *	GIVEN	-> OWNED	flexsc__handover_revoke(), by the owner
 *
 * The caller makes sure that the owner doesn't touch the loop while it is ACTED, and
 * doesn't enter the engine before it is OWNED again. Until then the kernel executes no
 * call that flexsc__handover_take() has taken.
 */
#ifndef FLEXSC_HANDOVER_H
#define FLEXSC_HANDOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_cb;
struct flexsc_loop;

/* Does the loop's engine let another thread act as owner? */
bool flexsc__handover_possible(const struct flexsc_loop *loop);

/*
 * Heir: act as owner from here on. Threads that notify the loop notify "heir" instead,
 * which is a loop of the calling thread's own.
 */
void flexsc__handover_begin(struct flexsc_loop *loop, struct flexsc_loop *heir);

/* Heir: run the callbacks of what is complete, without entering the engine. */
void flexsc__handover_results(struct flexsc_loop *loop);

/*
 * Heir: take a cb's call or timer away from the loop, without running its callback.
 * False: the call stays, because it may have an effect before flexsc__handover_revoke(). A
 * call whose request is armed in the kernel is taken only with "armed", by which the
 * caller declares that the call may be made once more. *ns becomes what is left of the
 * time limit, or 0 without one.
 *
 * cb->ret becomes 0, or the result if the owner had begun to cancel the call: -ECANCELED
 * or -ETIME. Then the caller runs the callback. The owner's loop would report the result
 * only after the owner's return.
 */
bool flexsc__handover_take(struct flexsc_loop *loop, struct flexsc_cb *cb,
			bool armed, uint64_t *ns);

/*
 * Heir: cancel a call that stayed. Without effect if the engine needs the owner for
 * that: then the owner is to cancel it when it is back.
 */
void flexsc__handover_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* Heir: return the loop to its owner. The heir's last use of the loop. */
void flexsc__handover_end(struct flexsc_loop *loop, pthread_t owner);

/*
 * Owner: cancel the requests of calls that were taken away. If the owner entered the
 * engine for results before that, the kernel would execute them. When the function
 * returns, the kernel has dropped all of them: a cancelled accept() takes wake-ups until
 * then. Returns the number of requests.
 */
unsigned int flexsc__handover_revoke(struct flexsc_loop *loop);

#endif /* FLEXSC_HANDOVER_H */
