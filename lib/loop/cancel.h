/* SPDX-License-Identifier: MIT */
/* Cancellation and deadlines. Owner only. */
#ifndef FLEXSC_CANCEL_H
#define FLEXSC_CANCEL_H

#include "call.h"
#include "wheel.h"

void flexsc__cancel_call(struct flexsc_loop *loop, uint32_t index,
			 enum cancel_cause cause);

/*
 * Called when the engine has failed to interrupt the executing call of a CANCEL entry:
 * let the engine try again soon.
 */
void flexsc__cancel_later(struct flexsc_loop *loop, uint32_t index);

/*
 * Called when the loop ends: cancel the calls that have a callback, and those that may
 * wait for an event. A close() without a cb isn't cancelled: the descriptor is still
 * closed, even if the close() is staged.
 */
void flexsc__cancel_all(struct flexsc_loop *loop);

/* Called when the deadline of a call, staged or not, has passed: cancel the call. */
void flexsc__deadline_passed(struct flexsc_loop *loop,
			     const struct timer *timer);

#endif /* FLEXSC_CANCEL_H */
