/* SPDX-License-Identifier: MIT */
/*
 * A syscall thread of a pool (pool.h says when it runs): it takes entries, and
 * executes, parks or defers them. What others look at is under the pool's lock.
 */
#ifndef FLEXSC_SYSCALL_THREAD_H
#define FLEXSC_SYSCALL_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "own_thread.h"

struct pool;

struct syscall_thread {
	struct pool *pool;
	pthread_t thread;
	struct own_birth birth;
	pid_t tid;
	uint32_t next;		/* on the pool's list, idle or unused */
	bool active;
	bool late;		/* it counts itself when it starts */
	bool ended;		/* to be joined */
	bool cancelled;		/* the signal was sent for "index" */
	bool kicked;		/* ... to have the entry queued again */
	/*
	 * It has looked a guard's descriptor up, and is entering the kernel, or in a call
	 * there that kicks interrupt.
	 */
	bool tries;
	_Atomic bool unexpected;	/* may wait, though expected not to */
	uint32_t index;		/* the entry it executes, or NONE */
	_Atomic uint32_t bell;	/* 1: wake up */
	/* The thread's own fields: a result not yet delivered. */
	uint32_t done;
	int64_t ret;
	unsigned int quiet;	/* delivered since the loop was notified */
	unsigned int executed, switches;	/* not yet in the statistics */
};

#endif /* FLEXSC_SYSCALL_THREAD_H */
