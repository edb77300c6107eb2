/* SPDX-License-Identifier: MIT */
/* The uring engine's results: what the ring brings out. Owner only. */
#include "uring_done.h"

#include "../base/compiler.h"
#include "../calls/fds.h"
#include "../calls/partial.h"
#include "../loop/cancel.h"
#include "../pool/closing.h"
#include "uring_ops.h"

static void write_on_or_end(struct flexsc_loop *loop, uint32_t index,
			    int32_t res)
{
	struct uring *uring = uring_of(loop);
	struct call *call = call_of(loop, index);

	if (call->cancel == CANCEL_NOT &&
	    flexsc__partial_rest(entry_of(loop, index), &call->partial, res)) {
		if (call->route == BY_RING_IN_PARTS)
			flexsc__write_continue(loop, &uring->writes, index);
		calls_append(loop, &uring->again, index);
		return;
	}
	if (call->route == BY_RING_IN_PARTS)
		flexsc__write_end(loop, &uring->writes, index);
	call_done(loop, index, flexsc__partial_result(&call->partial, res));
}

/*
 * End a call that io_uring does differently, that makes a descriptor, or that
 * closes one which other calls may wait for.
 */
static COLD void uring_follow(struct flexsc_loop *loop, uint32_t index,
			      int32_t res)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	if (call->route >= BY_RING_AT_ONCE) {
		write_on_or_end(loop, index, res);
		return;
	}
	if (closes(entry))
		flexsc__closing_end(entry);
	flexsc__fds_note_made(entry, res);
	call_done(loop, index, flexsc__uring_result(entry, res));
}

/*
 * A cancellation may not find its request, or not reach it, while the kernel
 * moves the request from one way of waiting to another.
 */
static void uring_cancel_ended(struct flexsc_loop *loop, uint64_t name,
			       int32_t res)
{
	uint32_t index = (uint32_t)name;

	if (res < 0 && name_of(loop, index) == name &&
	    entry_status(entry_of(loop, index)) == FLEXSC_CANCEL)
		flexsc__cancel_later(loop, index);
}

/* Collect a completion that isn't an entry's. */
static COLD void done_other(struct flexsc_loop *loop, uint64_t what,
				     int32_t res)
{
	if (what == WAKE)
		uring_of(loop)->armed = false;
	else if (what != IGNORE)
		uring_cancel_ended(loop, what & ~(uint64_t)CANCEL, res);
}

void flexsc__uring_collect(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_cq *cq = &uring->ring.uring.cq;
	/* R3: acquires the results that the kernel released with the tail. */
	uint32_t tail = __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE);
	uint32_t head = *cq->khead;
	const uint32_t mask = cq->ring_mask;
	const struct io_uring_cqe *cqes = cq->cqes;

	for (; head != tail; head++) {
		const struct io_uring_cqe *cqe = &cqes[head & mask];
		uint32_t index = (uint32_t)cqe->user_data;

		if (index >= CANCEL) {
			done_other(loop, cqe->user_data, cqe->res);
			continue;
		}
		/* The cb's callback runs soon. */
		__builtin_prefetch(call_of(loop, index)->cb, 1);
		if (call_of(loop, index)->route == BY_RING)
			call_done(loop, index, cqe->res);
		else
			uring_follow(loop, index, cqe->res);
	}
	/* R4: the kernel may use these results' room again. */
	__atomic_store_n(cq->khead, head, __ATOMIC_RELEASE);
}

/* The ring is full of requests. */
COLD void flexsc__uring_make_room(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (flexsc__ring_submit(ring))
		flexsc__uring_collect(loop);
	if (ring->polled)
		io_uring_sqring_wait(&ring->uring);
}
