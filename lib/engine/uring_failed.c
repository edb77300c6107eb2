/* SPDX-License-Identifier: MIT */
/*
 * A ring where io_uring_enter() fails permanently, for example because the program has
 * installed a seccomp filter that forbids it. The loop continues with syscall threads,
 * as if its engine were "threads". Owner only.
 *
 * Each request of the ring then is in one of these states:
 *
 *	complete	its result is in the ring, and is collected as before
 *	unseen		the kernel hasn't consumed it: a thread makes the call. A
 *			poller gets it back first (ring_retract.c)
 *	taken back	the kernel has cancelled it through io_uring_register(). The
 *			call ends with -ERESTART. As the ring executes requests only
 *			when the owner enters, the request touches no memory
 *	living		the ring executes it without the owner, and the result
 *			arrives late. uring->living counts these requests
 *	lost		its call stays pending, because the kernel may still use its
 *			memory. loop->lost counts these requests
 *
 * A wait returns the error once if calls are lost, and each time if only lost calls are
 * pending. Destroying the loop leaks the memory of lost calls.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/compiler.h"
#include "lib/base/syscall.h"
#include "lib/calls/call_info.h"
#include "lib/files/closing.h"
#include "lib/loop/direct.h"
#include "lib/pool/pool.h"
#include "engine.h"
#include "sleep.h"
#include "uring_direct.h"
#include "uring_reap.h"
#include "uring.h"

/* Interval of checks for results that arrive without waking the owner, in ns. */
#define LOST_NS		10000000ULL

/* Restore a direct call's arguments from its request. */
static void fill_from_request(struct flexsc_entry *entry,
			      const struct io_uring_sqe *sqe)
{
	__u64 *a = entry->args;

	a[1] = sqe->addr;
	a[2] = sqe->len;
	a[3] = a[4] = a[5] = 0;
	switch (flexsc__call_info(entry->nr)->shape) {
	case SHAPE_RECVMSG:
	case SHAPE_SENDMSG:
		a[2] = sqe->msg_flags;
		break;
	case SHAPE_RECVFROM:
	case SHAPE_SENDTO:
		a[3] = sqe->msg_flags;
		break;
	case SHAPE_RW_AT:
		a[3] = sqe->off;
		break;
	case SHAPE_STATX:
		a[2] = sqe->statx_flags;
		a[3] = sqe->len;
		a[4] = sqe->off;
		break;
	default:	/* close, fsync, read and the like */
		break;
	}
}

/*
 * Let a syscall thread execute an entry, BUSY or CANCEL, that the ring didn't execute.
 */
static void to_thread(struct flexsc_loop *loop, uint32_t index)
{
	struct uring *uring = uring_of(loop);
	struct call *call = call_of(loop, index);

	if (call->cancel != CANCEL_NOT) {
		flexsc__uring_end(loop, index, -ECANCELED);
	} else if (call->route == BY_RING_MULTISHOT) {
		call_done(loop, index, -ERESTART);
	} else if (flexsc__pool_ensure(loop)) {
		if (call->route == BY_RING_FOLLOWED &&
		    closes(entry_of(loop, index)))
			flexsc__closing_end(entry_of(loop, index), -ECANCELED);
		call->route = BY_POOL;
		calls_append(loop, &uring->to_pool, index);
	} else {
		flexsc__uring_end(loop, index, loop->no_thread);
	}
}

static void to_pool(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	uint32_t index;

	while ((index = calls_take(loop, &uring->again)) != NONE)
		to_thread(loop, index);
	if (uring->to_pool.count)
		flexsc__pool_submit(loop_pool(loop), &uring->to_pool);
}

/*
 * Does the request belong to a pending call? A cancellation isn't needed, either: the
 * request that it names is unseen or taken back as well.
 */
static bool is_pending(const struct flexsc_loop *loop, const struct io_uring_sqe *sqe)
{
	const uint32_t index = (uint32_t)sqe->user_data;

	return index < CANCEL && name_of(loop, index) == sqe->user_data;
}

