/* SPDX-License-Identifier: MIT */
/*
 * Threads that are the runtime's own, made and joined by libc's real functions,
 * in front of which the preloaded library stands. Any thread.
 */
#ifndef FLEXSC_THREADS_OWN_THREAD_H
#define FLEXSC_THREADS_OWN_THREAD_H

#include <pthread.h>

/*
 * pthread_create() for a thread of the runtime's: a carrier, the monitor, or
 * one that libflexsc makes. Such a thread doesn't keep the process alive when
 * the program's last thread ends.
 */
int flexsc__runtime_thread(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*fn)(void *), void *arg);
/* pthread_join() for such a thread. */
int flexsc__runtime_join(pthread_t thread, void **value);

/*
 * Make a detached one, a carrier or the monitor. From its first instruction on
 * it blocks all signals but libc's SIGSETXID. Returns 0 or an error number.
 */
int flexsc__runtime_detached(pthread_t *thread, void *(*run)(void *),
			     void *arg);

#endif /* FLEXSC_THREADS_OWN_THREAD_H */
