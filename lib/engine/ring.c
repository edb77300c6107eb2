/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>

#include "lib/base/compiler.h"
#include "lib/base/cores.h"
#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "lib/base/syscall.h"
#include "uring_kills.h"
#include "why.h"

#define POLL_MS		1	/* how long a poller polls if poll_us is 0 */
#define HANDED_NS	20000	/* interval of checks whether the kernel has consumed
				 * the requests */

/*
 * liburing maps and unmaps memory without libc, so TSan doesn't see it. If a new ring
 * got the addresses of another thread's earlier ring, TSan would report a race. So
 * report mapping and unmapping to TSan.
 */
#if defined(__SANITIZE_THREAD__)
static char ring_memory;
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define MAPPED()	__tsan_acquire(&ring_memory)
#define UNMAPS()	__tsan_release(&ring_memory)
#else
#define MAPPED()	((void)0)
#define UNMAPS()	((void)0)
#endif

/*
 * Sizes of a ring, the best first; the smaller ones are used if memory is short. If the
 * submission queue is full, the owner submits before it posts. If the completion queue
 * is full, the kernel keeps the remaining results.
 */
static const struct {
	unsigned int requests, results;
} sizes[] = { { 1024, 8192 }, { 256, 2048 }, { 64, 512 } };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

/*
 * Number of attempts to create a ring, and the pause between them: the kernel frees the
 * memory of a destroyed ring, which is charged to RLIMIT_MEMLOCK, only later.
 */
#define FREEING_TRIES	5U
#define FREEING_NS	10000000

/* How many rings a thread can register: IO_RINGFD_REG_MAX in the kernel. */
#define INDICES	16U

/*
 * By default, the kernel counts an owner's wait as one for a disk. Each idle loop would
 * then add to the iowait of its core, and to the io pressure of its control group.
 * Linux 6.15 has a flag against it.
 */
#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT	(1U << 17)
#define IORING_ENTER_NO_IOWAIT	(1U << 7)
#endif

#define BASIC	(IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP)

/*
 * Sets of setup flags, the best first. A kernel that lacks a flag of one set may accept
 * the next.
 */
static const unsigned int setup_flags[] = {
	BASIC | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	BASIC | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG,
	BASIC,
	0
};

/*
 * Sets of setup flags for SQPOLL rings. They lack IORING_SETUP_DEFER_TASKRUN, because
 * with it the owner would have to enter the kernel for results. SQPOLL is used to avoid
 * entering. They lack IORING_SETUP_SINGLE_ISSUER, because the heir of a stuck owner
 * submits requests, too, and registers identities.
 */
static const unsigned int polled_flags[] = {
	BASIC | IORING_SETUP_SQPOLL | IORING_SETUP_SUBMIT_ALL,
	BASIC | IORING_SETUP_SQPOLL,
	0
};

static int ring_setup_polled(struct ring *ring,
			     const struct flexsc_options *options, size_t size,
			     struct io_uring_params *params)
{
	params->sq_thread_idle = options->poll_us / 1000 +
				 (options->poll_us % 1000 != 0);
	if (!params->sq_thread_idle)
		params->sq_thread_idle = POLL_MS;
	return flexsc__pollers_set_up(ring->member.core, sizes[size].requests,
				      &ring->uring, params);
}

static int ring_setup(struct ring *ring, const struct flexsc_options *options,
		      size_t size, struct io_uring_params *params)
{
	const unsigned int *flags = ring->polled ? polled_flags : setup_flags;
	int err = -EINVAL;

	for (; *flags && err == -EINVAL; flags++) {
		*params = (struct io_uring_params){
			.flags = *flags,
			.cq_entries = sizes[size].results,
		};
		if (ring->polled)
			err = ring_setup_polled(ring, options, size, params);
		else
			err = io_uring_queue_init_params(sizes[size].requests,
							 &ring->uring, params);
	}
	return err;
}

static int ring_setup_any(struct ring *ring,
			  const struct flexsc_options *options,
			  struct io_uring_params *params)
{
	int err = -ENOMEM;

