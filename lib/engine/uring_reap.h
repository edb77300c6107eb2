/* SPDX-License-Identifier: MIT */
/*
 * The uring engine's results, and the room that is gained by taking them. Owner only.
 */
#ifndef FLEXSC_URING_REAP_H
#define FLEXSC_URING_REAP_H

#include "uring.h"

/* Implement the engine's functions of these names: loop/engine.h. */
int flexsc__uring_dispatch(struct flexsc_loop *loop, bool until_stop);
bool flexsc__uring_complete(struct flexsc_loop *loop);
void flexsc__uring_collect(struct flexsc_loop *loop);

/* Take one result, whose place in the ring has been released. */
void flexsc__uring_take(struct flexsc_loop *loop,
			const struct io_uring_cqe *cqe);
/* End a call in the ring, BUSY or CANCEL, without a result of the kernel. */
void flexsc__uring_end(struct flexsc_loop *loop, uint32_t index, int32_t err);

/* Turn a request into a no-op. */
static inline void do_nothing(struct io_uring_sqe *sqe)
{
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, IGNORE);
}

/* A request to fill; makes room if necessary. */
static inline struct io_uring_sqe *uring_request(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_sqe *sqe;

	while (!(sqe = ring_request(&uring->ring)))
		uring->make_room(loop);
	/* The requests between this one and the last such request are direct calls. */
	uring->direct += uring->ring.tail - 1 - uring->counted;
	uring->counted = uring->ring.tail;
	return sqe;
}

/* Give back the request that was taken last. */
static inline void uring_return(struct flexsc_loop *loop)
{
	ring_return(&uring_of(loop)->ring);
	uring_of(loop)->counted--;
}

#endif /* FLEXSC_URING_REAP_H */
