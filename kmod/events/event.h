/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing events into the owner's memory, as the contract's S1 and S3 say. Any
 * context.
 */
#ifndef FLEXSC_KMOD_EVENT_H
#define FLEXSC_KMOD_EVENT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/stddef.h>
#include <linux/timekeeping.h>

#include "events/ecb.h"

static_assert(sizeof(atomic_t) == sizeof(__u32));

/*
 * The maximum number of attempts to change a shared word; interrupts may be
 * disabled meanwhile. Other sources and the owner make only a few attempts
 * fail. All attempts fail only if a thread of the process keeps writing to the
 * word. Then that process loses an event or a revocation. atomic_fetch_or()
 * isn't used, because on x86 it is a loop without a limit.
 */
#define EVENT_TRIES	1000

/* event_push() stores these two fields with one store. */
static_assert(offsetof(struct flexsc_event_slot, group) ==
	      offsetof(struct flexsc_event_slot, type) + sizeof(__u16));

static __always_inline u32 event_kind(u16 type, u16 group)
{
	return (u32)group << 16 | type;
}

static __always_inline atomic_t *event_word(__u32 *word)
{
	return (atomic_t *)word;
}

/* May events of these groups be stored in the owner's memory now? */
static __always_inline bool event_allowed(const struct ecb *ecb, u32 groups)
{
	const struct flexsc_event_control *control = ecb->control;

	return (READ_ONCE(control->deliver) | READ_ONCE(control->notify) |
		READ_ONCE(control->waiting)) & groups;
}

/*
 * Add an event to the slot's state. True: the slot was on no list, so the
 * caller has to push it.
 */
static __always_inline bool event_claim(struct flexsc_event_slot *slot, u32 bits)
{
	atomic_t *state = event_word(&slot->state);
	int old = atomic_read(state);
	u32 tries = EVENT_TRIES;

	do {
		if (likely(atomic_try_cmpxchg(state, &old,
					      old | FLEXSC_EVENT_QUEUED | bits)))
			return !(old & FLEXSC_EVENT_QUEUED);
	} while (--tries);
	return false;
}

/* Make the slot the first one of a list. */
static __always_inline void event_link(struct flexsc_event_slot *slot,
				       atomic_t *head, u32 index)
{
	int next = atomic_read(head);
	u32 tries = EVENT_TRIES;

	do {
		WRITE_ONCE(slot->next, next);
		if (likely(atomic_try_cmpxchg(head, &next, index + 1)))
			return;
	} while (--tries);
	/*
	 * All attempts have failed: exchange the head. Readers miss the rest of
	 * the list until the last store below.
	 */
	WRITE_ONCE(slot->next, 0);
	next = atomic_xchg(head, index + 1);
	WRITE_ONCE(slot->next, next);
}

/*
 * Push a claimed slot, and notify the owner. "kind" is the slot's type, with
 * its group in the high half.
 */
static __always_inline void event_push(struct ecb *ecb,
				       struct flexsc_event_slot *slot,
				       u32 index, u32 kind)
{
	struct flexsc_event_control *control = ecb->control;
	u32 group = kind >> 16;

	*(u32 *)&slot->type = kind;
	if (unlikely(ecb->flags & FLEXSC_ECB_TIMES))
		slot->time = ktime_get_ns();
	event_link(slot, event_word(&control->head[group]), index);
	atomic_or(BIT(group), event_word(&control->pending));
	/* S3. Pairs with U3. */
	smp_mb__after_atomic();
	ecb_announce(ecb, BIT(group));
}

/* Mark the slot's source as ended; the slot may be pushed one last time. */
static inline void event_revoke(struct flexsc_event_slot *slot)
{
	atomic_t *state = event_word(&slot->state);
	int old = atomic_read(state), new;
	u32 tries = EVENT_TRIES;

	do {
		new = old & FLEXSC_EVENT_QUEUED ?
			FLEXSC_EVENT_QUEUED | FLEXSC_EVENT_REVOKED : 0;
	} while (old != new && !atomic_try_cmpxchg(state, &old, new) &&
		 --tries);
}

#endif /* FLEXSC_KMOD_EVENT_H */