	for (size_t i = 0; err == -ENOMEM && i < SIZES; i++)
		err = ring_setup(ring, options, i, params);
	return err;
}

/*
 * Register the ring's descriptor (IORING_REGISTER_RING_FDS), so that entering needs no
 * descriptor lookup. Each kernel thread has its own registered indices. Choose a high
 * one, because liburing gives the lowest one to a ring of the program. Under flexsc
 * run, the program's user thread may later run on another carrier, where the index of
 * the program's ring must not refer to the carrier's ring.
 *
 * A ring with a poller isn't registered: the heir of a stuck owner may enter it, too.
 */
static void ring_register(struct ring *ring)
{
	struct io_uring_rsrc_update update = { .offset = INDICES };
	long ret;

	do {
		update.offset--;
		update.data = (uint64_t)ring->uring.ring_fd;
		ret = raw_syscall(SYS_io_uring_register,
				  (uint64_t)ring->uring.ring_fd,
				  IORING_REGISTER_RING_FDS, PTR(&update), 1, 0,
				  0);
	} while (ret == -EBUSY && update.offset);
	if (ret != 1)
		return;
	ring->enter_fd = update.offset;
	ring->enter_flags = IORING_ENTER_REGISTERED_RING;
}

static void ring_unregister(const struct ring *ring)
{
	struct io_uring_rsrc_update update = { .offset = ring->enter_fd };

	if (ring->enter_flags & IORING_ENTER_REGISTERED_RING)
		raw_syscall(SYS_io_uring_register,
			    (uint64_t)ring->uring.ring_fd,
			    IORING_UNREGISTER_RING_FDS, PTR(&update), 1, 0, 0);
}

/* Number of changes of identity. */
static _Atomic uint32_t identities;

void flexsc__rings_identify(void)
{
	/* I1: release after the change; pairs with I2. */
	atomic_fetch_add_explicit(&identities, 1, memory_order_release);
}

/* One attempt to create the ring. */
static int ring_make(struct ring *ring, const struct flexsc_options *options,
		     struct io_uring_params *params)
{
	int err;

	flexsc__private_fd_begin();
	err = ring_setup_any(ring, options, params);
	ring->uring.ring_fd = flexsc__private_fd_made(err ? -1 : ring->uring.ring_fd);
	return err;
}

/* The same, for a ring with a poller. */
static int ring_make_polled(struct ring *ring,
			    const struct flexsc_options *options,
			    struct io_uring_params *params)
{
	struct cores cores;
	cpu_set_t mine;
	int err;

	err = flexsc__cores_list(options->kernel_cores, &cores);
	if (err)
		return -ERANGE;
	CPU_ZERO(&mine);
	sched_getaffinity(0, sizeof(mine), &mine);
	flexsc__pollers_lock();
	err = flexsc__pollers_choose(&cores, &mine, sched_getcpu());
	if (err >= 0) {
		ring->member.core = (unsigned int)err;
		err = ring_make(ring, options, params);
	}
	if (!err)
		flexsc__pollers_enter(&ring->member, ring->member.core,
				      ring->uring.ring_fd);
	flexsc__pollers_unlock();
	return err;
}

/*
 * Create the ring. If the kernel refuses a poller, create a ring without one. If the
 * other ring is refused as well, the error is that one's.
 */
static int ring_try(struct ring *ring, const struct flexsc_options *options,
		    struct io_uring_params *params)
{
	int err;

	ring->polled = options->kernel_cores;
	if (ring->polled) {
		err = ring_make_polled(ring, options, params);
		if (!err || err == -ERANGE || err == -ENOMEM)
			return err;
		ring->polled = false;
		ring->unpolled = err;
	}
	return ring_make(ring, options, params);
}

