/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own: stacks of a megabyte, no signals but those that
 * libc uses between threads. Inside the runtime of flexsc run these functions
 * are the runtime's (threads/run/own_thread.c).
 */
#ifndef FLEXSC_OWN_THREAD_H
#define FLEXSC_OWN_THREAD_H

#include <pthread.h>
#include <sched.h>

/* Make a thread. cores: where it may run; NULL: as its maker. 0 or -errno. */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores);
/* Wait until a thread that has ended, or is about to, is gone. */
void flexsc__own_join(pthread_t thread);

#endif /* FLEXSC_OWN_THREAD_H */
