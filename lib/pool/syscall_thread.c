/* SPDX-License-Identifier: MIT */
/*
 * A syscall thread takes an entry, executes it and delivers the result. It sleeps while
 * no entry is queued, and ends after IDLE_NS (pool_threads.c). pool.h describes which
 * thread runs when.
 */
#include "syscall_thread.h"

#include <errno.h>

#include "cancelpoint.h"
#include "lib/files/closing.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "lib/base/futex.h"
#include "lib/loop/await.h"
#include "lib/loop/guarded.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "attempt.h"
#include "pool.h"
#include "lib/calls/partial.h"
#include "lib/base/syscall.h"
#include "lib/base/ask.h"
#include "lib/calls/call_info.h"
#include "lib/loop/stats.h"
#include "lib/base/clock.h"

#define GANG		16		/* a backlog that another core pays for */
#define QUIET		32		/* completions before the loop is notified */

/* Take the next entry, one that was deferred if this thread may block. */
static uint32_t thread_take(struct pool *pool, struct syscall_thread *thread)
{
	uint32_t index = calls_take(pool->loop, &pool->queue);
	struct call *call;

	if (index == NONE && pool_others(pool) && pool->deferred.count) {
		index = pool->deferred.head;
		flexsc__pool_undefer(pool, index);
	}
	if (index == NONE)
		return NONE;
	call = call_of(pool->loop, index);
	call->where = POOL_RUNNING;
	call->place = (uint32_t)(thread - pool->threads);
	thread->index = index;
	atomic_store_explicit(&pool->taken, pool->taken + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&pool->backlog, pool->queue.count,
			      memory_order_relaxed);
	if (pool->queue.count > GANG && pool->active < pool->max_active)
		flexsc__pool_start_another(pool);
	return index;
}

/*
 * A cancel signal that was sent for this entry must not interrupt the next. The signal
 * is pending by now; any system call has it delivered.
 */
static void thread_settle(struct syscall_thread *thread)
{
	if (thread->cancelled)
		ask(SYS_getpid, 0, 0, 0, 0, 0, 0);
	thread->cancelled = false;
	thread->kicked = false;
	thread->tries = false;
	thread->unexpected = false;
}

/* The thread's entry has its result; thread_deliver() makes that known. */
static void thread_finish(struct syscall_thread *thread, int64_t ret)
{
	thread->done = thread->index;
	thread->ret = flexsc__pool_leave(thread->pool, thread->index, ret);
	thread->index = NONE;
	thread_settle(thread);
}

/* Deliver the thread's result, without the lock. */
static void thread_deliver(struct syscall_thread *thread)
{
	struct flexsc_loop *loop = thread->pool->loop;
	uint32_t index = thread->done;

	if (index == NONE)
		return;
	thread->done = NONE;
	thread->quiet++;
	entry_finish(entry_of(loop, index), thread->ret);
	completions_push(&loop->completions, entry_of(loop, index), index);
}

/*
 * Notify the loop of the entries that were delivered. While more entries are queued, one
 * wake-up for several is cheaper (OSDI 2010, section 3.6).
 */
static void thread_tell(struct syscall_thread *thread)
{
	struct flexsc_loop *loop = thread->pool->loop;

	if (!thread->quiet)
		return;
	thread->quiet = 0;
	count_shared(&loop->stats->by_thread, thread->executed);
	count_shared(&loop->stats->mode_switches,
		     thread->switches + asks_take());
	thread->executed = 0;
	thread->switches = 0;
	loop_notify(loop);
}

static int64_t thread_call(struct syscall_thread *thread,
			   const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	int64_t ret;

	thread->switches++;
	if (closes(entry))
		flexsc__closing_begin(entry);
	if (await_is(entry))
		ret = flexsc__cancelpoint(
			&entry->status, SYS_ppoll,
			(__u64[FLEXSC_ARGS_MAX]){ entry->args[AWAIT_RECORD], 1 });
	else
		ret = flexsc__cancelpoint(&entry->status, entry->nr,
					  entry->args);
	if (closes(entry))
		flexsc__closing_end(entry, ret);
	if (ret >= 0 && row->makes == MAKES_ACCEPTED)
		flexsc__fds_note_accepted((uint32_t)entry->args[0],
					  (uint32_t)ret);
	return ret;
}

static bool is_once(const struct flexsc_entry *entry)
{
	return flexsc__call_info(entry->nr)->traits & CALL_ONCE;
}

/*
 * With the lock: a call that waited, or might have, returned. If it was
 * interrupted and not cancelled it is queued again, and the next thread looks again
 * whether it would wait. A kick interrupts a call, and so does the signal with which
 * setuid() and the like reach every thread. A time limit among the arguments then
 * starts again. A call that transferred a part is queued again, too, if the plain call
 * would go on.
 */
