/* SPDX-License-Identifier: MIT */
/*
 * Taking results from the uring engine's ring, and taking requests to fill. Taking a
 * request may need results to be taken first, to make room. Owner only.
 */
#ifndef FLEXSC_URING_REAP_H
#define FLEXSC_URING_REAP_H

#include "uring.h"

/* The engine's implementations of the functions of the same names in loop/engine.h. */
int flexsc__uring_dispatch(struct flexsc_loop *loop, bool until_stop);
bool flexsc__uring_complete(struct flexsc_loop *loop);
void flexsc__uring_collect(struct flexsc_loop *loop);

/* Handle a copied result, whose CQE has been released. */
void flexsc__uring_take(struct flexsc_loop *loop,
			const struct io_uring_cqe *cqe);
/*
 * End a call that is in the ring, BUSY or CANCEL, with err instead of a result of the
 * kernel.
 */
void flexsc__uring_end(struct flexsc_loop *loop, uint32_t index, int32_t err);

/* Turn a request into a no-op. */
static inline void do_nothing(struct io_uring_sqe *sqe)
{
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, IGNORE);
}

/* Take a request to fill. If the submission queue is full, make room first. */
static inline struct io_uring_sqe *uring_request(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_sqe *sqe;

	while (!(sqe = ring_request(&uring->ring)))
		uring->make_room(loop);
	/*
	 * Count the direct calls: all requests that were taken since the last call of
	 * this function.
	 */
	uring->direct += uring->ring.tail - 1 - uring->counted;
	uring->counted = uring->ring.tail;
	return sqe;
}

/* Give back the request that was taken last, because no call uses it. */
static inline void uring_return(struct flexsc_loop *loop)
{
	ring_return(&uring_of(loop)->ring);
	uring_of(loop)->counted--;
}

#endif /* FLEXSC_URING_REAP_H */
