/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>
#include <liburing.h>

#include "events/event/ecb.h"
#include "lib/engine/why.h"
#include "uring.h"

/*
 * A request's name (user_data) consists of its kind, the slot's index, and the slot's
 * generation. With the generation, a late completion isn't attributed to the slot's
 * next source.
 */
#define NAME_GEN	24
#define NAME(kind, index, gen) \
	((uint64_t)(kind) << 60 | (uint64_t)((gen) & ((1U << NAME_GEN) - 1)) << 32 | (index))

uint64_t flexsc__evring_name(const struct flexsc_ecb *ecb,
			     enum evring_kind kind, uint32_t index)
{
	return NAME(kind, index,
		    kind <= EVRING_ACCEPT ? ecb->slots[index].gen : 0);
}

int flexsc__evring_error(struct evring *evring, int err)
{
	if (!flexsc__uring_passes(err))
		evring->failed = err;
	return err;
}

int flexsc__evring_submit(struct evring *evring)
{
	int ret;

	if (evring->failed)
		return evring->failed;
	if (!io_uring_sq_ready(&evring->ring))
		return 0;
	ret = io_uring_submit(&evring->ring);
	return ret < 0 ? flexsc__evring_error(evring, ret) : 0;
}

void flexsc__evring_room(struct flexsc_ecb *ecb, uint32_t n)
{
	struct evring *evring = ecb->own;

	/*
	 * Submit until n requests fit. After an error that doesn't set "failed", try
	 * again: the kernel may be short of memory only temporarily. But give up at
	 * -EBUSY: before Linux 5.19 it lasts until completions are taken, and only the
	 * current thread takes them.
	 */
	while (io_uring_sq_space_left(&evring->ring) < n && !evring->failed)
		if (flexsc__evring_submit(evring) == -EBUSY)
			evring->failed = -EBUSY;
}

struct io_uring_sqe *flexsc__evring_request(struct flexsc_ecb *ecb,
					    enum evring_kind kind,
					    uint32_t index)
{
	struct evring *evring = ecb->own;
	struct io_uring_sqe *sqe;

	flexsc__evring_room(ecb, 1);
	sqe = evring->failed ? &evring->unsent :
			       io_uring_get_sqe(&evring->ring);
	io_uring_sqe_set_data64(sqe, flexsc__evring_name(ecb, kind, index));
	return sqe;
}

void flexsc__evring_cancel(struct flexsc_ecb *ecb, enum evring_kind kind,
			   uint32_t index)
{
	struct io_uring_sqe *sqe =
		flexsc__evring_request(ecb, EVRING_OTHER, 0);

	io_uring_prep_cancel64(sqe, flexsc__evring_name(ecb, kind, index), 0);
}

void flexsc__evring_poll(struct flexsc_ecb *ecb, uint32_t index)
{
	struct io_uring_sqe *sqe =
		flexsc__evring_request(ecb, EVRING_POLL, index);

	io_uring_prep_poll_multishot(sqe, ecb->slots[index].fd,
				     ecb->sources[index].want);
}
