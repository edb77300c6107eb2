/* SPDX-License-Identifier: MIT */
/*
 * Direct calls. When a direct call is posted, the engine writes the kernel's own
 * request. Later it reads the result where the kernel has stored it. The loop keeps
 * only a struct call. The entry at the same index is the call's shadow: it stays FREE
 * and unused until an entry is needed. Then the shadow is filled, and the call
 * continues as an ordinary one:
 *
 *	direct	-> SUBMITTED	cancelled before the kernel saw the request, which
 *				is withdrawn
 *	direct	-> BUSY		cancelled, or its result must not be consumed yet. The
 *				entry passes SUBMITTED, unseen by other threads
 *
 * A filled shadow has the call's number, the descriptors among arguments 0 to 2, and
 * the length, or the vector that determines it. That is enough to cancel or complete
 * the call, but not to execute it.
 *
 * Owner only. Direct calls complete in the order of the kernel's results. A callback
 * may post, cancel, and consume results itself.
 */
#ifndef FLEXSC_DIRECT_H
#define FLEXSC_DIRECT_H

#include "handle.h"
#include "loop.h"
#include "stats.h"

/* Returns the word "how" of struct call, for a direct call with number nr. */
static inline uint32_t direct_how(unsigned int nr)
{
	return (uint32_t)nr << 16 | ROUTE_DIRECT << 8;
}

/*
 * Make the first free index a direct call; the caller guarantees that one is free. The
 * caller puts the call's name into the request, and keeps the arguments that a shadow
 * needs.
 */
static inline struct call *direct_post(struct flexsc_loop *loop,
				       struct flexsc_cb *cb, unsigned int nr)
{
	struct call *call = call_of(loop, loop->free);
	uint64_t handle = handle_make(HANDLE_CALL, loop->free);

	loop_assert_owner(loop);
	RULE(ENTRY_IN(entry_of(loop, loop->free), AT(FREE)));
	RULE(!call->cancel && !call->links && !call->partial);
	loop->free = call->next;
	loop->posted++;
	call->cb = cb;
	if (cb)
		cb->handle = handle;
	call->how = direct_how(nr);
	return call;
}

/* Free a direct call whose shadow was never filled. */
static inline void direct_free(struct flexsc_loop *loop, struct call *call)
{
	RULE(call_is_direct(call));
	call->how = 0;
	call->gen++;
	call->next = loop->free;
	loop->free = call->index;
	loop->completed++;
}

/* Called when a direct call has its result: free it, and run its callback. */
static inline void direct_retire(struct flexsc_loop *loop, struct call *call,
				 int64_t ret)
{
	struct flexsc_cb *cb = call->cb;

	if (call->links | loop->unusual) {
		flexsc__call_retire_otherwise(loop, call->index, ret);
		return;
	}
	direct_free(loop, call);
	if (cb)
		callback(cb, ret);
	else
		flexsc__stats_unreported(loop, ret);
}

/*
 * Store the known arguments in the shadow, which stays FREE. flexsc__chain_outcome()
 * reads them.
 */
void flexsc__direct_describe(struct flexsc_loop *loop, uint32_t index);

/*
 * Fill the shadow (the direct call's entry): the call becomes SUBMITTED, and is no
 * longer direct.
 */
void flexsc__direct_fill(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_DIRECT_H */
