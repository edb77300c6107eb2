/* SPDX-License-Identifier: MIT */
/*
 * What other threads put to a carrier: its inbox has user threads that are to run
 * there, and its list of rechecks has user threads whose wait may have to end. Both
 * are lists that any thread adds to, and only the carrier empties. Adding wakes the
 * carrier's loop.
 *
 * If the carrier has an heir, everything goes to the heir: D1, D2 in adopt.h.
 *
 * V3: a user thread is in one list of rechecks at a time. A further request raises
 * the user thread's count; V4: the carrier that has it checks until the count hasn't
 * grown since.
 */
#ifndef FLEXSC_RUNTIME_INBOX_H
#define FLEXSC_RUNTIME_INBOX_H

#include <stdbool.h>

#include "carrier.h"

/* Any thread: u can run, on the carrier that is best for it. */
void flexsc__inbox_give(struct uthread *u);

/* As flexsc__inbox_give(), but on the calling thread if that is a carrier. */
void flexsc__inbox_ready(struct uthread *u);

/* Any thread, any signal handler: have u's carrier check whether u's wait has to end. */
void flexsc__inbox_recheck(struct uthread *u);

/*
 * Carrier c only: u is in the list of rechecks that c has taken. Pass u on to "last",
 * on which it waits by now.
 */
void flexsc__inbox_pass(struct carrier *last, struct uthread *u);

/* Any thread, after "heir" of c was set: move both lists to the heir's (D1, D2). */
void flexsc__inbox_forward(struct carrier *c);

/* Carrier c only: its inbox as a list, the oldest user thread first; or NULL. */
struct uthread *flexsc__inbox_take(struct carrier *c);

/* Carrier c only: is there anything for c? */
static inline bool inbox_has_mail(const struct carrier *c)
{
	return atomic_load_explicit(&c->inbox, memory_order_relaxed) ||
	       atomic_load_explicit(&c->rechecks, memory_order_relaxed);
}

#endif /* FLEXSC_RUNTIME_INBOX_H */
