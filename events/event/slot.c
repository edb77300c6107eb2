/* SPDX-License-Identifier: MIT */
#include "slot.h"

#include <errno.h>
#include <flexsc/ecb.h>
#include <string.h>

#include "lib/base/checks.h"
#include "ecb.h"

/* Returns the index of a free slot, + 1; 0: no slot is free. */
static uint32_t slot_free(struct flexsc_ecb *ecb)
{
	uint32_t slot = ecb->free;

	if (slot)
		ecb->free = ecb->sources[slot - 1].link;
	else if (ecb->fresh < ecb->events)
		slot = ++ecb->fresh;
	return slot;
}

int flexsc__slot_give(struct flexsc_ecb *ecb,
		      const struct flexsc_ecb_watch *watch)
{
	uint32_t index = slot_free(ecb) - 1;
	struct flexsc_event_slot *slot = &ecb->slots[index];

	if (index == UINT32_MAX)
		return -ENOSPC;
	RULE(!__atomic_load_n(&slot->state, __ATOMIC_RELAXED));
	ecb->sources[index] = (struct source){
		.want = watch->want,
		.type = (uint8_t)watch->type,
		.group = (uint8_t)watch->group,
		.later = (uint8_t)watch->group,
		.flags = SOURCE_USED,
	};
	slot->gen++;
	slot->type = watch->type;
	slot->group = watch->group;
	slot->fd = watch->fd;
	slot->error = 0;
	slot->data = watch->data;
	slot->time = 0;
	memset(slot->payload, 0, sizeof(slot->payload));
	return (int)index;
}

void flexsc__slot_dropped(struct flexsc_ecb *ecb, uint32_t index)
{
	struct source *source = &ecb->sources[index];

	RULE(source->flags == SOURCE_REVOKED);
	source->flags = 0;
	source->link = ecb->free;
	ecb->free = index + 1;
}

static void slot_unhold(struct flexsc_ecb *ecb, uint32_t index)
{
	uint32_t *link = &ecb->held;
	uint32_t before = 0;

	while (*link != index + 1) {
		before = *link;
		link = &ecb->sources[before - 1].link;
	}
	*link = ecb->sources[index].link;
	if (!*link)
		ecb->held_last = before;
	ecb->control->held--;
}

void flexsc__slot_revoke(struct flexsc_ecb *ecb, uint32_t index)
{
	struct source *source = &ecb->sources[index];
	uint32_t *state = &ecb->slots[index].state;

	RULE(source->flags & SOURCE_USED);
	if (source->flags & SOURCE_HELD)
		slot_unhold(ecb, index);
	source->flags = SOURCE_REVOKED;
	/*
	 * Relaxed: no source marks the slot any more, and this thread, the owner's,
	 * is the only one that takes slots.
	 */
	if (__atomic_load_n(state, __ATOMIC_RELAXED))
		__atomic_fetch_or(state, FLEXSC_EVENT_REVOKED,
				  __ATOMIC_RELAXED);
	else
		flexsc__slot_dropped(ecb, index);
}
