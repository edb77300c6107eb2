/* SPDX-License-Identifier: GPL-2.0-only */
/* Slots: see slot.c. */
#ifndef FLEXSC_KMOD_SCHED_SLOT_H
#define FLEXSC_KMOD_SCHED_SLOT_H

#include "base/checks.h"
#include "base/registration.h"
#include "sched/record.h"

bool slot_claim(struct slot *slot, struct registration *reg);
bool slot_take(struct thread *thread, int core);
bool slot_is_free(struct registration *reg, int core);
void slot_free(struct thread *thread);

/* Returns the slot of a core of the registration's policy. NULL: no core. */
static inline struct slot *slot_of(struct registration *reg, int core)
{
	return core < 0 ? NULL : &reg->process->slots[core];
}

/* Free the thread's slot, if it has one. */
static inline void slot_give(struct thread *thread)
{
	if (unlikely(thread->slot))
		slot_free(thread);
}

/* Should the thread release its slot, because other registrations want it? */
static __always_inline bool slot_is_wanted(const struct thread *thread)
{
	return unlikely(thread->slot) && READ_ONCE(thread->slot->wanted);
}

#endif /* FLEXSC_KMOD_SCHED_SLOT_H */
