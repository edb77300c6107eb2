/* SPDX-License-Identifier: MIT */
/*
 * Syscall threads in user space (OSDI 2010, section 3.5; ATC 2011, section 3.2.1),
 * which execute entries with plain system calls. A pool serves one loop.
 *
 *
 * Which thread runs when
 *
 * A thread that executes entries or looks for them is active. At most one thread per
 * core is active. Before a thread makes a call that is going to block, it makes another
 * thread active, so that the next entry need not wait:
 *
 *	idle		-> active	woken: entries were queued
 *	active		-> blocked	its call will wait; another goes active
 *	blocked		-> active	its call ended, and entries are queued
 *	blocked		-> idle		its call ended, and the queue is empty
 *	active		-> idle		the queue is empty
 *	idle		-> gone		no work for IDLE_NS (pool_threads.c)
 *	(none)		-> active	none is idle; the limit isn't reached
 *
 * The kernel doesn't notify user space when a thread blocks. The table of calls decides
 * instead. A call that may wait for its descriptor is made with a flag that keeps it
 * from waiting, or after poll(2): see attempt.h. If it would wait, it is parked: it
 * waits in an epoll set and takes no thread. A call that waits for anything else blocks
 * a thread. A call may also wait for a device, so the owner checks for progress. If
 * entries are queued and none is taken, the owner starts one more thread, unless a
 * thread without an entry is active: that thread takes an entry as soon as it gets a
 * processor.
 *
 *
 * Why the pool never stalls
 *
 * One thread always stays unblocked to take queued entries, because these may include
 * the entries that would unblock the others. If the limit is reached and only one
 * thread is unblocked, this thread doesn't block. An entry that would block it and
 * can't be parked is deferred until a second thread is unblocked.
 *
 * The answer of poll(2) may be out of date a moment later, or may mean room for only
 * the first bytes of a write. So even the last thread may have to wait. The progress
 * check detects that. It interrupts calls that were expected not to wait, and queues
 * them again; a call that has transferred a part is queued for its rest. The owner may
 * be asleep when the epoll set's thread queues an entry, so that thread checks for
 * progress, too.
 *
 *
 * Closing a descriptor
 *
 * An entry of the pool enters the kernel more than once: for the attempt, after it was
 * woken, and for its rest. Its guards (loop/guarded.h) begin when it waits or is about
 * to transfer a part. Before a descriptor is closed, entries that are parked on it are
 * queued, and continue with the guard's copy. Executing entries that were expected not
 * to wait have no guards yet. They join the guard, and their calls are interrupted if
 * they may enter the kernel again. An entry that has begun must not enter the kernel
 * with the number after the close: the closing thread waits until the entry's attempt
 * is over. An entry that waits on a thread gets a copy first.
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

/* Where in the pool an entry is; call->where. */
enum pool_where {
	POOL_NOT = 0,	/* not in the pool */
	POOL_QUEUED,	/* any thread may take it */
	POOL_RUNNING,	/* thread call->place executes it */
	POOL_PARKED,
	POOL_DEFERRED,
};

/* The last observation of a thread that checks the pool's progress. */
struct progress {
	uint32_t taken;		/* entries taken, at the last check */
	uint64_t since;		/* time of the last change; 0: the queue is empty */
};

/*
 * The pool's lock protects its fields, unless stated otherwise. No thread sleeps, or
 * makes an entry's system call, while it holds the lock.
 */
struct pool {
	struct lock lock;
	struct flexsc_loop *loop;
	struct call_list queue;
	struct call_list deferred;
	_Atomic uint32_t backlog;	/* queue.count, to be read without the lock */
	_Atomic uint32_t taken;	/* entries ever taken, read without the lock */
	struct parking parking;
	struct guard_watcher watcher;	/* under the watchers' lock */

	struct syscall_thread *threads;	/* array of "max" threads */
	void *(*run)(void *thread);
	uint32_t max, count, blocked;
	uint32_t active, max_active;
	uint32_t idle, unused;	/* stacks of thread numbers */
	/*
	 * A syscall thread is being created, and isn't counted in "count". No other one
	 * is created until it has begun, which may take as long as libc's locks are
	 * held.
	 */
	bool making;
	_Atomic uint32_t unborn;	/* threads being created; read without the lock */
	_Atomic bool stopping;	/* read without the lock by spinning threads */
	int signo;
	bool pinned;
	cpu_set_t cores;

