/* SPDX-License-Identifier: MIT */
/*
 * futex_waitv(2) and the calls that came after it. Few programs use them, so a
 * user thread that waits by one does so on its host, in the kernel. It is counted
 * for each of its words, so that wake-ups by other calls find it: ufutex.h, F1.
 */
#ifndef FLEXSC_RUNTIME_FUTEX2_H
#define FLEXSC_RUNTIME_FUTEX2_H

#include "runtime/sched/uthread.h"

/* The calls' numbers, which libc's headers may lack. */
#define FUTEX2_WAITV	449
#define FUTEX2_WAKE	454
#define FUTEX2_WAIT	455
#define FUTEX2_REQUEUE	456

/* Make a futex2 call of a user thread, or of another thread (u == NULL). */
long flexsc__futex2(struct uthread *u, long nr, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_FUTEX2_H */
