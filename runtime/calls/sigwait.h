/* SPDX-License-Identifier: MIT */
/*
 * rt_sigtimedwait(2): sigwaitinfo(), sigtimedwait().
 *
 * A carrier that doesn't block a signal which is sent to the process may take
 * the signal although a host waits for it, and gives it back. The host's wait
 * ends with EINTR then, although no handler ran, and goes on here.
 */
#ifndef FLEXSC_RUNTIME_SIGWAIT_H
#define FLEXSC_RUNTIME_SIGWAIT_H

#include "runtime/sched/uthread.h"

/* User threads only, inside the runtime. Returns the kernel's result. */
long flexsc__sigwait(struct uthread *u, const uint64_t a[6]);

#endif /* FLEXSC_RUNTIME_SIGWAIT_H */
