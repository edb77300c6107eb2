/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <poll.h>

#include "lib/base/checks.h"
#include "lib/base/clock.h"
#include "backend.h"
#include "ecb.h"

/* Push the slot. Returns true if the caller has to notify or wake the owner: S3. */
static bool source_push(struct flexsc_ecb *ecb, uint32_t index, uint32_t bits)
{
	struct flexsc_event_slot *slot = &ecb->slots[index];
	const struct source *source = &ecb->sources[index];

	if (!slot_mark(slot, bits))
		return false;
	/* The slot is on no list, so the owner doesn't read its fields now. */
	slot->type = source->type;
	slot->group = source->group;
	if (ecb->flags & FLEXSC_ECB_TIMES)
		slot->time = time_monotonic();
	return control_push(ecb->control, ecb->slots, index, source->group);
}

static void source_hold(struct flexsc_ecb *ecb, uint32_t index, uint32_t bits)
{
	struct source *source = &ecb->sources[index];

	source->held |= bits;
	if (source->flags & SOURCE_HELD)
		return;
	source->flags |= SOURCE_HELD;
	source->link = 0;
	if (ecb->held)
		ecb->sources[ecb->held_last - 1].link = index + 1;
	else
		ecb->held = index + 1;
	ecb->held_last = index + 1;
	ecb->control->held++;
}

void flexsc__source_raise(struct flexsc_ecb *ecb, uint32_t index,
			  uint32_t bits)
{
	const struct source *source = &ecb->sources[index];

	RULE(ecb->control->critical);
	RULE(source->flags & SOURCE_USED);
	if (control_deliverable(ecb->control) & 1U << source->group)
		/* S3 isn't needed, because this is the owner's own thread. */
		source_push(ecb, index, bits);
	else
		source_hold(ecb, index, bits);
}

void flexsc__source_again(struct flexsc_ecb *ecb, uint32_t index)
{
	RULE(ecb->control->critical);
	source_push(ecb, index, 0);
}

void flexsc__source_flush(struct flexsc_ecb *ecb)
{
	uint32_t *link = &ecb->held;
	uint32_t last = 0;

	RULE(ecb->control->critical);
	while (*link) {
		uint32_t index = *link - 1;
		struct source *source = &ecb->sources[index];

		if (!(control_deliverable(ecb->control) &
		      1U << source->group)) {
			link = &source->link;
			last = index + 1;
			continue;
		}
		*link = source->link;
		source->flags &= (uint8_t)~SOURCE_HELD;
		ecb->control->held--;
		source_push(ecb, index, source->held);
		source->held = 0;
	}
	ecb->held_last = last;
}

void flexsc__source_post(struct flexsc_ecb *ecb, uint32_t index,
			 uint64_t word)
{
	/*
	 * Store the word before S1, so that the owner finds it when it takes the
	 * slot.
	 */
	__atomic_fetch_or(&ecb->sources[index].word, word, __ATOMIC_RELAXED);
	if (source_push(ecb, index, POLLIN))
		ecb->backend->kick(ecb, 1U << ecb->sources[index].group);
}
