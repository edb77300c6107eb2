/* SPDX-License-Identifier: MIT */
/*
 * Cancellation (ATC 2011, section 4.2), and deadlines, which are cancellations by a
 * timer. Owner only.
 *
 * Cancelling never completes an entry. It changes the status and notifies the engine,
 * and the entry completes once, like any other. So the callback can't run twice, nor
 * before the kernel has released the call's memory. If the call hadn't started, no
 * thread will execute it: its callback is due at once, and only its entry stays in use
 * until the engine has skipped it.
 */
#include "cancel.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/calls/partial.h"
#include "lib/calls/call_info.h"
#include "guarded.h"
#include "handle.h"
#include "staged.h"
#include "loop.h"
#include "multishot.h"
#include "ready.h"
#include "signal.h"
#include "stats.h"

#define AGAIN_NS	1000000ULL
#define TICK_MAX	(SECOND / 100)	/* longest tick of the kernel's clock */

void flexsc__cancel_call(struct flexsc_loop *loop, uint32_t index,
			 enum cancel_cause cause)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	bool part;

	loop_assert_owner(loop);
	if (call->cancel != CANCEL_NOT)
		return;
	if (call_is_direct(call))
		loop->engine->shadow(loop, index);
	call->cancel = (uint8_t)cause;
	if (entry_status(entry) == FLEXSC_SUBMITTED && loop->engine->unchain &&
	    loop->engine->unchain(loop, index))
		return;
	part = flexsc__partial_begun(&call->partial);
	/*
	 * No engine has begun the entry: the thread that takes it next sees CANCEL,
	 * and completes it without executing it.
	 */
	if (entry_cancel_submitted(entry)) {
		/*
		 * The entry was SUBMITTED until now, so no engine has transferred a
		 * part since "part" was read.
		 */
		if (!part)
			flexsc__call_unstarted(loop, index);
		return;
	}
	if (entry_cancel_busy(entry))
		loop->engine->cancel(loop, index);
}

/*
 * Cancel the call again after AGAIN_NS. Use the timer of the call's deadline, because a
 * cancelled call doesn't need its deadline any more.
 */
void flexsc__cancel_later(struct flexsc_loop *loop, uint32_t index)
{
	uint32_t *timer = &call_of(loop, index)->deadline;

	loop_assert_owner(loop);
	wheel_clear(&loop->wheel, timer);
	if (flexsc__wheel_arm(&loop->wheel, time_monotonic(), AGAIN_NS, TIMER_CALL,
			      index, timer))
		loop->engine->cancel(loop, index);
}

static int cancel_check(struct flexsc_loop *loop, const struct flexsc_cb *cb)
{
	if (!loop)
		return -ENXIO;
	if (!cb)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	return flexsc__cb_pending(loop, cb) ? 0 : -ENOENT;
}

int flexsc_loop_cancel(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	int err = cancel_check(loop, cb);
	uint32_t index;

	if (err)
		return err;
	index = (uint32_t)handle_index(cb->handle);
	switch (handle_kind(cb->handle)) {
	case HANDLE_CALL:
		flexsc__cancel_call(loop, index, CANCEL_ASKED);
		break;
	case HANDLE_STAGED:
		flexsc__staged_end(loop, index, -ECANCELED);
		break;
	case HANDLE_TIMER:
		flexsc__wheel_cancel(&loop->wheel, index);
		flexsc__ready(loop, cb, -ECANCELED);
		break;
	case HANDLE_SIGNAL:
		flexsc__signal_end(loop, signal_find(&loop->signal_waits, cb),
				   -ECANCELED);
		break;
	case HANDLE_MULTISHOT:
		flexsc__multishot_cancel(flexsc__cb_multishot(loop, cb));
		break;
	case HANDLE_WOKEN:
	case HANDLE_NONE:
		break;
	}
	return 0;
}

/*
 * Is the call complete? An entry that the module returned as INTERRUPTED is DONE, too,
 * but its call continues.
 */
static bool is_ended(const struct flexsc_entry *entry)
{
	return entry_status(entry) == FLEXSC_DONE &&
	       !(entry->nargs & FLEXSC_INTERRUPTED);
}

static bool names_fd(unsigned int nr, const __u64 *args, int fd)
{
	unsigned int fds = flexsc__call_info(nr)->fds;

	for (unsigned int i = 0; fds; i++, fds >>= 1)
		if ((fds & 1) && (int)args[i] == fd)
			return true;
	return false;
}

/* Is there a call at this index, and does it name the descriptor? */
static bool call_names_fd(const struct flexsc_loop *loop, uint32_t index,
			  int fd)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	const struct call *call = call_of(loop, index);

	if (call_is_direct(call))
		return flexsc__call_info(call->nr)->fds &&
		       (int)call->direct.fd == fd;
	return entry_status(entry) != FLEXSC_FREE && !is_ended(entry) &&
	       flexsc__call_names(loop, index, fd);
}

