/* SPDX-License-Identifier: MIT */
/* All user threads: as a list, and by thread id. */
#ifndef FLEXSC_RUNTIME_UTHREADS_H
#define FLEXSC_RUNTIME_UTHREADS_H

#include <pthread.h>
#include <stdbool.h>

#include "uthread.h"

/*
 * Inside the runtime: add a new user thread, whose host has its id; remove one
 * that ends.
 */
void flexsc__uthreads_add(struct uthread *u);
void flexsc__uthreads_remove(struct uthread *u);

/*
 * Lock the list of user threads: no user thread ends meanwhile. The calling
 * thread is inside the runtime (host.h) if it is a user thread.
 */
void flexsc__uthreads_lock(void);
void flexsc__uthreads_unlock(void);
/* Lock the list without waiting. False: another thread has it locked. */
bool flexsc__uthreads_trylock(void);

/* With the list locked: the first user thread; all_next links the others. */
struct uthread *flexsc__uthreads_first(void);

/*
 * With the list locked: the user thread of a pthread_t; NULL if it is none, or
 * ends.
 */
struct uthread *flexsc__uthread_of(pthread_t thread);

/*
 * With the list locked: the user thread with this thread id; NULL if it is
 * none, or ends.
 */
struct uthread *flexsc__uthread_with(int32_t tid);

/* Forget the user threads in a forked child, which has none. */
void flexsc__uthreads_forked(void);

#endif /* FLEXSC_RUNTIME_UTHREADS_H */
