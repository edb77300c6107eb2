/* SPDX-License-Identifier: MIT */
/*
 * What a user thread has computed.
 *
 * The kernel counts what its home has computed; what it has computed on
 * carriers is added. That is counted from the start on, in ticks of the
 * processor, which a carrier reads anyway where a run begins and ends: a
 * program may ask at any time.
 *
 * Ticks go on while the kernel runs other threads on the carrier's processor.
 * So after a long run, which alone can have been disturbed much, and when the
 * thread itself asks, the carrier's own clock is looked at. All of a carrier's
 * runs since the last look can't have taken more than that clock has advanced,
 * so what exceeds it is taken off the current run.
 *
 * What the kernel does for a thread's posted calls counts as the carrier's.
 *
 * A kernel's timer on the clock of a user thread counts what its home computes.
 * So a thread is tied (tied.h) as long as there is a timer on its clock, and an
 * absolute time is given to the kernel less what the thread has computed on
 * carriers.
 */
#ifndef FLEXSC_THREADS_CPUTIME_H
#define FLEXSC_THREADS_CPUTIME_H

#include <time.h>

#include "../run/uthread.h"

/* Ticks of a long run, some 0.2 ms. */
#define CPUTIME_TICKS	500000U

/*
 * Is it the clock of a thread, and not of a process? By the kernel's numbering.
 */
static inline bool cputime_is_thread_s(clockid_t clock)
{
	return clock == CLOCK_THREAD_CPUTIME_ID ||
	       (clock < 0 && (clock & 7) >= 4 && (clock & 7) < 7);
}

/* Any thread: processor time of a kernel thread, in nanoseconds. */
uint64_t flexsc__cputime_of(int32_t tid);

/*
 * The calling carrier, while it runs u or right after: correct what u has
 * computed. The run is counted up to "now", in ticks, because the carrier may
 * be off its processor between that moment and the look.
 */
void flexsc__cputime_look(struct carrier *c, struct uthread *u, uint64_t now);

/*
 * clock_gettime(2) and getrusage(2). Any thread; u is the caller, if it is a
 * user thread.
 */
long flexsc__cputime_clock(struct uthread *u, const uint64_t args[6]);
long flexsc__cputime_usage(struct uthread *u, const uint64_t args[6]);

/* clock_nanosleep(2) by a thread's clock, for a user thread. */
long flexsc__cputime_sleep(struct uthread *u, const uint64_t args[6]);

/*
 * u is a new user thread, listed. Another thread may have made a timer on its
 * clock already.
 */
void flexsc__cputime_begin(struct uthread *u);

/*
 * There is a timer on this clock. Inside the runtime, u being the caller.
 * Returns the id of the thread whose clock it is, which is tied now if it is a
 * user thread; 0 if it is no thread's.
 */
int32_t flexsc__cputime_tie(struct uthread *u, clockid_t clock);
/* Inside the runtime: the last timer on this thread's clock is gone. */
void flexsc__cputime_untie(int32_t tid);

/*
 * Inside the runtime: turns a time on the clock of the thread tid into one on
 * the clock of its home.
 */
struct timespec flexsc__cputime_at_home(int32_t tid, struct timespec time);

#endif /* FLEXSC_THREADS_CPUTIME_H */
