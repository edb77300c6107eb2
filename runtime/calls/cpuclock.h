/* SPDX-License-Identifier: MIT */
/*
 * The clocks of threads' processor time. That of a user thread is its host's,
 * and what it has computed on carriers (sched/cputime.h).
 *
 * A kernel's timer on such a clock counts what the host computes. So a user
 * thread is anchored (sched/anchored.h) as long as there is a timer on its clock, and an
 * absolute time is given to the kernel less what the thread has computed on
 * carriers.
 */
#ifndef FLEXSC_RUNTIME_CPUCLOCK_H
#define FLEXSC_RUNTIME_CPUCLOCK_H

#include <stdatomic.h>
#include <time.h>

#include "runtime/sched/uthread.h"

/* Is the clock a thread's, and not a process's? By the kernel's numbering. */
static inline bool cpuclock_is_thread_s(clockid_t clock)
{
	return clock == CLOCK_THREAD_CPUTIME_ID ||
	       (clock < 0 && (clock & 7) >= 4 && (clock & 7) < 7);
}

/*
 * clock_gettime(2) and getrusage(2). Any thread; u is the calling thread, if it
 * is a user thread.
 */
long flexsc__cpuclock_get(struct uthread *u, const uint64_t args[6]);
long flexsc__cpuclock_usage(struct uthread *u, const uint64_t args[6]);

/* clock_nanosleep(2) by a thread's clock, for a user thread. */
long flexsc__cpuclock_sleep(struct uthread *u, const uint64_t args[6]);

/*
 * u is a new user thread, listed. Another thread may have made a timer on its
 * clock already.
 */
void flexsc__cpuclock_begin(struct uthread *u);
/*
 * Inside the runtime: u ends, on its host for good, and is listed still. Its clock
 * goes on for other threads until its kernel thread is gone.
 */
void flexsc__cpuclock_end(const struct uthread *u);
/*
 * Forget in a forked child the user threads that have ended, and the timers, of which
 * it inherits none.
 */
void flexsc__cpuclock_forked(void);

/*
 * Tie the thread of a clock that a timer is on. Inside the runtime, u being the
 * calling thread. Returns the id of the thread whose clock it is, which is anchored
 * now if it is a user thread; 0 if the clock is no thread's.
 */
int32_t flexsc__cpuclock_anchor(struct uthread *u, clockid_t clock);

/*
 * Inside the runtime: converts a time on the clock of the thread tid to the
 * clock of its host.
 */
struct timespec flexsc__cpuclock_on_host(int32_t tid, struct timespec time);

/*
 * The timers that libc has made on the clocks of threads, and which thread each
 * is about. As long as there is one, its thread is anchored. A thread that makes a
 * timer adds it here, then anchors the timer's thread; a new thread is listed first,
 * then looks here. So one of the two sees the other. User threads, inside the runtime.
 */
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

#endif /* FLEXSC_RUNTIME_CPUCLOCK_H */
