/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups: any thread, and any signal handler, has a cb's callback run on the
 * loop's own thread.
 *
 *	idle	-> queued	woken: the mark is set, then it is in the queue
 *	queued	-> queued	woken again: nothing to do
 *	queued	-> running	dispatched: the mark is cleared
 *	running	-> again	woken while its callback runs: the mark is set
 *	again	-> queued	the callback has returned
 *
 * The mark is in cb->handle, and no other memory looks like it: it is made of
 * the cb's address and of a number that only this loop has. The queue is
 * threaded through cb->ret, which a callback reads; so only the owner queues a
 * cb whose callback runs, when that has returned.
 */
#ifndef FLEXSC_WAKE_H
#define FLEXSC_WAKE_H

#include <flexsc/flexsc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wakes {
	_Atomic(struct flexsc_cb *) queue;	/* newest first */
	_Atomic uintptr_t running;	/* a cb, plus 1 if it is woken again */
	uint64_t number;		/* the loop's */
	struct flexsc_cb *oldest;	/* the owner's: taken off the queue */
};

/* Each loop, when it is made. */
void flexsc__wakes_init(struct wakes *wakes);

/* Is the cb queued? Owner only. */
bool flexsc__wakes_has(const struct wakes *wakes, const struct flexsc_cb *cb);

/* Are there cbs to dispatch? Owner only. */
static inline bool wakes_wait(const struct wakes *wakes)
{
	return wakes->oldest || atomic_load(&wakes->queue);
}

/*
 * Take the cbs that are queued now; then, as long as there is an oldest one,
 * run its callback or take it away. Owner only.
 */
void flexsc__wakes_take(struct wakes *wakes);
void flexsc__wakes_run(struct wakes *wakes);
struct flexsc_cb *flexsc__wakes_next(struct wakes *wakes);

#endif /* FLEXSC_WAKE_H */
