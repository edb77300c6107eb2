/* SPDX-License-Identifier: MIT */
/*
 * Syscall threads in user space (OSDI 2010, section 3.5; ATC 2011, section
 * 3.2.1): they execute entries by plain system calls. A pool serves one loop.
 *
 *
 * Who runs when
 *
 * A thread that executes or looks for entries is active; no more than one per
 * core is. A thread whose call is going to block hands that over first, so the
 * next entry need not wait for it:
 *
 *	idle		-> active	woken: entries were queued
 *	active		-> blocked	its call will wait; another goes active
 *	blocked		-> active	its call ended, there is work
 *	blocked		-> idle		its call ended, there is none
 *	active		-> idle		the queue is empty
 *	idle		-> gone		nothing to do for IDLE_NS (pool_threads.c)
 *	(none)		-> active	none is idle; the limit isn't reached
 *
 * User space isn't told when a thread blocks. What the table knows decides
 * instead. Calls that may wait for their descriptor are told not to, or asked
 * for by poll(2): see attempt.h. Those that would wait are parked, which is to
 * wait in an epoll set and take no thread. Calls that wait for anything else
 * block one. Calls that only may wait for a device are why progress is checked:
 * an owner that sees a queue and no progress starts one more thread, unless a
 * thread without an entry is active: it takes one when it gets a processor.
 *
 *
 * Why it never comes to a standstill
 *
 * One thread is always left unblocked, to take what is queued: the entries
 * that would wake the others may be among it. When the limit is reached and
 * only one thread is left, it doesn't block. An entry that would make it, and
 * can't be parked, is deferred until a second thread is unblocked again.
 *
 * poll(2) may be out of date a moment later, or report room for only the first
 * bytes of a write. So even the last thread may have to wait. The check for
 * progress notices that, interrupts calls that were not expected to wait, and
 * queues them again; a call that has transferred a part is queued for its rest.
 * As the owner may sleep when the epoll set's thread queues an entry, that
 * thread checks progress, too.
 *
 *
 * Closing a descriptor
 *
 * An entry of the pool goes to the kernel more than once: to attempt it, when it was
 * woken, with its rest. It has guards (loop/guarded.h) from when it waits, or is about
 * to transfer a part. Before a descriptor is closed, entries that are parked for it are
 * queued, and go on with the guard's copy. Threads are executing entries that weren't
 * expected to wait, and have no guards yet. They join the guard; their calls are
 * interrupted if the kernel may be entered again. An entry that has begun must not enter
 * the kernel with the number after the close: the closing thread waits until its attempt
 * is over, and an entry that waits on a thread is given a copy first.
 */
#ifndef FLEXSC_POOL_H
#define FLEXSC_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/futex.h"
#include "lib/files/guard.h"
#include "lib/loop/call.h"
#include "parking.h"
#include "syscall_thread.h"

struct flexsc_loop;

/* Where an entry is in the pool; call->where. */
enum pool_where {
	POOL_NOT = 0,	/* not in it */
	POOL_QUEUED,	/* for any thread */
	POOL_RUNNING,	/* call->place executes it */
	POOL_PARKED,
	POOL_DEFERRED,
};

/* What a thread that checks the pool's progress saw last. */
struct progress {
	uint32_t taken;		/* entries taken, at the last check */
	uint64_t since;		/* when that was new; 0: nothing is queued */
};

/*
 * A pool's fields are under its lock unless they say otherwise. No thread
 * sleeps, or makes an entry's system call, with the lock held.
 */
struct pool {
	struct lock lock;
	struct flexsc_loop *loop;
	struct call_list queue;
	struct call_list deferred;
	_Atomic uint32_t backlog;	/* queue.count, for looks without lock */
	_Atomic uint32_t taken;	/* entries ever taken: progress; no lock */
	struct parking parking;
	struct guard_watcher watcher;	/* under the watchers' lock */