int flexsc__ring_init(struct ring *ring, const struct flexsc_options *options,
	      uint64_t *switches)
{
	const struct timespec moment = { 0, FREEING_NS };
	struct io_uring_params params;
	int err;

	*ring = (struct ring){
		.switches = switches,
		.identity = atomic_load_explicit(&identities,
						 memory_order_acquire),
	};
	if (flexsc__uring_kills())
		return -EPERM;
	err = ring_try(ring, options, &params);
	for (unsigned int i = 0; err == -ENOMEM && i < FREEING_TRIES; i++) {
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
		err = ring_try(ring, options, &params);
	}
	if (err)
		return err;
	MAPPED();
	ring->uring.enter_ring_fd = ring->uring.ring_fd;
	ring->enter_fd = (unsigned int)ring->uring.ring_fd;
	ring->sqes = ring->uring.sq.sqes;
	ring->mask = params.sq_entries - 1;
	/*
	 * Ignore errors of these two functions: without them, a forked child inherits
	 * the ring's memory, or entering is slower, but the ring works.
	 */
	io_uring_ring_dontfork(&ring->uring);
	if (!ring->polled)
		ring_register(ring);
	if (params.features & IORING_FEAT_NO_IOWAIT)
		ring->enter_flags |= IORING_ENTER_NO_IOWAIT;
	return 0;
}

void flexsc__ring_fini(struct ring *ring)
{
	if (ring->polled)
		flexsc__pollers_leave(&ring->member);
	UNMAPS();
	ring_unregister(ring);
	fds_forget((uint32_t)ring->uring.ring_fd);
	io_uring_queue_exit(&ring->uring);
}

/*
 * Record a permanent error of io_uring_enter(). -EEXIST isn't recorded: it only means
 * that the ring belongs to another thread than the caller.
 */
static COLD int ring_error(struct ring *ring, int err)
{
	if (err != -EEXIST && !flexsc__uring_passes(err))
		ring->failed = err;
	return err;
}

void flexsc__ring_await_consumed(struct ring *ring)
{
	const struct timespec moment = { 0, HANDED_NS };

	while (!ring->failed && ring_head(ring) != *ring->uring.sq.ktail) {
		if (ring_poller_sleeps(ring))
			flexsc__ring_submit(ring);
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	}
}

