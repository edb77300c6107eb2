/* SPDX-License-Identifier: MIT */
#include "uring_eager.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/calls/partial.h"
#include "lib/calls/call_info.h"
#include "lib/loop/stats.h"
#include "lib/pool/pool.h"
#include "uring.h"
#include "uring_reap.h"
#include "uring_ops.h"

#define PAGE	4096U	/* divides all page sizes */

static bool at_offset(const struct flexsc_entry *entry)
{
	return flexsc__call_info(entry->nr)->position == POSITION_GIVEN;
}

/*
 * Does the kernel consume each submitted request before the pool gets calls? A polling
 * thread of Linux before 6.0 might not, and the owner can't withdraw the request then.
 * Linux 6.0 is the first that has the operation SEND_ZC.
 */
static bool is_consumed_first(const struct uring *uring)
{
	return !uring->ring.polled || uring->operations >> IORING_OP_SEND_ZC & 1;
}

void flexsc__uring_eager_request(struct flexsc_loop *loop,
				 struct io_uring_sqe *sqe)
{
	sqe->rw_flags = RWF_NOWAIT;
	uring_of(loop)->eager = true;
}

bool flexsc__uring_eager(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	uint32_t fd = (uint32_t)entry->args[0];
	struct io_uring_sqe *sqe;

	if (flexsc__call_info(entry->nr)->op != IORING_OP_READ)
		return false;
	if (fds_known(fd) & (at_offset(entry) ? FD_SEEKS : FD_POLLS_IN))
		return false;
	if (!at_offset(entry) && !is_consumed_first(uring_of(loop)))
		return false;
	sqe = uring_request(loop);
	if (!uring_prepare(sqe, IORING_OP_READ, entry, uring_of(loop)->known) ||
	    (!at_offset(entry) &&
	     !flexsc__fds_exchange(fd, FD_OPENED, FD_READING))) {
		uring_return(loop);
		return false;
	}
	flexsc__uring_eager_request(loop, sqe);
	sqe->user_data = name_of(loop, index);
	entry_begin_alone(entry);
	call_of(loop, index)->route = BY_RING_EAGER;
	return true;
}

/*
 * Does the eager read have the plain call's result: all bytes, the bytes up to the end
 * of the file, or an error?
 */
static bool is_whole(const struct flexsc_entry *entry, int32_t res)
{
	if (res < 0)
		return res != -EAGAIN && res != -EOPNOTSUPP && !at_offset(entry);
	if (!res || (uint64_t)res == entry->args[2])
		return true;
	return at_offset(entry) && (entry->args[3] + (uint64_t)res) % PAGE;
}

static void end(struct flexsc_loop *loop, uint32_t index, int32_t res)
{
	call_done(loop, index,
		  flexsc__partial_result(entry_of(loop, index),
					 &call_of(loop, index)->partial, res));
}

/*
 * The eager read got no further data: execute the call, which is BUSY, in another way.
 */
static void go_on(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	struct call_list one = { 0 };

	/*
	 * Only a file on a disk may have more data. For a file of another kind, the
	 * result is what was read so far.
	 */
	if (flexsc__partial_begun(&call->partial) &&
	    !(flexsc__fds_kind((uint32_t)entry->args[0]) & FD_PLACED)) {
		end(loop, index, 0);
		return;
	}
	if (plan_admit(entry)) {
		call->route = BY_RING;
		calls_append(loop, &uring_of(loop)->again, index);
		return;
	}
	if (!flexsc__pool_ensure(loop)) {
		flexsc__uring_end(loop, index, loop->no_thread);
		return;
	}
	count(&loop->stats->by_uring, -1ULL);
	call->route = BY_POOL;
	calls_append(loop, &one, index);
	flexsc__pool_submit(loop_pool(loop), &one);
}

void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	uint32_t fd = (uint32_t)entry->args[0];

	if (is_whole(entry, res)) {
		if (at_offset(entry))
			flexsc__fds_exchange(fd, FD_OPENED,
					     FD_OPENED | FD_SEEKS);
		else
			flexsc__fds_exchange(fd, FD_READING, FD_OPENED);
		end(loop, index, res);
	} else if (call->cancel != CANCEL_NOT) {
		end(loop, index, res > 0 ? res : -ECANCELED);
	} else if (res > 0 && !at_offset(entry)) {
		/* If memory for the remainder is short, return a short read. */
		if (flexsc__partial_read(entry, &call->partial, res))
			calls_append(loop, &uring_of(loop)->again, index);
		else
			end(loop, index, res);
	} else {
		flexsc__fds_use_position(entry);
		go_on(loop, index);
	}
}

/*
 * If this is the request of an eager read() at the file's position, returns the index
 * of the call; otherwise NONE.
 */
static uint32_t eager_of(const struct flexsc_loop *loop,
			 const struct io_uring_sqe *sqe)
{
	uint32_t index = (uint32_t)sqe->user_data;

	if (index >= CANCEL || name_of(loop, index) != sqe->user_data ||
	    call_is_direct(call_of(loop, index)) ||
	    call_of(loop, index)->route != BY_RING_EAGER ||
	    at_offset(entry_of(loop, index)))
		return NONE;
	return index;
}

void flexsc__uring_eager_submit(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;

	if (flexsc__ring_submit(ring))
		flexsc__uring_collect(loop);
	if (ring->polled)
		flexsc__ring_await_consumed(ring);
	for (uint32_t i = ring_unseen(ring); i != ring->tail; i++) {
		struct io_uring_sqe *sqe = &ring->sqes[i & ring->mask];
		uint32_t index = eager_of(loop, sqe);

		if (index == NONE)
			continue;
		do_nothing(sqe);
		flexsc__uring_eager_end(loop, index, -EAGAIN);
	}
}
