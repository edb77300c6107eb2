/* SPDX-License-Identifier: MIT */
/*
 * Direct calls: an engine has written the kernel's own request when the call
 * was posted, and takes the result from where the kernel puts it. struct call
 * is all that the loop has of it. The entry of the same index is the call's
 * shadow: it is FREE, and nobody looks at it, until somebody needs an entry.
 * Then it is filled, and the call is like any other:
 *
 *	direct	-> SUBMITTED	cancelled, and the kernel hasn't seen the
 *				request, which is withdrawn
 *	direct	-> BUSY		cancelled, or its result isn't wanted yet: by way
 *				of SUBMITTED, as no other thread sees the entry
 *
 * A filled shadow has the call's number. Of the arguments 0 to 2 it has descriptors, and
 * the length or the vector that gives the length. That is enough to cancel or complete
 * the call, but not to execute it.
 *
 * All is done by the owner. Direct calls complete in the order of the kernel's
 * results; a callback may post, cancel, and take results itself meanwhile.
 */
#ifndef FLEXSC_DIRECT_H
#define FLEXSC_DIRECT_H

#include "handle.h"
#include "loop.h"
#include "stats.h"

/* struct call's word "how" of a direct call, of call nr. */
static inline uint32_t direct_how(unsigned int nr)
{
	return (uint32_t)nr << 16 | ROUTE_DIRECT << 8;
}

/*
 * Post a direct call with the first free entry: there is one, and the request
 * has the name of the call. The engine keeps the arguments that a shadow needs.
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

/* A direct call is over; its shadow was never filled. */
static inline void direct_free(struct flexsc_loop *loop, struct call *call)
{
	RULE(call_is_direct(call));
	call->how = 0;
	call->gen++;
	call->next = loop->free;
	loop->free = call->index;
	loop->completed++;
}

/* A direct call has its result: it is freed, and its callback runs. */
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
		flexsc__stats_untold(loop, ret);
}

/* Store in the shadow what is known of the call; it stays FREE. */
void flexsc__direct_describe(struct flexsc_loop *loop, uint32_t index);

/* Fill the shadow: the call is SUBMITTED, and isn't direct any more. */
void flexsc__direct_fill(struct flexsc_loop *loop, uint32_t index);

#endif /* FLEXSC_DIRECT_H */
