/* SPDX-License-Identifier: MIT */
/* Timers, signals and wake-ups together. Owner only. */
#ifndef FLEXSC_LOOP_EVENT_H
#define FLEXSC_LOOP_EVENT_H

#include <stdbool.h>

struct flexsc_loop;

/*
 * Put everything that has happened on the ready list. Timers at most so many
 * at a time: the rest stays due, and calls are dispatched between.
 */
void flexsc__events_collect(struct flexsc_loop *loop);

/* Is there something to dispatch, timers not counted? */
bool flexsc__loop_ready(const struct flexsc_loop *loop);
/*
 * Is there something to dispatch, or to ask the engine for? By spinning owners.
 */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

/* The loop ends, calls were cancelled: complete the rest, -ECANCELED. */
void flexsc__events_cancel(struct flexsc_loop *loop);

#endif /* FLEXSC_LOOP_EVENT_H */
