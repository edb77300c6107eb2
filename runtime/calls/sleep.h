/* SPDX-License-Identifier: MIT */
/*
 * nanosleep() and its kin: timers of the carrier's loop. User threads only,
 * inside the runtime. These return the kernel's results.
 */
#ifndef FLEXSC_RUNTIME_SLEEP_H
#define FLEXSC_RUNTIME_SLEEP_H

#include "runtime/sched/uthread.h"

long flexsc__sleep_nanosleep(struct uthread *u, long nr, const uint64_t a[6]);
long flexsc__sleep_clock(struct uthread *u, long nr, const uint64_t a[6]);

#endif /* FLEXSC_RUNTIME_SLEEP_H */
