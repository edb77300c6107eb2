/* SPDX-License-Identifier: MIT */
/*
 * Syscall threads in user space (OSDI 2010, section 3.5; ATC 2011, section 3.2.1),
 * which execute entries with plain system calls. A pool serves one loop.
 *
 *
 * Which thread runs when
 *
 * A thread that executes entries or looks for them is active. At most one thread per
 * core is active; with the option kernel_cores, it is bound to that core (seat.c). Before
 * a thread makes a call that is going to block, it makes another thread active, so that
 * the next entry need not wait:
 *
 *	idle		-> active	woken: entries were queued
 *	active		-> blocked	its call will wait; another goes active
 *	blocked		-> active	its call ended, and entries are queued
 *	blocked		-> idle		its call ended, and the queue is empty
 *	active		-> idle		the queue is empty
 *	idle		-> gone		no work for IDLE_NS (pool_threads.c)
 *	(none)		-> active	created: no thread is idle
 *
 * The kernel doesn't notify user space when a thread blocks. The table of calls decides
 * instead. A call that may wait for its descriptor is attempted with a flag that keeps
 * it from waiting, or made after poll(2): see attempt.h. If it would wait, it is
 * parked: it waits in an epoll set and takes no thread. A call that waits for anything
 * else blocks a thread. A call may also wait for a device, so the owner checks for
 * progress. If entries are queued and none is taken, the owner starts one more thread,
 * unless a thread without an entry is active: that thread takes an entry as soon as it
 * gets a processor.
 *
 *
 * Why the pool never stalls
 *
 * One thread always stays unblocked to take queued entries, because these may include
 * the entries that would unblock the others. If the limit is reached and only one
 * thread is unblocked, this thread doesn't block. An entry that would block it and
 * can't be parked is deferred until a second thread is unblocked. Entries are also
 * deferred while a thread is being created later (OWN_LATER). That thread takes one of
 * them, and creates another thread for the next before it blocks.
 *
 * The result of poll(2) may be out of date a moment later, or may mean room for only
 * the first bytes of a write. So even the last thread may have to wait. The progress
 * check detects that. It interrupts calls that were expected not to wait, and queues
 * them again. If such a call has transferred a part, its remainder is queued. The owner
 * may be asleep when the epoll set's thread queues an entry, so that thread checks for
 * progress, too.
 *
 *
 * Closing a descriptor
 *
 * An entry of the pool enters the kernel more than once: for the attempt, after it was
 * woken, and for its remainder. Its guards (loop/guarded.h) begin when it waits or is
 * about to transfer a part. Before a descriptor is closed, entries that are parked on
 * it are queued, and continue with the guard's duplicate. Entries that threads are
 * executing, and that were expected not to wait, have no guards yet. The closing thread
 * gives them the descriptor's guard, and interrupts their calls if these may enter the
 * kernel again. An entry that has begun must not enter the kernel with the number after
 * the close: the closing thread waits until the entry's attempt is over. Before an entry
 * with a partial transfer blocks a thread, its descriptor is duplicated.
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
	POOL_CHAINED,	/* queued when the entry call->place has its result */
	POOL_FOREIGN,	/* not in the pool: the kernel module has the entry */
};

/* What a thread saw when it last checked the pool's progress. */
struct progress {
	uint32_t taken;		/* pool->taken at the last check */
	uint64_t since;		/* when "taken" last changed; 0: the queue was empty */
};

/*
 * The pool's lock guards its fields, unless stated otherwise. No thread sleeps, or
 * makes an entry's system call, while it holds the lock.
 */
struct pool {
	struct lock lock;
	struct flexsc_loop *loop;
	struct call_list queue;
	struct call_list deferred;
	_Atomic uint32_t backlog;	/* queue.count, for readers without the lock */
	_Atomic uint32_t taken;	/* number of entries ever taken; read without the
				 * lock */
	struct parking parking;
	struct guard_watcher watcher;	/* guarded by the watchers' lock */

	struct syscall_thread *threads;	/* array of "max" threads */
	void *(*run)(void *thread);
	uint32_t max, count, blocked;
	uint32_t active, max_active;
	uint32_t gang;		/* queue length that justifies using another core */
	uint32_t idle, unused;	/* first thread of the list of idle ones, and of
				 * the list of unused ones */
	/*
	 * A syscall thread is being created (OWN_LATER), and isn't counted in
	 * "count" yet. No other one is created until it has begun, which may take
	 * as long as a program's thread holds libc's locks.
	 */
	bool making;
	_Atomic uint32_t unborn;	/* number of threads being created; read
					 * without the lock */
	_Atomic bool stopping;	/* the pool ends; polling threads read it without the
				 * lock */
	int signo;
	bool pinned;
	cpu_set_t cores;
	cpu_set_t seated;	/* which of loop->listed active threads have: seat.c */

	struct progress progress;	/* what the owner saw at its last check */
	atomic_bool checked;	/* the owner checks progress at least every STALL_NS */
};

static inline struct syscall_thread *pool_thread(struct pool *pool,
						 uint32_t number)
{
	return &pool->threads[number];
}

/* Is another thread than the calling one unblocked? */
static inline bool pool_others(const struct pool *pool)
{
	return pool->count - pool->blocked > 1;
}

/*
 * Create the loop's pool of at most max threads, but at least two; each calls run().
 * Owner only.
 */
