/* SPDX-License-Identifier: MIT */
/*
 * Passing a loop whose owner is stuck in the kernel to another thread, the heir. The
 * heir acts as the owner until the real owner is back. It runs the callbacks of results
 * that are in memory, and moves calls and timers to its own loop.
 *
 *	OWNED	-> ACTED	flexsc__handover_begin(), by the heir
 *	ACTED	-> ACTED	flexsc__handover_begin(), by the heir of a stuck heir
 *	ACTED	-> GIVEN	flexsc__handover_end(), by the heir
 *	GIVEN	-> OWNED	flexsc__handover_revoke(), by the owner
 *
 * The caller guarantees that the owner doesn't access the loop while it is ACTED, and
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

/* Does the loop's engine allow another thread to act as the owner? */
bool flexsc__handover_possible(const struct flexsc_loop *loop);

/*
 * By the heir: act as the owner from now on. Threads that would notify the loop notify
 * "heir" instead, which is a loop of the calling thread.
 */
void flexsc__handover_begin(struct flexsc_loop *loop, struct flexsc_loop *heir);

/*
 * By the heir, repeatedly, because not every result wakes the heir: run the callbacks of
 * complete calls. If the kernel executes calls without the owner, let it continue with
 * the owner's calls and cancellations.
 */
void flexsc__handover_results(struct flexsc_loop *loop);

/* By the heir: does flexsc__handover_cancel() have an effect? */
bool flexsc__handover_cancels(const struct flexsc_loop *loop);

/*
 * By the heir: take a cb's call or timer away from the loop without running its
 * callback. False: the call stays, because the kernel may execute it before
 * flexsc__handover_revoke(). A call whose request is armed (REACH_ARMED) is taken only
 * if "armed" is set, which permits making the call a second time. *ns becomes the
 * remaining time until the call's deadline or the timer's expiry, or 0 without one.
 *
 * cb->ret becomes 0, or -ECANCELED or -ETIME if the owner had begun to cancel the call.
 * In that case the caller runs the callback, because the owner's loop would report the
 * result only after the owner's return.
 */
bool flexsc__handover_take(struct flexsc_loop *loop, struct flexsc_cb *cb,
			bool armed, uint64_t *ns);

/*
 * By the heir: cancel a call that stayed. If the engine needs the owner for that, this
 * has no effect, and the owner has to cancel the call when it is back.
 */
void flexsc__handover_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb);

/*
 * By the heir: return the loop to its owner. The heir must not use the loop afterwards.
 */
void flexsc__handover_end(struct flexsc_loop *loop, pthread_t owner);

/*
 * By the owner, before it enters the engine for results: cancel the requests of calls
 * that were taken away, which the kernel would otherwise execute. When the function
 * returns, the kernel has dropped all of them. Until then, a cancelled accept() may
 * still consume a wake-up. Returns the number of requests.
 */
unsigned int flexsc__handover_revoke(struct flexsc_loop *loop);

#endif /* FLEXSC_HANDOVER_H */
