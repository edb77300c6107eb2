/* SPDX-License-Identifier: MIT */
/*
 * Futexes among user threads, so that glibc's own locks suspend a user thread
 * and not its carrier. Private futexes only; all others are the kernel's.
 *
 * Both kinds of waiters can be on one word: user threads in a bucket here, and
 * whole kernel threads (hosts, carriers, syscall threads) in the kernel. A wake
 * wakes user threads first, then kernel threads as far as its number goes. The
 * bucket counts the latter, so that a wake seldom makes a system call.
 *
 * F1: a waiter counts itself, then looks at the word; for a waiter in the
 * kernel, the kernel looks. F2: a waker has changed the word, then looks at the
 * counts. Both are sequentially consistent, so one of the two sees the other.
 *
 * A waker, an interruption or the expiry of a timer takes a user thread off its bucket, and
 * so ends its wait. The user thread becomes ready where that happens. Its timer is left to
 * the carrier that has it: sched/futex_timer.h.
 */
#ifndef FLEXSC_RUNTIME_UFUTEX_H
#define FLEXSC_RUNTIME_UFUTEX_H

#include "runtime/sched/uthread.h"

/*
 * futex(2) for a user thread, or for any other thread (u == NULL). Returns the
 * kernel's result.
 */
long flexsc__ufutex(struct uthread *u, const uint64_t args[6]);

/*
 * Counter of the kernel threads that wait in the kernel for this word, or for
 * another of its bucket: F1.
 */
_Atomic uint32_t *flexsc__ufutex_kernels(const uint32_t *word);

/* Tell sched/wait.h of futex waits, before there are carriers. */
void flexsc__ufutex_init(void);

/* Empty the buckets of a forked child, where no thread waits. */
void flexsc__ufutex_forked(void);

#endif /* FLEXSC_RUNTIME_UFUTEX_H */
