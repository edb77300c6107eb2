/* SPDX-License-Identifier: MIT */
/* The uring engine's results, and the room that taking them makes. Owner only. */
#ifndef FLEXSC_URING_DONE_H
#define FLEXSC_URING_DONE_H

#include "uring.h"

/* Take the results that the ring has. */
void flexsc__uring_collect(struct flexsc_loop *loop);

/* The ring is full of requests: have the kernel take some. */
void flexsc__uring_make_room(struct flexsc_loop *loop);

/* A request to fill, come what may. */
static inline struct io_uring_sqe *uring_request(struct flexsc_loop *loop)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = ring_request(&uring_of(loop)->ring)))
		flexsc__uring_make_room(loop);
	return sqe;
}

#endif /* FLEXSC_URING_DONE_H */
