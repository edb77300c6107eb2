/* SPDX-License-Identifier: MIT */
/*
 * The runtime as a whole: it starts with the program's first pthread_create()
 * and ends with the process; a forked child has none until it makes a thread.
 */
#ifndef FLEXSC_THREADS_RUNTIME_H
#define FLEXSC_THREADS_RUNTIME_H

#include <pthread.h>
#include <stdbool.h>

#include "run/uthread.h"

/*
 * The calling thread and those made later are user threads from here on.
 * False: that isn't possible, as one line on stderr has said; the program
 * goes on as without.
 */
bool flexsc__runtime_start(void);
bool flexsc__runtime_runs(void);

/* Are the threads that the caller makes the runtime's own? */
bool flexsc__runtime_maker(void);

/* Between these no user thread ends. From inside the runtime: home.h. */
void flexsc__runtime_hold(void);
void flexsc__runtime_release(void);

/* In there: the first of all user threads, which are linked by all_next. */
struct uthread *flexsc__runtime_first(void);

/* In there: the user thread behind a pthread_t, if it is one and doesn't end. */
struct uthread *flexsc__uthread_of(pthread_t thread);

/* Is the caller a child of vfork()? It has this memory, and what else is not. */
bool flexsc__runtime_is_child(void);

/*
 * Any thread, any signal handler: the process is about to end. exit() comes by
 * a destructor, _exit() and the call itself by preload/own.c and hook.c.
 */
void flexsc__runtime_ends(void);

/*
 * The calling kernel thread, newly made, begins and ends being a user thread's
 * home. The stack is from flexsc__park_get(); mask is the program's.
 */
void flexsc__uthread_begin(struct uthread *u, void *stack, sigmask_t mask);
void flexsc__uthread_end(struct uthread *u);

#endif /* FLEXSC_THREADS_RUNTIME_H */
