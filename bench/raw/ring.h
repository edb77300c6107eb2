/* SPDX-License-Identifier: MIT */
/*
 * io_uring as a program would use it by hand, set up like the uring engine's
 * ring; the engine is compared with this. A request's user data points to a
 * flexsc_cb, whose callback gets the result.
 */
#ifndef FLEXSC_BENCH_RING_H
#define FLEXSC_BENCH_RING_H

#include <flexsc/call.h>
#include <liburing.h>

/* Make a ring. Returns 0, or 1 after a message. */
int bench_ring_init(struct io_uring *ring);

/* Return a free request; submits the pending ones if no request is free. */
static inline struct io_uring_sqe *bench_ring_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(ring)))
		io_uring_submit(ring);
	return sqe;
}

/* Run the callbacks of completed requests. */
static inline void bench_ring_dispatch(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(ring, head, cqe) {
		struct flexsc_cb *cb = io_uring_cqe_get_data(cqe);

		n++;
		cb->ret = cqe->res;
		cb->callback(cb);
	}
	io_uring_cq_advance(ring, n);
}

#endif /* FLEXSC_BENCH_RING_H */