	struct syscall_thread *threads;	/* max of them */
	void *(*run)(void *thread);
	uint32_t max, count, blocked;
	uint32_t active, max_active;
	uint32_t idle, unused;	/* stacks of thread numbers */
	/*
	 * A syscall thread is to be made, and isn't in "count". No other one is made
	 * until it has begun, which may take as long as libc's locks are held.
	 */
	bool making;
	_Atomic uint32_t unborn;	/* all that are to be made; read without lock */
	_Atomic bool stopping;	/* a thread that spins reads it without lock */
	int signo;
	bool pinned;
	cpu_set_t cores;

	struct progress progress;	/* as the owner saw it */
	atomic_bool checked;	/* the owner sleeps for STALL_NS at most */
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

/*
 * Make the loop's pool, of at most max threads, but at least two, which run this
 * function. For the owner.
 */
int flexsc__pool_make(struct flexsc_loop *loop, uint32_t max,
		      void *(*run)(void *thread));
/* Queue SUBMITTED entries; empties the list. */
void flexsc__pool_submit(struct pool *pool, struct call_list *list);
/* A BUSY entry of the pool is CANCEL now. */
void flexsc__pool_cancel(struct pool *pool, uint32_t index);
/*
 * Check the pool's progress. Returns how long the owner may sleep before it calls this
 * again, in ns: UINT64_MAX if no entry is queued, or the loop has no pool.
 */
uint64_t flexsc__pool_check(struct flexsc_loop *loop);

/* The loop's pool, if there is one; no entry is left in it. */
void flexsc__pool_destroy(struct flexsc_loop *loop);
/* Free the pool in a forked child, where no thread is left. */
void flexsc__pool_forked(struct flexsc_loop *loop);

/* For the rest of the folder, with the lock: pool_threads.c. */

/* One more thread goes active: an idle one, or a new one. */
bool flexsc__pool_start_another(struct pool *pool);
/*
 * Make a thread, active from the start. False also if it begins later: "making".
 */
bool flexsc__pool_create_thread(struct pool *pool);
/*
 * A thread of the pool's own, on its cores; the birth has all but those. Returns
 * what flexsc__own_thread_later() does.
 */
int flexsc__pool_spawn(struct pool *pool, struct own_birth *birth);
/* The calling thread, of which flexsc__pool_spawn() returned OWN_LATER, began. */
void flexsc__pool_born(struct pool *pool);
/* The calling syscall thread begins. */
void flexsc__pool_begin(struct pool *pool, struct syscall_thread *thread);
/*
 * Sleep until woken. False: the thread is to end. The last one that isn't
 * blocked stays.
 */
bool flexsc__pool_rest(struct pool *pool, struct syscall_thread *thread);

void flexsc__pool_enqueue(struct pool *pool, uint32_t index);
void flexsc__pool_defer(struct pool *pool, uint32_t index);
void flexsc__pool_undefer(struct pool *pool, uint32_t index);
/* An entry is complete and leaves the pool; returns its result. */
int64_t flexsc__pool_leave(struct pool *pool, uint32_t index, int64_t ret);

/*
 * Interrupt a thread's call. A function of the program's isn't interrupted: it may hold
 * locks.
 */
void flexsc__pool_interrupt(struct pool *pool, struct syscall_thread *thread);
/* Likewise, to be made again, if it was not expected to wait. */
void flexsc__pool_kick(struct pool *pool, struct syscall_thread *thread);

/* A parked entry's descriptor is ready. */
void flexsc__pool_wake(struct pool *pool, uint32_t index);
/* An entry that no thread has is complete. */
void flexsc__pool_finish(struct pool *pool, uint32_t index, int64_t ret);

/* For the rest of the floor, without the lock. */

/* flexsc__pool_check() of a thread with what it saw last. */
uint64_t flexsc__pool_check_progress(struct pool *pool,
				     struct progress *progress);

/* syscall_thread.c: a loop gets its pool. Owner only. */

/*
 * Of at most max threads, but at least two. -EAGAIN: not one could be made; -EINVAL:
 * options.cores is no list of usable cores.
 */
int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max);

/* Has the loop a pool? It gets one, if it can, of options.max_threads. */
bool flexsc__pool_ensure(struct flexsc_loop *loop);

#endif /* FLEXSC_POOL_H */
