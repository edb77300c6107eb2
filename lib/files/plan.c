/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "effects.h"

#define NEEDS		(NEED_WAITS | NEED_SEEKS | STREAMS)
#define CURRENT		((__u64)-1)	/* an offset: the file's position */

uint8_t *flexsc__plan_uses;

static uint8_t use_of(const struct call_info *row)
{
	unsigned int use = row->dir ? NEED_WAITS : 0;

	if (row->position == POSITION_GIVEN ||
	    row->position == POSITION_IF_NEGATIVE)
		use |= NEED_SEEKS;
	/* An offset that may be -1 decides between polling and seeking. */
	if (row->position == POSITION_USED ||
	    row->position == POSITION_IF_NEGATIVE)
		use |= row->dir == POLL_READ ? NEED_POLLS_IN : NEED_POLLS_OUT;
	if (row->closes)
		use |= EFFECT_CLOSES;
	if (row->traits & CALL_CHANGES)
		use |= EFFECT_CHANGES;
	return (uint8_t)use;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_uses(void)
{
	uint8_t *uses = calloc(flexsc__call_count, 1);

	for (unsigned int nr = 0; uses && nr < flexsc__call_count; nr++)
		uses[nr] = use_of(&flexsc__calls[nr]);
	flexsc__plan_uses = uses;
}

int flexsc__plan_init(void)
{
	pthread_once(&once, find_uses);
	return flexsc__plan_uses ? 0 : -ENOMEM;
}

enum waits flexsc__plan_waits_of(uint32_t fd, unsigned int poll)
{
	bool reads = poll == POLL_READ;
	uint32_t kind = flexsc__fds_kind(fd);

	if (!kind || kind & (reads ? FD_POLLS_IN : FD_POLLS_OUT))
		return WAITS_POLLED;
	if (kind & (FD_PLACED | (reads ? FD_RETURNS_IN : FD_RETURNS_OUT)))
		return WAITS_NEVER;
	return WAITS_UNKNOWN;
}

/*
 * Does the call wait until poll(2) reports its descriptor ready? A call on a bad
 * descriptor counts as such: io_uring returns -EBADF, too.
 */
static bool finds_polls(uint32_t fd, uint8_t use)
{
	return !(use & STREAMS) ||
	       flexsc__plan_waits_of(fd, use & FD_POLLS_IN ? POLL_READ :
							 POLL_WRITE) ==
		       WAITS_POLLED;
}

bool flexsc__plan_at_position(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	return row->position == POSITION_USED ||
	       (row->position == POSITION_IF_NEGATIVE &&
		entry->args[row->position_arg] == CURRENT);
}

/*
 * Does the entry put another file in the place of a descriptor that calls may
 * wait for? (The loops' owners make a close_range() themselves, and report it.)
 */
static bool replaces_marked(const struct flexsc_entry *entry)
{
	return flexsc__call_info(entry->nr)->closes == CLOSES_OTHER &&
	       (uint32_t)entry->args[0] != (uint32_t)entry->args[1] &&
	       fds_is_marked((uint32_t)entry->args[1]);
}

bool flexsc__plan_ask(const struct flexsc_entry *entry, uint8_t use)
{
	uint32_t fd = (uint32_t)entry->args[0];

	if (!(use & NEEDS)) {
		flexsc__fds_note(entry);
		return !replaces_marked(entry);
	}
	if (use & NEED_SEEKS && !flexsc__plan_at_position(entry)) {
		if (!flexsc__fds_find_seeks(fd))
			return false;
	} else if (!finds_polls(fd, use)) {
		return false;
	}
	return !(use & NEED_WAITS) || flexsc__fds_find_waits(fd);
}
