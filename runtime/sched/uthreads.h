/* SPDX-License-Identifier: MIT */
/*
 * All user threads, as a list and by thread id. Any thread; a user thread only inside
 * the runtime (host.h).
 */
#ifndef FLEXSC_RUNTIME_UTHREADS_H
#define FLEXSC_RUNTIME_UTHREADS_H

#include <pthread.h>
#include <stdbool.h>

#include "uthread.h"

/* Add a new user thread, whose host has its thread id; remove one that ends. */
void flexsc__uthreads_add(struct uthread *u);
void flexsc__uthreads_remove(struct uthread *u);

/* Lock the list, so that no user thread ends. */
void flexsc__uthreads_lock(void);
void flexsc__uthreads_unlock(void);
/* Try to lock the list. False: another thread has locked it. */
bool flexsc__uthreads_trylock(void);

/* With the list locked: the first user thread. all_next links the others. */
struct uthread *flexsc__uthreads_first(void);

/* With the list locked: the user thread of a pthread_t. NULL: not found, or it ends. */
struct uthread *flexsc__uthread_of(pthread_t thread);

/*
 * With the list locked: the user thread with this thread id. NULL: not found, or it
 * ends.
 */
struct uthread *flexsc__uthread_with(int32_t tid);

/* In a forked child: empty the list. */
void flexsc__uthreads_forked(void);

#endif /* FLEXSC_RUNTIME_UTHREADS_H */
