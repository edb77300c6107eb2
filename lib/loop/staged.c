/* SPDX-License-Identifier: MIT */
#include "staged.h"

#include <errno.h>
#include <string.h>

#include "lib/calls/call_info.h"
#include "handle.h"
#include "loop.h"
#include "ready.h"
#include "stats.h"
#include "submit.h"

#define WAITING		0U	/* the element that heads the waiting list */

static void held_unlink(struct flexsc_loop *loop, struct held *held)
{
	held_of(loop, held->prev)->next = held->next;
	held_of(loop, held->next)->prev = held->prev;
	loop->waiting--;
}

static void held_wait(struct flexsc_loop *loop, uint32_t index)
{
	struct held *held = held_of(loop, index);
	struct held *head = held_of(loop, WAITING);

	held->state = HELD_WAITING;
	held->next = WAITING;
	held->prev = head->prev;
	held_of(loop, head->prev)->next = index;
	head->prev = index;
	count(&loop->stats->waited, 1);
	loop->waiting++;
}

static bool held_grow(struct flexsc_loop *loop)
{
	uint32_t first = loop->held.count;

	if (flexsc__arena_grow(&loop->held))
		return false;
	for (uint32_t i = loop->held.count; i-- > first;) {
		held_of(loop, i)->next = loop->held_free;
		loop->held_free = i;
	}
	return true;
}

static void held_free(struct flexsc_loop *loop, uint32_t index)
{
	struct held *held = held_of(loop, index);

	wheel_clear(&loop->wheel, &held->deadline);
	held->state = HELD_FREE;
	held->cb = NULL;
	held->next = loop->held_free;
	loop->held_free = index;
}

int flexsc__held_init(struct flexsc_loop *loop)
{
	int err = flexsc__arena_init(&loop->held, sizeof(struct held), ARENA_MAX);

	loop->held_free = NONE;
	if (err)
		return err;
	if (!held_grow(loop))
		return -ENOMEM;
	/* Element 0 came first off the free list: it heads the waiting. */
	loop->held_free = held_of(loop, WAITING)->next;
	held_of(loop, WAITING)->next = WAITING;
	held_of(loop, WAITING)->prev = WAITING;
	return 0;
}

/* The link from a predecessor, an entry or a held call, to its held call. */
static uint32_t *chained_to(struct flexsc_loop *loop, enum handle_kind kind,
			    uint32_t index)
{
	return kind == HANDLE_CALL ? &call_of(loop, index)->chained :
				     &held_of(loop, index)->chained;
}

static void held_attach(struct flexsc_loop *loop, uint32_t index,
			enum handle_kind kind, uint32_t before)
{
	struct held *held = held_of(loop, index);

	held->state = HELD_CHAINED;
	held->before = before;
	held->before_kind = kind;
	*chained_to(loop, kind, before) = index;
}

/* Move a held call into a free entry. */
static void held_start(struct flexsc_loop *loop, uint32_t index,
		       uint32_t entry_index)
{
	struct held *held = held_of(loop, index);
	const struct call_info *row = flexsc__call_info(held->nr);
	struct flexsc_entry *entry = entry_of(loop, entry_index);
	struct call *call = call_of(loop, entry_index);

	entry->nr = held->nr;
	entry->nargs = row->nargs;
	memcpy(entry->args, held->args, sizeof(entry->args));
	call->chained = held->chained;
	if (held->chained != NO_HELD)
		held_attach(loop, held->chained, HANDLE_CALL, entry_index);
	call->deadline = held->deadline;
	if (held->deadline) {
		struct timer *timer = wheel_timer(&loop->wheel, held->deadline);

		timer->kind = TIMER_CALL;
		timer->owner = entry_index;
		held->deadline = TIMER_NONE;
	}
	submit(loop, entry_index, row, held->cb);
	held_free(loop, index);
}

static void held_start_or_wait(struct flexsc_loop *loop, uint32_t index)
{
	uint32_t entry = loop->waiting ? NONE : free_take(loop);

	if (entry != NONE)
		held_start(loop, index, entry);
	else
		held_wait(loop, index);
}

