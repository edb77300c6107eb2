/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner in FLEXSC_IOC_WAIT, "caller" in names, and whose rights entries are
 * executed with.
 */
#ifndef FLEXSC_KMOD_CALLER_H
#define FLEXSC_KMOD_CALLER_H

#include <linux/cred.h>

#include "compat.h"
#include "registration.h"

long caller_wait(struct registration *reg, u64 seen);
long caller_kick(struct registration *reg);
long caller_wake(struct registration *reg);
void caller_recall(struct registration *reg);
void caller_deserted(struct registration *reg);
void caller_blocked(struct registration *reg);
bool caller_wanted(struct registration *reg);
bool caller_take_over(struct registration *reg);
void caller_init(struct registration *reg);

/*
 * Must the current task not execute the owner's entries? The owner's rights, as
 * they were at its last wait or kick, are those that entries are executed with.
 * So a thread with other credentials is unfit. If the owner is under a seccomp
 * filter, a thread under none is unfit as well: it would pass by the filter.
 */
static __always_inline bool thread_unfit(struct registration *reg)
{
	return unlikely(READ_ONCE(reg->cred) != current_cred()) ||
	       (unlikely(READ_ONCE(reg->caller_filtered)) &&
		!task_filtered());
}

#endif /* FLEXSC_KMOD_CALLER_H */
