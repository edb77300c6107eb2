/* SPDX-License-Identifier: MIT */
/*
 * The clocks of threads' processor time. A user thread's clock shows the time of its
 * host plus what the user thread has computed on carriers (sched/cputime.h).
 *
 * A kernel timer on such a clock counts only what the host computes. So a user thread
 * is anchored (sched/anchored.h) while there is a timer on its clock. If a call has an
 * absolute time on the clock, the runtime subtracts the time computed on carriers
 * before it passes the absolute time to the kernel.
 */
#ifndef FLEXSC_RUNTIME_CPUCLOCK_H
#define FLEXSC_RUNTIME_CPUCLOCK_H

#include <stdatomic.h>
#include <time.h>

#include "runtime/sched/uthread.h"

/* Does the clock, in the kernel's numbering, belong to a thread, not to a process? */
static inline bool cpuclock_is_thread_s(clockid_t clock)
{
	return clock == CLOCK_THREAD_CPUTIME_ID ||
	       (clock < 0 && (clock & 7) >= 4 && (clock & 7) < 7);
}

/* clock_gettime(2), getrusage(2). Any thread. u: the calling user thread, or NULL. */
long flexsc__cpuclock_get(struct uthread *u, const uint64_t args[6]);
long flexsc__cpuclock_usage(struct uthread *u, const uint64_t args[6]);

/* Make clock_nanosleep(2) for a user thread, by the clock of a thread. */
long flexsc__cpuclock_sleep(struct uthread *u, const uint64_t args[6]);

/* Anchor the new user thread u if its clock has a timer already. u is in the list. */
void flexsc__cpuclock_begin(struct uthread *u);
/*
 * Called inside the runtime when u ends. u is still in the list of user threads, and on
 * its host for good. Other threads may read u's clock until u's kernel thread has
 * ended.
 */
void flexsc__cpuclock_end(const struct uthread *u);
/* In a forked child: forget ended user threads and timers, which aren't inherited. */
void flexsc__cpuclock_forked(void);

/*
 * If the clock belongs to a thread, anchor that thread, because a timer or a sleep will
 * use the clock. Called by u inside the runtime. Returns the thread's id, or 0 if the
 * clock isn't a thread's.
 */
int32_t flexsc__cpuclock_anchor(struct uthread *u, clockid_t clock);

/* Inside the runtime: convert a time on thread tid's clock to the clock of its host. */
struct timespec flexsc__cpuclock_on_host(int32_t tid, struct timespec time);

/*
 * Timers that libc has made on threads' clocks. A thread is anchored while its clock
 * has a timer. The maker of a timer adds it here, then looks for the clock's thread in
 * the list of user threads, to anchor it. A new user thread enters that list, then
 * looks here for timers on its clock. So at least one of the two finds the other. User
 * threads, inside the runtime.
 */
struct timer {
	timer_t id;		/* libc's */
	int32_t tid;		/* thread whose clock it uses */
	struct timer *next;
};

extern _Atomic(struct timer *) flexsc__timers;

/* Any thread: are there timers? Costs one load. */
static inline bool timers_any(void)
{
	return atomic_load_explicit(&flexsc__timers, memory_order_relaxed);
}

/* Add a timer. The caller keeps its memory valid until flexsc__timers_take(). */
void flexsc__timers_add(struct timer *timer);
/* Id of the thread whose clock the timer uses; 0 if it isn't on a thread's clock. */
int32_t flexsc__timers_tid(timer_t id);
/* Remove a timer that is to be deleted; NULL if it isn't on a thread's clock. */
struct timer *flexsc__timers_take(timer_t id);

#endif /* FLEXSC_RUNTIME_CPUCLOCK_H */