static void thread_return(struct pool *pool, struct syscall_thread *thread,
			  int64_t ret, bool part)
{
	uint32_t index = thread->index;
	struct flexsc_entry *entry = entry_of(pool->loop, index);
	struct call *call = call_of(pool->loop, index);
	bool again = ret == -EINTR || (ret == -ECANCELED && thread->kicked);
	bool rest = false;

	lock_assert_held(&pool->lock);
	if (entry_status(entry) == FLEXSC_BUSY) {
		if (part && flexsc__partial(entry))
			rest = flexsc__partial_rest(entry, &call->partial, ret);
		if (rest || (again && !work_is(entry) && !is_once(entry))) {
			thread_settle(thread);
			thread->index = NONE;
			/* It has begun, and keeps its file until it is taken. */
			flexsc__call_guard(pool->loop, index);
			flexsc__pool_enqueue(pool, index);
			return;
		}
	}
	thread->executed++;
	thread_finish(thread, ret);
}

/* With the lock: park the thread's entry, if it can be. */
static bool thread_park(struct pool *pool, struct syscall_thread *thread)
{
	struct call *call = call_of(pool->loop, thread->index);

	lock_assert_held(&pool->lock);
	if (!flexsc__park(&pool->parking, thread->index))
		return false;
	call->where = POOL_PARKED;
	call->woken = false;
	thread->index = NONE;
	return true;
}

/*
 * With the lock: the entry's descriptor is ready for something else, which the
 * entries behind it may be waiting for.
 */
static void thread_leave_line(struct pool *pool, struct syscall_thread *thread)
{
	struct call *call = call_of(pool->loop, thread->index);

	lock_assert_held(&pool->lock);
	if (!call->woken)
		return;
	call->woken = false;
	flexsc__park_next(&pool->parking,
			  (int)entry_of(pool->loop, thread->index)->args[0]);
}

/*
 * With the lock: an entry that is going to wait is parked, or deferred if only the last
 * free thread could execute it. False: execute it.
 */
static bool thread_put_by(struct pool *pool, struct syscall_thread *thread,
			  enum attempt what)
{
	lock_assert_held(&pool->lock);
	/* The other half of the threads is for calls that can't be parked. */
	bool scarce = pool->blocked >= (pool->max - 1) / 2;

	if (entry_status(entry_of(pool->loop, thread->index)) ==
	    FLEXSC_CANCEL) {
		thread_finish(thread, -ECANCELED);
		return true;
	}
	if (what == ATTEMPT_WAITS || (what == ATTEMPT_LATE && scarce)) {
		if (thread_park(pool, thread))
			return true;
	} else if (what == ATTEMPT_UNKNOWN) {
		thread_leave_line(pool, thread);
	}
	if (pool_others(pool) || flexsc__pool_create_thread(pool))
		return false;
	if (pool->count == 1 && !pool->making) {
		/*
		 * No second thread can be made, so no thread would take the
		 * entry.
		 */
		thread_finish(thread, pool->loop->no_thread);
		return true;
	}
	/* After shutdown(), the next thread must not rely on poll(2) either. */
	call_of(pool->loop, thread->index)->plainly =
		what == ATTEMPT_UNKNOWN;
	flexsc__pool_defer(pool, thread->index);
	thread->index = NONE;
	return true;
}

/* With the lock, on return as well: a call that is going to wait. */
static void thread_execute_waiting(struct pool *pool,
				   struct syscall_thread *thread,
				   enum attempt what)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	const bool begun = call_is_guarded(call_of(pool->loop, thread->index));
	int64_t ret;

	/* A kick that came before isn't meant for the call that follows. */
	thread_settle(thread);
	flexsc__call_guard(pool->loop, thread->index);
	flexsc__call_renew(pool->loop, thread->index);
	if (thread_put_by(pool, thread, what))
		return;
	/* Without the lock the program may close the descriptor before the call. */
	if (begun)
		flexsc__call_keep(pool->loop, thread->index);
	pool->blocked++;
	if (thread->active)
		pool->active--;
	thread->active = false;
	if (pool->queue.count && pool->active < pool->max_active)
		flexsc__pool_start_another(pool);
	unlock(&pool->lock);
	thread_tell(thread);
	ret = work_is(entry) ? work_run(entry) : thread_call(thread, entry);
	lock(&pool->lock);
	pool->blocked--;
	thread_return(pool, thread, ret, thread->kicked);
}

/* Without the lock; with it on return: a call that may wait for others. */
static void thread_execute_patiently(struct pool *pool,
				     struct syscall_thread *thread,
				     const struct call_info *row)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	struct call *call = call_of(pool->loop, thread->index);
	enum attempt what = ATTEMPT_UNKNOWN;
	int64_t ret;

	flexsc__fds_mark_all(entry);
	if (flexsc__partial(entry) && !write_is_short(entry)) {
		lock(&pool->lock);
		flexsc__call_guard(pool->loop, thread->index);
		flexsc__call_renew(pool->loop, thread->index);
		thread->tries = true;
		unlock(&pool->lock);
	}
	/* A socket's room is a guess. */
	thread->unexpected = row->source_arg;
	if (!call->plainly)
		what = flexsc__attempt(entry, row, call->woken, &ret);
	call->plainly = false;
	if (what == ATTEMPT_RUNS) {
		thread_tell(thread);
		thread->unexpected = true;
		ret = thread_call(thread, entry);
	}
	lock(&pool->lock);
	if (what == ATTEMPT_DONE || what == ATTEMPT_PART)
		thread_return(pool, thread, ret,
			      what == ATTEMPT_PART || thread->kicked);
	else if (what == ATTEMPT_RUNS)
		thread_return(pool, thread, ret, thread->kicked);
	else
		thread_execute_waiting(pool, thread, what);
}

