/* SPDX-License-Identifier: MIT */
/*
 * Timers: a hierarchical timing wheel. Arming, cancelling and firing cost the
 * same however many there are. Owned by the loop's thread.
 *
 * Time is counted in ticks of 2^16 ns, which is the precision of all timers. Level n of
 * the wheel has 64 buckets of 64^n ticks; a timer is put on the level of the highest
 * 6-bit digit in which its expiry differs from now, and moves to lower levels as that
 * digit's time comes. A timer fires on the first tick not before its expiry.
 *
 *	armed on a level >= 1	-> a lower level	its bucket's time came
 *	armed on level 0	-> due			its tick came
 *	armed, due		-> free			cancelled, or popped
 */
#ifndef FLEXSC_WHEEL_H
#define FLEXSC_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

#define TIMER_NONE	0U	/* no timer: an index that is never given out */

#define WHEEL_TICK_BITS	16
#define WHEEL_BITS	6
#define WHEEL_BUCKETS	(1U << WHEEL_BITS)
#define WHEEL_LEVELS	8

_Static_assert(WHEEL_LEVELS * WHEEL_BITS + WHEEL_TICK_BITS == 64,
	       "each expiry has a level, the latest one too");

/*
 * Timers that are due, oldest first. They can be cancelled until they are
 * popped.
 */
#define WHEEL_DUE_CBS		(WHEEL_LEVELS * WHEEL_BUCKETS)
#define WHEEL_DUE_DEADLINES	(WHEEL_DUE_CBS + 1)

/* The kinds of timers: the kind decides what happens when the timer fires. */
enum timer_kind {
	TIMER_CB,	/* owner is the struct flexsc_cb to complete */
	TIMER_CALL,	/* owner is a call's index: its deadline */
	TIMER_STAGED,	/* owner is a staged call's index: its deadline */
};

struct timer {
	uint64_t expiry;	/* in ticks */
	uint64_t owner;
	uint32_t next, prev;	/* circular, through the bucket's own element */
	uint32_t bucket;
	uint32_t kind;		/* enum timer_kind */
};

struct wheel {
	struct arena timers;	/* buckets first, then the due lists, then timers */
	uint32_t free;
	uint32_t armed;
	uint64_t now;		/* in ticks; all before it has been moved */
	uint64_t used[WHEEL_LEVELS];	/* a bit per bucket that isn't empty */
};

/* now is CLOCK_MONOTONIC in nanoseconds, here and below. */
int flexsc__wheel_init(struct wheel *wheel, uint64_t now);
void flexsc__wheel_fini(struct wheel *wheel);

/* Arm a timer that expires ns from now. Its index in *timer, or -ENOMEM. */
int flexsc__wheel_arm(struct wheel *wheel, uint64_t now, uint64_t ns,
	      enum timer_kind kind, uint64_t owner, uint32_t *timer);
void flexsc__wheel_cancel(struct wheel *wheel, uint32_t timer);

/* Move the timers that have expired to the due lists. */
void flexsc__wheel_advance(struct wheel *wheel, uint64_t now);

/* Set an empty wheel's time, also back. */
void flexsc__wheel_set(struct wheel *wheel, uint64_t now);

/* Take the oldest timer of a due list out and free it; 0 if there is none. */
int flexsc__wheel_pop(struct wheel *wheel, uint32_t due, struct timer *timer);

/*
 * Nanoseconds until flexsc__wheel_advance() has something to do; UINT64_MAX:
 * never.
 */
uint64_t flexsc__wheel_next(const struct wheel *wheel, uint64_t now);

static inline struct timer *wheel_timer(const struct wheel *wheel,
					uint32_t timer)
{
	return (struct timer *)wheel->timers.base + timer;
}

/* Cancel a timer, if there is one. */
static inline void wheel_clear(struct wheel *wheel, uint32_t *timer)
{
	if (*timer == TIMER_NONE)
		return;
	flexsc__wheel_cancel(wheel, *timer);
	*timer = TIMER_NONE;
}

/* Are there cbs whose timer is due? */
static inline bool wheel_has_cbs(const struct wheel *wheel)
{
	return wheel_timer(wheel, WHEEL_DUE_CBS)->next != WHEEL_DUE_CBS;
}

#endif /* FLEXSC_WHEEL_H */
