/* SPDX-License-Identifier: MIT */
/*
 * poll(), ppoll(), epoll_wait() and epoll_pwait(). If the call waits for one
 * descriptor, which may be an epoll set, and the engine can poll, the carrier's
 * loop waits for the descriptor; then the call is made again without waiting.
 * Other polling calls, and those of an event loop (sched/sticky.h), wait on its host.
 * User threads only, inside the runtime. Returns the kernel's result.
 */
#ifndef FLEXSC_RUNTIME_POLLING_H
#define FLEXSC_RUNTIME_POLLING_H

#include "runtime/sched/uthread.h"

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6]);

/* The user thread doesn't wait for an epoll set any more. Fine if it didn't. */
void flexsc__polling_end(struct uthread *u);

#endif /* FLEXSC_RUNTIME_POLLING_H */
