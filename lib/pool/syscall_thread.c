/* SPDX-License-Identifier: MIT */
/*
 * A syscall thread takes an entry, executes it and delivers the result. It sleeps while
 * no entry is queued, and ends after IDLE_NS (pool_threads.c). pool.h describes when a
 * thread runs.
 */
#include "syscall_thread.h"

#include <errno.h>

#include "cancelpoint.h"
#include "lib/files/closing.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
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

#define QUIET		32		/* maximum of completions before the loop is
					 * notified */

/* Take the next entry: a queued one, or a deferred one if this thread may block. */
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
	thread->follows = call->chain & CHAIN_FOLLOWS;
	call->chain &= CHAIN_LEADS;
	atomic_store_explicit(&pool->taken, pool->taken + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&pool->backlog, pool->queue.count,
			      memory_order_relaxed);
	if (pool->queue.count > pool->gang && pool->active < pool->max_active)
		flexsc__pool_start_another(pool);
	return index;
}

/*
 * End the thread's use of an entry. If a cancel signal was sent, getpid() makes the
 * kernel deliver it here, so that it can't interrupt the next entry's call.
 */
static void thread_settle(struct syscall_thread *thread)
{
	if (thread->cancelled)
		ask(SYS_getpid, 0, 0, 0, 0, 0, 0);
	thread->cancelled = false;
	thread->kicked = false;
	thread->tries = false;
	thread->shut = false;
	thread->unexpected = false;
}

/*
 * With the lock held: store the result of the thread's entry; thread_deliver()
 * publishes it. The result of an entry that leads to another one is published at once,
 * before another thread can complete that one.
 */
static void thread_finish(struct syscall_thread *thread, int64_t ret)
{
	uint32_t index = thread->index;

	ret = flexsc__pool_leave(thread->pool, index, ret);
	thread->index = NONE;
	thread_settle(thread);
	if (flexsc__chain_go_on(thread->pool, index, ret)) {
		thread->quiet++;
		return;
	}
	thread->done = index;
	thread->ret = ret;
}

/* Without the lock: publish the result that thread_finish() has stored. */
static void thread_deliver(struct syscall_thread *thread)
{
	uint32_t index = thread->done;

	if (index == NONE)
		return;
	thread->done = NONE;
	thread->quiet++;
	flexsc__pool_publish(thread->pool, index, thread->ret);
}

/*
 * Notify the loop of the delivered entries. One wake-up for several entries is cheaper,
 * so this isn't called after each one (OSDI 2010, section 3.6).
 */
static void thread_tell(struct syscall_thread *thread)
{
	struct flexsc_loop *loop = thread->pool->loop;

	if (!thread->quiet)
		return;
	thread->quiet = 0;
	count_shared(&loop->stats->by_thread, thread->executed);
	if (loop->stats_cores)
		flexsc__stats_executed(loop, thread->executed);
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
 * With the lock held: handle the return of a call that waited, or might have waited. If
 * the call was interrupted but not cancelled, queue it again; the next thread checks
 * again whether it would wait, and a time limit among its arguments starts again. The
 * interruption is a kick, or the signal with which setuid() and similar functions reach
 * every thread. Also queue the call if it transferred only a part of the bytes, and the
 * plain call would continue.
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
			/*
			 * The call has begun: it must refer to the same file when the
			 * next thread continues it.
			 */
			flexsc__call_guard(pool->loop, index);
			flexsc__pool_enqueue(pool, index);
			return;
		}
	}
	thread->executed++;
	thread_finish(thread, ret);
}

/* With the lock held: park the thread's entry, if possible. */
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
 * With the lock held: called when the thread's entry is going to block the thread. If an
 * event of the descriptor woke the entry, then the entry waits for something else. But
 * the next parked entry of the descriptor may wait for this event, so wake that entry.
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
 * With the lock held: park an entry that is going to wait. If it can't be parked, and
 * this is the last unblocked thread, defer it. False: execute it here.
 */
static bool thread_put_by(struct pool *pool, struct syscall_thread *thread,
			  enum attempt what)
{
	lock_assert_held(&pool->lock);
	/* Half of the threads is reserved for calls that can't be parked. */
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
		 * No second thread can be created, so no thread would ever take a
		 * deferred entry: end it.
		 */
		thread_finish(thread, pool->loop->no_thread);
		return true;
	}
	/*
	 * poll(2) may not report what the call waits for, for example after shutdown().
	 * Then the thread that takes the deferred entry must not attempt the call.
	 */
	call_of(pool->loop, thread->index)->plainly =
		what == ATTEMPT_UNKNOWN;
	flexsc__pool_defer(pool, thread->index);
	thread->index = NONE;
	return true;
}

/*
 * Execute a call that is going to wait. The caller holds the lock; it is released
 * during the call.
 */
static void thread_execute_waiting(struct pool *pool,
				   struct syscall_thread *thread,
				   enum attempt what)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	const bool begun = call_is_guarded(call_of(pool->loop, thread->index));
	int64_t ret;

	/* The attempt may have come before the shutdown, so its result doesn't count. */
	if (thread->shut)
		what = ATTEMPT_UNKNOWN;
	/*
	 * A kick that has already arrived was meant for the attempt, not for the call
	 * that follows.
	 */
	thread_settle(thread);
	flexsc__call_guard(pool->loop, thread->index);
	flexsc__call_renew(pool->loop, thread->index);
	if (thread_put_by(pool, thread, what))
		return;
	/*
	 * Duplicate now: once the lock is released, the program may close the
	 * descriptor before the call is made.
	 */
	if (begun)
		flexsc__call_keep(pool->loop, thread->index);
	pool->blocked++;
	flexsc__pool_deactivate(pool, thread);
	if (pool->queue.count && pool->active < pool->max_active)
		flexsc__pool_start_another(pool);
	/* Deferred entries that get no thread here would wait until a call ends. */
	if (pool->deferred.count && !pool_others(pool))
		flexsc__pool_create_thread(pool);
	unlock(&pool->lock);
	flexsc__pool_stand_up(pool, thread);
	thread_tell(thread);
	ret = work_is(entry) ? work_run(entry) : thread_call(thread, entry);
	lock(&pool->lock);
	pool->blocked--;
	thread_return(pool, thread, ret, thread->kicked);
}

