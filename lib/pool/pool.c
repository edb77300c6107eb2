/* SPDX-License-Identifier: MIT */
/*
 * The owner's side of a pool, and what the pool does when a descriptor is closed.
 * pool_threads.c has the threads.
 */
#include "pool.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "cancelpoint.h"
#include "lib/base/ask.h"
#include "lib/files/fds.h"
#include "lib/files/kinds.h"
#include "own_thread.h"
#include "lib/loop/guarded.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"

#define GANG		16	/* default of the option backlog */

/*
 * How often, and at what interval in ns, a closing thread checks whether other threads
 * have left the kernel. It closes the descriptor after the last check in any case,
 * because a device driver may never let a thread leave.
 */
#define TRIES_NS	20000
#define TRIES_LOOKS	5000U

static struct pool *pool_of(struct guard_watcher *watcher)
{
	return (struct pool *)((char *)watcher - offsetof(struct pool, watcher));
}

void flexsc__pool_submit(struct pool *pool, struct call_list *list)
{
	uint32_t index;

	loop_assert_owner(pool->loop);
	if (!list->count)
		return;
	lock(&pool->lock);
	while ((index = calls_take(pool->loop, list)) != NONE) {
		flexsc__pool_enqueue(pool, index);
		flexsc__chain_hold(pool, index);
	}
	if (!pool->active)
		flexsc__pool_start_another(pool);
	unlock(&pool->lock);
}

void flexsc__pool_cancel(struct pool *pool, uint32_t index)
{
	struct call *call = call_of(pool->loop, index);

	loop_assert_owner(pool->loop);
	lock(&pool->lock);
	switch ((enum pool_where)call->where) {
	case POOL_RUNNING:
		flexsc__pool_interrupt(pool, pool_thread(pool, call->place));
		break;
	case POOL_PARKED:
		flexsc__unpark(&pool->parking, index);
		flexsc__pool_finish(pool, index, -ECANCELED);
		break;
	case POOL_DEFERRED:
		flexsc__pool_undefer(pool, index);
		flexsc__pool_finish(pool, index, -ECANCELED);
		break;
	case POOL_QUEUED:	/* the thread that takes the entry sees CANCEL */
	case POOL_NOT:		/* the entry has just completed */
	case POOL_CHAINED:	/* such an entry isn't BUSY */
	case POOL_FOREIGN:
		break;
	}
	unlock(&pool->lock);
}

uint64_t flexsc__pool_check(struct flexsc_loop *loop)
{
	struct pool *pool = loop_pool(loop);
	uint64_t ns;

	if (!pool)
		return UINT64_MAX;
	ns = flexsc__pool_check_progress(pool, &pool->progress);
	/*
	 * P1: sequentially consistent, as "sleeping" is. Pairs with P2 in
	 * syscall_thread.c.
	 */
	if (atomic_load_explicit(&pool->checked, memory_order_relaxed) !=
	    (ns != UINT64_MAX))
		atomic_store(&pool->checked, ns != UINT64_MAX);
	return ns;
}

/*
 * Let the calls that threads are making with the descriptor join the guard. True: call
 * this again before the close, because a thread that read the number before the guard
 * had a duplicate may still enter the kernel with it. False for a file on a disk, whose
 * writes have no remainder.
 */
static bool pool_join(struct pool *pool, uint32_t fd, struct guard *guard)
{
	bool tries = false;

	for (uint32_t i = 0; i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (!thread->pool || thread->index == NONE ||
		    !flexsc__call_join(pool->loop, thread->index, fd, guard))
			continue;
		flexsc__pool_kick(pool, thread);
		tries |= thread->tries;
	}
	return tries && pool->signo && !(flexsc__kind(fd) & FD_PLACED);
}

/*
 * Called when a descriptor is about to be closed: its calls continue with the guard's
 * duplicate.
 */
static void pool_closing(struct guard_watcher *watcher, uint32_t fd,
			 struct guard *guard)
{
	static const struct timespec moment = { 0, TRIES_NS };
	struct pool *pool = pool_of(watcher);
	unsigned int looks = guard ? TRIES_LOOKS : 0;

