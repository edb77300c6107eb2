/* SPDX-License-Identifier: MIT */
/*
 * An io_uring. liburing creates it. Requests and entering are implemented here, because
 * both are on the path of every call. Owner only.
 *
 * liburing has also initialised the array of indices, if there is one, to the identity,
 * so that nothing writes to it later.
 *
 * A request is taken and filled. The kernel doesn't see it before the next
 * flexsc__ring_enter(). R1: a release store of the tail publishes the requests; the
 * kernel acquires it. R2: the kernel releases a request by moving the head; this is
 * acquired before the request is filled again.
 *
 * W1: the owner sets "handed", then reads the guards of the requests. W2: a thread that
 * closes a descriptor gives the guard a copy, then reads "handed", and waits until the
 * kernel has taken those requests. Both are sequentially consistent. So either a
 * request names the copy, or the kernel has looked the number up before the descriptor
 * is closed.
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
	uint32_t head;		/* the kernel has released the requests before it */
	uint32_t mask;
	bool polled;		/* by a kernel thread, on kernel_cores */
	unsigned int enter_fd;	/* the descriptor, or the registered index */
	int failed;		/* entering fails for good: -errno; 0: it works */
	unsigned int enter_flags;
	uint64_t *switches;	/* the counter of mode switches */
	/*
	 * Called before the kernel gets requests with descriptors that other threads
	 * may close;
	 * NULL: there are no such requests.
	 */
	void (*renew)(struct ring *ring);
	_Atomic uint32_t handed;	/* W1: the kernel is getting earlier requests */
	struct io_uring uring;
};

/*
 * Create a ring with the best flags that the kernel accepts. -ERANGE: the cores can't
 * be used. -EPERM: also if a filter would end the process. Other errors are
 * io_uring_setup()'s.
 */
int flexsc__ring_init(struct ring *ring, const struct flexsc_options *options,
	      uint64_t *switches);
void flexsc__ring_fini(struct ring *ring);

/*
 * Submit the requests and collect results into the ring. With a number of nanoseconds,
 * sleep until a result arrives, for at most that time. 0 or -errno. -ETIME and -EINTR
 * are as good as being woken. -EBUSY and -EAGAIN mean that results have to be taken
 * first. "failed" has an error that won't pass.
 */
int flexsc__ring_enter(struct ring *ring, uint64_t ns);

/* Submit only. */
int flexsc__ring_submit(struct ring *ring);

static inline uint32_t ring_head(const struct ring *ring)
{
	/* R2 */
	return __atomic_load_n(ring->uring.sq.khead, __ATOMIC_ACQUIRE);
}

/* A request to fill, with undefined content; NULL: submit first. */
static inline struct io_uring_sqe *ring_request(struct ring *ring)
{
	if (ring->tail - ring->head > ring->mask) {
		ring->head = ring_head(ring);
		if (ring->tail - ring->head > ring->mask)
			return NULL;
	}
	return &ring->sqes[ring->tail++ & ring->mask];
}

/* Give back the request that was taken last. */
static inline void ring_return(struct ring *ring)
{
	ring->tail--;
}

/*
 * The first request that the kernel can't have seen; or one before it, if no kernel
 * thread polls.
 */
static inline uint32_t ring_unseen(const struct ring *ring)
{
	return ring->polled ? *ring->uring.sq.ktail : ring_head(ring);
}

/* Is the polling kernel thread asleep? */
static inline bool ring_poller_sleeps(const struct ring *ring)
{
	/* Ordered with R1; otherwise the poller might fall asleep and miss requests. */
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_SEQ_CST) &
	       IORING_SQ_NEED_WAKEUP;
}

/*
 * W2: wait until the kernel has taken all requests that were handed. Not for the owner.
 */
void flexsc__ring_await_handed(const struct ring *ring);

/* Are there requests that the kernel hasn't seen or taken? */
static inline bool ring_unsubmitted(const struct ring *ring)
{
	return ring->tail != ring_unseen(ring);
}

/* Does the kernel hold back results, for lack of room in the ring? */
static inline bool ring_overflows(const struct ring *ring)
{
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       IORING_SQ_CQ_OVERFLOW;
}

/* Are there results that only entering the kernel makes visible? */
static inline bool ring_needs_enter(const struct ring *ring)
{
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED) &
	       (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN);
}

#endif /* FLEXSC_ENGINE_RING_H */
