/* SPDX-License-Identifier: MIT */
/*
 * Running a loop. Owner only, except for flexsc_loop_stop().
 *
 * One turn of a running loop:
 *
 *	collect		collects the completions of syscall threads and other
 *			threads, signals and timers
 *	dispatch	runs the callbacks of what was complete then, a limited
 *			number of each kind, so that no kind starves another;
 *			here results of direct calls are taken from the engine
 *	engine->wait	submits the calls that callbacks posted, as one batch, in
 *			the same mode switch that collects results and that
 *			sleeps if there is no work
 */
#include "run.h"

#include <errno.h>
#include <limits.h>

#include "lib/base/clock.h"
#include "lib/base/compiler.h"
#include "lib/loop/cancel.h"
#include "lib/loop/event.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"

#define SILENT_NS	1000000ULL	/* interval of polls for results that don't
					 * wake the owner */

/* Completed cbs: flexsc_loop_harvest() returns them, and runs no callbacks. */
struct harvest {
	struct flexsc_cb **cbs;
	unsigned int n, room;
};

static inline bool harvest_is_full(const struct harvest *harvest)
{
	return harvest && harvest->n == harvest->room;
}

static void harvest_add(struct harvest *harvest, struct flexsc_cb *cb)
{
	if (cb)
		cb = flexsc__multishot_harvested(cb);
	if (cb)
		harvest->cbs[harvest->n++] = cb;
}

/* Running. */

/* Move the completions of syscall threads to the done list, oldest first. */
static void run_collect_completions(struct flexsc_loop *loop)
{
	uint32_t index = completions_take(&loop->completions);
	uint32_t oldest = NONE;

	while (index != NONE) {
		uint32_t next = entry_of(loop, index)->link;

		call_of(loop, index)->next = oldest;
		oldest = index;
		index = next;
	}
	while (oldest != NONE) {
		uint32_t next = call_of(loop, oldest)->next;

		queue_append(&loop->done, call_of(loop, oldest), oldest);
		oldest = next;
	}
}

static __attribute__((noinline)) void
run_collect_all(struct flexsc_loop *loop)
{
	/*
	 * "notified" is cleared before the checks, in sequentially consistent order: see
	 * loop_notify().
	 */
	if (atomic_load_explicit(&loop->notified, memory_order_relaxed)) {
		atomic_store(&loop->notified, false);
		atomic_thread_fence(memory_order_seq_cst);
	}
	run_collect_completions(loop);
	flexsc__events_collect(loop);
}

static inline void run_collect(struct flexsc_loop *loop)
{
	if (!loop_is_quiet(loop))
		run_collect_all(loop);
}

/* Returns the number of callbacks that are still to run, not counting wake-ups. */
static uint64_t run_owed(const struct flexsc_loop *loop)
{
	return loop->events + loop->posted - loop->completed;
}

static bool is_stopped(const struct flexsc_loop *loop)
{
	return atomic_load_explicit(&loop->stop, memory_order_relaxed);
}

/* A harvest runs no callbacks, so only its own size limits it. */
static inline int most_of(const struct flexsc_loop *loop,
			  const struct harvest *harvest)
{
	return harvest ? DISPATCH_MOST : loop->most;
}

/*
 * Run the callbacks of calls that are done now or, with a harvest, add their cbs to it.
 * Calls that become done meanwhile wait. Returns how many calls were handled.
 */
static __attribute__((noinline)) int
run_dispatch_done(struct flexsc_loop *loop, bool until_stop,
		  struct harvest *harvest)
{
	const int most = most_of(loop, harvest);
	uint32_t *tail = loop->done.tail, index, next;
	int n = 0;

