/* SPDX-License-Identifier: MIT */
/*
 * poll(), ppoll(), epoll_wait() and epoll_pwait(). One descriptor, be it an
 * epoll set, is waited for by the carrier's loop; then the call is made again,
 * to see what there is. What is not so simple waits at home. User threads only,
 * inside the runtime; the kernel's result.
 */
#ifndef FLEXSC_THREADS_POLLING_H
#define FLEXSC_THREADS_POLLING_H

#include "../run/uthread.h"

long flexsc__polling(struct uthread *u, long nr, const uint64_t a[6]);

/* A descriptor is about to be closed: whoever waits for it as a set goes on. */
void flexsc__polling_hold(uint32_t fd);

/* User thread u doesn't wait for a set any more, if it did. */
void flexsc__polling_end(struct uthread *u);

#endif /* FLEXSC_THREADS_POLLING_H */