/*
 * May the loop be notified of delivered results after the next entry, which may
 * take a while? A wake-up for each result costs more than most entries do. If
 * more entries are queued, an owner that sleeps wakes by itself soon. P2: it
 * does if "checked" is still set after the results were delivered; else it sets
 * "sleeping" later, and looks for results after that.
 */
static bool thread_may_be_late(struct pool *pool)
{
	return atomic_load_explicit(&pool->backlog, memory_order_relaxed) &&
	       atomic_load(&pool->checked);
}

/* Without the lock; with it on return: execute thread->index. */
static void thread_execute(struct pool *pool, struct syscall_thread *thread)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	const struct call_info *row;
	enum call_class class;
	int64_t ret = -EOPNOTSUPP;

	/* An entry that was put by is BUSY already, unless it was cancelled. */
	if (!entry_begin(entry) && entry_status(entry) == FLEXSC_CANCEL) {
		lock(&pool->lock);
		thread_finish(thread, -ECANCELED);
		return;
	}
	row = flexsc__call_info(entry->nr);
	class = flexsc__call_class(row, entry);
	if (call_is_guarded(call_of(pool->loop, thread->index))) {
		/* A thread that closes a descriptor compares the arguments. */
		lock(&pool->lock);
		flexsc__call_renew(pool->loop, thread->index);
		thread->tries = class == CLASS_WAIT;
		unlock(&pool->lock);
	}
	if (thread->quiet >= QUIET ||
	    (class == CLASS_DISK && !thread_may_be_late(pool)))
		thread_tell(thread);
	if (class == CLASS_WAIT || class == CLASS_ADMIN || await_is(entry)) {
		thread_execute_patiently(pool, thread, row);
		return;
	}
	if (class == CLASS_WORK) {
		/* As a call that waits: what it does isn't known. */
		lock(&pool->lock);
		thread_execute_waiting(pool, thread, ATTEMPT_UNKNOWN);
		return;
	}
	if (class != CLASS_NEVER)
		ret = thread_call(thread, entry);
	lock(&pool->lock);
	thread->executed++;
	thread_finish(thread, ret);
}

/* Without the lock: look for entries for a while, instead of sleeping. */
static void thread_spin(struct pool *pool)
{
	uint64_t us = pool->loop->options.poll_us;
	uint64_t until;

	if (!us)
		return;
	until = time_monotonic() + us * 1000;
	while (!atomic_load_explicit(&pool->backlog, memory_order_relaxed) &&
	       !atomic_load_explicit(&pool->stopping, memory_order_relaxed) &&
	       time_monotonic() < until)
		cpu_relax();
}

/* With the lock: may the thread look for entries? */
static bool thread_go_active(struct pool *pool, struct syscall_thread *thread)
{
	if (thread->active && pool->active > pool->max_active) {
		thread->active = false;
		pool->active--;
	}
	if (!thread->active && pool->active < pool->max_active &&
	    (pool->queue.count || pool->deferred.count)) {
		thread->active = true;
		pool->active++;
	}
	return thread->active;
}

static void *thread_run(void *arg)
{
	struct syscall_thread *thread = arg;
	struct pool *pool = thread->pool;
	bool spun = false;

	flexsc__cancel_unblock(pool->signo);
	lock(&pool->lock);
	thread->tid = (pid_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	flexsc__pool_begin(pool, thread);
	for (;;) {
		if (thread_go_active(pool, thread) &&
		    thread_take(pool, thread) != NONE) {
			unlock(&pool->lock);
			thread_deliver(thread);
			thread_execute(pool, thread);
			spun = false;
		} else if (thread->done != NONE || thread->quiet) {
			unlock(&pool->lock);
			thread_deliver(thread);
			thread_tell(thread);
			lock(&pool->lock);
		} else if (thread->active && !spun) {
			unlock(&pool->lock);
			thread_spin(pool);
			lock(&pool->lock);
			spun = true;
		} else {
			if (thread->active)
				pool->active--;
			thread->active = false;
			if (!flexsc__pool_rest(pool, thread))
				break;
			spun = false;
		}
	}
	pool->count--;
	count_shared(&pool->loop->stats->threads, -1ULL);
	thread->ended = true;
	thread->next = pool->unused;
	pool->unused = (uint32_t)(thread - pool->threads);
	unlock(&pool->lock);
	return NULL;
}

/* A loop gets its pool. */

int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max)
{
	return flexsc__pool_make(loop, max, thread_run);
}

bool flexsc__pool_ensure(struct flexsc_loop *loop)
{
	return loop_pool(loop) ||
	       !flexsc__pool_create(loop, loop->options.max_threads);
}
