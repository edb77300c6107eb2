/* SPDX-License-Identifier: MIT */
/*
 * Futexes among user threads, so that glibc's own locks suspend a user thread and not
 * its carrier. Private futexes only; the kernel handles all others.
 *
 * One word may have two kinds of waiters: user threads in a bucket here, and kernel
 * threads (hosts, carriers, syscall threads) in the kernel. A wake-up wakes user
 * threads first, then kernel threads, up to the requested number. The bucket counts the
 * waiting kernel threads, so that a wake-up seldom needs a system call.
 *
 * F1: a waiter counts itself, then reads the word; for a waiter in the kernel, the
 * kernel reads it. F2: a waker has changed the word, then reads the counts. F1 and F2
 * are sequentially consistent, so the waker sees the waiter, or the waiter sees the
 * change.
 *
 * A waker, an interruption or the expiry of a timer ends a user thread's wait: it takes
 * the user thread off its bucket and makes it ready. The timer is left to the carrier
 * that owns it: sched/futex_timer.h.
 */
#ifndef FLEXSC_RUNTIME_UFUTEX_H
#define FLEXSC_RUNTIME_UFUTEX_H

#include "runtime/sched/uthread.h"

/*
 * futex(2) for a user thread, or for any other thread (u == NULL). Returns the
 * kernel's result.
 */
long flexsc__ufutex(struct uthread *u, const uint64_t args[6]);

#endif /* FLEXSC_RUNTIME_UFUTEX_H */