	for (index = queue_take(&loop->done); index != NONE; index = next) {
		if (n == most || (until_stop && is_stopped(loop)) ||
		    harvest_is_full(harvest))
			break;
		next = call_of(loop, index)->next;
		if (harvest)
			harvest_add(harvest, flexsc__call_harvest(loop, index));
		else
			flexsc__call_retire(loop, index);
		n++;
	}
	if (index == NONE)
		return n;
	/* Put the remaining calls before those that have become done meanwhile. */
	*tail = loop->done.head;
	if (queue_empty(&loop->done))
		loop->done.tail = tail;
	loop->done.head = index;
	return n;
}

/* As run_dispatch_done(), for the cbs on the ready list. */
static __attribute__((noinline)) int
run_dispatch_ready(struct flexsc_loop *loop, bool until_stop,
		   struct harvest *harvest)
{
	struct flexsc_cb *cb, *last = loop->ready.tail;
	struct cb_list again = { 0 };
	bool more = loop->ready.head;
	int n = 0;

	while (more && !(until_stop && is_stopped(loop)) &&
	       !harvest_is_full(harvest)) {
		cb = flexsc__ready_take(loop);
		more = cb != last;
		/*
		 * A harvest contains each cb at most once: leave this shot for the next
		 * one.
		 */
		if (harvest && flexsc__multishot_is_again(cb)) {
			cb_list_add(&again, cb);
			continue;
		}
		loop->events--;
		if (harvest)
			harvest_add(harvest, cb_complete(cb, cb->ret));
		else
			callback(cb, cb->ret);
		n++;
	}
	flexsc__ready_return(loop, &again);
	return n;
}

/* As run_dispatch_done(), for timers that were due when they were collected. */
static __attribute__((noinline)) int
run_dispatch_timers(struct flexsc_loop *loop, bool until_stop,
		    struct harvest *harvest)
{
	const int most = most_of(loop, harvest);
	struct flexsc_cb *cb;
	int n = 0;

	while (n < most && !(until_stop && is_stopped(loop)) &&
	       !harvest_is_full(harvest) && (cb = flexsc__timer_take(loop))) {
		if (harvest)
			harvest_add(harvest, cb_complete(cb, 0));
		else
			callback(cb, 0);
		n++;
	}
	return n;
}

/* As run_dispatch_done(), for cbs that were woken. */
static __attribute__((noinline)) int
run_dispatch_woken(struct flexsc_loop *loop, bool until_stop,
		   struct harvest *harvest)
{
	int n = 0;

	flexsc__wakes_take(&loop->wakes);
	while (loop->wakes.oldest && !(until_stop && is_stopped(loop)) &&
	       !harvest_is_full(harvest)) {
		if (harvest)
			harvest_add(harvest, flexsc__wakes_next(&loop->wakes));
		else
			flexsc__wakes_run(&loop->wakes);
		n++;
	}
	return n;
}

/* Inline, so that until_stop is a constant in each caller. */
static inline __attribute__((always_inline)) int
run_dispatch(struct flexsc_loop *loop, bool until_stop)
{
	int n = 0;

	loop->inside = true;
	if (loop->engine->dispatch)
		n = loop->engine->dispatch(loop, until_stop);
	if (!queue_empty(&loop->done))
		n += run_dispatch_done(loop, until_stop, NULL);
	if (loop->ready.head)
		n += run_dispatch_ready(loop, until_stop, NULL);
	if (wheel_has_cbs(&loop->wheel))
		n += run_dispatch_timers(loop, until_stop, NULL);
	if (wakes_wait(&loop->wakes))
		n += run_dispatch_woken(loop, until_stop, NULL);
	loop->inside = false;
	return n;
}

/* Has the loop no work, apart from results in the engine? False if unsure. */
static inline bool run_is_idle(struct flexsc_loop *loop)
{
	return loop_is_quiet(loop) && queue_empty(&loop->done) &&
	       !loop->ready.head && !wakes_wait(&loop->wakes);
}

static bool run_ready(struct flexsc_loop *loop)
{
	return (loop->engine->complete && loop->engine->complete(loop)) ||
	       flexsc__loop_ready(loop);
}