/*
 * Cancel the calls at all indices that name the descriptor. Returns their number. The
 * caller is about to close the descriptor, and its number may soon name another file.
 * So wait until the kernel doesn't need the number any more, also for calls that were
 * cancelled earlier.
 */
static int cancel_entries(struct flexsc_loop *loop, int fd)
{
	bool named = false;
	int n = 0;

	for (uint32_t i = 0; i < loop->entries.count; i++) {
		if (!call_names_fd(loop, i, fd))
			continue;
		named = true;
		if (call_of(loop, i)->cancel != CANCEL_NOT)
			continue;
		flexsc__cancel_call(loop, i, CANCEL_ASKED);
		n++;
	}
	if (named && loop->engine->settle)
		loop->engine->settle(loop);
	return n;
}

int flexsc_loop_cancel_fd(struct flexsc_loop *loop, int fd)
{
	int n;

	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	/*
	 * Collect results first: a call that has its result isn't pending any more, so
	 * it must not be cancelled or counted.
	 */
	if (loop->engine->collect)
		loop->engine->collect(loop);
	n = flexsc__multishots_cancel_fd(loop, fd);
	n += cancel_entries(loop, fd);
	for (uint32_t i = 1; i < loop->staged.count; i++) {
		const struct staged *staged = staged_of(loop, i);

		if (staged->state == STAGED_FREE ||
		    !names_fd(staged->nr, staged->args, fd))
			continue;
		flexsc__staged_end(loop, i, -ECANCELED);
		n++;
	}
	return n;
}

static bool must_cancel(const struct flexsc_cb *cb, unsigned int nr)
{
	return cb || flexsc__call_info(nr)->class == CLASS_WAIT;
}

void flexsc__cancel_all(struct flexsc_loop *loop)
{
	for (uint32_t i = 0; i < loop->entries.count; i++) {
		const struct call *call = call_of(loop, i);
		unsigned int nr = call_is_direct(call) ? call->nr :
							 entry_of(loop, i)->nr;

		if (call_in_use(loop, i) && must_cancel(call->cb, nr))
			flexsc__cancel_call(loop, i, CANCEL_ASKED);
	}
	for (uint32_t i = 1; i < loop->staged.count; i++) {
		const struct staged *staged = staged_of(loop, i);

		if (staged->state != STAGED_FREE &&
		    must_cancel(staged->cb, staged->nr))
			flexsc__staged_end(loop, i, -ECANCELED);
	}
}

/* Deadlines. */

/*
 * Returns the start of a deadline. Deadlines of a second or more use
 * CLOCK_MONOTONIC_COARSE, which costs a fifth of the precise clock. Such a deadline may
 * be one tick late.
 */
static uint64_t deadline_begin(uint64_t ns)
{
	if (ns < SECOND)
		return time_monotonic();
	return time_now(CLOCK_MONOTONIC_COARSE) + TICK_MAX;
}

int flexsc_loop_deadline(struct flexsc_loop *loop, struct flexsc_cb *cb,
			 uint64_t ns)
{
	enum timer_kind kind = TIMER_CALL;
	int err = cancel_check(loop, cb);
	uint32_t index, *deadline;

	if (err)
		return err;
	index = (uint32_t)handle_index(cb->handle);
	if (handle_kind(cb->handle) == HANDLE_CALL) {
		if (call_of(loop, index)->cancel != CANCEL_NOT)
			return 0;
		deadline = &call_of(loop, index)->deadline;
	} else if (handle_kind(cb->handle) == HANDLE_STAGED) {
		deadline = &staged_of(loop, index)->deadline;
		kind = TIMER_STAGED;
	} else {
		return -ENOENT;
	}
	wheel_clear(&loop->wheel, deadline);
	if (!ns)
		return 0;
	err = flexsc__wheel_arm(&loop->wheel, deadline_begin(ns), ns, kind,
				index, deadline);
	if (!err)
		count(&loop->stats->timers, 1);
	return err;
}

void flexsc__deadline_passed(struct flexsc_loop *loop,
			     const struct timer *timer)
{
	uint32_t index = (uint32_t)timer->owner;

	if (timer->kind == TIMER_CALL) {
		call_of(loop, index)->deadline = TIMER_NONE;
		if (entry_status(entry_of(loop, index)) == FLEXSC_CANCEL)
			loop->engine->cancel(loop, index);
		else
			flexsc__cancel_call(loop, index, CANCEL_DEADLINE);
	} else {
		staged_of(loop, index)->deadline = TIMER_NONE;
		flexsc__staged_end(loop, index, -ETIME);
	}
}
