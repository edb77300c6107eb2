/* SPDX-License-Identifier: MIT */
/* The uring engine's results, taken from the ring. Owner only. */
#include "uring_reap.h"

#include <errno.h>

#include "lib/base/compiler.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "lib/calls/partial.h"
#include "lib/loop/cancel.h"
#include "lib/loop/direct.h"
#include "lib/loop/multishot.h"
#include "lib/files/closing.h"
#include "uring_eager.h"
#include "uring_ops.h"

/* A result: a copy of the CQE's fields that the engine uses. */
struct done {
	uint64_t what;		/* user_data */
	int32_t res;
	uint32_t flags;
};

/* The kernel's internal codes -ERESTARTSYS to -ERESTART_RESTARTBLOCK. */
#define RESTART_FIRST	512
#define RESTART_LAST	516

/*
 * For an interrupted call the kernel should return -EINTR, because it can't restart a
 * request. Some operations return the kernel's internal code instead: tee and splice,
 * or a read on Linux 6.12.
 */
static COLD int32_t done_interrupted(int32_t res)
{
	return res >= -RESTART_LAST ? -EINTR : res;
}

static inline struct done done_of(const struct io_uring_cqe *cqe)
{
	struct done done = { cqe->user_data, cqe->res, cqe->flags };

	if (__builtin_expect(done.res <= -RESTART_FIRST, 0))
		done.res = done_interrupted(done.res);
	return done;
}

static void write_on_or_end(struct flexsc_loop *loop, uint32_t index,
			    int32_t res)
{
	struct uring *uring = uring_of(loop);
	struct call *call = call_of(loop, index);

	if (call->cancel == CANCEL_NOT &&
	    flexsc__partial_rest(entry_of(loop, index), &call->partial, res)) {
		if (call->route == BY_RING_IN_PARTS)
			flexsc__call_keep(loop, index);
		calls_append(loop, &uring->again, index);
		return;
	}
	if (call->route == BY_RING_IN_PARTS)
		flexsc__call_unguard(loop, index);
	call_done(loop, index,
		  flexsc__partial_result(entry_of(loop, index), &call->partial,
					 res));
}

/*
 * Report a result of a multishot request, which continues if IORING_CQE_F_MORE is set.
 */
static void multishot_follow(struct flexsc_loop *loop, uint32_t index,
			     struct done done)
{
	int64_t ret = done.res;

	/*
	 * If the result is an error, or 0 for the end of the stream, the kernel keeps
	 * the buffer.
	 */
	RULE(ret > 0 || !(done.flags & IORING_CQE_F_BUFFER));
	if (done.flags & IORING_CQE_F_BUFFER)
		ret = flexsc__multishot_filled(
			call_of(loop, index)->cb, done.res,
			done.flags >> IORING_CQE_BUFFER_SHIFT);
	if (done.flags & IORING_CQE_F_MORE)
		flexsc__multishot_shot(call_of(loop, index)->cb, ret);
	else
		call_done(loop, index, ret);
}

/*
 * End a call (a) whose result in io_uring differs from the plain call's, (b) that
 * creates a descriptor, or (c) that closes a descriptor which other calls may wait for.
 */
static COLD void uring_follow(struct flexsc_loop *loop, uint32_t index,
			      struct done done)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	int32_t res = done.res;

	if (call->route == BY_RING_EAGER) {
		flexsc__uring_eager_end(loop, index, res);
		return;
	}
	if (call->route >= BY_RING_AT_ONCE) {
		write_on_or_end(loop, index, res);
		return;
	}
	if (call->route == BY_RING_MULTISHOT) {
		multishot_follow(loop, index, done);
		return;
	}
	if (closes(entry))
		flexsc__closing_end(entry, res);
	flexsc__fds_note_made(entry, res);
	flexsc__fds_note_opened(entry, res);
	call_done(loop, index, flexsc__uring_result(entry, res));
}

/*
 * A cancellation has completed. If it failed and the call is still pending, cancel
 * again soon: a cancellation may miss a request while the kernel moves it from one way
 * of waiting to another.
 */
static void uring_cancel_ended(struct flexsc_loop *loop, uint64_t name,
			       int32_t res)
{
	uint32_t index = (uint32_t)name;

	if (res < 0 && name_of(loop, index) == name &&
	    entry_status(entry_of(loop, index)) == FLEXSC_CANCEL)
		flexsc__cancel_later(loop, index);
}

/* Handle a result whose user_data doesn't name a call. */
static COLD void done_other(struct flexsc_loop *loop, uint64_t what,
			    int32_t res)
{
	if (what == WAKE)
		uring_of(loop)->armed = false;
	else if (what != IGNORE)
		uring_cancel_ended(loop, what & ~(uint64_t)CANCEL, res);
}

