/* SPDX-License-Identifier: MIT */
#include "uring_eager.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../calls/fds.h"
#include "../calls/partial.h"
#include "../loop/stats.h"
#include "../pool/pool.h"
#include "uring.h"
#include "uring_done.h"
#include "uring_ops.h"
#include "uring_route.h"

#define PAGE	4096U	/* a page's size is a multiple */

static bool at_offset(const struct flexsc_entry *entry)
{
	return entry->nr == SYS_pread64;
}

/* An advice fails for FIFOs; the read that is linked to it is cancelled then. */
static void advise(struct flexsc_loop *loop, uint32_t fd)
{
	struct io_uring_sqe *sqe = uring_request(loop);

	io_uring_prep_fadvise(sqe, (int)fd, 0, 0, POSIX_FADV_NORMAL);
	io_uring_sqe_set_data64(sqe, IGNORE);
	sqe->flags |= IOSQE_IO_LINK;
	uring_of(loop)->linked = true;
}

bool flexsc__uring_eager(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct uring *uring = uring_of(loop);
	uint32_t fd = (uint32_t)entry->args[0];
	struct io_uring_sqe *sqe;
	bool first = fds_known(fd) & FD_FIRST;

	if (entry->nr != SYS_read && !at_offset(entry))
		return false;
	if (fds_known(fd) & (at_offset(entry) ? FD_SEEKS : FD_POLLS_IN))
		return false;
	/* Two requests have to go to the kernel together. */
	if (uring->ring.tail - ring_head(&uring->ring) >= uring->ring.mask)
		return false;
	if (at_offset(entry))
		advise(loop, fd);
	else
		flexsc__fds_drop(fd, FD_OPENED | FD_FIRST);
	sqe = uring_request(loop);
	if (!uring_prepare(sqe, IORING_OP_READ, entry, uring->known)) {
		/* The advice is linked to a request that does nothing. */
		do_nothing(sqe);
		return false;
	}
	sqe->rw_flags = RWF_NOWAIT;
	sqe->user_data = name_of(loop, index);
	entry_begin_alone(entry);
	call_of(loop, index)->route = first ? BY_RING_FIRST : BY_RING_EAGER;
	uring->eager = true;
	return true;
}

/* Has the read transferred all that there is, or failed as the plain call? */
static bool is_whole(const struct flexsc_entry *entry, bool first, int32_t res)
{
	if (res < 0)
		return res != -EAGAIN && res != -EOPNOTSUPP && !at_offset(entry);
	if (!res || (uint64_t)res == entry->args[2])
		return true;
	if (at_offset(entry))
		return (entry->args[3] + (uint64_t)res) % PAGE;
	return first && (uint32_t)res % PAGE;
}

/* The call is made another way; its entry is BUSY. */
static void go_on(struct flexsc_loop *loop, uint32_t index, int32_t res)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct uring *uring = uring_of(loop);
	struct call *call = call_of(loop, index);
	struct call_list one = { 0 };

	/* A FIFO, say, has no more than that. */
	if (res > 0 && !at_offset(entry) &&
	    !(flexsc__fds_kind((uint32_t)entry->args[0]) & FD_PLACED)) {
		call_done(loop, index, res);
		return;
	}
	if (fds_admit(entry)) {
		call->route = BY_RING;
		calls_append(loop, &uring->again, index);
		return;
	}
	if (res > 0 && !at_offset(entry) &&
	    !flexsc__partial_read(entry, &call->partial, res)) {
		call_done(loop, index, res);
		return;
	}
	if (!flexsc__uring_use_pool(loop)) {
		flexsc__uring_end(loop, index, loop->no_thread);
		return;
	}
	count(&loop->stats->by_uring, -1ULL);
	call->route = BY_POOL;
	calls_append(loop, &one, index);
	flexsc__pool_submit(loop_pool(loop), &one);
}

void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	bool first = call->route == BY_RING_FIRST;
	uint32_t fd = (uint32_t)entry->args[0];

	if (is_whole(entry, first, res)) {
		fds_learn(fd, at_offset(entry) ? FD_SEEKS : FD_OPENED);
		call_done(loop, index, res);
	} else if (call->cancel != CANCEL_NOT) {
		call_done(loop, index, res > 0 ? res : -ECANCELED);
	} else {
		flexsc__fds_drop(fd, FD_OPENED | FD_FIRST);
		go_on(loop, index, res);
	}
}
