/* SPDX-License-Identifier: MIT */
/*
 * The monitor notices a carrier whose user thread doesn't let go of it: it
 * computes, or it blocks in a call that nobody intercepted. That user thread
 * is sent home, where it goes on as a kernel thread among others (a call that
 * it blocks in is begun again there, by the kernel or, where that doesn't, by
 * signals.c), and the carrier serves the rest. Those who are queued there go to
 * a carrier that is idle, if there is one.
 *
 * A thread of its own, that looks every MONITOR_NS while anybody runs and
 * sleeps when nobody does.
 */
#ifndef FLEXSC_THREADS_MONITOR_H
#define FLEXSC_THREADS_MONITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define MONITOR_NS	10000000U

int flexsc__monitor_start(void);
/* It never ends, nor can it be cancelled. */
extern pthread_t flexsc__monitor;
/*
 * A file of the thread's in /proc; negative: there is none. It stays open, at a
 * number that is the runtime's.
 */
int flexsc__monitor_open(int32_t tid, const char *name);

extern _Atomic uint32_t flexsc__monitor_asleep;
void flexsc__monitor_wake(void);

/* Carriers, when they have something to do again: costs a load. */
static inline void flexsc__monitor_notice(void)
{
	/* M1: after the carrier stopped being idle; pairs with M2. */
	if (atomic_load(&flexsc__monitor_asleep))
		flexsc__monitor_wake();
}

#endif /* FLEXSC_THREADS_MONITOR_H */
