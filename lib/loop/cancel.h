/* SPDX-License-Identifier: MIT */
/* Cancellation and deadlines. Owner only. */
#ifndef FLEXSC_CANCEL_H
#define FLEXSC_CANCEL_H

#include "call.h"
#include "wheel.h"

void flexsc__cancel_call(struct flexsc_loop *loop, uint32_t index,
			 enum cancel_cause cause);

/*
 * The engine couldn't stop the executing call of an entry that is CANCEL: it is
 * notified again soon.
 */
void flexsc__cancel_later(struct flexsc_loop *loop, uint32_t index);

/*
 * The loop ends: cancel the calls that have a callback, and those that may wait for an
 * event. A close() without a cb is not cancelled: it still happens, even if it is
 * staged.
 */
void flexsc__cancel_all(struct flexsc_loop *loop);

/* The deadline of a call, or of a staged call, has passed. */
void flexsc__deadline_passed(struct flexsc_loop *loop,
			     const struct timer *timer);

#endif /* FLEXSC_CANCEL_H */
