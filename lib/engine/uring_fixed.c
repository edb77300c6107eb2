/* SPDX-License-Identifier: MIT */
/*
 * Fixed descriptors of the uring engine: the ring holds their files in slots
 * (IOSQE_FIXED_FILE). Requests are written with the descriptor. Just before requests are
 * submitted, slots replace the fixed descriptors in them. Owner only.
 *
 *	free	-> fixed	flexsc_loop_fix_fd()
 *	fixed	-> leaving	unfixed, or a request closes the descriptor: no
 *				request gets the slot from now on
 *	leaving	-> free		the kernel has consumed all requests with the slot,
 *				and then releases the file
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/compiler.h"
#include "uring.h"
#include "uring_reap.h"

#define FIXED_MAX	1024U

struct fixed {
	uint32_t size;		/* number of slots */
	uint32_t frees, leaves;
	uint16_t *slots;	/* by descriptor: slot + 1; 0: not fixed */
	uint16_t free[FIXED_MAX], leaving[FIXED_MAX];
};

#define OP(name)	(1ULL << IORING_OP_##name)

/* Operations that accept a slot as their descriptor. */
#define OPS_FIXED							\
	(OP(READ) | OP(READV) | OP(WRITE) | OP(WRITEV) | OP(RECV) |	\
	 OP(SEND) | OP(RECVMSG) | OP(SENDMSG) | OP(ACCEPT) | OP(FSYNC) | \
	 OP(SYNC_FILE_RANGE) | OP(FALLOCATE) | OP(FADVISE) | OP(POLL_ADD))

/* Where the descriptor's slot is stored; NULL: the descriptor can't have a slot. */
static uint16_t *fixed_slot(const struct fixed *fixed, int fd)
{
	return (uint32_t)fd < fixed->size ? &fixed->slots[fd] : NULL;
}

/* Create the ring's slots, on first use. 0, -ENOMEM, or -EOPNOTSUPP. */
static int fixed_make(struct uring *uring)
{
	struct fixed *fixed = calloc(1, sizeof(*fixed));

	if (!fixed)
		return -ENOMEM;
	if (io_uring_register_files_sparse(&uring->ring.uring, FIXED_MAX)) {
		free(fixed);
		return -EOPNOTSUPP;
	}
	while (fixed->frees < FIXED_MAX) {
		fixed->free[fixed->frees] =
			(uint16_t)(FIXED_MAX - 1 - fixed->frees);
		fixed->frees++;
	}
	uring->fixed = fixed;
	return 0;
}

static int fixed_make_room(struct fixed *fixed, uint32_t fd)
{
	uint32_t size = fd < 64 ? 64 : 2 * fd;
	uint16_t *slots;

	if (fd < fixed->size)
		return 0;
	slots = reallocarray(fixed->slots, size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + fixed->size, 0, (size - fixed->size) * sizeof(*slots));
	fixed->slots = slots;
	fixed->size = size;
	return 0;
}

/* Empty the slots that are leaving: the kernel releases their files. */
static void fixed_let_go(struct uring *uring)
{
	struct fixed *fixed = uring->fixed;
	const int none = -1;

	while (fixed->leaves) {
		uint16_t slot = fixed->leaving[--fixed->leaves];

		__atomic_fetch_add(uring->ring.switches, 1, __ATOMIC_RELAXED);
		io_uring_register_files_update(&uring->ring.uring, slot, &none,
					       1);
		fixed->free[fixed->frees++] = slot;
	}
}

/* If the descriptor has a slot, make the slot "leaving". */
static void fixed_leave(struct fixed *fixed, int fd)
{
	uint16_t *slot = fixed_slot(fixed, fd);

	if (!slot || !*slot)
		return;
	fixed->leaving[fixed->leaves++] = (uint16_t)(*slot - 1);
	*slot = 0;
}

int flexsc__uring_fix(struct flexsc_loop *loop, int fd)
{
	struct uring *uring = uring_of(loop);
	int err = 0;
	uint16_t slot;

	/*
	 * An SQPOLL ring gets no slots: it is unknown when the kernel consumes a
	 * request, so a slot could never be freed.
	 */
	if (uring->ring.polled)
		return 0;
	if (!uring->fixed)
		err = fixed_make(uring);
	if (err == -EOPNOTSUPP)
		return 0;
	if (!err)
		err = fixed_make_room(uring->fixed, (uint32_t)fd);
	if (err || uring->fixed->slots[fd])
		return err;
	if (!uring->fixed->frees)
		return -ENOSPC;
	slot = uring->fixed->free[uring->fixed->frees - 1];
	__atomic_fetch_add(uring->ring.switches, 1, __ATOMIC_RELAXED);
	err = io_uring_register_files_update(&uring->ring.uring, slot, &fd, 1);
	if (err < 0)
		return err;
	uring->fixed->frees--;
	uring->fixed->slots[fd] = (uint16_t)(slot + 1);
	return 0;
}

void flexsc__uring_unfix(struct flexsc_loop *loop, int fd)
{
	struct uring *uring = uring_of(loop);

	if (!uring->fixed)
		return;
	fixed_leave(uring->fixed, fd);
	if (!ring_unsubmitted(&uring->ring))
		fixed_let_go(uring);
}

/* Put the slot into a request that isn't submitted yet. */
static void fixed_use(struct fixed *fixed, struct io_uring_sqe *sqe)
{
	const uint16_t *slot = fixed_slot(fixed, sqe->fd);

	/*
	 * If an earlier submission didn't consume this request, its fd is a slot
	 * already.
	 */
	if (!slot || !*slot || sqe->flags & IOSQE_FIXED_FILE)
		return;
	if (sqe->opcode == IORING_OP_CLOSE) {
		fixed_leave(fixed, sqe->fd);
	} else if (OPS_FIXED >> sqe->opcode & 1) {
		sqe->fd = *slot - 1;
		sqe->flags |= IOSQE_FIXED_FILE;
	}
}

COLD void flexsc__uring_use_fixed(struct flexsc_loop *loop)
{
	struct uring *uring = uring_of(loop);
	struct fixed *fixed = uring->fixed;
	struct ring *ring = &uring->ring;

	for (uint32_t i = ring_unseen(ring); i != ring->tail; i++)
		fixed_use(fixed, &ring->sqes[i & ring->mask]);
	if (!fixed->leaves)
		return;
	if (ring_unsubmitted(ring) && flexsc__ring_submit(ring))
		flexsc__uring_collect(loop);
	if (!ring_unsubmitted(ring))
		fixed_let_go(uring);
}

void flexsc__uring_fixed_fini(struct uring *uring)
{
	if (uring->fixed)
		free(uring->fixed->slots);
	free(uring->fixed);
}
