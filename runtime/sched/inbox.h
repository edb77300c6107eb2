/* SPDX-License-Identifier: MIT */
/*
 * What other threads pass to a carrier: its inbox has user threads that are ready to
 * run there, and its list of rechecks has user threads whose wait may have to end. Any
 * thread adds to these lists, and wakes the carrier's loop. Only the carrier empties
 * them.
 *
 * If the carrier has an heir, everything goes to the heir: D1, D2 in adopt.h.
 *
 * A user thread is in one list of rechecks at a time. V3: a further request only raises
 * the user thread's count. V4: the carrier repeats its check until the count has not
 * grown.
 */
#ifndef FLEXSC_RUNTIME_INBOX_H
#define FLEXSC_RUNTIME_INBOX_H

#include <stdbool.h>

#include "carrier.h"

/* Any thread: u is ready to run; enqueue it on the best carrier. */
void flexsc__inbox_give(struct uthread *u);

/* As flexsc__inbox_give(), but on the calling thread if that is a carrier. */
void flexsc__inbox_ready(struct uthread *u);

/* Any thread, any signal handler: make u's carrier check whether u's wait must end. */
void flexsc__inbox_recheck(struct uthread *u);

/*
 * Add u to the list of rechecks of "last", or of its heir. Called by the thread that
 * took u from such a list, or made the first request for it.
 */
void flexsc__inbox_pass(struct carrier *last, struct uthread *u);

/* Any thread, after c->heir was set: move both lists to the heir (D1, D2). */
void flexsc__inbox_forward(struct carrier *c);

/* Carrier c only: empty its inbox. Returns its user threads, oldest first; or NULL. */
struct uthread *flexsc__inbox_take(struct carrier *c);

/* Carrier c only: is either list not empty? */
static inline bool inbox_has_mail(const struct carrier *c)
{
	return atomic_load_explicit(&c->inbox, memory_order_relaxed) ||
	       atomic_load_explicit(&c->rechecks, memory_order_relaxed);
}

#endif /* FLEXSC_RUNTIME_INBOX_H */
