/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own: small stacks, and no signals but those that
 * libc uses between threads.
 */
#ifndef FLEXSC_OWN_THREAD_H
#define FLEXSC_OWN_THREAD_H

#include <pthread.h>
#include <sched.h>

/* cores: where it may run; NULL: as its maker. 0 or -errno. */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores);

#endif /* FLEXSC_OWN_THREAD_H */
