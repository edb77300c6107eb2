/* SPDX-License-Identifier: MIT */
/* What timers, deadlines, signals and wake-ups have in common. Owner only. */
#ifndef FLEXSC_LOOP_EVENT_H
#define FLEXSC_LOOP_EVENT_H

#include <stdbool.h>

struct flexsc_cb;
struct flexsc_loop;

/*
 * Collect events: move arrived signals to the ready list, cancel calls whose deadline
 * has passed, and find due timers. The function handles a limited number of deadlines
 * each time, so that results are dispatched in between.
 */
void flexsc__events_collect(struct flexsc_loop *loop);

/*
 * Take the oldest cb whose timer is due, so that the caller runs its callback; NULL: no
 * timer is due.
 */
struct flexsc_cb *flexsc__timer_take(struct flexsc_loop *loop);

/*
 * Release a cb's timer without running its callback. False: the cb has no pending
 * timer.
 */
bool flexsc__timer_release(struct flexsc_loop *loop, const struct flexsc_cb *cb);

/*
 * Is there a callback to dispatch? An expired timer counts only after
 * flexsc__events_collect() has found it.
 */
bool flexsc__loop_has_work(const struct flexsc_loop *loop);
/*
 * Is there a callback to dispatch, or another reason to end a wait (flexsc_loop_stop(),
 * or flexsc_loop_wake() without a cb)?
 */
bool flexsc__loop_ready(const struct flexsc_loop *loop);
/*
 * For an owner that polls before sleeping: is there a callback to dispatch, or a result
 * in the engine?
 */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

/*
 * Called when the loop ends, after its calls were cancelled: complete timers and
 * signals with -ECANCELED.
 */
void flexsc__events_cancel(struct flexsc_loop *loop);

#endif /* FLEXSC_LOOP_EVENT_H */
