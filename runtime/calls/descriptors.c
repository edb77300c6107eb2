/* SPDX-License-Identifier: MIT */
#include "descriptors.h"

#include <errno.h>
#include <linux/close_range.h>

#include "lib/calls/call_info.h"
#include "lib/files/closing.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "lib/files/guard.h"
#include "lib/files/private_fd.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/closings.h"
#include "runtime/sched/host.h"
#include "runtime/sched/state.h"
#include "calls.h"

/*
 * close_range() that skips the runtime's own descriptors, which the program must not
 * see. Until it ends, no other thread may create such a descriptor: the runtime records
 * a descriptor's facts, by which this function recognises it, only after the creation.
 */
static long close_others(const uint64_t a[6])
{
	uint64_t first = (uint32_t)a[0], last = (uint32_t)a[1], own;
	long ret = 0;

	flexsc__private_fds_freeze(FREEZE_RANGE);
	for (; !ret && first <= last; first = own + 1) {
		own = flexsc__fds_next(first, last);
		while (own <= last && !fds_is_own((uint32_t)own))
			own = flexsc__fds_next(own + 1, last);
		if (own > first)
			ret = raw_syscall(SYS_close_range, first, own - 1, 0, 0,
					  0, 0);
	}
	flexsc__private_fds_thaw(FREEZE_RANGE);
	return ret;
}

/*
 * close_range() with CLOSE_RANGE_UNSHARE. First, a call that closes nothing gives u a
 * table of its own, so u stays on its host from then on. If no other thread shares the
 * table, the kernel doesn't replace it, and the runtime still needs its own descriptors
 * there. So these are skipped in any case.
 */
static long close_others_alone(struct uthread *u, const uint64_t a[6])
{
	const struct flexsc_entry nothing = {
		.nr = SYS_close_range,
		.args = { UINT32_MAX, UINT32_MAX, CLOSE_RANGE_UNSHARE },
	};
	const uint64_t others[6] = { a[0], a[1] };
	long ret = flexsc__dispatch(u, SYS_close_range, &nothing);

	return ret ? ret : close_others(others);
}

static bool closes_own(const struct call_info *row, const uint64_t a[6])
{
	return (row->closes == CLOSES_ONE && fds_is_own((uint32_t)a[0])) ||
	       (row->closes == CLOSES_OTHER && fds_is_own((uint32_t)a[1]));
}

void flexsc__descriptors_closing(uint32_t fd)
{
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	if (fds_is_marked(fd)) {
		if (enters)
			flexsc__enter(u);
		flexsc__guard_closing(fd);
		if (enters)
			flexsc__exit(u);
	}
	closings_count(fd);
	closings_wait();
	fds_forget_closed(fd);
}

/*
 * Count a closing, before the closing call and again after it. A call that another user
 * thread posts in between may still use the old file, so that call must not move to
 * another carrier (sched/closings.h).
 */
static void count_closing(const struct call_info *row, const uint64_t a[6])
{
	if (row->closes == CLOSES_RANGE)
		flexsc__closings_count_range((uint32_t)a[0], (uint32_t)a[1]);
	else
		closings_count((uint32_t)a[row->closes == CLOSES_OTHER]);
}

bool flexsc__descriptors_begin(struct fds_call *call)
{
	const struct call_info *row = call->row;
	const struct flexsc_entry *entry = call->entry;
	const uint64_t *a = (const uint64_t *)entry->args;

	if (!call_changes_fds(call->variant))
		return true;
	if (closes_own(row, a))
		return false;
	if (row->closes && row->closes != CLOSES_SHUT) {
		count_closing(row, a);
		closings_wait();
		flexsc__closing_begin_alone(entry);
	}
	flexsc__fds_note(entry);
	if (call->variant->changes == CHANGES_FLAGS)
		call->begun = flexsc__fds_set_begin();
	return true;
}

long flexsc__descriptors_close_range(struct uthread *u, long nr,
				     const struct flexsc_entry *entry)
{
	const uint64_t *a = (const uint64_t *)entry->args;

	/* The kernel returns an error, or closes nothing (CLOSE_RANGE_CLOEXEC). */
	if ((uint32_t)a[0] > (uint32_t)a[1] ||
	    (uint32_t)a[2] & ~CLOSE_RANGE_UNSHARE)
		return flexsc__dispatch(u, nr, entry);
	return (uint32_t)a[2] ? close_others_alone(u, a) : close_others(a);
}

/*
 * Record a call's changes once more after the call: since the first record, another
 * thread may have recorded the descriptor's old facts, or begun to wait for the old
 * file.
 */
static void changed(const struct fds_call *call, long ret)
{
	const struct call_info *row = call->row, *variant = call->variant;
	const uint64_t *a = (const uint64_t *)call->entry->args;

	flexsc__fds_note(call->entry);
	if (row->closes && row->closes != CLOSES_SHUT)
		count_closing(row, a);
	if (row->closes)
		flexsc__closing_end_alone(call->entry, ret);
	/* FIONBIO's flag is in memory that may have changed, so record no fact. */
	if (variant->changes == CHANGES_FLAGS)
		flexsc__fds_set_end((uint32_t)a[0], a[variant->flags_arg],
				    call->begun, variant->flags_arg ? ret : -1);
}

void flexsc__descriptors_end(const struct fds_call *call, long ret)
{
	const struct call_info *variant = call->variant;

	if (call_changes_fds(variant))
		changed(call, ret);
	if (ret < 0 || !call_adds_fds(variant))
		return;
	flexsc__fds_note_made(call->entry, ret);
	if (variant->passes)
		flexsc__fds_note_sent(variant->passes, call->entry->args[1], ret);
}
