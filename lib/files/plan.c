/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "effects.h"

#define NEEDS		(NEED_WAITS | NEED_SEEKS | STREAMS)
#define CURRENT		((__u64)-1)	/* offset argument: use the file's position */

uint8_t *flexsc__plan_uses;

static uint8_t use_of(const struct call_info *row)
{
	unsigned int use = row->dir ? NEED_WAITS : 0;

	if (row->position == POSITION_GIVEN ||
	    row->position == POSITION_IF_NEGATIVE)
		use |= NEED_SEEKS;
	/*
	 * The offset argument decides whether the descriptor must be pollable (-1)
	 * or seekable.
	 */
	if (row->position == POSITION_USED ||
	    row->position == POSITION_IF_NEGATIVE)
		use |= row->dir == POLL_READ ? NEED_POLLS_IN : NEED_POLLS_OUT;
	if (row->closes)
		use |= EFFECT_CLOSES;
	/* Let flexsc__plan_ask() decide on a shutdown. */
	if (row->traits & CALL_CHANGES || row->closes == CLOSES_SHUT)
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

bool flexsc__plan_at_position(const struct call_info *row, const __u64 *args)
{
	return row->position == POSITION_USED ||
	       (row->position == POSITION_IF_NEGATIVE &&
		args[row->position_arg] == CURRENT);
}

/* Returns how a read, write or accept waits. */
static enum waits waits_by_kind(const struct call_info *row, const __u64 *args)
{
	const bool reads = row->dir == POLL_READ;
	const uint32_t kind = flexsc__fds_kind((uint32_t)args[0]);

	if (!kind || kind & (reads ? FD_POLLS_IN : FD_POLLS_OUT))
		return WAITS_POLLED;
	if (kind & FD_PLACED)
		return WAITS_DEVICE;
	return kind & (reads ? FD_RETURNS_IN : FD_RETURNS_OUT) ? WAITS_NEVER :
								 WAITS_UNKNOWN;
}

enum waits flexsc__plan_waits(const struct call_info *row,
			      const struct flexsc_entry *entry)
{
	if (call_poll(row) == POLL_NONE ||
	    flexsc__call_is_unpolled(row, entry->args))
		return WAITS_OTHER;
	return call_is_of_socket(row) ? WAITS_POLLED :
					waits_by_kind(row, entry->args);
}

bool flexsc__plan_wants_all(const struct call_info *row, const __u64 *args)
{
	return args[row->flags_arg] & row->all &&
	       flexsc__fds_find_bytes((uint32_t)args[0]);
}

/*
 * Must the entry's end be reported (closing.h)? A dup3() replaces a descriptor that
 * calls may be waiting for. close_range() isn't checked: a loop's owner always makes it
 * inline, and reports the close. A shutdown is always reported: a call that begins to
 * wait while the shutdown is pending may mark the descriptor only then.
 */
static bool is_followed(const struct flexsc_entry *entry)
{
	const unsigned int closes = flexsc__call_info(entry->nr)->closes;

	return closes == CLOSES_SHUT ||
	       (closes == CLOSES_OTHER &&
		(uint32_t)entry->args[0] != (uint32_t)entry->args[1] &&
		fds_is_marked((uint32_t)entry->args[1]));
}

bool flexsc__plan_ask(const struct flexsc_entry *entry, uint8_t use)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	uint32_t fd = (uint32_t)entry->args[0];

	if (!(use & NEEDS)) {
		flexsc__fds_note(entry);
		return !is_followed(entry);
	}
	if (use & NEED_SEEKS && !flexsc__plan_at_position(row, entry->args)) {
		if (!flexsc__fds_find_seeks(fd))
			return false;
	} else if (use & STREAMS &&
		   waits_by_kind(row, entry->args) != WAITS_POLLED) {
		return false;
	}
	return !(use & NEED_WAITS) || flexsc__fds_find_waits(fd);
}
