/* SPDX-License-Identifier: MIT */
/* Timers, signals and wake-ups together. Owner only. */
#ifndef FLEXSC_LOOP_EVENT_H
#define FLEXSC_LOOP_EVENT_H

#include <stdbool.h>

struct flexsc_cb;
struct flexsc_loop;

/*
 * Collect events: move arrived signals to the ready list, let expired deadlines end
 * calls, and find due timers. Limits the number of deadlines per call of this function,
 * so that results are dispatched in between.
 */
void flexsc__events_collect(struct flexsc_loop *loop);

/* Take the oldest cb whose timer is due, to run its callback; NULL: no timer is due. */
struct flexsc_cb *flexsc__timer_take(struct flexsc_loop *loop);

/*
 * Release a cb's timer without running its callback. False: it has no timer, or the timer
 * has expired.
 */
bool flexsc__timer_release(struct flexsc_loop *loop, const struct flexsc_cb *cb);

/* Is there a callback to dispatch? Timers count only once they were collected. */
bool flexsc__loop_has_work(const struct flexsc_loop *loop);
/*
 * Is there a callback to dispatch, or another reason to end a wait (a stop or nudge)?
 */
bool flexsc__loop_ready(const struct flexsc_loop *loop);
/* For spinning owners: is there a callback to dispatch, or a result in the engine? */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

/* The loop ends, and its calls were cancelled: complete the rest with -ECANCELED. */
void flexsc__events_cancel(struct flexsc_loop *loop);

#endif /* FLEXSC_LOOP_EVENT_H */
