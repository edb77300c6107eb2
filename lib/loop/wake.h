/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups: any thread, and any signal handler, can request that a cb's callback runs
 * on the loop's own thread.
 *
 *	idle	-> queued	woken: the mark is set, then the cb is queued
 *	queued	-> queued	woken again: no effect
 *	queued	-> running	dispatched: the mark is cleared
 *	running	-> again	woken while its callback runs: the mark is set
 *	again	-> queued	the callback has returned
 *
 * The mark is a value of cb->handle that no uninitialised memory contains by chance: it
 * combines the cb's address with a number that only this loop has. The queue is linked
 * through cb->ret, which a callback reads. So while a cb's callback is running, no
 * waker queues the cb; the owner does so after the callback has returned.
 */
#ifndef FLEXSC_WAKE_H
#define FLEXSC_WAKE_H

#include <flexsc/flexsc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wakes {
	_Atomic(struct flexsc_cb *) queue;	/* newest first */
	_Atomic uintptr_t running;	/* address of the cb whose callback runs;
					 * plus 1 if that cb was woken meanwhile */
	uint64_t number;		/* unique to the loop */
	struct flexsc_cb *oldest;	/* owner only: cbs taken off the queue, oldest
					 * first */
};

/* Called when a loop is created. */
void flexsc__wakes_init(struct wakes *wakes);

/* Is the cb queued? Owner only. */
bool flexsc__wakes_has(const struct wakes *wakes, const struct flexsc_cb *cb);

/* Are there cbs to dispatch? Owner only. */
static inline bool wakes_wait(const struct wakes *wakes)
{
	return wakes->oldest || atomic_load(&wakes->queue);
}

/*
 * Take all queued cbs off the queue. Then, as long as there is an oldest cb, run its
 * callback, or return the cb for a harvest. Owner only.
 */
void flexsc__wakes_take(struct wakes *wakes);
void flexsc__wakes_run(struct wakes *wakes);
struct flexsc_cb *flexsc__wakes_next(struct wakes *wakes);

#endif /* FLEXSC_WAKE_H */
