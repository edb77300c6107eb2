/* SPDX-License-Identifier: MIT */
/*
 * poll(), ppoll(), epoll_wait() and epoll_pwait(). The carrier's loop waits if the
 * engine can poll and the call waits for one descriptor, which may be an epoll set.
 * When the descriptor is ready, the call is repeated without waiting. Other polling
 * calls, and those of an event loop (sched/sticky.h), wait on the host. User threads
 * only, inside the runtime. Returns the kernel's result.
 */
#ifndef FLEXSC_RUNTIME_POLLING_H
#define FLEXSC_RUNTIME_POLLING_H

#include "runtime/sched/uthread.h"

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6]);

/* Release the guard of the epoll set that the user thread waited for, if any. */
void flexsc__polling_end(struct uthread *u);

#endif /* FLEXSC_RUNTIME_POLLING_H */