/* Submit one batch to the engine. If no callback is ready, sleep for at most ns. */
static int run_step(struct flexsc_loop *loop, uint64_t ns)
{
	if (ns && loop->wheel.armed) {
		uint64_t next = flexsc__wheel_next(&loop->wheel, time_monotonic());

		if (next < ns)
			ns = next;
	}
	if (ns && !run_is_idle(loop) && flexsc__loop_ready(loop))
		ns = 0;
	stats_publish(loop);
	/* An owner that never sleeps checks the pool's progress only here. */
	if (loop_pool(loop))
		flexsc__pool_check(loop);
	return loop->engine->wait(loop, ns);
}

static int run_check_owner(const struct flexsc_loop *loop)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	return unlikely(!pthread_equal(pthread_self(), loop->owner)) ? -EPERM : 0;
}

static int run_check(const struct flexsc_loop *loop)
{
	int err = run_check_owner(loop);

	return !err && loop->inside ? -EDEADLK : err;
}

static inline void run_forget_nudge(struct flexsc_loop *loop)
{
	if (atomic_load_explicit(&loop->nudged, memory_order_relaxed))
		atomic_store(&loop->nudged, false);
}

int flexsc_loop_run(struct flexsc_loop *loop)
{
	int err = run_check(loop);

	while (!err) {
		run_collect(loop);
		run_forget_nudge(loop);
		run_dispatch(loop, true);
		if (is_stopped(loop) && atomic_exchange(&loop->stop, false))
			break;
		if ((int64_t)run_owed(loop) + loop->refs <= 0 &&
		    (run_is_idle(loop) || !flexsc__loop_ready(loop)))
			break;
		err = run_step(loop, FLEXSC_FOREVER);
	}
	if (!err)
		stats_publish(loop);
	return err;
}

static int run_ref(struct flexsc_loop *loop, int64_t n)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	loop_assert_owner(loop);
	loop->refs += n;
	return 0;
}

int flexsc_loop_ref(struct flexsc_loop *loop)
{
	return run_ref(loop, 1);
}

int flexsc_loop_unref(struct flexsc_loop *loop)
{
	return run_ref(loop, -1);
}

int flexsc_loop_stop(struct flexsc_loop *loop)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	loop_visit(loop);
	atomic_store(&loop->stop, true);
	loop_notify(loop);
	loop_leave(loop);
	return 0;
}

int flexsc_loop_submit(struct flexsc_loop *loop)
{
	int err = run_check_owner(loop);

	if (!err)
		loop->engine->submit(loop);
	return err;
}

int flexsc_loop_dispatch(struct flexsc_loop *loop)
{
	int err = run_check(loop);

	if (!err)
		err = run_step(loop, 0);
	if (err)
		return err;
	run_collect(loop);
	err = run_dispatch(loop, false);
	stats_publish(loop);
	return err;
}

void flexsc__run_results(struct flexsc_loop *loop, bool timed)
{
	/* Repeat, because a turn runs at most loop->most callbacks of each kind. */
	do {
		run_collect_completions(loop);
		if (timed)
			flexsc__events_collect(loop);
	} while (run_dispatch(loop, false));
}

/* Give direct calls entries, so that they are harvested like the others. */
static void run_harvest_calls(struct flexsc_loop *loop, struct harvest *harvest)
{
	if (loop->engine->collect)
		loop->engine->collect(loop);
	run_dispatch_done(loop, false, harvest);
}

/*
 * Calls and other cbs take turns in coming first, because one kind of cb may fill the
 * array each time.
 */
