/* SPDX-License-Identifier: MIT */
/*
 * Threads in seccomp's strict mode. The kernel permits such a thread read(2), write(2),
 * exit(2) and rt_sigreturn(2), and ends it, and no other thread, at any other call.
 *
 * So a thread stops being a user thread right before it enters the mode: no list of the
 * runtime contains it, and the runtime makes no call on it any more (uthread.strict).
 * Its calls are made as natively, also those that a user thread would not make itself,
 * such as futex(2).
 *
 * Neither libc nor the runtime is notified when the kernel ends the thread. Natively
 * the process ends with its last kernel thread, but here the runtime's threads would be
 * left. So the thread holds a robust mutex, its watch. A thread of the runtime, the
 * watcher, waits for these mutexes: when their owners end, it decrements libc's count
 * of threads (sched/thread_count.h).
 */
#ifndef FLEXSC_RUNTIME_STRICT_H
#define FLEXSC_RUNTIME_STRICT_H

#include "runtime/sched/uthread.h"

/*
 * Make u's call, which sets strict mode. u is on its host and inside the runtime. If
 * the kernel refuses the mode, u is as before; or, if a filter of another thread came in
 * between, u stays on its host.
 */
long flexsc__strict_enter(struct uthread *u, long nr, const uint64_t a[6]);

/* Make a call of the calling thread, which is in strict mode. */
long flexsc__strict_call(struct uthread *u, long nr, const uint64_t a[6]);

/*
 * Decrement libc's count for the threads that have ended in strict mode, so that they
 * count as ended before the caller. Not for threads in strict mode.
 */
void flexsc__strict_count_ended(void);

/* Is a thread in strict mode? Also counts those that have ended. */
bool flexsc__strict_any(void);

/* Called in a forked child, which has no thread in strict mode. */
void flexsc__strict_forked(void);

#endif /* FLEXSC_RUNTIME_STRICT_H */
