/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recalling the waiter to user mode: see recall.c. Also the check of the
 * owner's credentials, with which entries are executed.
 */
#ifndef FLEXSC_KMOD_SCHED_RECALL_H
#define FLEXSC_KMOD_SCHED_RECALL_H

#include <linux/cred.h>

#include "base/compat.h"
#include "base/registration.h"

void waiter_recall(struct registration *reg);
void waiter_deserted(struct registration *reg);
void waiter_blocked(struct registration *reg);
bool waiter_needs_takeover(struct registration *reg);
bool waiter_take_over(struct registration *reg);
void waiter_init(struct registration *reg);

static inline bool waiter_has_completed(struct registration *reg)
{
	return (s64)(atomic64_read(&reg->completed) -
		     (s64)READ_ONCE(reg->seen)) > 0;
}

/*
 * Is the current task barred from executing the owner's entries? Entries are
 * executed with the credentials that the owner had at its last wait or kick, so
 * a thread with other credentials is unfit. If the owner is under a seccomp
 * filter, a thread without a filter is unfit as well, because it would bypass
 * the filter.
 */
static __always_inline bool current_is_unfit(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->cred) != current_cred()) ||
	       (unlikely(READ_ONCE(reg->owner_filtered)) &&
		!task_filtered());
}

#endif /* FLEXSC_KMOD_SCHED_RECALL_H */