int flexsc_loop_harvest(struct flexsc_loop *loop, struct flexsc_cb **done,
			unsigned int n)
{
	struct harvest harvest = { .cbs = done, .room = n };
	int err = run_check(loop);

	if (!err && ((!done && n) || n > INT_MAX))
		err = -EINVAL;
	if (!err)
		err = run_step(loop, 0);
	if (err)
		return err;
	run_collect(loop);
	loop->multishots.harvests++;
	if (!loop->ready_first)
		run_harvest_calls(loop, &harvest);
	run_dispatch_ready(loop, false, &harvest);
	run_dispatch_timers(loop, false, &harvest);
	run_dispatch_woken(loop, false, &harvest);
	if (loop->ready_first)
		run_harvest_calls(loop, &harvest);
	loop->ready_first = harvest_is_full(&harvest) && !loop->ready_first;
	stats_publish(loop);
	return (int)harvest.n;
}

int flexsc_loop_wait(struct flexsc_loop *loop, uint64_t ns)
{
	uint64_t begin = time_monotonic(), passed = 0;
	int err = run_check(loop);

	while (!err) {
		err = run_step(loop, ns == FLEXSC_FOREVER ? ns : ns - passed);
		run_collect(loop);
		if (err || run_ready(loop)) {
			run_forget_nudge(loop);
			return err ? err : 1;
		}
		passed = time_monotonic() - begin;
		if (passed >= ns)
			break;
	}
	return err;
}

/* Returns the nanoseconds until a timer, the pool or the engine needs attention. */
static uint64_t run_patience(struct flexsc_loop *loop)
{
	uint64_t most = flexsc__pool_check(loop), timer;

	if (loop->engine->is_silent && loop->engine->is_silent(loop) &&
	    most > SILENT_NS)
		most = SILENT_NS;
	if (!loop->wheel.armed)
		return most;
	timer = flexsc__wheel_next(&loop->wheel, time_monotonic());
	return timer < most ? timer : most;
}

/*
 * Is there a callback to dispatch, or has flexsc_loop_wake() been called without a cb?
 * Clears "nudged".
 */
static bool run_has_work(struct flexsc_loop *loop)
{
	return atomic_exchange(&loop->nudged, false) ||
	       flexsc__loop_has_work(loop) ||
	       (loop->engine->stirs && loop->engine->stirs(loop));
}

/*
 * Prepare the outer loop's sleep. False: there is work. The protocol is that of
 * flexsc__sleep_begin(), see loop_notify(). A thread may make the descriptor readable
 * just before this function makes it unreadable again. The check after "sleeping" is set
 * finds that thread's work, because a thread adds its work before it makes the
 * descriptor readable.
 */
static bool run_sleep_outside(struct flexsc_loop *loop)
{
	if (run_has_work(loop))
		return false;
	flexsc__outer_silence(loop);
	atomic_store(&loop->sleeping, ASLEEP_OUTSIDE);
	return !run_has_work(loop);
}

int flexsc_loop_prepare(struct flexsc_loop *loop, uint64_t *ns)
{
	int err = run_check(loop);
	uint64_t most;

	if (err)
		return err;
	if (!ns || loop->outer.fd < 0)
		return -EINVAL;
	loop->engine->submit(loop);
	flexsc__stats_publish(loop);
	most = run_patience(loop);
	if (!most || !run_sleep_outside(loop)) {
		flexsc__outer_hold(loop);
		most = 0;
	}
	*ns = most;
	return 0;
}

void flexsc__drain(struct flexsc_loop *loop)
{
	loop->closing = true;
	/*
	 * Start the calls that are posted but not submitted: the program may want
	 * their effects.
	 */
	run_step(loop, 0);
	flexsc__cancel_all(loop);
	flexsc__events_cancel(loop);
	for (;;) {
		atomic_store(&loop->stop, false);
		run_forget_nudge(loop);
		run_collect(loop);
		run_dispatch(loop, false);
		/* Don't wait for lost calls, which the engine can't end. */
		if (run_owed(loop) == loop->lost && !wakes_wait(&loop->wakes))
			break;
		run_step(loop, FLEXSC_FOREVER);
	}
}
