/* SPDX-License-Identifier: MIT */
/*
 * The library's own threads. Their stacks have a megabyte. They block all signals
 * except those that libc uses between threads. In the runtime of flexsc run, other
 * functions replace these (runtime/sched/internal_thread.c).
 */
#ifndef FLEXSC_OWN_THREAD_H
#define FLEXSC_OWN_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* Create a thread, on the given cores; NULL: on those of its creator. 0 or -errno. */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores);

/* A thread to create: flexsc__own_thread_later(). */
struct own_birth {
	struct own_birth *next;
	pthread_t *thread;
	void *(*run)(void *);
	void *arg;
	const cpu_set_t *cores;
	bool joins;		/* *thread is a thread that has ended: join it first */
	void (*failed)(void *arg);
};

/* Join a thread that has ended, or is about to. */
void flexsc__own_join(pthread_t thread);

/* Create the thread now. Returns 0 or -errno. */
static inline int own_birth_make(const struct own_birth *birth)
{
	if (birth->joins)
		flexsc__own_join(*birth->thread);
	return flexsc__own_thread(birth->thread, birth->run, birth->arg,
				  birth->cores);
}

/*
 * Create a thread without waiting for a lock that one of the program's threads may
 * hold. Returns OWN_MADE, OWN_LATER or -errno. After OWN_LATER, another thread creates
 * it: "birth" must exist until run(arg) or failed(arg) is called.
 */
enum { OWN_MADE = 0, OWN_LATER = 1 };
int flexsc__own_thread_later(struct own_birth *birth);

#endif /* FLEXSC_OWN_THREAD_H */
