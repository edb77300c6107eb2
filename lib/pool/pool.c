/* SPDX-License-Identifier: MIT */
/*
 * A pool: its queue, its threads' coming and going, its owner's side. pool.h
 * says which thread runs when, syscall_thread.h which fields the lock guards.
 */
#include "pool.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#include "cancelpoint.h"
#include "lib/base/cores.h"
#include "lib/calls/partial.h"
#include "own_thread.h"
#include "lib/loop/guarded.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"
#include "lib/loop/work.h"
#include "lib/base/clock.h"

#define IDLE_NS		2000000000ULL	/* then a thread ends */
#define STALL_NS	2000000ULL	/* no progress for so long: one more */

static void pool_kick_all(struct pool *pool);

static struct pool *pool_of(struct guard_watcher *watcher)
{
	return (struct pool *)((char *)watcher - offsetof(struct pool, watcher));
}

/* Threads come and go. */

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

static void pool_count_thread(struct pool *pool)
{
	pool->count++;
	pool->active++;
	count_shared(&pool->loop->stats->threads, 1);
}

void flexsc__pool_begin(struct pool *pool, struct syscall_thread *thread)
{
	lock_assert_held(&pool->lock);
	if (!thread->late)
		return;
	pool->making = false;
	pool_count_thread(pool);
	flexsc__pool_born(pool);
}

static void pool_free_number(struct pool *pool, struct syscall_thread *thread)
{
	*thread = (struct syscall_thread){ .next = pool->unused };
	pool->unused = (uint32_t)(thread - pool->threads);
}

/* No thread is there, or will be, that may block: end what waits for one. */
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
		/* An entry that was put by, or cancelled, has begun. */
		(void)entry_begin(entry_of(pool->loop, index));
		flexsc__pool_finish(pool, index, pool->loop->no_thread);
	}
	atomic_store_explicit(&pool->backlog, 0, memory_order_relaxed);
}

/* A thread that was to be made can't be. */
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
		.active = true,
		.index = NONE,
		.done = NONE,
	};
	ret = flexsc__pool_spawn(pool, &thread->birth);
	if (ret == OWN_LATER)
		pool->making = thread->late = true;
	else if (ret == OWN_MADE)
		pool_count_thread(pool);
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
	thread->active = true;
	pool->active++;
	atomic_store_explicit(&thread->bell, 1, memory_order_release);
	futex_wake(&thread->bell);
	return true;
}

/* Take a thread off the idle stack; false if it was woken meanwhile. */
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

void flexsc__pool_enqueue(struct pool *pool, uint32_t index)
{
	lock_assert_held(&pool->lock);
	calls_append(pool->loop, &pool->queue, index);
	call_of(pool->loop, index)->where = POOL_QUEUED;
	atomic_store_explicit(&pool->backlog, pool->queue.count,
			      memory_order_relaxed);
}

/* Deferred entries are doubly linked: any of them may be cancelled. */
void flexsc__pool_defer(struct pool *pool, uint32_t index)
{
	struct call *call = call_of(pool->loop, index);

	lock_assert_held(&pool->lock);
	call->where = POOL_DEFERRED;
	call->place = pool->deferred.count ? pool->deferred.tail : NONE;
	calls_append(pool->loop, &pool->deferred, index);
	call->next = NONE;
}

void flexsc__pool_undefer(struct pool *pool, uint32_t index)
{
	uint32_t next = call_of(pool->loop, index)->next;
	uint32_t prev = call_of(pool->loop, index)->place;

	lock_assert_held(&pool->lock);
	if (prev != NONE)
		call_of(pool->loop, prev)->next = next;
	else
		pool->deferred.head = next;
	if (next != NONE)
		call_of(pool->loop, next)->place = prev;
	else
		pool->deferred.tail = prev;
	pool->deferred.count--;
}

/* The owner's side. */

void flexsc__pool_submit(struct pool *pool, struct call_list *list)
{
	uint32_t index;

	loop_assert_owner(pool->loop);
	if (!list->count)
		return;
	lock(&pool->lock);
	while ((index = calls_take(pool->loop, list)) != NONE)
		flexsc__pool_enqueue(pool, index);
	if (!pool->active)
		flexsc__pool_start_another(pool);
	unlock(&pool->lock);
}

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
	/* A call that was cancelled may have it yet. */
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
	struct flexsc_entry *entry = entry_of(pool->loop, index);

	lock_assert_held(&pool->lock);
	entry_finish(entry, flexsc__pool_leave(pool, index, ret));
	completions_push(&pool->loop->completions, entry, index);
	loop_notify(pool->loop);
}

