/* SPDX-License-Identifier: MIT */
/*
 * Timers: a hierarchical timing wheel. The cost of arming, cancelling and firing
 * doesn't depend on the number of timers. Owner only.
 *
 * Time is counted in ticks of 2^16 ns, which is the precision of all timers. Level n of
 * the wheel has 64 buckets of 64^n ticks. A timer is put on the level of the highest
 * 6-bit digit in which its expiry differs from now. When the wheel reaches the timer's
 * bucket, the timer moves to a lower level. A timer fires on the first tick that isn't
 * before its expiry.
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

#define TIMER_NONE	0U	/* no timer: no timer has this index */

#define WHEEL_TICK_BITS	16
#define WHEEL_BITS	6
#define WHEEL_BUCKETS	(1U << WHEEL_BITS)
#define WHEEL_LEVELS	8

_Static_assert(WHEEL_LEVELS * WHEEL_BITS + WHEEL_TICK_BITS == 64,
	       "each expiry has a level, the latest one too");

/*
 * Lists of due timers, oldest first. A due timer can be cancelled until it is popped.
 */
#define WHEEL_DUE_CBS		(WHEEL_LEVELS * WHEEL_BUCKETS)
#define WHEEL_DUE_DEADLINES	(WHEEL_DUE_CBS + 1)

/* The kind decides what happens when the timer fires. */
enum timer_kind {
	TIMER_CB,	/* owner is the struct flexsc_cb to complete */
	TIMER_CALL,	/* a deadline; owner is the index of a call */
	TIMER_STAGED,	/* a deadline; owner is the index of a staged call */
};

struct timer {
	uint64_t expiry;	/* in ticks */
	uint64_t owner;
	uint32_t next, prev;	/* circular, through the bucket's list head */
	uint32_t bucket;
	uint32_t kind;		/* enum timer_kind */
};

struct wheel {
	struct arena timers;	/* list heads (buckets, due timers), then timers */
	uint32_t free;
	uint32_t armed;
	uint64_t now;		/* in ticks; timers that expire at this tick or earlier
				 * are due */
	uint64_t used[WHEEL_LEVELS];	/* a bit per non-empty bucket */
};

/* In all functions here, "now" is the CLOCK_MONOTONIC time in nanoseconds. */
int flexsc__wheel_init(struct wheel *wheel, uint64_t now);
void flexsc__wheel_fini(struct wheel *wheel);

/* Arm a timer that expires ns after now, and store its index in *timer; or -ENOMEM. */
int flexsc__wheel_arm(struct wheel *wheel, uint64_t now, uint64_t ns,
	      enum timer_kind kind, uint64_t owner, uint32_t *timer);
void flexsc__wheel_cancel(struct wheel *wheel, uint32_t timer);

/* Advance the wheel's time to now: timers that have expired become due. */
void flexsc__wheel_advance(struct wheel *wheel, uint64_t now);

/* Set an empty wheel's time, forward or back. */
void flexsc__wheel_set(struct wheel *wheel, uint64_t now);

/* Take the oldest timer of a due list, and free it; 0 if the list is empty. */
int flexsc__wheel_pop(struct wheel *wheel, uint32_t due, struct timer *timer);

/* Nanoseconds until flexsc__wheel_advance() has work; UINT64_MAX: never. */
uint64_t flexsc__wheel_next(const struct wheel *wheel, uint64_t now);

static inline struct timer *wheel_timer(const struct wheel *wheel,
					uint32_t timer)
{
	return (struct timer *)wheel->timers.base + timer;
}

/* Cancel a timer, if it is armed. */
static inline void wheel_clear(struct wheel *wheel, uint32_t *timer)
{
	if (*timer == TIMER_NONE)
		return;
	flexsc__wheel_cancel(wheel, *timer);
	*timer = TIMER_NONE;
}

/* Is the timer of any cb due? */
static inline bool wheel_has_cbs(const struct wheel *wheel)
{
	return wheel_timer(wheel, WHEEL_DUE_CBS)->next != WHEEL_DUE_CBS;
}

#endif /* FLEXSC_WHEEL_H */