/* Execute a call that may wait. Takes the lock, and returns with it held. */
static void thread_execute_patiently(struct pool *pool,
				     struct syscall_thread *thread,
				     const struct call_info *row)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	struct call *call = call_of(pool->loop, thread->index);
	const bool begun = flexsc__partial_begun(&call->partial);
	enum attempt what = ATTEMPT_UNKNOWN;
	int64_t ret = 0;

	flexsc__fds_mark_all(entry);
	if (flexsc__partial(entry) && !write_is_short(entry)) {
		lock(&pool->lock);
		flexsc__call_guard(pool->loop, thread->index);
		flexsc__call_renew(pool->loop, thread->index);
		thread->tries = true;
		unlock(&pool->lock);
	}
	/* A sendfile() may wait nevertheless: a socket's room is only an estimate. */
	thread->unexpected = row->source_arg;
	if (begun && flexsc__attempt_was_reset(entry))
		what = ATTEMPT_DONE;
	else if (!call->plainly)
		what = flexsc__attempt(entry, row, call->woken, &ret);
	/*
	 * A call that has transferred a part doesn't fail at once. A thread that waited
	 * in it would consume the error of a reset.
	 */
	if (begun && what == ATTEMPT_LATE)
		what = ATTEMPT_WAITS;
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
 * May the thread execute the next entry before it notifies the loop of delivered
 * results? A wake-up per result costs more than most entries do. But the entry may take
 * a while, and the owner must not sleep long meanwhile. So entries must be queued: then
 * the owner sleeps for at most STALL_NS. P2: "checked" is loaded after the results were
 * delivered. If the owner clears it after this load, the owner sets "sleeping" later
 * still, and then looks for results itself.
 */
static bool thread_may_be_late(struct pool *pool)
{
	return atomic_load_explicit(&pool->backlog, memory_order_relaxed) &&
	       atomic_load(&pool->checked);
}

/* Execute thread->index. Takes the lock, and returns with it held. */
static void thread_execute(struct pool *pool, struct syscall_thread *thread)
{
	struct flexsc_entry *entry = entry_of(pool->loop, thread->index);
	const struct call_info *row;
	enum call_class class;
	int64_t ret = -EOPNOTSUPP;

	/* A deferred entry is BUSY already, or CANCEL. */
	if (!entry_begin(entry) && entry_status(entry) == FLEXSC_CANCEL) {
		lock(&pool->lock);
		thread_finish(thread, -ECANCELED);
		return;
	}
	/* For other entries, the owner has done this when it submitted them. */
	if (thread->follows)
		plan_follow(entry);
	row = flexsc__call_info(entry->nr);
	class = flexsc__call_class(row, entry);
	if (call_is_guarded(call_of(pool->loop, thread->index))) {
		/*
		 * Take the lock, because a thread that closes a descriptor reads the
		 * arguments, which flexsc__call_renew() changes.
		 */
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
		/*
		 * The program's function may block, so treat it as a call that waits.
		 */
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

/* Without the lock: poll for entries before sleeping. */
static void thread_spin(struct pool *pool, struct syscall_thread *thread)
{
	uint64_t begin;

	if (!thread->patience.most)
		return;
	begin = time_monotonic();
	while (!atomic_load_explicit(&pool->backlog, memory_order_relaxed) &&
	       !atomic_load_explicit(&pool->stopping, memory_order_relaxed) &&
	       time_monotonic() - begin < thread->patience.now)
		cpu_relax();
	patience_sleeps(&thread->patience, begin);
}

/*
 * With the lock held: make the thread active or not, as the limit of active threads and
 * the queues require, and move it to its core. False: the thread must not take an entry.
 */
static bool thread_go_active(struct pool *pool, struct syscall_thread *thread)
{
	if (pool->active > pool->max_active)
		flexsc__pool_deactivate(pool, thread);
	if (!thread->active && pool->active < pool->max_active &&
	    (pool->queue.count || pool->deferred.count))
		flexsc__pool_activate(pool, thread);
	flexsc__pool_sit_down(pool, thread);
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
			thread->patience.since = 0;
			spun = false;
		} else if (thread->done != NONE || thread->quiet) {
			unlock(&pool->lock);
			thread_deliver(thread);
			thread_tell(thread);
			lock(&pool->lock);
		} else if (thread->active && !spun) {
			unlock(&pool->lock);
			thread_spin(pool, thread);
			lock(&pool->lock);
			spun = true;
		} else {
			flexsc__pool_deactivate(pool, thread);
			if (!flexsc__pool_rest(pool, thread))
				break;
			if (thread->patience.since)
				patience_wakes(&thread->patience,
					       time_monotonic());
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

/* Creating a loop's pool. */

int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max)
{
	return flexsc__pool_make(loop, max, thread_run);
}

bool flexsc__pool_ensure(struct flexsc_loop *loop)
{
	return loop_pool(loop) ||
	       !flexsc__pool_create(loop, loop->options.max_threads);
}
