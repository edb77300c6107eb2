/* SPDX-License-Identifier: MIT */
/*
 * The timers that libc has made on the clocks of threads, and which thread each
 * is about. As long as there is one, its thread is anchored (sched/cputime.h). A
 * thread that makes a timer adds it here, then anchors the timer's thread; a new
 * thread is listed first, then looks here. So one of the two sees the other.
 * User threads, inside the runtime.
 */
#ifndef FLEXSC_RUNTIME_TIMERS_H
#define FLEXSC_RUNTIME_TIMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct timer {
	timer_t id;		/* libc's */
	int32_t tid;		/* of the thread whose clock it is */
	struct timer *next;
};

extern _Atomic(struct timer *) flexsc__timers;

/* Are there timers? Costs a load. Any thread. */
static inline bool timers_any(void)
{
	return atomic_load_explicit(&flexsc__timers, memory_order_relaxed);
}

/*
 * Add a timer, whose memory stays the calling thread's until the timer is
 * taken.
 */
void flexsc__timers_add(struct timer *timer);
/* Is there a timer on this thread's clock? */
bool flexsc__timers_on(int32_t tid);
/*
 * Id of the thread that the timer is about; 0 if it isn't about a thread's
 * clock.
 */
int32_t flexsc__timers_tid(timer_t id);
/*
 * Take a timer out that is to be deleted; NULL if it isn't about a thread's
 * clock.
 */
struct timer *flexsc__timers_take(timer_t id);

/* Forget the timers in a forked child, which inherits none. */
void flexsc__timers_forked(void);

#endif /* FLEXSC_RUNTIME_TIMERS_H */
