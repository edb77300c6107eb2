/* SPDX-License-Identifier: MIT */
/*
 * The ring of an owner that is stuck in the kernel (run/handover.h). The heir's thread
 * runs these functions, and the owner doesn't use the ring meanwhile, except
 * flexsc__uring_withdraw(), which the owner runs when it is back.
 */
#include <stdbool.h>
#include <stdint.h>

#include "uring_direct.h"
#include "uring_reap.h"
#include "uring.h"

enum reach flexsc__uring_reach(struct flexsc_loop *loop, uint32_t index)
{
	const struct uring *uring = uring_of(loop);
	const struct call *call = call_of(loop, index);

	if (!call_is_direct(call) && call->route == BY_POOL)
		return REACH_EXECUTED;
	if (flexsc__uring_unseen(uring, call->name))
		return REACH_UNSEEN;
	/*
	 * While the completion queue is full, the kernel may hold back the call's
	 * result: assume that the call was executed.
	 */
	if (ring_overflows(&uring->ring))
		return REACH_EXECUTED;
	/*
	 * With IORING_SETUP_DEFER_TASKRUN, the kernel executes pending requests only
	 * when the owner enters the kernel.
	 */
	return uring->ring.uring.flags & IORING_SETUP_DEFER_TASKRUN ?
		       REACH_ARMED :
		       REACH_EXECUTED;
}

bool flexsc__uring_withdraw(struct flexsc_loop *loop, uint32_t index)
{
	struct io_uring_sqe *sqe =
		flexsc__uring_unseen(uring_of(loop), name_of(loop, index));

	if (!sqe)
		return false;
	do_nothing(sqe);
	return true;
}

/* May any thread cancel? With a poller, which takes the requests of any thread. */
bool flexsc__uring_cancels_anywhere(const struct flexsc_loop *loop)
{
	return uring_of(loop)->ring.polled;
}

/* Publish the ring's requests, and results that the kernel holds back. */
void flexsc__uring_tend(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (!ring->polled)
		return;
	loop->engine->submit(loop);
	if (ring_overflows(ring))
		flexsc__ring_enter(ring, 0);
}
