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

static void staged_unlink(struct flexsc_loop *loop, struct staged *staged)
{
	staged_of(loop, staged->prev)->next = staged->next;
	staged_of(loop, staged->next)->prev = staged->prev;
	loop->waiting--;
}

static void staged_wait(struct flexsc_loop *loop, uint32_t index)
{
	struct staged *staged = staged_of(loop, index);
	struct staged *head = staged_of(loop, WAITING);

	staged->state = STAGED_WAITING;
	staged->next = WAITING;
	staged->prev = head->prev;
	staged_of(loop, head->prev)->next = index;
	head->prev = index;
	count(&loop->stats->waited, 1);
	loop->waiting++;
}

static bool staged_grow(struct flexsc_loop *loop)
{
	uint32_t first = loop->staged.count;

	if (flexsc__arena_grow(&loop->staged))
		return false;
	for (uint32_t i = loop->staged.count; i-- > first;) {
		staged_of(loop, i)->next = loop->staged_free;
		loop->staged_free = i;
	}
	return true;
}

static void staged_free(struct flexsc_loop *loop, uint32_t index)
{
	struct staged *staged = staged_of(loop, index);

	wheel_clear(&loop->wheel, &staged->deadline);
	staged->state = STAGED_FREE;
	staged->cb = NULL;
	staged->next = loop->staged_free;
	loop->staged_free = index;
}

int flexsc__staged_init(struct flexsc_loop *loop)
{
	int err = flexsc__arena_init(&loop->staged, sizeof(struct staged),
				     ARENA_MAX);

	loop->staged_free = NONE;
	if (err)
		return err;
	if (!staged_grow(loop))
		return -ENOMEM;
	/*
	 * Take element 0 off the free list: this element heads the waiting list, and is
	 * never freed.
	 */
	loop->staged_free = staged_of(loop, WAITING)->next;
	staged_of(loop, WAITING)->next = WAITING;
	staged_of(loop, WAITING)->prev = WAITING;
	return 0;
}

/*
 * Returns the link from a predecessor (an entry or a staged call) to the staged call
 * chained to it.
 */
static uint32_t *chained_to(struct flexsc_loop *loop, enum handle_kind kind,
			    uint32_t index)
{
	return kind == HANDLE_CALL ? &call_of(loop, index)->chained :
				     &staged_of(loop, index)->chained;
}

static void staged_attach(struct flexsc_loop *loop, uint32_t index,
			  enum handle_kind kind, uint32_t before)
{
	struct staged *staged = staged_of(loop, index);

	staged->state = STAGED_CHAINED;
	staged->before = before;
	staged->before_kind = kind;
	*chained_to(loop, kind, before) = index;
}

/* Fill a free entry with a staged call, without its cb. */
static void staged_fill(struct flexsc_loop *loop, uint32_t index,
			uint32_t entry_index)
{
	struct staged *staged = staged_of(loop, index);
	struct flexsc_entry *entry = entry_of(loop, entry_index);
	struct call *call = call_of(loop, entry_index);

	entry->nr = staged->nr;
	entry->nargs = flexsc__call_info(staged->nr)->nargs;
	memcpy(entry->args, staged->args, sizeof(entry->args));
	call->chained = staged->chained;
	if (staged->chained != NO_STAGED)
		staged_attach(loop, staged->chained, HANDLE_CALL, entry_index);
	call->deadline = staged->deadline;
	if (staged->deadline) {
		struct timer *timer = wheel_timer(&loop->wheel,
						  staged->deadline);

		timer->kind = TIMER_CALL;
		timer->owner = entry_index;
		staged->deadline = TIMER_NONE;
	}
}

/* Let a staged call take a free entry. */
static void staged_start(struct flexsc_loop *loop, uint32_t index,
			 uint32_t entry_index)
{
	const struct staged *staged = staged_of(loop, index);

	staged_fill(loop, index, entry_index);
	submit(loop, entry_index, flexsc__call_info(staged->nr), staged->cb);
	staged_free(loop, index);
}

/* May the engine start the staged call that is chained to a call with this cb? */
static bool cb_can_lead(const struct flexsc_cb *cb, const struct staged *next)
{
	return cb && !cb->callback &&
	       flexsc__call_info(next->nr)->class != CLASS_SELF;
}

