/* SPDX-License-Identifier: MIT */
/*
 * Chains that the pool continues (loop/staged.h): when an entry has its result, the pool
 * queues the entry that it leads to, behind all others, so a long chain delays no other
 * call. The caller holds the lock.
 *
 *	CHAINED	-> QUEUED	its predecessor has succeeded, or the call starts after
 *				any result (FLEXSC_CHAIN_ALWAYS)
 *	CHAINED	-> NOT		ended: its predecessor has failed, or the owner cancels
 *				the call
 *
 * An entry's result is published before the next one of the chain is queued or ended.
 * So the owner collects the results of a chain in order, except those that it cancels.
 */
#include <errno.h>

#include "lib/loop/loop.h"
#include "lib/loop/staged.h"
#include "lib/loop/stats.h"
#include "pool.h"

/* Returns the entry that this one leads to, or NONE. */
static uint32_t successor(struct pool *pool, uint32_t index)
{
	return call_of(pool->loop, index)->chain & CHAIN_LEADS ?
		       entry_of(pool->loop, index)->link :
		       NONE;
}

void flexsc__chain_hold(struct pool *pool, uint32_t index)
{
	uint32_t next;

	lock_assert_held(&pool->lock);
	while ((next = successor(pool, index)) != NONE) {
		call_of(pool->loop, next)->where = POOL_CHAINED;
		call_of(pool->loop, next)->place = index;
		index = next;
	}
}

/*
 * Store a value in an argument of the entry's call, and of those behind it that get the
 * same one, if the chain flags request it. Atomic, because the owner may read the
 * arguments in flexsc__call_names().
 */
static void chain_pass(struct pool *pool, uint32_t index, uint64_t value)
{
	const unsigned int done = CHAIN_ARGS | FLEXSC_CHAIN_SAME;
	struct call *call = call_of(pool->loop, index);

	if (!(call->chain & CHAIN_ARGS))
		return;
	do {
		struct flexsc_entry *entry = entry_of(pool->loop, index);

		__atomic_store_n(&entry->args[(call->chain & CHAIN_ARGS) - 1],
				 value, __ATOMIC_RELAXED);
		call->chain &= (uint8_t)~done;
		index = successor(pool, index);
		if (index == NONE)
			break;
		call = call_of(pool->loop, index);
	} while (call->chain & FLEXSC_CHAIN_SAME);
}

/*
 * End an entry, and those behind it up to one with FLEXSC_CHAIN_ALWAYS, with -ECANCELED.
 * Returns that one, or NONE. *inherits: its argument is to be that of the first entry.
 */
static uint32_t chain_drop(struct pool *pool, uint32_t index, bool *inherits)
{
	uint8_t chain;

	do {
		struct call *call = call_of(pool->loop, index);
		uint32_t next = successor(pool, index);
		uint8_t dropped = call->chain;

		call->where = POOL_NOT;
		call->chain = 0;
		/* No other thread begins a CHAINED entry, so this succeeds. */
		(void)entry_begin(entry_of(pool->loop, index));
		flexsc__pool_publish(pool, index, -ECANCELED);
		index = next;
		if (index == NONE)
			break;
		call = call_of(pool->loop, index);
		*inherits = call->chain & FLEXSC_CHAIN_SAME;
		chain = call->chain = chain_inherit(call->chain, dropped);
		if (!(chain & FLEXSC_CHAIN_ALWAYS))
			count_shared(&pool->loop->stats->cancelled, 1);
	} while (!(chain & FLEXSC_CHAIN_ALWAYS));
	return index;
}

static uint32_t last_of(struct pool *pool, uint32_t index)
{
	uint32_t next;

	while ((next = successor(pool, index)) != NONE)
		index = next;
	return index;
}

static void chain_start(struct pool *pool, uint32_t index, int64_t ret)
{
	struct call *call = call_of(pool->loop, index);

	chain_pass(pool, index, (uint64_t)ret);
	/* thread_take() clears the mark. */
	call->chain = (call->chain & CHAIN_LEADS) | CHAIN_FOLLOWS;
	flexsc__pool_enqueue(pool, index);
}

bool flexsc__chain_go_on(struct pool *pool, uint32_t index, int64_t ret)
{
	uint32_t next = successor(pool, index);
	unsigned int chain;
	int64_t outcome;
	bool inherits;

	lock_assert_held(&pool->lock);
	call_of(pool->loop, index)->chain = 0;
	if (next == NONE)
		return false;
	chain = call_of(pool->loop, next)->chain;
	outcome = flexsc__chain_outcome(chain, entry_of(pool->loop, index), ret);
	flexsc__pool_publish(pool, index, ret);
	if (outcome < 0 && !(chain & FLEXSC_CHAIN_ALWAYS)) {
		count_shared(&pool->loop->stats->cancelled, 1);
		next = chain_drop(pool, next, &inherits);
		outcome = -ECANCELED;
	}
	if (next != NONE)
		chain_start(pool, next, outcome);
	return true;
}

bool flexsc__pool_unchain(struct pool *pool, uint32_t index)
{
	struct flexsc_loop *loop = pool->loop;
	uint32_t before, next, last;
	bool inherits, chained;

	loop_assert_owner(loop);
	lock(&pool->lock);
	before = call_of(loop, index)->place;
	chained = call_of(loop, index)->where == POOL_CHAINED;
	if (chained) {
		last = last_of(pool, index);
		next = chain_drop(pool, index, &inherits);
		if (next != NONE && !inherits)
			chain_pass(pool, next, (uint64_t)-ECANCELED);
		entry_of(loop, before)->link = next;
		if (next == NONE) {
			call_of(loop, before)->chain &= (uint8_t)~CHAIN_LEADS;
			call_of(loop, before)->chained = NO_STAGED;
			flexsc__staged_follow(loop, before, last);
		} else {
			call_of(loop, next)->place = before;
		}
	}
	unlock(&pool->lock);
	if (chained)
		loop_notify(loop);
	return chained;
}