/* If it is a direct call's, let the call continue with its entry. */
static void settle(struct flexsc_loop *loop, const struct io_uring_sqe *sqe)
{
	const uint32_t index = (uint32_t)sqe->user_data;

	if (!is_pending(loop, sqe) || !call_is_direct(call_of(loop, index)))
		return;
	uring_direct_begin(loop, index);
	fill_from_request(entry_of(loop, index), sqe);
}

static void rescue(struct flexsc_loop *loop, const struct io_uring_sqe *sqe)
{
	settle(loop, sqe);
	if (sqe->user_data == WAKE)
		uring_of(loop)->armed = false;
	else if (is_pending(loop, sqe))
		to_thread(loop, (uint32_t)sqe->user_data);
}

/*
 * Requests that are filled from now on get a place that no poller reads. A poller may
 * still read the ring's places.
 */
static void leave_places(struct uring *uring)
{
	uring->ring.sqes = &uring->unshared;
	uring->ring.mask = 0;
}

COLD void flexsc__uring_rescue(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct ring *ring = &uring->ring;
	const uint32_t first = ring_unseen(ring);

	for (uint32_t i = first; i != ring->tail; i++)
		rescue(loop, &ring->sqes[i & ring->mask]);
	if (ring->polled)
		leave_places(uring);
	ring->tail = ring->head = first;
	ring->renew = NULL;
	if ((int32_t)(atomic_load(&ring->handed) - first) > 0)
		atomic_store(&ring->handed, first);
	__atomic_store_n(ring->uring.sq.ktail, first, __ATOMIC_RELEASE);
	uring->counted = first;
	uring->direct = 0;
	to_pool(loop);
}

/* Let threads make the calls whose requests a sleeping poller has left. */
static void rescue_published(struct flexsc_loop *loop)
{
	struct ring *ring = &uring_of(loop)->ring;
	const struct io_uring_sq *sq = &ring->uring.sq;
	uint32_t first = ring_head(ring);

	for (uint32_t i = first; i != *sq->ktail; i++)
		settle(loop, &sq->sqes[i & sq->ring_mask]);
	first = flexsc__ring_retract(ring);
	for (uint32_t i = first; i != *sq->ktail; i++)
		rescue(loop, &sq->sqes[i & sq->ring_mask]);
	atomic_store(&ring->handed, first);
}

/* Does the kernel have an incomplete request of this entry? */
static bool is_in_ring(const struct flexsc_loop *loop, uint32_t index)
{
	const struct call *call = call_of(loop, index);

	return call_is_direct(call) ||
	       (call->route != BY_POOL &&
		ENTRY_IN(entry_of(loop, index), AT(BUSY) | AT(CANCEL)));
}

/* Does the ring execute requests only when the owner enters the kernel? */
static bool is_dead(const struct uring *uring)
{
	return uring->ring.uring.flags & IORING_SETUP_DEFER_TASKRUN;
}

/* Cancel the request whose user_data is "name". 0 or -errno. */
static int cancel_by_name(struct uring *uring, uint64_t name)
{
	struct io_uring_sync_cancel_reg reg = { .addr = name };

	__atomic_fetch_add(uring->ring.switches, 1, __ATOMIC_RELAXED);
	return io_uring_register_sync_cancel(&uring->ring.uring, &reg);
}

/*
 * Take back a request of a ring that executes requests only when the owner enters the
 * kernel. If that fails, the request is lost.
 */
static void take_back_dead(struct flexsc_loop *loop, uint32_t index)
{
	if (cancel_by_name(uring_of(loop), name_of(loop, index)))
		loop->lost++;
	else
		flexsc__uring_end(loop, index,
				  call_of(loop, index)->cancel ? -ECANCELED :
								 -ERESTART);
}

/*
 * If the call was cancelled, cancel its request in the ring, too. False: the
 * cancellation has failed, and the loop is ending. The caller then must not wait for
 * the call's result, which may never arrive.
 */
static bool cancel_living(struct flexsc_loop *loop, uint32_t index)
{
	if (!call_of(loop, index)->cancel)
		return true;
	switch (cancel_by_name(uring_of(loop), name_of(loop, index))) {
	case 0:
	case -EALREADY:
	case -ENOENT:
	case -ETIME:
		return true;
	default:
		return !loop->closing;
	}
}

