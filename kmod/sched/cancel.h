/* SPDX-License-Identifier: GPL-2.0-only */
/* Interrupting the thread that executes an entry: see cancel.c. */
#ifndef FLEXSC_KMOD_CANCEL_H
#define FLEXSC_KMOD_CANCEL_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "sched/record.h"

/*
 * thread.executes is one of these in the high half, and the entry's index in
 * the low half.
 */
#define EXECUTES(what)		((u64)(what) << 32)
#define EXECUTES_NOTHING	EXECUTES(0)
#define EXECUTES_ENTRY		EXECUTES(1)
#define EXECUTES_CLAIMED	EXECUTES(2)
#define EXECUTES_KICKED		EXECUTES(3)

bool cancel_kick(struct thread *thread, u64 executes);
bool cancel_await(struct thread *thread, u32 index);
long cancel_entry(struct registration *reg, u32 index);

/*
 * Called when the thread's call of entry "index" has returned. Was the call
 * interrupted?
 */
static __always_inline bool cancel_settle(struct thread *thread, u32 index)
{
	u64 executes = EXECUTES_ENTRY | index;

	if (likely(atomic64_try_cmpxchg(&thread->executes, (s64 *)&executes,
					EXECUTES_NOTHING)))
		return false;
	return cancel_await(thread, index);
}

#endif /* FLEXSC_KMOD_CANCEL_H */
