/* SPDX-License-Identifier: MIT */
/* The uring engine's results, and the room that taking them makes. Owner only. */
#ifndef FLEXSC_URING_REAP_H
#define FLEXSC_URING_REAP_H

#include "uring.h"

/* The engine's functions of these names: loop/engine.h. */
int flexsc__uring_dispatch(struct flexsc_loop *loop, bool until_stop);
bool flexsc__uring_complete(struct flexsc_loop *loop);
void flexsc__uring_collect(struct flexsc_loop *loop);

/* Take one result, which isn't the ring's any more. */
void flexsc__uring_take(struct flexsc_loop *loop,
			const struct io_uring_cqe *cqe);
/* A call of the ring, BUSY or CANCEL, ends without a result of the kernel's. */
void flexsc__uring_end(struct flexsc_loop *loop, uint32_t index, int32_t err);

/* A request does nothing. */
static inline void do_nothing(struct io_uring_sqe *sqe)
{
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, IGNORE);
}

/* A request to fill, come what may. */
static inline struct io_uring_sqe *uring_request(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct io_uring_sqe *sqe;

	while (!(sqe = ring_request(&uring->ring)))
		uring->make_room(loop);
	/* Those between this request and the last such are direct calls. */
	uring->direct += uring->ring.tail - 1 - uring->counted;
	uring->counted = uring->ring.tail;
	return sqe;
}

/* The request that was taken last isn't needed. */
static inline void uring_return(struct flexsc_loop *loop)
{
	ring_return(&uring_of(loop)->ring);
	uring_of(loop)->counted--;
}

#endif /* FLEXSC_URING_REAP_H */