	struct progress progress;	/* the owner's last observation */
	atomic_bool checked;	/* the owner's sleep is limited to STALL_NS */
};

static inline struct syscall_thread *pool_thread(struct pool *pool,
						 uint32_t number)
{
	return &pool->threads[number];
}

/* Is there an unblocked thread besides the calling one? */
static inline bool pool_others(const struct pool *pool)
{
	return pool->count - pool->blocked > 1;
}

/*
 * Create the loop's pool. It has at most max threads, but at least two, which run this
 * function. Owner only.
 */
int flexsc__pool_make(struct flexsc_loop *loop, uint32_t max,
		      void *(*run)(void *thread));
/* Queue SUBMITTED entries, and empty the list. */
void flexsc__pool_submit(struct pool *pool, struct call_list *list);
/* An entry of the pool that was BUSY is now CANCEL. */
void flexsc__pool_cancel(struct pool *pool, uint32_t index);
/*
 * Check the pool's progress. Returns how long the owner may sleep before the next
 * check, in ns; UINT64_MAX if no entry is queued, or the loop has no pool.
 */
uint64_t flexsc__pool_check(struct flexsc_loop *loop);

/* Destroy the loop's pool, if it has one. The pool must not contain entries. */
void flexsc__pool_destroy(struct flexsc_loop *loop);
/* Free the pool in a forked child, where its threads don't exist. */
void flexsc__pool_forked(struct flexsc_loop *loop);

/* For the rest of this folder, with the lock held: pool_threads.c. */

/* Make one more thread active: an idle one, or a new one. */
bool flexsc__pool_start_another(struct pool *pool);
/*
 * Create a thread that starts as active. Also returns false if it starts later:
 * "making".
 */
bool flexsc__pool_create_thread(struct pool *pool);
/*
 * Create one of the pool's threads on the pool's cores, which are filled in here.
 * Returns the result of flexsc__own_thread_later().
 */
int flexsc__pool_spawn(struct pool *pool, struct own_birth *birth);
/*
 * The calling thread has begun, after flexsc__pool_spawn() returned OWN_LATER for it.
 */
void flexsc__pool_born(struct pool *pool);
/* Called by a syscall thread when it begins. */
void flexsc__pool_begin(struct pool *pool, struct syscall_thread *thread);
/*
 * Sleep until woken. False: the thread has to end. The last unblocked thread doesn't
 * end.
 */
bool flexsc__pool_rest(struct pool *pool, struct syscall_thread *thread);

void flexsc__pool_enqueue(struct pool *pool, uint32_t index);
void flexsc__pool_defer(struct pool *pool, uint32_t index);
void flexsc__pool_undefer(struct pool *pool, uint32_t index);
/* Remove a complete entry from the pool; returns its result. */
int64_t flexsc__pool_leave(struct pool *pool, uint32_t index, int64_t ret);

/*
 * Interrupt a thread's call. A program's function isn't interrupted, as it may hold
 * locks.
 */
void flexsc__pool_interrupt(struct pool *pool, struct syscall_thread *thread);
/*
 * Interrupt a thread's call so that it is made again, if it was expected not to wait.
 */
void flexsc__pool_kick(struct pool *pool, struct syscall_thread *thread);

/* A parked entry's descriptor is ready: queue the entry. */
void flexsc__pool_wake(struct pool *pool, uint32_t index);
/* Complete an entry that no thread executes. */
void flexsc__pool_finish(struct pool *pool, uint32_t index, int64_t ret);

/* For the rest of this folder, without the lock. */

/* As flexsc__pool_check(), for a thread with an observation of its own. */
uint64_t flexsc__pool_check_progress(struct pool *pool,
				     struct progress *progress);

/* syscall_thread.c: creating a loop's pool. Owner only. */

/*
 * Create a pool of at most max threads, but at least two. -EAGAIN: no thread could be
 * created; -EINVAL: options.cores isn't a list of usable cores.
 */
int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max);

/* Has the loop a pool? If not, try to create one with options.max_threads. */
bool flexsc__pool_ensure(struct flexsc_loop *loop);

#endif /* FLEXSC_POOL_H */