/*
 * Interrupt a thread's call; with the lock, so that it is that call. A function
 * of the program's isn't interrupted: it may hold locks.
 */
static void pool_interrupt(struct pool *pool, struct syscall_thread *thread)
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
	pool_interrupt(pool, thread);
}

/* Interrupt the calls that should not wait: every thread waits in its call. */
static void pool_kick_all(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->max; i++)
		flexsc__pool_kick(pool, pool_thread(pool, i));
}

void flexsc__pool_cancel(struct pool *pool, uint32_t index)
{
	struct call *call = call_of(pool->loop, index);

	loop_assert_owner(pool->loop);
	lock(&pool->lock);
	switch ((enum pool_where)call->where) {
	case POOL_RUNNING:
		pool_interrupt(pool, pool_thread(pool, call->place));
		break;
	case POOL_PARKED:
		flexsc__unpark(&pool->parking, index);
		flexsc__pool_finish(pool, index, -ECANCELED);
		break;
	case POOL_DEFERRED:
		flexsc__pool_undefer(pool, index);
		flexsc__pool_finish(pool, index, -ECANCELED);
		break;
	case POOL_QUEUED:	/* the thread that takes it sees CANCEL */
	case POOL_NOT:		/* it has just completed */
		break;
	}
	unlock(&pool->lock);
}

/*
 * No entry is taken any more: threads that execute one wait in it, after all,
 * and are no longer active.
 */
static void pool_overtake(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (!thread->active || thread->index == NONE)
			continue;
		thread->active = false;
		pool->active--;
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
		/* A thread that is active still waits for a processor only. */
		if (!pool->active && !flexsc__pool_start_another(pool) &&
		    !pool->making)
			pool_kick_all(pool);
		unlock(&pool->lock);
		progress->since = now;
	}
	return STALL_NS;
}

uint64_t flexsc__pool_check(struct flexsc_loop *loop)
{
	struct pool *pool = loop_pool(loop);
	uint64_t ns;

	if (!pool)
		return UINT64_MAX;
	ns = flexsc__pool_check_progress(pool, &pool->progress);
	/* P1: pairs with P2 in syscall_thread.c, as "sleeping" does. */
	if (atomic_load_explicit(&pool->checked, memory_order_relaxed) !=
	    (ns != UINT64_MAX))
		atomic_store(&pool->checked, ns != UINT64_MAX);
	return ns;
}

/* A descriptor's calls go on with the guard's copy, and wait for that. */
static void pool_closing(struct guard_watcher *watcher, uint32_t fd,
			 struct guard *guard)
{
	struct pool *pool = pool_of(watcher);

	lock(&pool->lock);
	for (uint32_t i = 0; guard && i < pool->max; i++) {
		struct syscall_thread *thread = pool_thread(pool, i);

		if (thread->pool && thread->index != NONE &&
		    flexsc__call_join(pool->loop, thread->index, fd, guard))
			flexsc__pool_kick(pool, thread);
	}
	flexsc__park_closing(&pool->parking, (int)fd);
	unlock(&pool->lock);
}

static void pool_closed(struct guard_watcher *watcher, uint32_t fd)
{
	struct pool *pool = pool_of(watcher);

	lock(&pool->lock);
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
	 * One thread is always left unblocked, so one alone could never block.
	 */
	pool->max = max > 1 ? max : 2;
	pool->signo = flexsc__cancel_signal();
	flexsc__parking_init(&pool->parking, pool);
	CPU_ZERO(&pool->cores);
	if (options->kernel_cores) {
		err = flexsc__cores_parse(options->kernel_cores, &pool->cores);
		if (err)
			return err;
		pool->pinned = true;
	} else {
		sched_getaffinity(0, sizeof(pool->cores), &pool->cores);
	}
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
	/* Pairs with loop_pool(). */
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
	/* The thread that made "unborn" 0 may have the lock yet. */
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