/* Handle the result of a call that isn't direct. */
static void done_take(struct flexsc_loop *loop, struct done done)
{
	uint32_t index = (uint32_t)done.what;

	if (index >= CANCEL)
		done_other(loop, done.what, done.res);
	else if (call_of(loop, index)->route == BY_RING)
		call_done(loop, index, done.res);
	else
		uring_follow(loop, index, done);
}

/* Keep the result of a direct call in its entry, because the callback can't run now. */
static COLD void done_direct(struct flexsc_loop *loop, uint32_t index,
			     int32_t res)
{
	uring_direct_begin(loop, index);
	call_done(loop, index, res);
}

static inline bool is_direct(const struct flexsc_loop *loop, uint64_t what)
{
	uint32_t index = (uint32_t)what;

	return index < CANCEL && call_is_direct(call_of(loop, index));
}

/* Releases the CQE, which the kernel may then overwrite. */
static inline void done_taken(struct io_uring_cq *cq, uint32_t head)
{
	__atomic_store_n(cq->khead, head + 1, __ATOMIC_RELEASE);
}

/*
 * Copies the next result before "tail", if any, and releases its CQE. The release comes
 * before the callback, because the callback may take other results.
 */
static inline bool done_next(struct io_uring_cq *cq, uint32_t tail,
			     struct done *done)
{
	uint32_t head = *cq->khead;

	if ((int32_t)(head - tail) >= 0)
		return false;
	*done = done_of(&cq->cqes[head & cq->ring_mask]);
	done_taken(cq, head);
	return true;
}

/* R3: acquires the results that the kernel released with the tail. */
static inline uint32_t done_tail(const struct io_uring_cq *cq)
{
	return __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE);
}

static void take(struct flexsc_loop *loop, struct done done)
{
	if (is_direct(loop, done.what))
		done_direct(loop, (uint32_t)done.what, done.res);
	else
		done_take(loop, done);
}

void flexsc__uring_take(struct flexsc_loop *loop,
			const struct io_uring_cqe *cqe)
{
	take(loop, done_of(cqe));
}

COLD void flexsc__uring_end(struct flexsc_loop *loop, uint32_t index,
			    int32_t err)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	if (call->route == BY_RING_IN_PARTS)
		flexsc__call_unguard(loop, index);
	if (closes(entry) && call->route == BY_RING_FOLLOWED)
		flexsc__closing_end(entry, err);
	call_done(loop, index,
		  flexsc__partial_result(entry, &call->partial, err));
}

void flexsc__uring_collect(struct flexsc_loop *loop)
{
	struct io_uring_cq *cq = &uring_of(loop)->ring.uring.cq;
	uint32_t tail = done_tail(cq);
	struct done done;

	while (done_next(cq, tail, &done))
		take(loop, done);
}

bool flexsc__uring_complete(struct flexsc_loop *loop)
{
	struct io_uring_cq *cq = &uring_of(loop)->ring.uring.cq;
	uint32_t tail = done_tail(cq);
	uint32_t head;

	while ((head = *cq->khead) != tail) {
		const struct done done = done_of(&cq->cqes[head & cq->ring_mask]);

		if (is_direct(loop, done.what))
			return true;
		done_taken(cq, head);
		done_take(loop, done);
	}
	return false;
}

/* Dispatch the results before "tail". */
static __attribute__((noinline)) int
done_dispatch(struct flexsc_loop *loop, bool until_stop, uint32_t tail)
{
	struct io_uring_cq *cq = &uring_of(loop)->ring.uring.cq;
	struct done done;
	int n = 0;

	for (;;) {
		if (atomic_load_explicit(&loop->stop, memory_order_relaxed) &&
		    until_stop)
			return n;
		if (!done_next(cq, tail, &done))
			return n;
		if (!is_direct(loop, done.what)) {
			done_take(loop, done);
			continue;
		}
		direct_retire(loop, call_of(loop, (uint32_t)done.what),
			      done.res);
		n++;
	}
}

int flexsc__uring_dispatch(struct flexsc_loop *loop, bool until_stop)
{
	const struct io_uring_cq *cq = &uring_of(loop)->ring.uring.cq;
	uint32_t head = *cq->khead, tail = done_tail(cq);

	if (tail == head)
		return 0;
	if (tail - head > (uint32_t)loop->most)
		tail = head + (uint32_t)loop->most;
	return done_dispatch(loop, until_stop, tail);
}
