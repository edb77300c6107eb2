/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupting the thread that executes an entry: what a thread's "now" says,
 * and how an entry's call ends.
 */
#ifndef FLEXSC_KMOD_CANCEL_H
#define FLEXSC_KMOD_CANCEL_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "thread.h"

#define NOW(state)	((u64)(state) << 32)	/* the low half is the index */
#define NOW_NOTHING	NOW(0)
#define NOW_EXECUTES	NOW(1)
#define NOW_CLAIMED	NOW(2)
#define NOW_KICKED	NOW(3)
bool cancel_kick(struct thread *thread, u64 now);
bool cancel_await(struct thread *thread, u32 index);
long cancel_entry(struct registration *reg, u32 index);

/* The thread's call of entry "index" has returned. Was it interrupted? */
static __always_inline bool cancel_settle(struct thread *thread, u32 index)
{
	u64 now = NOW_EXECUTES | index;

	if (likely(atomic64_try_cmpxchg(&thread->now, (s64 *)&now, NOW_NOTHING)))
		return false;
	return cancel_await(thread, index);
}

#endif /* FLEXSC_KMOD_CANCEL_H */