/*
 * Does a call wait for this result? Not if a thread makes the call, for example because
 * the poller has refused its request. A call that has failed with -EINVAL has had no
 * effect, so a thread may make it again, even if it wasn't refused.
 */
static bool is_expected(struct flexsc_loop *loop, uint64_t what, int32_t res)
{
	const uint32_t index = (uint32_t)what;

	if (index >= CANCEL)
		return true;
	if (name_of(loop, index) != what || !is_in_ring(loop, index))
		return false;
	if (res != -EINVAL || !uring_of(loop)->ring.polled ||
	    call_is_direct(call_of(loop, index)))
		return true;
	to_thread(loop, index);
	return false;
}

static void collect_late(struct flexsc_loop *loop)
{
	struct io_uring *ring = &uring_of(loop)->ring.uring;
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(ring, &cqe)) {
		if (is_expected(loop, cqe->user_data, cqe->res))
			flexsc__uring_take(loop, cqe);
		io_uring_cqe_seen(ring, cqe);
	}
}

/*
 * Collect late results, and try to take back all requests that are still in the ring.
 */
static COLD void take_back(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	collect_late(loop);
	loop->lost = 0;
	uring->living = 0;
	for (uint32_t i = 0; i < loop->entries.count; i++) {
		if (!is_in_ring(loop, i))
			continue;
		if (call_is_direct(call_of(loop, i)))
			uring_direct_begin(loop, i);
		if (is_dead(uring))
			take_back_dead(loop, i);
		else if (cancel_living(loop, i))
			uring->living++;
		else
			loop->lost++;
	}
	if (uring->armed && !cancel_by_name(uring, WAKE) && is_dead(uring))
		uring->armed = false;
	collect_late(loop);
	to_pool(loop);
}

COLD void flexsc__uring_fail(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);

	flexsc__uring_rescue(loop);
	if (loop->engine == &flexsc__engine_uring_failed)
		return;
	snprintf(loop->why, sizeof(loop->why),
		 "uring: io_uring_enter has begun to fail: %s",
		 strerror(-uring->ring.failed));
	uring->operations = 0;
	uring->known = 0;
	flexsc__posts_init(loop);
	/* No poller works while callbacks run. */
	loop->most = DISPATCH_MOST;
	if (uring->ring.polled)
		rescue_published(loop);
	/*
	 * Publishes the new engine and its state; pairs with the load in
	 * loop_notify().
	 */
	__atomic_store_n(&loop->engine, &flexsc__engine_uring_failed,
			 __ATOMIC_RELEASE);
	take_back(loop);
	uring->tells = loop->lost;
}

/* Does the loop wait only for lost calls, which may never end? */
static bool is_all_lost(const struct flexsc_loop *loop)
{
	return loop->posted - loop->completed == loop->lost && !loop->events &&
	       loop->refs <= 0;
}

int flexsc__uring_failed_wait(struct flexsc_loop *loop, uint64_t ns)
{
	struct uring *uring = uring_of(loop);

	flexsc__uring_route(loop);
	if (ring_unsubmitted(&uring->ring))
		flexsc__uring_rescue(loop);
	if (loop->lost || uring->living || uring->armed)
		take_back(loop);
	if (loop->lost && (uring->tells || (ns && is_all_lost(loop)))) {
		uring->tells = false;
		return uring->ring.failed;
	}
	if ((loop->lost || uring->living) && ns > LOST_NS)
		ns = LOST_NS;
	if (!queue_empty(&loop->done))
		ns = 0;
	flexsc__engine_sleep(loop, ns);
	return 0;
}

void flexsc__uring_failed_submit(struct flexsc_loop *loop)
{
	flexsc__uring_route(loop);
	if (ring_unsubmitted(&uring_of(loop)->ring))
		flexsc__uring_rescue(loop);
}

void flexsc__uring_failed_cancel(struct flexsc_loop *loop, uint32_t index)
{
	if (call_of(loop, index)->route == BY_POOL)
		flexsc__pool_cancel(loop_pool(loop), index);
	else
		take_back(loop);
}