	lock(&pool->lock);
	while (looks-- && pool_join(pool, fd, guard)) {
		unlock(&pool->lock);
		ask(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
		lock(&pool->lock);
	}
	flexsc__park_closing(&pool->parking, (int)fd);
	unlock(&pool->lock);
}

/*
 * Called when the descriptor's socket was shut down. A thread may have found before that
 * its call would wait, and be about to park the call: it must not.
 */
static void pool_shut(struct pool *pool, uint32_t fd)
{
	for (uint32_t i = 0; i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (thread->pool && thread->index != NONE &&
		    flexsc__call_names(pool->loop, thread->index, (int)fd))
			thread->shut = true;
	}
}

static void pool_closed(struct guard_watcher *watcher, uint32_t fd, bool shut)
{
	struct pool *pool = pool_of(watcher);

	lock(&pool->lock);
	if (shut)
		pool_shut(pool, fd);
	flexsc__park_again(&pool->parking, (int)fd);
	unlock(&pool->lock);
}

static int pool_init(struct pool *pool, struct flexsc_loop *loop, uint32_t max)
{
	const struct flexsc_options *options = &loop->options;
	int err;

	pool->loop = loop;
	pool->watcher.closing = pool_closing;
	pool->watcher.closed = pool_closed;
	pool->idle = NONE;
	pool->unused = NONE;
	/*
	 * At least two: one thread always stays unblocked, so a single thread could
	 * never block.
	 */
	pool->max = max > 1 ? max : 2;
	pool->gang = options->backlog ? options->backlog : GANG;
	pool->signo = flexsc__cancel_signal();
	flexsc__parking_init(&pool->parking, pool);
	CPU_ZERO(&pool->cores);
	pool->pinned = options->kernel_cores;
	if (pool->pinned)
		pool->cores = loop->kernel_cores;
	else
		sched_getaffinity(0, sizeof(pool->cores), &pool->cores);
	pool->max_active = (uint32_t)CPU_COUNT(&pool->cores);
	if (!pool->max_active)
		pool->max_active = 1;
	pool->threads = calloc(pool->max, sizeof(*pool->threads));
	if (!pool->threads)
		return -ENOMEM;
	for (uint32_t i = pool->max; i-- > 0;) {
		pool->threads[i].next = pool->unused;
		pool->unused = i;
	}
	lock(&pool->lock);
	err = flexsc__pool_create_thread(pool) || pool->making ? 0 : -EAGAIN;
	unlock(&pool->lock);
	return err;
}

int flexsc__pool_make(struct flexsc_loop *loop, uint32_t max,
		      void *(*run)(void *thread))
{
	struct pool *pool = calloc(1, sizeof(*pool));
	int err;

	if (!pool)
		return -ENOMEM;
	pool->run = run;
	err = pool_init(pool, loop, max);
	if (err) {
		free(pool->threads);
		free(pool);
		return err;
	}
	loop->stats->max_threads += pool->max;
	/* Publishes the pool; pairs with loop_pool(). */
	__atomic_store_n(&loop->pool, pool, __ATOMIC_RELEASE);
	flexsc__guard_watch(&pool->watcher);
	return 0;
}

void flexsc__pool_destroy(struct flexsc_loop *loop)
{
	struct pool *pool = loop->pool;
	uint32_t unborn;

	if (!pool)
		return;
	flexsc__guard_unwatch(&pool->watcher);
	lock(&pool->lock);
	atomic_store_explicit(&pool->stopping, true, memory_order_relaxed);
	for (uint32_t i = pool->idle; i != NONE; i = pool_thread(pool, i)->next) {
		atomic_store_explicit(&pool_thread(pool, i)->bell, 1,
				      memory_order_release);
		futex_wake(&pool_thread(pool, i)->bell);
	}
	unlock(&pool->lock);
	while ((unborn = atomic_load(&pool->unborn)))
		futex_wait(&pool->unborn, unborn, UINT64_MAX);
	/* Wait for the thread that set "unborn" to 0: it may still hold the lock. */
	lock(&pool->lock);
	unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->max; i++)
		if (pool->threads[i].pool)
			flexsc__own_join(pool->threads[i].thread);
	flexsc__parking_fini(&pool->parking);
	free(pool->threads);
	free(pool);
}

void flexsc__pool_forked(struct flexsc_loop *loop)
{
	struct pool *pool = loop->pool;

	if (!pool)
		return;
	flexsc__parking_forked(&pool->parking);
	free(pool->threads);
	free(pool);
}
