/* SPDX-License-Identifier: MIT */
/*
 * futex_waitv(2) and the calls that came after it. Few use them, so whoever
 * waits by one does so at home, in the kernel; it is counted there for each of
 * its words, so that those who wake it otherwise find it: ufutex.h, F1.
 */
#ifndef FLEXSC_THREADS_FUTEX2_H
#define FLEXSC_THREADS_FUTEX2_H

#include "../run/uthread.h"

/* Headers may be older. */
#define FUTEX2_WAITV	449
#define FUTEX2_WAKE	454
#define FUTEX2_WAIT	455
#define FUTEX2_REQUEUE	456

/* As a user thread, or any other thread (u == NULL), makes one of these. */
long flexsc__futex2(struct uthread *u, long nr, const uint64_t args[6]);

#endif /* FLEXSC_THREADS_FUTEX2_H */
