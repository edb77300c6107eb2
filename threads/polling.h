/* SPDX-License-Identifier: MIT */
/*
 * poll(), ppoll(), epoll_wait() and epoll_pwait(). One descriptor, be it an
 * epoll set, is waited for by the carrier's loop; then the call is made again,
 * to see what there is. What is not so simple waits at home. User threads only,
 * inside the runtime; the kernel's result.
 */
#ifndef FLEXSC_THREADS_POLLING_H
#define FLEXSC_THREADS_POLLING_H

#include "uthread.h"

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6]);

#endif /* FLEXSC_THREADS_POLLING_H */
