/* SPDX-License-Identifier: MIT */
/* Timers and wake-ups as callbacks. Owner only, but for flexsc_loop_wake(). */
#include "event.h"

#include <errno.h>

#include "../base/clock.h"
#include "cancel.h"
#include "handle.h"
#include "loop.h"
#include "ready.h"
#include "signal.h"
#include "stats.h"

/* Timers. */

int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns)
{
	int err = flexsc__post_check(loop, cb);
	uint32_t timer;

	if (err)
		return err;
	if (!cb)
		return -EINVAL;
	err = flexsc__wheel_arm(&loop->wheel, time_monotonic(), ns, TIMER_CB,
			(uintptr_t)cb, &timer);
	if (err)
		return err;
	cb->handle = handle_make(HANDLE_TIMER, timer);
	count(&loop->stats->timers, 1);
	loop->events++;
	return 0;
}

/* Wake-ups: from any thread and any signal handler. */

int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	if (cb) {
		struct flexsc_cb *head = atomic_load_explicit(
			&loop->woken, memory_order_relaxed);

		/* W1: publishes the waker's writes; pairs with W2. */
		do {
			cb_set_next(cb, head);
		} while (!atomic_compare_exchange_weak(&loop->woken, &head,
						       cb));
	} else {
		atomic_store(&loop->nudged, true);
	}
	loop_notify(loop);
	return 0;
}

static void collect_woken(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb, *next, *oldest = NULL;

	if (!atomic_load_explicit(&loop->woken, memory_order_relaxed))
		return;
	/* W2: takes all cbs, newest first; reverse their order. */
	cb = atomic_exchange_explicit(&loop->woken, NULL, memory_order_acquire);
	for (; cb; cb = next) {
		next = cb_next(cb);
		cb_set_next(cb, oldest);
		oldest = cb;
	}
	for (cb = oldest; cb; cb = next) {
		next = cb_next(cb);
		loop->events++;
		flexsc__ready(loop, cb, 0);
	}
}

/* Timers, signals and wake-ups together. */

static struct flexsc_cb *timer_cb(const struct timer *timer)
{
	return (struct flexsc_cb *)(uintptr_t)timer->owner;
}

static void timer_due(struct flexsc_loop *loop, const struct timer *timer)
{
	if (timer->kind == TIMER_CB)
		flexsc__ready(loop, timer_cb(timer), 0);
	else
		flexsc__deadline_passed(loop, timer);
}

void flexsc__events_collect(struct flexsc_loop *loop)
{
	struct timer timer;
	int budget = 1024;

	loop_assert_owner(loop);
	collect_woken(loop);
	flexsc__signals_collect(loop);
	if (!loop->wheel.armed)
		return;
	flexsc__wheel_advance(&loop->wheel, time_monotonic());
	while (budget-- && flexsc__wheel_pop(&loop->wheel, &timer))
		timer_due(loop, &timer);
}

bool flexsc__loop_ready(const struct flexsc_loop *loop)
{
	return !queue_empty(&loop->done) || loop->ready.head ||
	       __atomic_load_n(&loop->completions.head, __ATOMIC_SEQ_CST) !=
		       FLEXSC_NO_ENTRY ||
	       atomic_load(&loop->stop) || atomic_load(&loop->nudged) ||
	       atomic_load(&loop->woken) || flexsc__signals_waiting(loop);
}

bool flexsc__loop_stirs(const struct flexsc_loop *loop)
{
	return flexsc__loop_ready(loop) ||
	       (loop->engine->stirs && loop->engine->stirs(loop));
}

void flexsc__events_cancel(struct flexsc_loop *loop)
{
	struct timer timer;

	collect_woken(loop);
	flexsc__signals_cancel(loop);
	/* Far enough for every timer that can be armed. */
	flexsc__wheel_advance(&loop->wheel, UINT64_MAX);
	while (flexsc__wheel_pop(&loop->wheel, &timer))
		if (timer.kind == TIMER_CB)
			flexsc__ready(loop, timer_cb(&timer), -ECANCELED);
		else
			call_of(loop, (uint32_t)timer.owner)->deadline =
				TIMER_NONE;
	flexsc__wheel_set(&loop->wheel, time_monotonic());
}
