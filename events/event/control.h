/* SPDX-License-Identifier: MIT */
/*
 * The shared words of an event control block, with the memory order that the contract
 * requires (<linux/flexsc_ecb.h>: S1 to S3, U1 to U4). Sources are in other threads and
 * in the kernel.
 */
#ifndef FLEXSC_EVENTS_CONTROL_H
#define FLEXSC_EVENTS_CONTROL_H

#include <linux/flexsc_ecb.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct flexsc_event_control control_t;
typedef struct flexsc_event_slot slot_t;

/* Returns the groups whose lists may have slots. Also the load of U3. */
static inline uint32_t control_pending(const control_t *control)
{
	return __atomic_load_n(&control->pending, __ATOMIC_SEQ_CST);
}

/* Returns the groups for which the handler has to be called. Owner only. */
static inline uint32_t control_due(const control_t *control)
{
	return __atomic_load_n(&control->notify, __ATOMIC_RELAXED) &
	       control_pending(control);
}

/* Returns the groups that may be delivered. For the owner, or for a source in S3. */
static inline uint32_t control_deliverable(const control_t *control)
{
	return __atomic_load_n(&control->notify, __ATOMIC_RELAXED) |
	       __atomic_load_n(&control->deliver, __ATOMIC_RELAXED) |
	       __atomic_load_n(&control->waiting, __ATOMIC_RELAXED);
}

/* S1: add bits to a slot. True: the slot was on no list, so the caller pushes it. */
static inline bool slot_mark(slot_t *slot, uint32_t bits)
{
	return !(__atomic_fetch_or(&slot->state, bits | FLEXSC_EVENT_QUEUED,
				   __ATOMIC_ACQ_REL) & FLEXSC_EVENT_QUEUED);
}

/*
 * S1: push a marked slot. True: its group wasn't pending, so the caller continues with
 * S3. If the group was pending, the source that set its bit has done S3, or the owner
 * has found the bit by U3 and will take this slot, too.
 */
static inline bool control_push(control_t *control, slot_t *slots,
				uint32_t index, uint32_t group)
{
	uint32_t *head = &control->head[group];
	uint32_t old = __atomic_load_n(head, __ATOMIC_RELAXED);

	do {
		__atomic_store_n(&slots[index].next, old, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(head, &old, index + 1, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	/*
	 * If the bit is set, don't set it again. If the owner clears it later, the
	 * owner's second check of the list finds this slot (U2).
	 */
	if (__atomic_load_n(&control->pending, __ATOMIC_SEQ_CST) & 1U << group)
		return false;
	return !(__atomic_fetch_or(&control->pending, 1U << group,
				   __ATOMIC_SEQ_CST) & 1U << group);
}

/*
 * U1: take a group's whole list. Returns the newest slot's index + 1; 0: empty. After
 * control_clear() this is U2's second check of the list.
 */
static inline uint32_t control_take(control_t *control, uint32_t group)
{
	if (!__atomic_load_n(&control->head[group], __ATOMIC_SEQ_CST))
		return 0;
	return __atomic_exchange_n(&control->head[group], 0, __ATOMIC_ACQUIRE);
}

/* U1: take a slot's event. Returns its state bits. */
static inline uint32_t slot_take(slot_t *slot)
{
	return __atomic_exchange_n(&slot->state, 0, __ATOMIC_ACQ_REL);
}

/* U2: clear the group's bit, before the second check of its list. */
static inline void control_clear(control_t *control, uint32_t group)
{
	__atomic_fetch_and(&control->pending, ~(1U << group),
			   __ATOMIC_SEQ_CST);
}

/* S3, after control_push(): does the owner wait for one of the groups? */
static inline bool control_waits(const control_t *control, uint32_t groups)
{
	return __atomic_load_n(&control->waiting, __ATOMIC_SEQ_CST) & groups;
}

/*
 * Like control_waits(), but also true if the owner waits for other groups, and has
 * requested notification for one of these: then the wait has to call the handler.
 */
static inline bool control_wakes(const control_t *control, uint32_t groups)
{
	uint32_t waiting = __atomic_load_n(&control->waiting, __ATOMIC_SEQ_CST);

	return waiting &&
	       (waiting | __atomic_load_n(&control->notify, __ATOMIC_SEQ_CST)) &
		       groups;
}

static inline bool control_notifies(const control_t *control, uint32_t groups)
{
	return __atomic_load_n(&control->notify, __ATOMIC_SEQ_CST) & groups &&
	       !__atomic_load_n(&control->critical, __ATOMIC_SEQ_CST);
}

/* U3: store to one of the owner's words, so that sources see the value from now on. */
static inline void control_say(uint32_t *word, uint32_t value)
{
	__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

#endif /* FLEXSC_EVENTS_CONTROL_H */
