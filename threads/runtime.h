/* SPDX-License-Identifier: MIT */
/*
 * The runtime as a whole. It starts with the program's first pthread_create(),
 * and ends with the process. A forked child has none until it makes a thread.
 */
#ifndef FLEXSC_THREADS_RUNTIME_H
#define FLEXSC_THREADS_RUNTIME_H

#include <pthread.h>
#include <stdbool.h>

#include "run/uthread.h"

/*
 * From here on the calling thread, and threads that are made later, are user
 * threads. If that isn't possible, a line on stderr says so, this returns
 * false, and the program runs without the runtime.
 */
bool flexsc__runtime_start(void);
bool flexsc__runtime_runs(void);

/* Are the threads that the caller makes the runtime's own? */
bool flexsc__runtime_maker(void);

/* Is the caller a child of vfork()? It shares this memory, but nothing else. */
bool flexsc__runtime_is_child(void);

/*
 * Any thread, any signal handler: the process is about to end. A destructor
 * calls this for exit(), libc/own.c for _exit(), and hook.c for the system
 * call.
 */
void flexsc__runtime_ends(void);

/*
 * The calling kernel thread is new, and becomes a user thread's home; or it
 * ceases to be one. The stack is from flexsc__park_get(); the mask is the user
 * thread's.
 */
void flexsc__uthread_begin(struct uthread *u, void *stack, sigmask_t mask);
void flexsc__uthread_end(struct uthread *u);

#endif /* FLEXSC_THREADS_RUNTIME_H */
