/* SPDX-License-Identifier: MIT */
/*
 * The library's own threads. Their stacks have a megabyte, and they block all signals
 * except those that libc uses between threads. In the runtime of flexsc run, these
 * functions are replaced (runtime/sched/internal_thread.c).
 */
#ifndef FLEXSC_OWN_THREAD_H
#define FLEXSC_OWN_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/*
 * Create a thread. cores: where it may run; NULL: where its creator may. 0 or -errno.
 */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores);

/* A thread to create: flexsc__own_thread_later(). */
struct own_birth {
	struct own_birth *next;
	pthread_t *thread;
	void *(*run)(void *);
	void *arg;
	const cpu_set_t *cores;
	bool joins;		/* *thread has ended: join it first */
	void (*failed)(void *arg);
};

/*
 * Create a thread without waiting for a lock that one of the program's threads may
 * hold. Returns OWN_MADE, OWN_LATER or -errno. After OWN_LATER another thread uses the
 * birth until run(arg) or failed(arg) is called.
 */
enum { OWN_MADE = 0, OWN_LATER = 1 };
int flexsc__own_thread_later(struct own_birth *birth);

/* Wait until a thread that has ended, or is about to, no longer exists. */
void flexsc__own_join(pthread_t thread);

#endif /* FLEXSC_OWN_THREAD_H */
