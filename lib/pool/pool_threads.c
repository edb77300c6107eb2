/* SPDX-License-Identifier: MIT */
/*
 * A pool's threads: their creation, sleep and end; how they defer and complete entries;
 * and the check for progress. Run by the pool's threads or its owner.
 */
#include "pool.h"

#include <errno.h>

#include "cancelpoint.h"
#include "own_thread.h"
#include "lib/base/clock.h"
#include "lib/calls/partial.h"
#include "lib/loop/guarded.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"
#include "lib/loop/work.h"

#define IDLE_NS		2000000000ULL	/* a thread idle for this long ends */
#define STALL_NS	2000000ULL	/* no entry was taken for this long: start one
					 * more thread */

static void pool_kick_all(struct pool *pool);

/* Creating and ending threads. */

int flexsc__pool_spawn(struct pool *pool, struct own_birth *birth)
{
	int ret;

	lock_assert_held(&pool->lock);
	birth->cores = pool->pinned ? &pool->cores : NULL;
	ret = flexsc__own_thread_later(birth);
	if (ret == OWN_LATER)
		atomic_fetch_add(&pool->unborn, 1);
	return ret;
}

void flexsc__pool_born(struct pool *pool)
{
	lock_assert_held(&pool->lock);
	atomic_fetch_sub(&pool->unborn, 1);
	if (pool->stopping)
		futex_wake(&pool->unborn);
}

static void pool_count_thread(struct pool *pool, struct syscall_thread *thread)
{
	pool->count++;
	flexsc__pool_activate(pool, thread);
	count_shared(&pool->loop->stats->threads, 1);
}

void flexsc__pool_begin(struct pool *pool, struct syscall_thread *thread)
{
	lock_assert_held(&pool->lock);
	if (!thread->late)
		return;
	pool->making = false;
	pool_count_thread(pool, thread);
	flexsc__pool_born(pool);
}

static void pool_free_number(struct pool *pool, struct syscall_thread *thread)
{
	*thread = (struct syscall_thread){ .next = pool->unused };
	pool->unused = (uint32_t)(thread - pool->threads);
}

/*
 * Called if there is no thread that may block, and none can be created: end the entries
 * that wait for such a thread.
 */
static void pool_give_up(struct pool *pool)
{
	uint32_t index;

	while (pool->deferred.count) {
		index = pool->deferred.head;
		flexsc__pool_undefer(pool, index);
		flexsc__pool_finish(pool, index, pool->loop->no_thread);
	}
	if (pool->count)
		return;
	while ((index = calls_take(pool->loop, &pool->queue)) != NONE) {
		/*
		 * Ignore a failure: the entry was deferred (it is BUSY already) or
		 * cancelled (CANCEL), and can be ended in both cases.
		 */
		(void)entry_begin(entry_of(pool->loop, index));
		flexsc__pool_finish(pool, index, pool->loop->no_thread);
	}
	atomic_store_explicit(&pool->backlog, 0, memory_order_relaxed);
}

/* Called if a thread that was to be created later (OWN_LATER) couldn't be. */
static void pool_thread_failed(void *arg)
{
	struct syscall_thread *thread = arg;
	struct pool *pool = thread->pool;

	lock(&pool->lock);
	pool->making = false;
	pool_free_number(pool, thread);
	if (pool->count <= 1)
		pool_give_up(pool);
	if (!pool->active && pool->queue.count)
		pool_kick_all(pool);
	flexsc__pool_born(pool);
	unlock(&pool->lock);
}

bool flexsc__pool_create_thread(struct pool *pool)
{
	uint32_t number = pool->unused;
	struct syscall_thread *thread;
	int ret;

	lock_assert_held(&pool->lock);
	if (number == NONE || pool->stopping || pool->making)
		return false;
	thread = pool_thread(pool, number);
	pool->unused = thread->next;
	*thread = (struct syscall_thread){
		.pool = pool,
		.thread = thread->thread,
		.birth = {
			.thread = &thread->thread,
			.run = pool->run,
			.arg = thread,
			.joins = thread->ended,
			.failed = pool_thread_failed,
		},
		.patience = pool->loop->patience,
		.seat = NONE,
		.bound = NONE,
		.index = NONE,
		.done = NONE,
	};
	ret = flexsc__pool_spawn(pool, &thread->birth);
	if (ret == OWN_LATER)
		pool->making = thread->late = true;
	else if (ret == OWN_MADE)
		pool_count_thread(pool, thread);
	else
		pool_free_number(pool, thread);
	return ret == OWN_MADE;
}

bool flexsc__pool_start_another(struct pool *pool)
{
	struct syscall_thread *thread;

	lock_assert_held(&pool->lock);
	if (pool->idle == NONE)
		return flexsc__pool_create_thread(pool);
	thread = pool_thread(pool, pool->idle);
	pool->idle = thread->next;
	flexsc__pool_activate(pool, thread);
	atomic_store_explicit(&thread->bell, 1, memory_order_release);
	futex_wake(&thread->bell);
	return true;
}

