/* SPDX-License-Identifier: MIT */
/*
 * A syscall thread of a pool takes entries, and executes, parks or defers them. pool.h
 * describes when it runs. The pool's lock guards the fields that other threads read.
 */
#ifndef FLEXSC_SYSCALL_THREAD_H
#define FLEXSC_SYSCALL_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/patience.h"
#include "own_thread.h"

struct pool;

struct syscall_thread {
	struct pool *pool;
	pthread_t thread;
	struct own_birth birth;
	pid_t tid;
	uint32_t next;		/* in the pool's list of idle or unused threads */
	bool active;
	uint32_t seat;		/* of an active thread: which listed core it has, or NONE */
	uint32_t bound;		/* the listed core that it is bound to, or NONE */
	bool late;		/* created as OWN_LATER: counts itself in "count" when
				 * it begins */
	bool ended;		/* must be joined */
	bool cancelled;		/* the cancel signal was sent for "index" */
	bool kicked;		/* the cancel signal was sent so that the call is
				 * attempted again: a kick */
	/*
	 * The thread has read a guard's descriptor and is about to enter the kernel
	 * with it, or is in a call that a kick interrupts.
	 */
	bool tries;
	/* A socket of "index" was shut down after the thread had taken the entry. */
	bool shut;
	_Atomic bool unexpected;	/* the call was expected not to wait, and a
					 * kick may interrupt it */
	uint32_t index;		/* the entry being executed, or NONE */
	bool follows;		/* another entry led to "index", and no thread has
				 * begun it before */
	_Atomic uint32_t bell;	/* 1: wake up */
	struct patience patience;	/* used by the thread alone */
	/* A result that isn't delivered yet. Used by the thread alone. */
	uint32_t done;
	int64_t ret;
	unsigned int quiet;	/* results delivered since the thread last notified
				 * the loop */
	unsigned int executed, switches;	/* counts that aren't in the
						 * statistics yet */
};

#endif /* FLEXSC_SYSCALL_THREAD_H */
