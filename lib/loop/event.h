/* SPDX-License-Identifier: MIT */
/* Timers, signals and wake-ups together. Owner only. */
#ifndef FLEXSC_LOOP_EVENT_H
#define FLEXSC_LOOP_EVENT_H

#include <stdbool.h>

struct flexsc_cb;
struct flexsc_loop;

/*
 * See what has happened: signals go to the ready list, deadlines end calls,
 * timers are due. Deadlines at most so many at a time: calls are dispatched
 * between.
 */
void flexsc__events_collect(struct flexsc_loop *loop);

/* Take the oldest cb whose timer is due, to run its callback; NULL: none. */
struct flexsc_cb *flexsc__timer_take(struct flexsc_loop *loop);

/* Is there something to dispatch? Timers count when they were collected. */
bool flexsc__loop_has_work(const struct flexsc_loop *loop);
/* Is there that, or something else that ends a wait: a stop, a nudge? */
bool flexsc__loop_ready(const struct flexsc_loop *loop);
/*
 * Is there something to dispatch, or to ask the engine for? By spinning owners.
 */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

/* The loop ends, calls were cancelled: complete the rest, -ECANCELED. */
void flexsc__events_cancel(struct flexsc_loop *loop);

#endif /* FLEXSC_LOOP_EVENT_H */
