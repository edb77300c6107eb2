/* SPDX-License-Identifier: MIT */
/*
 * Fixed descriptors of the uring engine: files that the ring has in slots of its
 * own. Requests are written with the descriptor, and get its slot when they are
 * about to be submitted. Owner only.
 *
 *	free	-> fixed	flexsc_loop_fix_fd()
 *	fixed	-> leaving	it is unfixed, or a request closes the descriptor:
 *				no request gets the slot from here on
 *	leaving	-> free		the kernel has taken all requests with the slot,
 *				and is told to let go of the file
 */
#ifndef FLEXSC_URING_FIXED_H
#define FLEXSC_URING_FIXED_H

#include <stdint.h>

struct flexsc_loop;
struct uring;

#define FIXED_MAX	1024U

struct fixed {
	uint32_t size;		/* of slots */
	uint32_t frees, leaves;
	uint16_t *slots;	/* by descriptor: its slot plus 1, or 0 */
	uint16_t free[FIXED_MAX], leaving[FIXED_MAX];
};

/* See loop/engine.h. */
int flexsc__uring_fix(struct flexsc_loop *loop, int fd);
void flexsc__uring_unfix(struct flexsc_loop *loop, int fd);

/*
 * Requests are about to be submitted, of a ring that has fixed descriptors. If
 * one closes such a descriptor they are submitted here, and the file is let go
 * of: the owner may sleep long after this.
 */
void flexsc__uring_use_fixed(struct flexsc_loop *loop);

void flexsc__uring_fixed_fini(struct uring *uring);

#endif /* FLEXSC_URING_FIXED_H */
