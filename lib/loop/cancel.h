/* SPDX-License-Identifier: MIT */
/* Cancellation and deadlines. Owner only. */
#ifndef FLEXSC_CANCEL_H
#define FLEXSC_CANCEL_H

#include "call.h"
#include "wheel.h"

void flexsc__cancel_call(struct flexsc_loop *loop, uint32_t index,
			 enum cancel_cause cause);

/*
 * The engine could not reach an entry that is CANCEL: it is to try again soon.
 */
void flexsc__cancel_later(struct flexsc_loop *loop, uint32_t index);

/*
 * The loop ends. A call whose result a callback is told is cancelled; so is a
 * call that may wait for others. A close() that was posted without a cb is
 * neither, and still happens, even if it is staged.
 */
void flexsc__cancel_all(struct flexsc_loop *loop);

/* A call's deadline has passed, or a staged call's. */
void flexsc__deadline_passed(struct flexsc_loop *loop,
			     const struct timer *timer);

#endif /* FLEXSC_CANCEL_H */