/*
 * The number of staged calls that get the same argument as this one, with it. The engine
 * passes the argument only to calls with entries, so 0 if one of them can't get one.
 */
static uint32_t staged_sharers(struct flexsc_loop *loop, uint32_t index)
{
	const struct staged *staged = staged_of(loop, index);
	const struct staged *next = staged_of(loop, staged->chained);
	uint32_t n = 1;

	while (next->chain & FLEXSC_CHAIN_SAME) {
		if (!cb_can_lead(staged->cb, next))
			return 0;
		staged = next;
		next = staged_of(loop, staged->chained);
		n++;
	}
	return n;
}

/* How many calls behind this one may the engine start? More may follow these. */
static uint32_t staged_can_link(struct flexsc_loop *loop, uint32_t index)
{
	const struct call *call = call_of(loop, index);

	if (call->chained == NO_STAGED || call->chained == CHAINED_ENTRY ||
	    !cb_can_lead(call->cb, staged_of(loop, call->chained)) ||
	    loop->waiting ||
	    loop->posted - loop->completed > loop->entries.max / 2)
		return 0;
	return staged_sharers(loop, call->chained);
}

/* Link the staged call that is chained to this entry. Returns its entry. */
static uint32_t staged_link_next(struct flexsc_loop *loop, uint32_t index,
				 uint8_t route)
{
	struct call *call = call_of(loop, index);
	const uint32_t staged = call->chained, next = free_take(loop);

	staged_fill(loop, staged, next);
	call_of(loop, next)->route = route;
	call_of(loop, next)->chain = staged_of(loop, staged)->chain;
	submit_linked(loop, next, staged_of(loop, staged)->cb);
	staged_free(loop, staged);
	call->chained = CHAINED_ENTRY;
	call->chain |= CHAIN_LEADS;
	entry_of(loop, index)->link = next;
	return next;
}

uint32_t flexsc__staged_link(struct flexsc_loop *loop, uint32_t index,
			     uint8_t route)
{
	uint32_t n = 0, more;

	loop_assert_owner(loop);
	while ((more = staged_can_link(loop, index)) && free_reserve(loop, more)) {
		n += more;
		while (more--)
			index = staged_link_next(loop, index, route);
	}
	return n;
}

static void staged_start_or_wait(struct flexsc_loop *loop, uint32_t index)
{
	uint32_t entry = loop->waiting ? NONE : free_take(loop);

	if (entry != NONE)
		staged_start(loop, index, entry);
	else
		staged_wait(loop, index);
}

/* Complete a staged call that hasn't run. Its successors stay staged. */
static void staged_complete(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret)
{
	struct flexsc_cb *cb = staged_of(loop, index)->cb;

	staged_free(loop, index);
	loop->completed++;
	count_shared(&loop->stats->cancelled, 1);
	if (cb) {
		loop->events++;
		flexsc__ready(loop, cb, ret);
	} else {
		flexsc__stats_unreported(loop, ret);
	}
}

/*
 * Store a value in an argument of the staged call, and of those behind it that get the
 * same one, if the chain flags request it.
 */
static void chain_pass(struct flexsc_loop *loop, struct staged *staged,
		       uint64_t value)
{
	const unsigned int done = CHAIN_ARGS | FLEXSC_CHAIN_SAME;

	if (!(staged->chain & CHAIN_ARGS))
		return;
	do {
		staged->args[(staged->chain & CHAIN_ARGS) - 1] = value;
		staged->chain &= (uint8_t)~done;
		staged = staged_of(loop, staged->chained);
	} while (staged->chain & FLEXSC_CHAIN_SAME);
}

/* Called when the staged call's predecessor has completed with ret. */
static void chain_result(struct flexsc_loop *loop, struct staged *staged,
			 int64_t ret)
{
	chain_pass(loop, staged, (uint64_t)ret);
	staged->chain &= FLEXSC_CHAIN_ALWAYS;
}

/*
 * Complete a staged call with ret, and its successors with -ECANCELED, up to one with
 * FLEXSC_CHAIN_ALWAYS. Returns that one, or NO_STAGED. *inherits: its argument is to be
 * that of the first call.
 */
