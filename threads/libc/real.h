/* SPDX-License-Identifier: MIT */
/*
 * The functions that the preloaded library stands in front of, as the program
 * would have found them; and threads that are the runtime's own. Any thread.
 */
#ifndef FLEXSC_THREADS_REAL_H
#define FLEXSC_THREADS_REAL_H

#include <pthread.h>

/*
 * pthread_create() for carriers and for what libflexsc makes. Such a thread
 * doesn't keep the process alive when the program's last one ends.
 */
int flexsc__runtime_thread(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*fn)(void *), void *arg);
/* pthread_join() for such a thread. */
int flexsc__runtime_join(pthread_t thread, void **value);

#endif /* FLEXSC_THREADS_REAL_H */
