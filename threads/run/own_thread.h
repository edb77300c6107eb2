/* SPDX-License-Identifier: MIT */
/*
 * Threads that are the runtime's own, made and joined by libc's real functions,
 * in front of which the preloaded library stands: carriers, the monitor, and
 * those that the library makes (lib/pool/own_thread.h). Such a thread doesn't
 * keep the process alive when the program's last thread ends. Any thread.
 */
#ifndef FLEXSC_THREADS_OWN_THREAD_H
#define FLEXSC_THREADS_OWN_THREAD_H

#include <pthread.h>

/*
 * Make a carrier or the monitor: a detached thread, which from its first
 * instruction on blocks all signals but libc's SIGSETXID. Returns 0 or an error
 * number.
 */
int flexsc__own_detached(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* FLEXSC_THREADS_OWN_THREAD_H */