void flexsc__ring_await_room(const struct ring *ring)
{
	const struct timespec moment = { 0, HANDED_NS };

	if (ring->tail - ring_head(ring) > ring->mask)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

/*
 * Unregister all identities but the present one, if the kernel has consumed all requests
 * that name them. The kernel numbers them in the order of their registration, from 1 on,
 * and after UINT16_MAX again from 1 on.
 */
static COLD void ring_forget_identities(struct ring *ring)
{
	if (ring_head(ring) != *ring->uring.sq.ktail)
		return;
	for (; ring->oldest != ring->personality; ring->oldest++) {
		if (!ring->oldest)
			continue;
		__atomic_fetch_add(ring->switches, 1, __ATOMIC_RELAXED);
		io_uring_unregister_personality(&ring->uring, ring->oldest);
	}
}

/*
 * Register the owner's identity with the ring. If the identity can't be registered, the
 * ring has failed, because its requests must not execute with the previous one.
 */
static COLD int ring_identify(struct ring *ring, uint32_t identity)
{
	const int id = io_uring_register_personality(&ring->uring);

	__atomic_fetch_add(ring->switches, 1, __ATOMIC_RELAXED);
	if (id < 0) {
		ring->failed = id;
		return id;
	}
	if (!ring->personality)
		ring->oldest = (uint16_t)id;
	ring->personality = (uint16_t)id;
	ring->identity = identity;
	ring_forget_identities(ring);
	return 0;
}

/*
 * Before a poller sees the requests, if there are any: let them execute with the owner's
 * identity.
 */
static int ring_sign(struct ring *ring)
{
	/* I2 */
	const uint32_t identity =
		atomic_load_explicit(&identities, memory_order_acquire);
	int err = 0;

	if (unlikely(identity != ring->identity) &&
	    *ring->uring.sq.ktail != ring->tail)
		err = ring_identify(ring, identity);
	if (ring->personality)
		for (uint32_t i = *ring->uring.sq.ktail; i != ring->tail; i++)
			ring->sqes[i & ring->mask].personality =
				ring->personality;
	return err;
}

void flexsc__ring_await_handed(const struct ring *ring)
{
	const struct timespec moment = { 0, HANDED_NS };

	/* W2 */
	while ((int32_t)(atomic_load(&ring->handed) - ring_head(ring)) > 0)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

static COLD void ring_hand(struct ring *ring)
{
	/* W1 */
	atomic_store(&ring->handed, ring->tail);
	ring->renew(ring);
}

/*
 * Called when io_uring_enter() has returned. Without SQPOLL, the kernel consumes no more
 * requests until the next io_uring_enter(), so set "handed" back to the first request
 * that it hasn't consumed. An SQPOLL thread may consume requests at any time.
 */
static COLD void ring_handed(struct ring *ring)
{
	const uint32_t head = ring_head(ring);

	if (!ring->polled)
		atomic_store(&ring->handed, head);
	if (head == ring->tail)
		ring->renew = NULL;
}

static inline __attribute__((always_inline)) int
ring_enter_kernel(struct ring *ring, uint32_t submit, unsigned int flags,
		  uint64_t ns)
{
	struct __kernel_timespec limit;
	struct io_uring_getevents_arg arg;
	bool timed = ns && ns != FLEXSC_FOREVER;
	long ret;

	flags |= ring->enter_flags;
	if (timed) {
		limit.tv_sec = (int64_t)(ns / 1000000000);
		limit.tv_nsec = (int64_t)(ns % 1000000000);
		arg = (struct io_uring_getevents_arg){ .ts = PTR(&limit) };
		flags |= IORING_ENTER_EXT_ARG;
	}
	__atomic_fetch_add(ring->switches, 1, __ATOMIC_RELAXED);
	ret = raw_syscall(SYS_io_uring_enter,
			  ring->enter_fd, submit,
			  ns != 0, flags, timed ? PTR(&arg) : 0,
			  timed ? sizeof(arg) : 0);
	return unlikely(ret < 0) ? ring_error(ring, (int)ret) : 0;
}

/* Enters the kernel only to sleep, to wake the poller, or for hidden results. */
static __attribute__((noinline)) int
ring_enter_polled(struct ring *ring, unsigned int flags, uint64_t ns)
{
	const uint32_t submit = ring->tail - ring_head(ring);
	int err;

	/* After a failure, syscall threads make the calls: publish nothing. */
	if (ring->failed)
		return ring->failed;
	err = ring_sign(ring);
	if (err)
		return err;
	/* R1: sequentially consistent with the load in ring_poller_sleeps(). */
	__atomic_store_n(ring->uring.sq.ktail, ring->tail, __ATOMIC_SEQ_CST);
	if (ring_poller_sleeps(ring))
		flags |= IORING_ENTER_SQ_WAKEUP;
	else if (!ns && !ring_needs_enter(ring))
		return 0;
	return ring_enter_kernel(ring, submit, flags, ns);
}

static inline __attribute__((always_inline)) int
ring_enter_once(struct ring *ring, unsigned int flags, uint64_t ns)
{
	const uint32_t submit = ring->tail - ring_head(ring);

	if (ring->polled)
		return ring_enter_polled(ring, flags, ns);
	/* R1: publishes the requests. */
	__atomic_store_n(ring->uring.sq.ktail, ring->tail, __ATOMIC_RELEASE);
	return ring_enter_kernel(ring, submit, flags, ns);
}

static COLD int ring_enter_handing(struct ring *ring, unsigned int flags,
				   uint64_t ns)
{
	int err;

	if (ring->failed)
		return ring->failed;
	ring_hand(ring);
	err = ring_enter_once(ring, flags, ns);
	ring_handed(ring);
	return err;
}

static int ring_enter(struct ring *ring, unsigned int flags, uint64_t ns)
{
	return unlikely(ring->renew) ? ring_enter_handing(ring, flags, ns) :
				       ring_enter_once(ring, flags, ns);
}

int flexsc__ring_enter(struct ring *ring, uint64_t ns)
{
	return ring_enter(ring, IORING_ENTER_GETEVENTS, ns);
}

int flexsc__ring_submit(struct ring *ring)
{
	return ring_enter(ring, 0, 0);
}
