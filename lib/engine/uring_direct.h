/* SPDX-License-Identifier: MIT */
/*
 * Calls that the uring engine posts directly (loop/direct.h): the request is written
 * when the call is posted. Only a call whose operation has the plain call's effect and
 * result, and needs no record of changed descriptors, can be posted directly. In the
 * following cases such a call is posted with an entry instead, and uring_route.c
 * decides:
 *
 *	a descriptor whose facts are unknown, or aren't those required
 *	arguments that the operation doesn't support
 *	a close() of a descriptor that calls may be waiting for
 *	an earlier call of the same batch that changes descriptors
 *	a full ring
 *
 * Owner only.
 */
#ifndef FLEXSC_URING_DIRECT_H
#define FLEXSC_URING_DIRECT_H

#include <stdint.h>

struct flexsc_loop;
struct io_uring_sqe;
struct uring;

/* Set loop->posts to the functions that post directly. */
void flexsc__uring_posts(struct flexsc_loop *loop);

/* Implements the engine's shadow(): loop/engine.h. */
void flexsc__uring_shadow(struct flexsc_loop *loop, uint32_t index);

/*
 * Returns the request whose user_data is "name" (a call's name); NULL: the kernel may
 * have seen that request.
 */
struct io_uring_sqe *flexsc__uring_unseen(const struct uring *uring,
					  uint64_t name);

/*
 * Called when the batch has a long write. The same batch may have a direct close() of
 * the descriptor that is written to: let uring_follow() handle such a close.
 */
void flexsc__uring_direct_closing(struct flexsc_loop *loop);

#endif /* FLEXSC_URING_DIRECT_H */
