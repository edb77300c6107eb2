/* SPDX-License-Identifier: MIT */
/*
 * Takes a free entry and adds it, once filled, to the next batch. Inline, because each
 * call passes through here. Owner only.
 */
#ifndef FLEXSC_SUBMIT_H
#define FLEXSC_SUBMIT_H

#include "lib/calls/call_info.h"
#include "handle.h"
#include "loop.h"
#include "page.h"

/* Take a free entry; NONE: none is free, and the pages can't grow. */
static inline uint32_t free_take(struct flexsc_loop *loop)
{
	uint32_t index = loop->free;

	if (index == NONE) {
		if (!flexsc__pages_grow(loop))
			return NONE;
		index = loop->free;
	}
	loop->free = call_of(loop, index)->next;
	return index;
}

/* Are n entries free, so that n calls of free_take() succeed? */
static inline bool free_reserve(struct flexsc_loop *loop, uint32_t n)
{
	uint32_t taken = NONE, index;

	for (; n && (index = free_take(loop)) != NONE; n--) {
		call_of(loop, index)->next = taken;
		taken = index;
	}
	for (; taken != NONE; taken = index) {
		index = call_of(loop, taken)->next;
		call_of(loop, taken)->next = loop->free;
		loop->free = taken;
	}
	return !n;
}

/* Submit a filled entry that its predecessor's "link" leads to. */
static inline void submit_linked(struct flexsc_loop *loop, uint32_t index,
				 struct flexsc_cb *cb)
{
	loop_assert_owner(loop);
	call_of(loop, index)->cb = cb;
	if (cb)
		cb->handle = handle_make(HANDLE_CALL, index);
	entry_submit(entry_of(loop, index));
}

/* Add a filled entry to the next batch. */
static inline void submit(struct flexsc_loop *loop, uint32_t index,
			  const struct call_info *row, struct flexsc_cb *cb)
{
	unsigned int group = row->op & loop->group_mask;
	struct call *call = call_of(loop, index);

	submit_linked(loop, index, cb);
	queue_append(&loop->submitted[group], call, index);
	loop->groups |= 1ULL << group;
}

#endif /* FLEXSC_SUBMIT_H */