int flexsc__pool_make(struct flexsc_loop *loop, uint32_t max,
		      void *(*run)(void *thread));
/*
 * Queue SUBMITTED entries, and empty the list. The pool starts the entries that these
 * lead to, too: chain.c.
 */
void flexsc__pool_submit(struct pool *pool, struct call_list *list);
/* Called when an entry of the pool has changed from BUSY to CANCEL. */
void flexsc__pool_cancel(struct pool *pool, uint32_t index);
/* See unchain() in loop/engine.h. */
bool flexsc__pool_unchain(struct pool *pool, uint32_t index);
/*
 * Check the pool's progress. Returns how long the owner may sleep before the next
 * check, in ns; UINT64_MAX if no entry is queued, or the loop has no pool.
 */
uint64_t flexsc__pool_check(struct flexsc_loop *loop);

/*
 * Destroy the loop's pool, if it has one. The caller guarantees that no entry is in the
 * pool.
 */
void flexsc__pool_destroy(struct flexsc_loop *loop);
/* Free the pool in a forked child, where its threads don't exist. */
void flexsc__pool_forked(struct flexsc_loop *loop);

/*
 * Functions for the rest of this folder; the caller holds the lock. See pool_threads.c.
 */

/* Make one more thread active: an idle one, or a new one. */
bool flexsc__pool_start_another(struct pool *pool);
/*
 * Create a thread, which begins as active. False: impossible, or the thread begins
 * later ("making").
 */
bool flexsc__pool_create_thread(struct pool *pool);
/*
 * Create one of the pool's threads, on the pool's cores; fills in the cores of "birth".
 * Returns the result of flexsc__own_thread_later().
 */
int flexsc__pool_spawn(struct pool *pool, struct own_birth *birth);
/*
 * Called for a thread for which flexsc__pool_spawn() returned OWN_LATER: when the
 * thread begins, or when creating it has failed.
 */
void flexsc__pool_born(struct pool *pool);
/* Called by a syscall thread when it begins. */
void flexsc__pool_begin(struct pool *pool, struct syscall_thread *thread);
/*
 * Let the calling thread sleep until it is woken. False: the thread has to end. The
 * last unblocked thread isn't made to end.
 */
bool flexsc__pool_rest(struct pool *pool, struct syscall_thread *thread);

/* Remove a complete entry from the pool. Returns the call's result. */
int64_t flexsc__pool_leave(struct pool *pool, uint32_t index, int64_t ret);

/*
 * Interrupt a thread's call, but not a function of the program, which may hold locks.
 */
void flexsc__pool_interrupt(struct pool *pool, struct syscall_thread *thread);
/*
 * If a thread's call was expected not to wait, interrupt it, so that it is attempted
 * again.
 */
void flexsc__pool_kick(struct pool *pool, struct syscall_thread *thread);

/* Called when a parked entry's descriptor is ready: queue the entry. */
void flexsc__pool_wake(struct pool *pool, uint32_t index);
/* Complete an entry that no thread executes. */
void flexsc__pool_finish(struct pool *pool, uint32_t index, int64_t ret);

/* seat.c: the cores of active threads; the caller holds the lock. */

/* Make a thread active, or no longer active. */
void flexsc__pool_activate(struct pool *pool, struct syscall_thread *thread);
void flexsc__pool_deactivate(struct pool *pool, struct syscall_thread *thread);
/* If the calling thread is active, bind it to its core. Releases the lock meanwhile. */
void flexsc__pool_sit_down(struct pool *pool, struct syscall_thread *thread);
/*
 * Let a thread run on any of the pool's cores. Called by the thread when it isn't active,
 * without the lock; or by another one that has deactivated it, with the lock.
 */
void flexsc__pool_stand_up(struct pool *pool, struct syscall_thread *thread);

/* queue.c: the lists of entries. */

void flexsc__pool_enqueue(struct pool *pool, uint32_t index);
void flexsc__pool_defer(struct pool *pool, uint32_t index);
void flexsc__pool_undefer(struct pool *pool, uint32_t index);
/* Publish the result of an entry that has left the pool. */
void flexsc__pool_publish(struct pool *pool, uint32_t index, int64_t ret);

/* chain.c: entries that others lead to. */

/* Let the entries that a queued one leads to wait for it. */
void flexsc__chain_hold(struct pool *pool, uint32_t index);
/*
 * Called when an entry has left the pool: if it leads to another one, publish its
 * result, and queue or end that one. False: it leads to none, so the caller publishes
 * the result.
 */
bool flexsc__chain_go_on(struct pool *pool, uint32_t index, int64_t ret);

/* Functions for the rest of this folder; the caller doesn't hold the lock. */

/*
 * As flexsc__pool_check(), for a thread other than the owner, with its own struct
 * progress.
 */
uint64_t flexsc__pool_check_progress(struct pool *pool,
				     struct progress *progress);

/* syscall_thread.c: creating a loop's pool. Owner only. */

/*
 * Create a pool of at most max threads, but at least two. -EAGAIN: no thread could be
 * created; -EINVAL: options.cores isn't a list of usable cores.
 */
int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max);

/* Does the loop have a pool? If not, try to create one with options.max_threads. */
bool flexsc__pool_ensure(struct flexsc_loop *loop);

#endif /* FLEXSC_POOL_H */
