/* SPDX-License-Identifier: MIT */
/*
 * An io_uring. liburing makes it; requests and entering are done here, since
 * both are on the path of every call. Owner only.
 *
 * liburing has also made the array of indices, if there is one, the identity;
 * so it needs no writing.
 *
 * A request is taken, filled, and not seen by the kernel before the next
 * flexsc__ring_enter(). R1: that publishes the requests by a release store of
 * the tail; the kernel acquires it. R2: the kernel releases a request by moving
 * the head; acquired before the request is filled anew.
 *
 * W1: the owner sets "handed", then reads the guards of the requests. W2: a thread that
 * closes a descriptor has given the guard a copy, then reads "handed", and waits until
 * the kernel has those requests. Both are sequentially consistent. So a request names
 * the copy, or the kernel has looked the number up before the descriptor is closed.
 */
#ifndef FLEXSC_ENGINE_RING_H
#define FLEXSC_ENGINE_RING_H

#include <flexsc/loop.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring {
	struct io_uring_sqe *sqes;
	uint32_t tail;		/* the next request */
	uint32_t head;		/* the kernel has let go of those before */
	uint32_t mask;
	bool polled;		/* by a kernel thread, on kernel_cores */
	unsigned int enter_fd;	/* the descriptor, or the registered index */
	int failed;		/* entering fails for good: -errno; 0: not so */
	unsigned int enter_flags;
	uint64_t *switches;	/* where mode switches are counted */
	/*
	 * Called before the kernel gets requests with descriptors that other threads may
	 * close; NULL: there are none.
	 */
	void (*renew)(struct ring *ring);
	_Atomic uint32_t handed;	/* W1: the kernel is to get those before it */
	struct io_uring uring;
};

/*
 * Make a ring with the best flags that the kernel takes. -ERANGE: the cores
 * can't be used; -EPERM also: a filter would end the process; otherwise
 * io_uring_setup's error.
 */
int flexsc__ring_init(struct ring *ring, const struct flexsc_options *options,
	      uint64_t *switches);
void flexsc__ring_fini(struct ring *ring);

/*
 * Submit what was requested and bring out what is complete. With a number of
 * nanoseconds, sleep until something is, for so long at most. 0, or -errno:
 * -ETIME and -EINTR are as good as being woken; -EBUSY and -EAGAIN say that
 * results have to be taken first. An error that will not pass is in "failed".
 */
int flexsc__ring_enter(struct ring *ring, uint64_t ns);

/* Only submit. */
int flexsc__ring_submit(struct ring *ring);

static inline uint32_t ring_head(const struct ring *ring)
{
	/* R2 */
	return __atomic_load_n(ring->uring.sq.khead, __ATOMIC_ACQUIRE);
}

/* A request to fill, with whatever was in it; NULL: submit first. */
static inline struct io_uring_sqe *ring_request(struct ring *ring)
{
	if (ring->tail - ring->head > ring->mask) {
		ring->head = ring_head(ring);
		if (ring->tail - ring->head > ring->mask)
			return NULL;
	}
	return &ring->sqes[ring->tail++ & ring->mask];
}

/* The request that was taken last isn't needed. */
static inline void ring_return(struct ring *ring)
{
	ring->tail--;
}

/*
 * The first request that the kernel can't have seen, or one before it if no
 * kernel thread polls.
 */
static inline uint32_t ring_unseen(const struct ring *ring)
{
	return ring->polled ? *ring->uring.sq.ktail : ring_head(ring);
}

/* Does the kernel thread that polls sleep? */
static inline bool ring_poller_sleeps(const struct ring *ring)
{
	/* Ordered with R1, or the poller may go to sleep and leave requests. */
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_SEQ_CST) &
	       IORING_SQ_NEED_WAKEUP;
}

/* W2: wait until no request is on its way to the kernel. Other threads than the owner. */
void flexsc__ring_await_handed(const struct ring *ring);

/* Are there requests that the kernel doesn't know of, or hasn't taken? */
static inline bool ring_unsubmitted(const struct ring *ring)
{
	return ring->tail != ring_unseen(ring);
}

/* Does the kernel keep results that had no room in the ring? */
static inline bool ring_overflows(const struct ring *ring)
{
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       IORING_SQ_CQ_OVERFLOW;
}

/* Are there results that only entering brings out? */
static inline bool ring_needs_enter(const struct ring *ring)
{
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN);
}

#endif /* FLEXSC_ENGINE_RING_H */
