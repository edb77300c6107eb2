/* SPDX-License-Identifier: MIT */
/*
 * A group's shared list is taken as a whole and reversed, so that the oldest event is
 * handed out first. The reversed list begins at ecb->first[group]. The group's bit in
 * "pending" is cleared only when the shared and the reversed list are empty (U2). So if
 * the bit is set, there may be an event to take.
 */
#include "take.h"

#include <flexsc/ecb.h>

#include "lib/base/checks.h"
#include "backend.h"
#include "ecb.h"
#include "payload.h"

/* Reverse a list. Returns the index of the oldest slot, + 1. */
static uint32_t take_turned(slot_t *slots, uint32_t newest)
{
	uint32_t oldest = 0;

	while (newest) {
		uint32_t older = slots[newest - 1].next;

		slots[newest - 1].next = oldest;
		oldest = newest;
		newest = older;
	}
	return oldest;
}

/* Returns the index of a group's oldest slot, + 1; 0: none. */
static uint32_t take_first(struct flexsc_ecb *ecb, uint32_t group)
{
	uint32_t first = ecb->first[group];
	uint32_t newest;

	if (first)
		return first;
	newest = control_take(ecb->control, group);
	if (!newest) {
		control_clear(ecb->control, group);
		newest = control_take(ecb->control, group);
		if (!newest)
			return 0;
		__atomic_fetch_or(&ecb->control->pending, 1U << group,
				  __ATOMIC_RELAXED);
	}
	first = take_turned(ecb->slots, newest);
	ecb->first[group] = first;
	return first;
}

/* Take a slot off its list. False: it yields no event. */
static bool take_slot(struct flexsc_ecb *ecb, uint32_t index,
		      struct flexsc_ecb_event *event)
{
	struct flexsc_event_slot *slot = &ecb->slots[index];
	uint32_t state;

	RULE(index < ecb->events);
	*event = (struct flexsc_ecb_event){
		.event = index,
		.type = slot->type,
		.group = slot->group,
		.fd = slot->fd,
		.error = slot->error,
		.data = (void *)(uintptr_t)slot->data,
		.time = slot->time,
		.payload = { slot->payload[0], slot->payload[1],
			     slot->payload[2] },
	};
	ecb->first[slot->group] = slot->next;
	state = slot_take(slot);
	RULE(state & FLEXSC_EVENT_QUEUED);
	if (!(state & FLEXSC_EVENT_REVOKED))
		return flexsc__payload_complete(ecb, event, state);
	ecb->backend->dropped(ecb, index);
	return false;
}

bool flexsc__take(struct flexsc_ecb *ecb, uint32_t groups,
		  struct flexsc_ecb_event *event)
{
	uint32_t due;

	RULE(ecb->control->critical);
	while ((due = control_pending(ecb->control) & groups)) {
		uint32_t group = (uint32_t)__builtin_ctz(due);
		uint32_t slot = take_first(ecb, group);

		if (slot && take_slot(ecb, slot - 1, event))
			return true;
	}
	return false;
}