static uint32_t staged_drop(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret, bool *inherits)
{
	do {
		uint32_t next = staged_of(loop, index)->chained;
		uint8_t dropped = staged_of(loop, index)->chain;
		struct staged *staged = staged_of(loop, next);

		staged_complete(loop, index, ret);
		*inherits = staged->chain & FLEXSC_CHAIN_SAME;
		staged->chain = chain_inherit(staged->chain, dropped);
		index = next;
		ret = -ECANCELED;
	} while (index != NO_STAGED &&
		 !(staged_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS));
	return index;
}

/*
 * Complete a staged call with ret. Its successor with FLEXSC_CHAIN_ALWAYS, if any,
 * takes its place: behind the same predecessor, or in the waiting list.
 */
void flexsc__staged_end(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	struct staged *staged = staged_of(loop, index);
	bool chained = staged->state == STAGED_CHAINED;
	enum handle_kind kind = staged->before_kind;
	uint32_t before = staged->before;
	bool inherits;

	loop_assert_owner(loop);
	if (chained)
		*chained_to(loop, kind, before) = NO_STAGED;
	else
		staged_unlink(loop, staged);
	index = staged_drop(loop, index, ret, &inherits);
	if (index == NO_STAGED)
		return;
	if (!chained || !inherits)
		chain_result(loop, staged_of(loop, index), -ECANCELED);
	if (chained)
		staged_attach(loop, index, kind, before);
	else
		staged_wait(loop, index);
}

void flexsc__staged_follow(struct flexsc_loop *loop, uint32_t before,
			   uint32_t cancelled)
{
	uint32_t *link = &call_of(loop, cancelled)->chained, index;

	loop_assert_owner(loop);
	while ((index = *link) != NO_STAGED &&
	       !(staged_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS))
		link = &staged_of(loop, index)->chained;
	if (index == NO_STAGED)
		return;
	*link = NO_STAGED;
	chain_result(loop, staged_of(loop, index), -ECANCELED);
	staged_attach(loop, index, HANDLE_CALL, before);
}

int64_t flexsc__chain_outcome(unsigned int chain,
			      const struct flexsc_entry *entry, int64_t ret)
{
	return chain & FLEXSC_CHAIN_FULL && ret >= 0 &&
		       (uint64_t)ret < flexsc__requested_length(entry) ?
		       -ECANCELED :
		       ret;
}

void flexsc__staged_go(struct flexsc_loop *loop, uint32_t index, int64_t ret)
{
	bool inherits;
	uint32_t entry;

	loop_assert_owner(loop);
	if (ret < 0 && !(staged_of(loop, index)->chain & FLEXSC_CHAIN_ALWAYS)) {
		index = staged_drop(loop, index, -ECANCELED, &inherits);
		ret = -ECANCELED;
	}
	if (index == NO_STAGED)
		return;
	chain_result(loop, staged_of(loop, index), ret);
	entry = free_take(loop);
	if (entry != NONE)
		staged_start(loop, index, entry);
	else
		staged_wait(loop, index);
}

int flexsc__staged_post(struct flexsc_loop *loop, struct flexsc_cb *cb,
			const struct staged *call, uint64_t before)
{
	enum handle_kind kind = handle_kind(before);
	uint32_t index = loop->staged_free;
	struct staged *staged;

	loop_assert_owner(loop);
	if (before && *chained_to(loop, kind, (uint32_t)handle_index(before)) !=
			      NO_STAGED)
		return -EBUSY;
	if (index == NONE) {
		if (!staged_grow(loop))
			return -ENOMEM;
		index = loop->staged_free;
	}
	staged = staged_of(loop, index);
	loop->staged_free = staged->next;
	*staged = *call;
	staged->cb = cb;
	staged->chained = NO_STAGED;
	staged->deadline = TIMER_NONE;
	if (cb)
		cb->handle = handle_make(HANDLE_STAGED, index);
	loop->posted++;
	if (before)
		staged_attach(loop, index, kind,
			      (uint32_t)handle_index(before));
	else
		staged_start_or_wait(loop, index);
	return 0;
}

void flexsc__staged_next(struct flexsc_loop *loop)
{
	uint32_t first = staged_of(loop, WAITING)->next;

	loop_assert_owner(loop);
	staged_unlink(loop, staged_of(loop, first));
	staged_start(loop, first, free_take(loop));
}
