/* SPDX-License-Identifier: MIT */
/*
 * flexsc_loop_timer(), and the code common to timers, deadlines, signals and wake-ups.
 * Owner only.
 */
#include "event.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "cancel.h"
#include "handle.h"
#include "loop.h"
#include "ready.h"
#include "signal.h"
#include "stats.h"

/* Timers. */

bool flexsc__timer_release(struct flexsc_loop *loop, const struct flexsc_cb *cb)
{
	if (handle_kind(cb->handle) != HANDLE_TIMER ||
	    !flexsc__cb_pending(loop, cb))
		return false;
	flexsc__wheel_cancel(&loop->wheel, (uint32_t)handle_index(cb->handle));
	loop->events--;
	return true;
}

int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns)
{
	int err = flexsc__post_check(loop, cb);
	uint32_t timer;

	if (err && err != -EBUSY)
		return err;
	if (!cb)
		return -EINVAL;
	if (!flexsc__timer_release(loop, cb) && err)
		return err;
	err = flexsc__wheel_arm(&loop->wheel, time_monotonic(), ns, TIMER_CB,
			(uintptr_t)cb, &timer);
	if (err)
		return err;
	cb->handle = handle_make(HANDLE_TIMER, timer);
	count(&loop->stats->timers, 1);
	loop->events++;
	return 0;
}

/* Events: everything that completes without an entry. */

static struct flexsc_cb *timer_cb(const struct timer *timer)
{
	return (struct flexsc_cb *)(uintptr_t)timer->owner;
}

struct flexsc_cb *flexsc__timer_take(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb;
	struct timer timer;

	if (!flexsc__wheel_pop(&loop->wheel, WHEEL_DUE_CBS, &timer))
		return NULL;
	cb = timer_cb(&timer);
	cb->flags = 0;
	loop->events--;
	return cb;
}

void flexsc__events_collect(struct flexsc_loop *loop)
{
	struct timer timer;
	int budget = 1024;

	loop_assert_owner(loop);
	flexsc__signals_collect(loop);
	if (!loop->wheel.armed)
		return;
	flexsc__wheel_advance(&loop->wheel, time_monotonic());
	while (budget-- &&
	       flexsc__wheel_pop(&loop->wheel, WHEEL_DUE_DEADLINES, &timer))
		flexsc__deadline_passed(loop, &timer);
}

static inline __attribute__((always_inline)) bool
has_work(const struct flexsc_loop *loop)
{
	return !queue_empty(&loop->done) || loop->ready.head ||
	       wheel_has_cbs(&loop->wheel) ||
	       __atomic_load_n(&loop->completions.head, __ATOMIC_SEQ_CST) !=
		       FLEXSC_NO_ENTRY ||
	       wakes_wait(&loop->wakes) || flexsc__signals_waiting(loop);
}

bool flexsc__loop_has_work(const struct flexsc_loop *loop)
{
	return has_work(loop);
}

bool flexsc__loop_ready(const struct flexsc_loop *loop)
{
	return has_work(loop) || atomic_load(&loop->stop) ||
	       atomic_load(&loop->nudged);
}

bool flexsc__loop_stirs(const struct flexsc_loop *loop)
{
	return flexsc__loop_ready(loop) ||
	       (loop->engine->stirs && loop->engine->stirs(loop));
}

void flexsc__events_cancel(struct flexsc_loop *loop)
{
	struct timer timer;

	flexsc__signals_cancel(loop);
	/* Advance to the largest time, at which every armed timer is due. */
	flexsc__wheel_advance(&loop->wheel, UINT64_MAX);
	while (flexsc__wheel_pop(&loop->wheel, WHEEL_DUE_CBS, &timer))
		flexsc__ready(loop, timer_cb(&timer), -ECANCELED);
	while (flexsc__wheel_pop(&loop->wheel, WHEEL_DUE_DEADLINES, &timer))
		call_of(loop, (uint32_t)timer.owner)->deadline = TIMER_NONE;
	flexsc__wheel_set(&loop->wheel, time_monotonic());
}
