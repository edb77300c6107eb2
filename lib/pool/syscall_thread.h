/* SPDX-License-Identifier: MIT */
/*
 * A syscall thread of a pool takes entries, and executes, parks or defers them. pool.h
 * describes when it runs. Fields that other threads read are under the pool's lock.
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
	uint32_t next;		/* in the pool's list of idle or unused threads */
	bool active;
	bool late;		/* counts itself in "count" when it starts */
	bool ended;		/* must be joined */
	bool cancelled;		/* the cancel signal was sent for "index" */
	bool kicked;		/* the signal was sent to queue the entry again */
	/*
	 * The thread has looked up a guard's descriptor and is about to enter the
	 * kernel, or is in a call that a kick interrupts.
	 */
	bool tries;
	_Atomic bool unexpected;	/* the call may wait, although expected not to */
	uint32_t index;		/* the entry being executed, or NONE */
	_Atomic uint32_t bell;	/* 1: wake up */
	/* Used by the thread alone: a result that isn't delivered yet. */
	uint32_t done;
	int64_t ret;
	unsigned int quiet;	/* results delivered since the loop was notified */
	unsigned int executed, switches;	/* not yet added to the statistics */
};

#endif /* FLEXSC_SYSCALL_THREAD_H */
