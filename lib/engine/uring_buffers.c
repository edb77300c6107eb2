/* SPDX-License-Identifier: MIT */
/*
 * Multishot requests of the uring engine, and their provided-buffer rings. The owner
 * adds free buffers at a ring's tail. The kernel takes one from its head when data has
 * arrived. Owner only.
 */
#include <errno.h>
#include <sys/mman.h>

#include "lib/base/syscall.h"
#include "uring.h"
#include "uring_ops.h"

static size_t ring_bytes(const struct flexsc_buffers *buffers)
{
	return buffers->count * sizeof(struct io_uring_buf);
}

bool flexsc__uring_accepts_many(const struct flexsc_loop *loop)
{
	return uring_of(loop)->known & URING_MULTISHOT;
}

static void ring_put(struct flexsc_buffers *buffers, uint32_t which, int place)
{
	io_uring_buf_ring_add(buffers->lent, buffers_at(buffers, which),
			      (unsigned int)buffers->size, (uint16_t)which,
			      (int)buffers->count - 1, place);
}

int flexsc__uring_buffers_lend(struct flexsc_buffers *buffers)
{
	struct uring *uring = uring_of(buffers->loop);
	struct io_uring_buf_reg reg = { .ring_entries = buffers->count,
					.bgid = buffers->group };
	void *ring;
	int err;

	if (!(uring->known & URING_MULTISHOT))
		return -EOPNOTSUPP;
	ring = mmap(NULL, ring_bytes(buffers), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring == MAP_FAILED)
		return -ENOMEM;
	madvise(ring, ring_bytes(buffers), MADV_DONTFORK);
	reg.ring_addr = PTR(ring);
	err = io_uring_register_buf_ring(&uring->ring.uring, &reg, 0);
	if (err) {
		munmap(ring, ring_bytes(buffers));
		return err;
	}
	buffers->lent = ring;
	for (uint32_t i = 0; i < buffers->count; i++)
		ring_put(buffers, i, (int)i);
	io_uring_buf_ring_advance(buffers->lent, (int)buffers->count);
	return 0;
}

void flexsc__uring_buffers_unlend(struct flexsc_buffers *buffers)
{
	io_uring_unregister_buf_ring(&uring_of(buffers->loop)->ring.uring,
				     buffers->group);
	munmap(buffers->lent, ring_bytes(buffers));
	buffers->lent = NULL;
}

void flexsc__uring_buffer_put(struct flexsc_buffers *buffers, uint32_t which)
{
	ring_put(buffers, which, 0);
	/* Publishes the buffer; the kernel acquires the ring's tail. */
	io_uring_buf_ring_advance(buffers->lent, 1);
}
