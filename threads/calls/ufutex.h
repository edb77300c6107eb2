/* SPDX-License-Identifier: MIT */
/*
 * Futexes among user threads, so that glibc's own locks suspend a user thread
 * and not its carrier. Private futexes only; everything else is the kernel's.
 *
 * Both kinds of waiter can be on one word: user threads in a bucket here, and
 * whole kernel threads (homes, carriers, syscall threads) in the kernel. A
 * wake wakes user threads first, then the kernel's as far as the number goes;
 * the bucket counts the latter, so that a wake seldom makes a system call.
 *
 * F1: a waiter counts itself, then looks at the word. F2: who wakes has changed
 * the word, then looks at the counts. Both sequentially consistent: one of the
 * two sees the other.
 *
 * The life of a timed wait has two ends, the timer and the waker; it is over
 * when its carrier has seen both:
 *
 *	queued -> woken		a waker took it off the bucket and sends it to
 *				its carrier's inbox
 *	queued -> expired	its timer did, on its carrier, and it can run
 *	woken  -> can run	from the inbox: if its timer ran meanwhile; else
 *				that is cancelled, and its callback says so
 */
#ifndef FLEXSC_THREADS_UFUTEX_H
#define FLEXSC_THREADS_UFUTEX_H

#include "../run/uthread.h"

/*
 * futex(2) as a user thread, or any other thread (u == NULL), makes it:
 * the kernel's result.
 */
long flexsc__ufutex(struct uthread *u, const uint64_t args[6]);

/* How many wait for it in the kernel, and for some others: F1. */
_Atomic uint32_t *flexsc__ufutex_kernels(const uint32_t *word);

/* For wait.c, on the carrier that u waits on. */
void flexsc__ufutex_interrupt(struct carrier *c, struct uthread *u);
bool flexsc__ufutex_over(struct carrier *c, struct uthread *u);

/* In a forked child: nobody waits. */
void flexsc__ufutex_forked(void);

#endif /* FLEXSC_THREADS_UFUTEX_H */
