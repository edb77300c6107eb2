/* SPDX-License-Identifier: MIT */
/*
 * The insides of a pool, for pool.c, its owner's side and its threads' coming
 * and going, and syscall_thread.c, what they do. Everything in struct pool is
 * under its lock unless it says otherwise; nobody sleeps or makes a system call
 * of an entry with the lock held.
 */
#ifndef FLEXSC_SYSCALL_THREAD_H
#define FLEXSC_SYSCALL_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "../base/futex.h"
#include "../loop/loop.h"
#include "parking.h"
#include "pool.h"

struct syscall_thread {
	struct pool *pool;
	pthread_t thread;
	pid_t tid;
	uint32_t next;		/* idle, or unused */
	bool active;
	bool ended;		/* to be joined */
	bool cancelled;		/* the signal was sent for "index" */
	bool kicked;		/* and only to have it queued again */
	_Atomic bool unexpected;	/* may wait, but said it wouldn't */
	uint32_t index;		/* what it executes, or NONE */
	_Atomic uint32_t bell;	/* 1: wake up */
	/* Its own: a result not yet delivered. */
	uint32_t done;
	int64_t ret;
	unsigned int quiet;	/* delivered since the loop was told */
	unsigned int executed, switches;	/* not yet in the statistics */
};

struct pool {
	struct lock lock;
	struct flexsc_loop *loop;
	struct call_list queue;
	struct call_list deferred;
	_Atomic uint32_t backlog;	/* queue.count, for looks without lock */
	_Atomic uint32_t taken;	/* entries ever taken: progress; no lock */
	struct parking parking;

	struct syscall_thread *threads;	/* max of them */
	uint32_t max, count, blocked;
	uint32_t active, max_active;
	uint32_t idle, unused;	/* stacks of thread numbers */
	bool stopping;
	int signo;
	bool pinned;
	cpu_set_t cores;

	struct watch watch;	/* the owner's */
};

static inline struct syscall_thread *pool_thread(struct pool *pool,
						 uint32_t number)
{
	return &pool->threads[number];
}

/* Is there a thread that doesn't block, besides the calling one? */
static inline bool pool_others(const struct pool *pool)
{
	return pool->count - pool->blocked > 1;
}

/* pool.c, with the lock. */

/* One more thread goes active: an idle one, or a new one. */
bool flexsc__pool_start_another(struct pool *pool);
/* Make a thread, active from the start. */
bool flexsc__pool_create_thread(struct pool *pool);
/*
 * Sleep until woken. False: the thread is to end. The last one that isn't
 * blocked stays.
 */
bool flexsc__pool_rest(struct pool *pool, struct syscall_thread *thread);

void flexsc__pool_enqueue(struct pool *pool, uint32_t index);
void flexsc__pool_defer(struct pool *pool, uint32_t index);
void flexsc__pool_undefer(struct pool *pool, uint32_t index);
/* An entry is complete and leaves the pool: what its result is. */
int64_t flexsc__pool_leave(struct pool *pool, uint32_t index, int64_t ret);

/* syscall_thread.c: what a thread runs. */
void *flexsc__syscall_thread(void *arg);

#endif /* FLEXSC_SYSCALL_THREAD_H */
