/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own: stacks of a megabyte, no signals but those that
 * libc uses between threads. Inside the runtime of flexsc run these functions
 * are the runtime's (runtime/sched/internal_thread.c).
 */
#ifndef FLEXSC_OWN_THREAD_H
#define FLEXSC_OWN_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* Make a thread. cores: where it may run; NULL: as its maker. 0 or -errno. */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores);

/* A thread that is to be made: flexsc__own_thread_later(). */
struct own_birth {
	struct own_birth *next;
	pthread_t *thread;
	void *(*run)(void *);
	void *arg;
	const cpu_set_t *cores;
	bool joins;		/* *thread has ended: join it before */
	void (*failed)(void *arg);
};

/*
 * Make a thread, without waiting for a lock that a thread of the program's may
 * hold. Returns OWN_MADE, OWN_LATER or -errno. After OWN_LATER another thread uses
 * the birth until run(arg) or failed(arg) is called.
 */
enum { OWN_MADE = 0, OWN_LATER = 1 };
int flexsc__own_thread_later(struct own_birth *birth);

/* Wait until a thread that has ended, or is about to, is gone. */
void flexsc__own_join(pthread_t thread);

#endif /* FLEXSC_OWN_THREAD_H */
