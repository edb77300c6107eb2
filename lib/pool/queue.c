/* SPDX-License-Identifier: MIT */
/*
 * A pool's lists of entries, which the caller locks, and the publication of results.
 */
#include "pool.h"

#include "lib/loop/loop.h"

void flexsc__pool_enqueue(struct pool *pool, uint32_t index)
{
	lock_assert_held(&pool->lock);
	calls_append(pool->loop, &pool->queue, index);
	call_of(pool->loop, index)->where = POOL_QUEUED;
	atomic_store_explicit(&pool->backlog, pool->queue.count,
			      memory_order_relaxed);
}

/* Deferred entries are doubly linked, because any of them may be cancelled. */
void flexsc__pool_defer(struct pool *pool, uint32_t index)
{
	struct call *call = call_of(pool->loop, index);

	lock_assert_held(&pool->lock);
	call->where = POOL_DEFERRED;
	call->place = pool->deferred.count ? pool->deferred.tail : NONE;
	calls_append(pool->loop, &pool->deferred, index);
	call->next = NONE;
}

void flexsc__pool_undefer(struct pool *pool, uint32_t index)
{
	uint32_t next = call_of(pool->loop, index)->next;
	uint32_t prev = call_of(pool->loop, index)->place;

	lock_assert_held(&pool->lock);
	if (prev != NONE)
		call_of(pool->loop, prev)->next = next;
	else
		pool->deferred.head = next;
	if (next != NONE)
		call_of(pool->loop, next)->place = prev;
	else
		pool->deferred.tail = prev;
	pool->deferred.count--;
}

void flexsc__pool_publish(struct pool *pool, uint32_t index, int64_t ret)
{
	struct flexsc_entry *entry = entry_of(pool->loop, index);

	entry_finish(entry, ret);
	completions_push(&pool->loop->completions, entry, index);
}
