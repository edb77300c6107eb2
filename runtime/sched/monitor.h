/* SPDX-License-Identifier: MIT */
/*
 * The monitor is a thread that detects carriers whose user thread doesn't let others
 * run, because it computes, or blocks in a call that the runtime didn't intercept. The
 * monitor calls that user thread to its host, where it continues as a plain kernel
 * thread, and the carrier runs others. The kernel or signals/signals.c restarts a call
 * that the user thread blocked in. User threads in the carrier's queues go to an idle
 * carrier, if there is one. A carrier that no signal reaches is adopted (adopt.h).
 *
 * The monitor checks every 10 ms while a carrier is busy, more often after one was
 * stuck, and sleeps while all carriers are idle.
 */
#ifndef FLEXSC_RUNTIME_MONITOR_H
#define FLEXSC_RUNTIME_MONITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

int flexsc__monitor_start(void);
/* End the monitor, and wait for its thread. */
void flexsc__monitor_end(void);
/* pthread_t of the monitor, which runs with cancellation disabled. */
extern pthread_t flexsc__monitor;
extern _Atomic uint32_t flexsc__monitor_asleep;
void flexsc__monitor_wake(void);

/*
 * Called when the calling carrier is no longer idle: wake the monitor if it sleeps. If
 * it doesn't, this costs one load.
 */
static inline void flexsc__monitor_notice(void)
{
	/* M1: after the carrier has cleared "idle"; pairs with M2. */
	if (atomic_load(&flexsc__monitor_asleep))
		flexsc__monitor_wake();
}

#endif /* FLEXSC_RUNTIME_MONITOR_H */
