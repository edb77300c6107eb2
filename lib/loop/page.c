/* SPDX-License-Identifier: MIT */
/*
 * Syscall pages: entries, the struct call of each, and the list of free entries. Owner
 * only.
 */
#include "page.h"

#include <errno.h>

#include "loop.h"

/* Put entries [first, count) at the front of the free list. */
static void add_free(struct flexsc_loop *loop, uint32_t first)
{
	for (uint32_t i = loop->entries.count; i-- > first;) {
		call_of(loop, i)->index = i;
		call_of(loop, i)->next = loop->free;
		loop->free = i;
	}
}

/* Double the pages, up to the limit. False: they can't grow, so calls are staged. */
bool flexsc__pages_grow(struct flexsc_loop *loop)
{
	uint32_t first = loop->entries.count;
	int err = flexsc__arena_grow(&loop->entries);

	loop_assert_owner(loop);
	if (err)
		return false;
	while (loop->calls.count < loop->entries.count) {
		if (flexsc__arena_grow(&loop->calls)) {
			/*
			 * Drop the new entries: there is no memory for their struct
			 * calls.
			 */
			loop->entries.count = first;
			return false;
		}
	}
	add_free(loop, first);
	return true;
}

int flexsc__pages_init(struct flexsc_loop *loop, uint32_t max_entries)
{
	int err;

	loop->free = NONE;
	err = flexsc__arena_init(&loop->entries, sizeof(struct flexsc_entry),
			 max_entries);
	if (!err)
		err = flexsc__arena_init(&loop->calls, sizeof(struct call),
				 loop->entries.max);
	if (!err && loop->calls.max < loop->entries.max)
		loop->entries.max = loop->calls.max /
			FLEXSC_PAGE_ENTRIES * FLEXSC_PAGE_ENTRIES;
	if (!err && !flexsc__pages_grow(loop))
		err = -ENOMEM;
	return err;
}

void flexsc__pages_fini(struct flexsc_loop *loop)
{
	flexsc__arena_fini(&loop->calls);
	flexsc__arena_fini(&loop->entries);
}