/* Remove a thread from the list of idle ones; false if it was woken in the meantime. */
static bool pool_leave_idle(struct pool *pool, uint32_t number)
{
	uint32_t *link = &pool->idle;

	lock_assert_held(&pool->lock);
	while (*link != NONE && *link != number)
		link = &pool_thread(pool, *link)->next;
	if (*link == NONE)
		return false;
	*link = pool_thread(pool, number)->next;
	return true;
}

bool flexsc__pool_rest(struct pool *pool, struct syscall_thread *thread)
{
	uint32_t number = (uint32_t)(thread - pool->threads);

	lock_assert_held(&pool->lock);
	atomic_store_explicit(&thread->bell, 0, memory_order_relaxed);
	thread->next = pool->idle;
	pool->idle = number;
	while (!thread->active && !pool->stopping) {
		uint64_t ns = pool_others(pool) ? IDLE_NS : UINT64_MAX;
		long err;

		unlock(&pool->lock);
		err = futex_wait(&thread->bell, 0, ns);
		lock(&pool->lock);
		if (err == -ETIMEDOUT && !thread->active && pool_others(pool) &&
		    pool_leave_idle(pool, number))
			return false;
	}
	return !pool->stopping;
}

/* Entries. */

void flexsc__pool_wake(struct pool *pool, uint32_t index)
{
	lock_assert_held(&pool->lock);
	call_of(pool->loop, index)->woken = true;
	flexsc__pool_enqueue(pool, index);
	if (!pool->active)
		flexsc__pool_start_another(pool);
}

int64_t flexsc__pool_leave(struct pool *pool, uint32_t index, int64_t ret)
{
	struct call *call = call_of(pool->loop, index);

	call->where = POOL_NOT;
	/*
	 * A syscall thread clears "plainly" when it executes the call. If the call was
	 * cancelled before it was executed, the flag is still set.
	 */
	call->plainly = false;
	if (call->woken) {
		call->woken = false;
		flexsc__park_next(&pool->parking,
				  (int)entry_of(pool->loop, index)->args[0]);
	}
	if (call_is_guarded(call)) {
		flexsc__park_forget(&pool->parking, index);
		flexsc__call_unguard(pool->loop, index);
	}
	return flexsc__partial_result(entry_of(pool->loop, index),
				      &call->partial, ret);
}

void flexsc__pool_finish(struct pool *pool, uint32_t index, int64_t ret)
{
	lock_assert_held(&pool->lock);
	ret = flexsc__pool_leave(pool, index, ret);
	if (!flexsc__chain_go_on(pool, index, ret))
		flexsc__pool_publish(pool, index, ret);
	else if (pool->queue.count && pool->count && !pool->active)
		flexsc__pool_start_another(pool);
	loop_notify(pool->loop);
}

void flexsc__pool_interrupt(struct pool *pool, struct syscall_thread *thread)
{
	if (work_is(entry_of(pool->loop, thread->index)))
		return;
	thread->cancelled = true;
	if (pool->signo)
		flexsc__cancel_send(thread->tid, pool->signo);
}

void flexsc__pool_kick(struct pool *pool, struct syscall_thread *thread)
{
	lock_assert_held(&pool->lock);
	if (thread->index == NONE || !thread->unexpected)
		return;
	thread->kicked = true;
	flexsc__pool_interrupt(pool, thread);
}

/*
 * Interrupt all calls that were expected not to wait, because every thread is waiting
 * in its call.
 */
static void pool_kick_all(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->max; i++)
		flexsc__pool_kick(pool, pool_thread(pool, i));
}

/* Progress. */

/*
 * No entry was taken, so each thread that executes an entry is waiting in that entry's
 * call: count these threads as not active.
 */
static void pool_overtake(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (!thread->active || thread->index == NONE)
			continue;
		flexsc__pool_deactivate(pool, thread);
		flexsc__pool_stand_up(pool, thread);
	}
}

uint64_t flexsc__pool_check_progress(struct pool *pool,
				     struct progress *progress)
{
	uint64_t now;
	uint32_t taken;

	if (!atomic_load_explicit(&pool->backlog, memory_order_relaxed)) {
		progress->since = 0;
		return UINT64_MAX;
	}
	now = time_monotonic();
	taken = atomic_load_explicit(&pool->taken, memory_order_relaxed);
	if (taken != progress->taken || !progress->since) {
		progress->taken = taken;
		progress->since = now;
	} else if (now - progress->since >= STALL_NS) {
		lock(&pool->lock);
		pool_overtake(pool);
		/*
		 * If a thread is still active, it has no entry, and will take one as
		 * soon as it gets a processor.
		 */
		if (!pool->active && !flexsc__pool_start_another(pool) &&
		    !pool->making)
			pool_kick_all(pool);
		unlock(&pool->lock);
		progress->since = now;
	}
	return STALL_NS;
}
