/* SPDX-License-Identifier: MIT */
/*
 * Calls that the uring engine posts direct (loop/direct.h): the request is written when
 * the call is posted. Only calls that io_uring makes as the plain call would, whose
 * result is the operation's, and that need no note of what they do to descriptors. In
 * these cases a call is posted by its entry instead, and the routes decide:
 *
 *	a descriptor whose facts aren't known, or aren't those that are needed
 *	arguments that the operation doesn't do
 *	a close() of what calls may wait for
 *	a call of the same batch that changes descriptors
 *	a ring that is full
 *
 * Owner only.
 */
#ifndef FLEXSC_URING_DIRECT_H
#define FLEXSC_URING_DIRECT_H

#include <stdint.h>

struct flexsc_loop;
struct io_uring_sqe;
struct uring;

/* Fill loop->posts with the functions that post direct. */
void flexsc__uring_posts(struct flexsc_loop *loop);

/* The engine's function of this name: loop/engine.h. */
void flexsc__uring_shadow(struct flexsc_loop *loop, uint32_t index);

/* The request of this name; NULL if the kernel may have seen it. */
struct io_uring_sqe *flexsc__uring_unseen(const struct uring *uring,
					  uint64_t name);

/*
 * A long write has begun: a close() in the same batch may be of what it needs,
 * and has to tell it.
 */
void flexsc__uring_direct_closing(struct flexsc_loop *loop);

#endif /* FLEXSC_URING_DIRECT_H */
