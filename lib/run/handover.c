/* SPDX-License-Identifier: MIT */
#include "handover.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/loop/cancel.h"
#include "lib/loop/event.h"
#include "lib/loop/handle.h"
#include "lib/loop/loop.h"
#include "lib/pool/pool.h"
#include "run.h"

bool flexsc__handover_possible(const struct flexsc_loop *loop)
{
	return loop->engine->reach;
}

bool flexsc__handover_cancels(const struct flexsc_loop *loop)
{
	return loop->engine->cancels_anywhere &&
	       loop->engine->cancels_anywhere(loop);
}

void flexsc__handover_begin(struct flexsc_loop *loop, struct flexsc_loop *heir)
{
	RULE(!loop->inside);
	loop->owner = pthread_self();
	/*
	 * E1: set before the heir first looks for results; pairs with E2 in
	 * loop_notify(). A thread that completes an entry either sees "heir" and
	 * notifies the heir, or has made its result visible before the heir looks.
	 */
	atomic_store(&loop->heir, heir);
}

void flexsc__handover_end(struct flexsc_loop *loop, pthread_t owner)
{
	loop->owner = owner;
	/* Some results notified only the heir: make the owner look for results. */
	atomic_store(&loop->notified, true);
	atomic_store(&loop->heir, NULL);
}

void flexsc__handover_results(struct flexsc_loop *loop)
{
	const bool cancels = flexsc__handover_cancels(loop);

	flexsc__pool_check(loop);
	flexsc__run_results(loop, cancels);
	if (!loop->engine->tend)
		return;
	loop->engine->tend(loop);
	if (!queue_empty(&loop->done))
		flexsc__run_results(loop, cancels);
}

static uint64_t time_left(const struct flexsc_loop *loop, uint32_t timer)
{
	uint64_t at = wheel_timer(&loop->wheel, timer)->expiry
		      << WHEEL_TICK_BITS;
	uint64_t now = time_monotonic();

	return at > now ? at - now : 1;
}

static void take_timer(struct flexsc_loop *loop, uint32_t timer, uint64_t *ns)
{
	*ns = time_left(loop, timer);
	flexsc__wheel_cancel(&loop->wheel, timer);
	loop->events--;
}

/*
 * Is the entry still in the loop's own lists, so that no thread has begun it, and the
 * kernel hasn't seen it?
 */
static bool is_unsubmitted(struct flexsc_loop *loop, uint32_t index)
{
	struct pool *pool = loop_pool(loop);
	bool is;

	if (pool)
		lock(&pool->lock);
	is = entry_status(entry_of(loop, index)) == FLEXSC_SUBMITTED &&
	     call_of(loop, index)->where == POOL_NOT;
	if (pool)
		unlock(&pool->lock);
	return is;
}

static bool may_take(struct flexsc_loop *loop, uint32_t index, bool armed)
{
	const struct call *call = call_of(loop, index);

	/*
	 * "partial" shows that the call has transferred bytes: it can't be made
	 * again elsewhere.
	 */
	if (call->partial || call->chained != NO_STAGED)
		return false;
	if (!call_is_direct(call) && is_unsubmitted(loop, index))
		return true;
	switch (loop->engine->reach(loop, index)) {
	case REACH_UNSEEN:
		return true;
	case REACH_ARMED:
		return armed;
	case REACH_EXECUTED:
		break;
	}
	return false;
}

static bool take_call(struct flexsc_loop *loop, uint32_t index, bool armed,
		      uint64_t *ns)
{
	struct call *call = call_of(loop, index);

	if (!may_take(loop, index, armed))
		return false;
	if (call->cancel != CANCEL_NOT)
		call->cb->ret = call->cancel == CANCEL_DEADLINE ? -ETIME :
								  -ECANCELED;
	else if (call->deadline != TIMER_NONE)
		*ns = time_left(loop, call->deadline);
	wheel_clear(&loop->wheel, &call->deadline);
	call->cb = &loop->orphan;
	return true;
}

bool flexsc__handover_take(struct flexsc_loop *loop, struct flexsc_cb *cb,
			bool armed, uint64_t *ns)
{
	uint32_t index = (uint32_t)handle_index(cb->handle);

	loop_assert_owner(loop);
	*ns = 0;
	if (!flexsc__cb_pending(loop, cb))
		return false;
	cb->ret = 0;
	switch (handle_kind(cb->handle)) {
	case HANDLE_TIMER:
		take_timer(loop, index, ns);
		break;
	case HANDLE_CALL:
		if (!take_call(loop, index, armed, ns))
			return false;
		break;
	default:
		return false;
	}
	cb->handle = 0;
	return true;
}

void flexsc__handover_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	if (flexsc__handover_cancels(loop))
		flexsc_loop_cancel(loop, cb);
}

static void revoke(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);

	/* Don't run the callback here: it runs, or has run, on the heir's loop. */
	call->cb = NULL;
	if (!call_is_direct(call) && loop->engine->withdraw &&
	    loop->engine->withdraw(loop, index)) {
		call_done(loop, index, -ECANCELED);
	} else if (call->cancel == CANCEL_NOT) {
		flexsc__cancel_call(loop, index, CANCEL_REPORTED);
	} else {
		call->cancel = CANCEL_REPORTED;
		/*
		 * Cancel again, because the first cancellation may have missed the
		 * request.
		 */
		if (entry_status(entry_of(loop, index)) == FLEXSC_CANCEL)
			loop->engine->cancel(loop, index);
	}
}

/*
 * Enter the kernel until it has dropped the cancelled requests. The kernel drops
 * requests only when the owner enters, which may be necessary several times.
 */
static void drop_cancelled(struct flexsc_loop *loop)
{
	while (loop->engine->withdraw && loop->engine->stirs(loop)) {
		loop->engine->wait(loop, 0);
		loop->engine->collect(loop);
	}
}

unsigned int flexsc__handover_revoke(struct flexsc_loop *loop)
{
	unsigned int n = 0;

	loop_assert_owner(loop);
	for (uint32_t i = 0; i < loop->entries.count; i++)
		if (call_of(loop, i)->cb == &loop->orphan &&
		    call_in_use(loop, i)) {
			revoke(loop, i);
			n++;
		}
	/* submit() submits the cancellations, but collects no results. */
	loop->engine->submit(loop);
	drop_cancelled(loop);
	return n;
}