/* Complete a held call that has not run, without its successors. */
static void held_complete(struct flexsc_loop *loop, uint32_t index,
			  int64_t ret)
{
	struct flexsc_cb *cb = held_of(loop, index)->cb;

	held_free(loop, index);
	loop->completed++;
	count(&loop->stats->cancelled, 1);
	if (cb) {
		loop->events++;
		flexsc__ready(loop, cb, ret);
	} else {
		flexsc__stats_untold(loop, ret);
	}
}

/*
 * Give a predecessor's result to a held call, if the call's chain asks for it.
 */
static void chain_result(struct held *held, int64_t ret)
{
	unsigned int arg = held->chain & CHAIN_ARGS;

	if (arg)
		held->args[arg - 1] = (uint64_t)ret;
	held->chain &= FLEXSC_CHAIN_ALWAYS;
}

/*
 * Complete a held call with ret, and its chain with -ECANCELED, up to a call
 * that runs always: that call is returned, or NO_HELD.
 */
static uint32_t held_drop(struct flexsc_loop *loop, uint32_t index,
			  int64_t ret)
{
	do {
		uint32_t next = held_of(loop, index)->chained;

		held_complete(loop, index, ret);
		index = next;
		ret = -ECANCELED;
	} while (index != NO_HELD &&
		 !(held_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS));
	if (index != NO_HELD)
		chain_result(held_of(loop, index), ret);
	return index;
}

/*
 * End a held call that has no entry. A call chained to it that runs always
 * follows whatever the ended call was waiting for.
 */
void flexsc__held_end(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	struct held *held = held_of(loop, index);
	bool chained = held->state == HELD_CHAINED;
	enum handle_kind kind = held->before_kind;
	uint32_t before = held->before;

	loop_assert_owner(loop);
	if (chained)
		*chained_to(loop, kind, before) = NO_HELD;
	else
		held_unlink(loop, held);
	index = held_drop(loop, index, ret);
	if (index == NO_HELD)
		return;
	if (chained)
		held_attach(loop, index, kind, before);
	else
		held_wait(loop, index);
}

int64_t flexsc__chain_outcome(unsigned int chain,
			      const struct flexsc_entry *entry, int64_t ret)
{
	return chain & FLEXSC_CHAIN_FULL && ret >= 0 &&
		       (uint64_t)ret < flexsc__requested_length(entry) ?
		       -ECANCELED :
		       ret;
}

void flexsc__held_go(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	uint32_t entry;

	loop_assert_owner(loop);
	if (ret < 0 && !(held_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS))
		index = held_drop(loop, index, -ECANCELED);
	else
		chain_result(held_of(loop, index), ret);
	if (index == NO_HELD)
		return;
	entry = free_take(loop);
	if (entry != NONE)
		held_start(loop, index, entry);
	else
		held_wait(loop, index);
}

int flexsc__held_post(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      const struct held *call, uint64_t before)
{
	enum handle_kind kind = handle_kind(before);
	uint32_t index = loop->held_free;
	struct held *held;

	loop_assert_owner(loop);
	if (before && *chained_to(loop, kind, (uint32_t)handle_index(before)) !=
			      NO_HELD)
		return -EBUSY;
	if (index == NONE) {
		if (!held_grow(loop))
			return -ENOMEM;
		index = loop->held_free;
	}
	held = held_of(loop, index);
	loop->held_free = held->next;
	*held = *call;
	held->cb = cb;
	held->chained = NO_HELD;
	held->deadline = TIMER_NONE;
	if (cb)
		cb->handle = handle_make(HANDLE_HELD, index);
	loop->posted++;
	if (before)
		held_attach(loop, index, kind, (uint32_t)handle_index(before));
	else
		held_start_or_wait(loop, index);
	return 0;
}

void flexsc__held_next(struct flexsc_loop *loop)
{
	uint32_t first = held_of(loop, WAITING)->next;

	loop_assert_owner(loop);
	held_unlink(loop, held_of(loop, first));
	held_start(loop, first, free_take(loop));
}
