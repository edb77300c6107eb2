/* SPDX-License-Identifier: MIT */
/*
 * An io_uring, created by liburing. A request is an SQE, a result is a CQE. Taking
 * requests and entering the kernel are implemented here, not by liburing, because both
 * are on the path of every call. Owner only.
 *
 * If the ring has an array of SQE indices, liburing has initialised it to the identity,
 * so nothing writes to it later.
 *
 * The owner takes a request and fills it. The kernel doesn't see the request before the
 * next flexsc__ring_enter(). R1: the owner publishes requests by a release store of the
 * tail; the kernel acquires it. R2: the kernel moves the head when it has consumed a
 * request; the owner acquires the head before it fills the request again.
 *
 * W1: the owner sets "handed", then reads the guards of the requests. W2: a thread that
 * closes a descriptor gives the guard a duplicate, then reads the index "handed", and
 * waits until the kernel has consumed all requests before this index. The accesses of
 * both threads are sequentially consistent. So either the owner puts the duplicate into
 * a request, or the kernel has looked up the descriptor before it is closed.
 *
 * A poller executes requests with the users, groups and capabilities that the owner had
 * when it created the ring. If they have changed since, the owner registers its present
 * ones with the ring as a "personality", and puts its number into each later request.
 */
#ifndef FLEXSC_ENGINE_RING_H
#define FLEXSC_ENGINE_RING_H

#include <flexsc/loop.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pollers.h"

struct ring {
	struct io_uring_sqe *sqes;
	uint32_t tail;		/* index of the next request to fill */
	uint32_t head;		/* the kernel has consumed the requests before this
				 * index */
	uint32_t mask;
	bool polled;		/* a poller takes the requests: pollers.h */
	int unpolled;		/* -errno: why there is no poller, despite
				 * kernel_cores */
	struct polled_ring member;	/* used if "polled" is set */
	uint32_t identity;	/* the count of identity changes, when the ring got
				 * its present identity */
	uint16_t personality;	/* the number of the present identity; 0: the one of
				 * the ring's creation */
	uint16_t oldest;	/* the number of the first identity that is still
				 * registered; valid if "personality" isn't 0 */
	unsigned int enter_fd;	/* the descriptor, or the registered index */
	int failed;		/* -errno if entering fails permanently; 0: it works */
	unsigned int enter_flags;
	uint64_t *switches;	/* the counter of mode switches */
	/*
	 * Called before the kernel gets requests whose descriptors other threads
	 * may close; NULL: there are no such requests.
	 */
	void (*renew)(struct ring *ring);
	_Atomic uint32_t handed;	/* W1: the kernel may be consuming requests
					 * before this index */
	struct io_uring uring;
};

/*
 * Create a ring with the best flags that the kernel accepts. -ERANGE: the cores can't
 * be used. -EPERM: forbidden, or a filter would end the process at the call. Other
 * errors are io_uring_setup()'s.
 */
int flexsc__ring_init(struct ring *ring, const struct flexsc_options *options,
	      uint64_t *switches);
void flexsc__ring_fini(struct ring *ring);

/*
 * Submit the requests and collect results into the completion queue. If ns isn't 0,
 * sleep until a result arrives, for ns nanoseconds at most. 0 or -errno. -ETIME and
 * -EINTR count as a wake-up. After -EBUSY or -EAGAIN the caller has to take results
 * first. A permanent error is stored in "failed".
 */
int flexsc__ring_enter(struct ring *ring, uint64_t ns);

/* Submit the requests; neither collect results nor sleep. */
int flexsc__ring_submit(struct ring *ring);

/*
 * Any thread, any signal handler: the users, groups or capabilities of the process's
 * threads have changed. Requests that are submitted after this execute with the present
 * ones of the loop's owner.
 */
void flexsc__rings_identify(void);

static inline uint32_t ring_head(const struct ring *ring)
{
	/* R2 */
	return __atomic_load_n(ring->uring.sq.khead, __ATOMIC_ACQUIRE);
}

/*
 * Take a request to fill; its content is undefined. NULL: the submission queue is full,
 * submit first.
 */
static inline struct io_uring_sqe *ring_request(struct ring *ring)
{
	if (ring->tail - ring->head > ring->mask) {
		ring->head = ring_head(ring);
		if (ring->tail - ring->head > ring->mask)
			return NULL;
	}
	return &ring->sqes[ring->tail++ & ring->mask];
}

/* Give back the request that was taken last, because no call uses it. */
static inline void ring_return(struct ring *ring)
{
	ring->tail--;
}

/*
 * Returns the index of the first request that the kernel can't have read. Without
 * SQPOLL the kernel reads requests only while it consumes them.
 */
static inline uint32_t ring_unseen(const struct ring *ring)
{
	return ring->polled ? *ring->uring.sq.ktail : ring_head(ring);
}

/* Is the polling kernel thread asleep? */
static inline bool ring_poller_sleeps(const struct ring *ring)
{
	/*
	 * A sequentially consistent load, ordered after R1. Otherwise the poller might
	 * fall asleep after this check and miss requests.
	 */
	return __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_SEQ_CST) &
	       IORING_SQ_NEED_WAKEUP;
}

/* SQPOLL: wait until the kernel has consumed all submitted requests, or fails. */
void flexsc__ring_await_consumed(struct ring *ring);

/*
 * SQPOLL: while the submission queue is full, sleep for a moment. A busy wait would keep
 * the poller from the core if it shares the owner's.
 */
void flexsc__ring_await_room(const struct ring *ring);

/* The operation of a retracted request; the kernel has none with this number. */
#define RETRACTED	255U

/*
 * SQPOLL, after entering has failed: returns the first published request that the poller
 * hasn't executed and never will. The result of an earlier one may be -EINVAL: then the
 * poller has refused it without executing it.
 */
uint32_t flexsc__ring_retract(const struct ring *ring);

/*
 * W2: wait until the kernel has consumed all requests before "handed". Not for the
 * owner.
 */
void flexsc__ring_await_handed(const struct ring *ring);

/*
 * Are there requests to submit, for the first time or because the kernel hasn't
 * consumed them?
 */
static inline bool ring_unsubmitted(const struct ring *ring)
{
	return ring->tail != ring_unseen(ring);
}

/* Does the kernel hold back results, because the completion queue is full? */
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
